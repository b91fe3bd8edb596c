#include "softcuda/grid.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "softcuda/driver.h"
#include "softcuda/occupancy.h"

namespace cuplex::softcuda {
namespace {

CUresult CodeOf(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::kIllegalAddress:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case Fault::Kind::kMisalignedAddress:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    case Fault::Kind::kAssert:
      return CUDA_ERROR_ASSERT;
    default:
      return CUDA_ERROR_LAUNCH_FAILED;
  }
}

// `extra` is a list of name, value, name, value, ..., end: one buffer with all parameters.
CUresult ReadExtra(void** extra, const void** buffer, size_t* size) {
  size_t* size_at = nullptr;
  for (int i = 0; i < 16; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_END) {
      if (!*buffer || !size_at) return CUDA_ERROR_INVALID_VALUE;
      *size = *size_at;
      return CUDA_SUCCESS;
    }
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      *buffer = extra[i + 1];
    } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size_at = static_cast<size_t*>(extra[i + 1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult CheckShape(const Shape& shape) {
  constexpr std::array<uint32_t, 3> kMostBlocks = {INT32_MAX, 65535, 65535}, kMostThreads = {1024, 1024, 64};
  for (int i = 0; i < 3; ++i) {
    if (!shape.grid[i] || !shape.block[i] || shape.grid[i] > kMostBlocks[i] ||
        shape.block[i] > kMostThreads[i]) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return shape.block[0] * shape.block[1] * shape.block[2] > kMaxThreadsPerBlock ? CUDA_ERROR_INVALID_VALUE
                                                                                : CUDA_SUCCESS;
}

CUresult CheckAgainst(const Function& function, const Shape& shape) {
  const KernelInfo& info = function.info;
  if (info.reqntid[0] && info.reqntid != shape.block) return CUDA_ERROR_INVALID_VALUE;
  if (shape.block[0] * shape.block[1] * shape.block[2] > info.max_threads)
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  if (shape.dynamic_shared > function.settings.MaxDynamicShared(info)) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult ReadParams(const KernelInfo& info, void** params, void** extra, std::byte* out) {
  if (!info.param_bytes) return CUDA_SUCCESS;
  if (!params == !extra) return CUDA_ERROR_INVALID_VALUE;
  if (extra) {
    const void* buffer = nullptr;
    size_t size = 0;
    if (CUresult wrong = ReadExtra(extra, &buffer, &size)) return wrong;
    // A buffer may stop at the end of its last parameter, or be padded after it.
    if (size < info.params.back().offset + info.params.back().size) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(out, buffer, std::min<size_t>(size, info.param_bytes));
    return CUDA_SUCCESS;
  }
  for (size_t i = 0; i < info.params.size(); ++i) {
    if (!params[i]) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(out + info.params[i].offset, params[i], info.params[i].size);
  }
  return CUDA_SUCCESS;
}

CUresult MakeWorkspace(Context& context, Stream& stream) {
  Block want;
  want.kind = Block::Kind::kModule;
  want.size = kPage;
  want.device = &context.device;
  want.context = &context;
  uintptr_t base;
  if (CUresult failed = context.driver.memory.Allocate(std::move(want), &base)) return failed;
  std::lock_guard guard(context.lock);
  bool live = HandleTable<Stream>::IsLive(&stream);
  if (live && !stream.workspace) {
    stream.workspace = base;
  } else {
    (void)context.driver.memory.Free(base, 1u << static_cast<unsigned>(Block::Kind::kModule));
  }
  return live ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CheckCooperative(const Device& device, Partition& partition, const Function& function,
                          const Shape& shape) {
  uint32_t threads = shape.block[0] * shape.block[1] * shape.block[2];
  uint64_t blocks = uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
  // What programs compute from occupancy, and never more than can make progress together.
  const int each = BlocksPerMultiprocessor(device, function, threads, shape.dynamic_shared);
  const uint64_t most = static_cast<uint64_t>(std::max(each, 1));
  const bool fits =
      blocks <= most * partition.multiprocessors &&
      blocks <= partition.workers().ResidentBlocks(function.kernel, threads, shape.dynamic_shared);
  return fits ? CUDA_SUCCESS : CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

void RunGrid(Context& context, Stream& stream, Kernel* kernel, const Shape& shape,
             std::span<const std::byte> params, CUdeviceptr workspace) {
  // Grid-wide barriers count in the workspace from zero.
  if (workspace) std::memset(reinterpret_cast<void*>(workspace), 0, kPage);
  Launch launch;
  launch.kernel = kernel;
  launch.grid = shape.grid;
  launch.block = shape.block;
  launch.dynamic_shared = shape.dynamic_shared;
  launch.params = params;
  launch.grid_id = context.device.NextGrid();
  launch.cooperative_workspace = workspace;
  launch.text = &context.text;
  launch.heap = context.heap();
  launch.textures = &context.textures.table();
  auto outcome = stream.partition.workers().Run(launch, &stream.control);
  if (Driver::text_receiver.load(std::memory_order_relaxed)) context.GiveText();
  if (!outcome.ok()) {
    Log().warn("{}", outcome.error().sentence);
    context.Fail(outcome.error().blame == Blame::kExhausted ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
                                                            : CUDA_ERROR_LAUNCH_FAILED);
  } else if (*outcome) {
    Log().warn("{}", (**outcome).Sentence());
    context.Fail(CodeOf((**outcome).kind));
  }
}

}  // namespace cuplex::softcuda
