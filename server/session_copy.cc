// The calls of a session that give work to a stream: copies, fills, launches.
#include "protocol/staging.h"
#include "server/driver_call.h"
#include "server/session.h"

namespace cuplex::server {
namespace {

constexpr uint32_t kStagedSource = 1, kStagedTarget = 2;
constexpr uint64_t kMostRows = uint64_t{1} << 32;

}  // namespace

std::optional<uint64_t> Session::CopyExtent(uint64_t width, uint64_t height, uint64_t depth, uint64_t pitch,
                                            uint64_t slice) {
  if (width == 0 || height == 0 || depth == 0) return 0;
  if (width >> 48 || height >= kMostRows || depth >= kMostRows || pitch >> 48 || slice >> 60)
    return std::nullopt;
  if ((height > 1 && pitch < width) || (depth > 1 && (pitch == 0 || slice % pitch != 0))) return std::nullopt;
  __uint128_t last =
      static_cast<__uint128_t>(depth - 1) * slice + static_cast<__uint128_t>(height - 1) * pitch + width;
  if (depth > 1 && slice < (height - 1) * static_cast<__uint128_t>(pitch) + width) return std::nullopt;
  if (last >> 63) return std::nullopt;
  return static_cast<uint64_t>(last);
}

bool Session::CheckCopy(Operation::Copy& copy, uint32_t staged, uint64_t dst_bytes, uint64_t src_bytes) {
  const SegmentGeometry& geometry = segment_.geometry();
  auto block = [&](uint64_t& offset, uint64_t bytes, uint32_t* index) {
    if (offset >= segment_.staging_bytes()) return false;
    *index = static_cast<uint32_t>(offset / geometry.block_bytes);
    offset %= geometry.block_bytes;
    return bytes <= geometry.block_bytes - offset;
  };
  copy.source_block = copy.target_block = kNoBlock;
  const bool from_host = staged & kStagedSource, to_host = staged & kStagedTarget;
  // A block that is named is given back in any case, or its owner would wait for ever.
  bool fits = staged <= (kStagedSource | kStagedTarget);
  uint32_t index = kNoBlock;
  if (from_host) {
    fits &= block(copy.src, src_bytes, &index);
    copy.source_block = index;
  }
  index = kNoBlock;
  if (to_host) {
    fits &= block(copy.dst, dst_bytes, &index);
    copy.target_block = index;
  }
  const bool from_array = copy.from.array, to_array = copy.to.array;
  const Allocation* from = from_host || from_array ? nullptr : memory_.Around(copy.src, src_bytes);
  const bool from_device = from_array || (from && !from->on_host());
  const Allocation* to = to_host || to_array ? nullptr : memory_.Around(copy.dst, dst_bytes);
  const bool to_device = to_array || (to && !to->on_host());
  const auto direction = !to_device    ? metrics::Direction::kDeviceToHost
                         : from_device ? metrics::Direction::kDeviceToDevice
                                       : metrics::Direction::kHostToDevice;
  copy.direction = static_cast<uint8_t>(direction);
  return fits && (from_host || from_array || from) && (to_host || to_array || to);
}

bool Session::CopyOf(const wire::wireCopyArgs& args, Operation::Copy* copy) {
  *copy = {};
  copy->dst = args.dst();
  copy->src = args.src();
  copy->bytes = args.bytes();
  copy->height = copy->depth = 1;
  return CheckCopy(*copy, args.staged(), args.bytes(), args.bytes());
}

Outcome Session::wireCopy(const CallFrame& frame, const wire::wireCopyArgs& args) {
  Operation::Copy copy;
  const bool good = CopyOf(args, &copy);
  return GiveCopy(frame, OperationKind::kCopy, copy, args.stream(), good);
}

bool Session::CopyOf(const wire::wireCopyBoxArgs& args, Operation::Copy* copy) {
  *copy = BoxOf(args);
  auto to = CopyExtent(copy->bytes, copy->height, copy->depth, copy->dst_pitch, copy->dst_slice);
  auto from = CopyExtent(copy->bytes, copy->height, copy->depth, copy->src_pitch, copy->src_slice);
  return CheckCopy(*copy, args.staged(), to.value_or(0), from.value_or(0)) && to && from;
}

Outcome Session::wireCopyBox(const CallFrame& frame, const wire::wireCopyBoxArgs& args) {
  Operation::Copy copy;
  const bool good = CopyOf(args, &copy);
  return GiveCopy(frame, OperationKind::kCopyBox, copy, args.stream(), good);
}

CUresult Session::GiveCopy(const CallFrame& frame, OperationKind kind, const Operation::Copy& copy,
                           uint64_t handle, bool good) {
  CUresult why = CUDA_SUCCESS;
  VirtualStream* stream = FindStream(frame, handle, &why);
  const bool nothing = copy.bytes == 0 || copy.height == 0 || copy.depth == 0;
  if (stream && !good && !nothing)
    why = Refuse(Fail(Blame::kCaller,
                      "a copy of {} x {} x {} bytes from {:#x} to {:#x} leaves what the client owns.",
                      copy.bytes, copy.height, copy.depth, copy.src, copy.dst));
  if (!why && TooManyQueued()) why = Refuse(metrics::Refusal::kLimit, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  if (why || nothing) {
    if (copy.source_block != kNoBlock) FinishBlock(segment_, copy.source_block, StagingBlock::kFree, why);
    if (copy.target_block != kNoBlock) FinishBlock(segment_, copy.target_block, StagingBlock::kDone, why);
    // Who waits for the block learns of it there, and not once more from a later call.
    return copy.target_block != kNoBlock ? CUDA_SUCCESS : why;
  }
  stream->context->Push(*stream, kind).copy = copy;
  stream->context->Pushed();
  return CUDA_SUCCESS;
}

CUresult Session::FillOf(const wire::wireFillArgs& args, Operation::Fill* fill) {
  *fill = {};
  const uint32_t element = args.element_bytes();
  if (args.width() == 0 || args.height() == 0) return CUDA_SUCCESS;
  auto bytes = element == 1 || element == 2 || element == 4 ? std::optional(element) : std::nullopt;
  auto extent = bytes && !(args.width() >> 44)
                    ? CopyExtent(args.width() * element, args.height(), 1, args.pitch(), 0)
                    : std::nullopt;
  if (!extent || !memory_.Around(args.dst(), *extent) || args.dst() % element != 0 ||
      (args.height() > 1 && args.pitch() % element != 0))
    return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE);
  *fill = {args.dst(), args.pitch(), args.width(), args.height(), args.value(), element};
  return CUDA_SUCCESS;
}

Outcome Session::wireFill(const CallFrame& frame, const wire::wireFillArgs& args) {
  CUresult why;
  VirtualStream* stream = FindStream(frame, args.stream(), &why);
  if (!stream) return why;
  Operation::Fill fill;
  why = FillOf(args, &fill);
  if (why || fill.width == 0) return why;
  if (TooManyQueued()) return Refuse(metrics::Refusal::kLimit, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  stream->context->Push(*stream, OperationKind::kFill).fill = fill;
  stream->context->Pushed();
  return CUDA_SUCCESS;
}

Function* Session::LaunchOf(const wire::wireLaunchArgs& args, std::span<const std::byte> parameters,
                            const Context* context, CUresult* why) {
  OwnFunction* own = functions_.Find(args.function());
  if (!own || contexts_.at(own->context).context.get() != context) {
    *why = Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
    return nullptr;
  }
  if (parameters.size() < own->function->parameter_bytes || args.flags() > 1) {
    *why = Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE);
    return nullptr;
  }
  return own->function.get();
}

void Session::SetLaunch(Operation& operation, Function& function, const wire::wireLaunchArgs& args,
                        std::span<const std::byte> parameters) {
  operation.launch = {&function,
                      {args.grid_x(), args.grid_y(), args.grid_z()},
                      {args.block_x(), args.block_y(), args.block_z()},
                      args.shared_bytes(),
                      (args.flags() & 1) != 0,
                      0,
                      0,
                      {}};
  operation.SetParameters(parameters.first(function.parameter_bytes));
}

Outcome Session::wireLaunch(const CallFrame& frame, const wire::wireLaunchArgs& args,
                            std::span<const std::byte> parameters) {
  CUresult why;
  VirtualStream* stream = FindStream(frame, args.stream(), &why);
  if (!stream) return why;
  Function* function = LaunchOf(args, parameters, stream->context, &why);
  if (!function) return why;
  if (TooManyQueued()) return Refuse(metrics::Refusal::kLimit, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  SetLaunch(stream->context->Push(*stream, OperationKind::kLaunch), *function, args, parameters);
  stream->context->Pushed();
  return CUDA_SUCCESS;
}

}  // namespace cuplex::server
