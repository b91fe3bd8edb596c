// The half of Context that gives operations to the driver.
#include <algorithm>
#include <utility>

#include "server/context.h"
#include "server/driver_call.h"
#include "server/graph.h"
#include "server/queue.h"

namespace cuplex::server {
namespace {

constexpr uint64_t kUnknownKernelNs = 20'000;
constexpr uint64_t kCopyNs = 2'000;
constexpr uint64_t kBytesPerNs = 8;
constexpr uint64_t kLeastCut = 8;    // parts of a slice: shorter ones are not made to fill up a turn
constexpr double kOverCut = 1.25;    // a kernel that is hardly longer than a slice goes as a whole
constexpr uint64_t kManyWaves = 64;  // of a kernel that was not measured yet: it may be long

void* Pointer(uint64_t address) { return reinterpret_cast<void*>(static_cast<uintptr_t>(address)); }

}  // namespace

uint64_t Context::Foresee(const Operation& operation) {
  switch (operation.kind) {
    case OperationKind::kLaunch: {
      const Operation::Launch& l = operation.launch;
      const double block_ns = l.function->forecast.BlockNs(l.shape());
      return block_ns > 0 ? static_cast<uint64_t>(block_ns * static_cast<double>(l.slice.count)) + 1
                          : kUnknownKernelNs;
    }
    case OperationKind::kCopy:
      return kCopyNs + operation.copy.bytes / kBytesPerNs;
    case OperationKind::kCopyBox:
      return kCopyNs + operation.copy.bytes * operation.copy.height * operation.copy.depth / kBytesPerNs;
    case OperationKind::kFill:
      return kCopyNs +
             operation.fill.width * operation.fill.element_bytes * operation.fill.height / kBytesPerNs;
    default:
      return 0;
  }
}

uint32_t Context::Dispatch(Turn* turn, const Allowance& allowed) {
  if (working_.empty() || fault_) return 0;
  if (CUresult code = Enter()) {
    Fail(code);
    return 0;
  }
  uint32_t given = 0;
  const uint64_t before = turn->foreseen_ns;
  for (size_t idle = 0; idle < working_.size() && !fault_;) {
    if (next_working_ >= working_.size()) next_working_ = 0;
    VirtualStream& stream = *working_[next_working_];
    bool moved = false;
    bool left = true;
    while (left && Ready(stream)) {
      const uint64_t used = turn->foreseen_ns - before;
      if (given >= allowed.operations || (given && used >= allowed.ns) || turn->spent) return given;
      Operation& head = stream.queue.front();
      Operation& operation = Now(head);
      const bool first = turn->operations + given == 0;
      if (!Cut(operation, *turn, first, allowed.ns - std::min(used, allowed.ns), allowed.slice_ns)) {
        if (turn->spent) return given;
        break;
      }
      running_ = true;
      const bool gone = Run(stream, operation, turn);
      running_ = false;
      if (fault_) {
        if (!Advance(head)) Forget(head, fault_);
        DropFront(stream);
        DropAll();
        return given + 1;
      }
      if (!gone) break;
      moved = true;
      ++given;
      if (operation.kind == OperationKind::kLaunch &&
          operation.launch.next_block < operation.launch.blocks()) {
        turn->spent = true;  // the rest has its time when the turn comes again
        return given;
      }
      if (!Advance(head)) continue;
      left = stream.queue.size() > 1;
      DropFront(stream);  // may end the stream, if it was the last
    }
    if (left) ++next_working_;
    idle = moved ? 0 : idle + 1;
  }
  return given;
}

Operation& Context::Now(Operation& head) {
  return head.kind == OperationKind::kGraph ? head.graph->current : head;
}

bool Context::Advance(Operation& head) {
  if (head.kind != OperationKind::kGraph) return true;
  if (head.graph->Advance()) return false;
  delete head.graph;
  return true;
}

/// Blocks of the launch that the device holds at once. Slices are whole multiples of it, so that a grid of
/// which all blocks are there together, and may wait for each other, stays whole.
uint64_t Context::Wave(const Operation::Launch& launch) const {
  const QueueBounds& bounds = queue_.bounds();
  if (bounds.block_at_a_time) return bounds.multiprocessors;
  Function& f = *launch.function;
  const LaunchShape shape = launch.shape();
  if (f.resident_threads != shape.threads || f.resident_shared_bytes != shape.shared_bytes) {
    int blocks = 0;
    const CUresult code = cu_.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        &blocks, f.handle, static_cast<int>(shape.threads), shape.shared_bytes, CU_OCCUPANCY_DEFAULT);
    // Where the driver does not know, nothing is cut.
    f.resident_blocks = code || blocks < 1 ? UINT32_MAX : static_cast<uint32_t>(blocks);
    f.resident_threads = shape.threads;
    f.resident_shared_bytes = shape.shared_bytes;
  }
  return bounds.multiprocessors * f.resident_blocks;
}

bool Context::Cut(Operation& operation, Turn& turn, bool first, uint64_t left_ns, uint64_t slice_ns) {
  if (operation.kind != OperationKind::kLaunch) return true;
  Operation::Launch& l = operation.launch;
  Function& function = *l.function;
  const uint64_t blocks = l.blocks();
  const double block_ns = function.forecast.BlockNs(l.shape());
  const bool known = block_ns > 0;
  l.slice = {l.next_block, blocks - l.next_block, {}, 0};
  if (!known && !first) {  // what it takes is measured by itself
    turn.spent = true;
    return false;
  }
  turn.spent |= !known;
  const uint64_t wave = Wave(l);
  const double left = block_ns * static_cast<double>(blocks - l.next_block);
  const bool too_long = known ? left > kOverCut * static_cast<double>(slice_ns)
                              : blocks >= kManyWaves * wave && slice_ns != UINT64_MAX;
  if (l.next_block == 0) {
    if (!too_long || blocks <= wave) return true;
    if (!l.cooperative && function.slicing == Function::Slicing::kUnasked) {
      function.slicing = Function::Slicing::kAsked;
      owner_.WantSliced(*this, function);
      if (function.slicing == Function::Slicing::kAsked) return false;
    }
    if (l.cooperative || function.slicing == Function::Slicing::kCannot) {
      if (known) holding_.counters().whole_kernels.Add(function.name);
      return true;
    }
  }
  const ptx::SlicedKernel& kernel = function.sliced->kernel;
  const ptx::GridSize grid = {l.grid[0], l.grid[1], l.grid[2]};
  if (!ptx::CheckGrid(kernel, grid).ok()) return true;
  const uint64_t least_ns = std::max(slice_ns / kLeastCut, queue_.bounds().least_slice_ns);
  const auto budget = static_cast<double>(std::min(slice_ns, std::max(left_ns, least_ns)));
  l.slice = ptx::NextSlice(kernel, grid, l.next_block, {block_ns, too_long ? budget : 2 * left, wave});
  return true;
}

void Context::Record(Lane& lane, const Operation& head, const Operation& operation, uint64_t foreseen_ns) {
  if (!head.arrived_ns) return;  // it came before
  auto& recorded = lane.interval.recorded;
  if (!recorded) recorded = std::make_shared<std::vector<LoadRecord::Part>>();
  const bool sliced =
      operation.kind == OperationKind::kLaunch && operation.launch.slice.count < operation.launch.blocks();
  // Of a graph each node is a piece of its own, asked for when the graph was.
  const uint64_t node = head.kind == OperationKind::kGraph ? head.graph->next : 0;
  recorded->push_back({head.arrived_ns, foreseen_ns, head.sequence + (node << 40), this, sliced});
}

bool Context::Run(VirtualStream& stream, Operation& operation, Turn* turn) {
  Lane& lane = lanes_[stream.lane];
  CUresult code = Order(stream, lane);
  if (fault_) code = fault_;
  auto reaches = [&](uint64_t position) {
    stream.last = std::max(stream.last, position);
    if (stream.legacy) {
      lane.legacy = stream.last;
    } else if (stream.blocking) {
      lane.blocking = std::max(lane.blocking, stream.last);
    }
  };
  auto measured = [&](CUresult (Context::*run)(Lane&, Operation&)) {
    const uint64_t foreseen = Foresee(operation);
    if (!code) code = OpenLane(lane);
    if (!code) OpenInterval(lane, turn);
    if (fault_) code = fault_;
    if (!code) code = (this->*run)(lane, operation);
    if (code) return;
    lane.armed = false;
    reaches(++lane.submitted);
    if (queue_.recording()) Record(lane, stream.queue.front(), operation, foreseen);
    lane.interval.foreseen_ns += foreseen;
    ++lane.interval.operations;
    queue_.Foreseen(turn, foreseen);
  };
  switch (operation.kind) {
    case OperationKind::kLaunch:
      measured(&Context::RunLaunch);
      if (code) {
        operation.launch.next_block = operation.launch.blocks();
        break;
      }
      lane.interval.Add(operation.launch.function->forecast, operation.launch.shape(),
                        operation.launch.slice.count);
      operation.launch.next_block += operation.launch.slice.count;
      if (operation.launch.next_block == operation.launch.blocks()) holding_.counters().launches.Add();
      break;
    case OperationKind::kCopy:
    case OperationKind::kCopyBox:
      measured(&Context::RunCopy);
      if (!code) code = CopyGiven(lane, operation);
      if (code) {
        Forget(operation, code);
        // Who waits for the block learns of it there, and not once more from a later call.
        if (operation.copy.target_block != kNoBlock && !IsSticky(code)) code = CUDA_SUCCESS;
      }
      break;
    case OperationKind::kFill:
      measured(&Context::RunFill);
      if (!code) lane.interval.mixed = true;
      break;
    case OperationKind::kRecord:
      if (!code) code = Place(operation.mark, lane);
      if (!code) reaches(lane.submitted);
      if (code) Finish(operation.mark, code);
      Drop(operation.mark);
      break;
    case OperationKind::kWait: {
      Mark* mark = operation.mark;
      if (!code && mark->state == Mark::State::kPlaced) {
        if (mark->context == this && mark->lane == stream.lane) {
          reaches(mark->position);
        } else {
          code = OpenLane(lane);
          if (!code) code = cu_.cuStreamWaitEvent(lane.stream, mark->event, 0);
          if (!code) reaches(++lane.submitted);
          lane.armed = false;
        }
      }
      Drop(mark);
      break;
    }
    case OperationKind::kHostFunc: {
      auto& func = operation.host_func;
      if (!code && !func.reached && !lane.Idle()) {
        func.reached = MarkEnd(lane);
        if (!func.reached) break;
        func.reached->then.push_back([this](CUresult) { queue_.Wake(*this); });
        return false;
      }
      if (func.reached) Drop(std::exchange(func.reached, nullptr));
      if (code) break;
      func.given = true;
      owner_.GiveHostFunc(func.cookie);
      return false;
    }
    case OperationKind::kGraph:
      break;  // its nodes come here one by one
    case OperationKind::kArrive: {
      Countdown* countdown = operation.countdown;
      const bool reached = stream.legacy ? lane.Idle() : lane.completed >= stream.last;
      Mark* mark = code || reached ? nullptr : MarkEnd(lane);
      if (mark) {
        mark->then.push_back([countdown](CUresult result) { Arrive(countdown, result); });
        Drop(mark);
      } else {
        Arrive(countdown, code ? code : fault_);
      }
      break;
    }
  }
  if (!code || fault_) return true;
  if (IsSticky(code)) {
    Fail(code);
  } else {
    owner_.Deferred(code);
  }
  return true;
}

CUresult Context::CopyGiven(Lane& lane, Operation& operation) {
  lane.interval.mixed = true;
  const Operation::Copy& copy = operation.copy;
  const bool box = operation.kind == OperationKind::kCopyBox;
  holding_.counters().Copy(static_cast<metrics::Direction>(copy.direction),
                           box ? copy.bytes * copy.height * copy.depth : copy.bytes);
  if (copy.source_block == kNoBlock && copy.target_block == kNoBlock) return CUDA_SUCCESS;
  Mark* mark = MarkEnd(lane);
  if (!mark) return fault_;
  mark->then.push_back([this, source = copy.source_block, target = copy.target_block](CUresult done) {
    if (source != kNoBlock) owner_.BlockDone(source, false, done);
    if (target != kNoBlock) owner_.BlockDone(target, true, done);
  });
  Drop(mark);
  return CUDA_SUCCESS;
}

CUresult Context::RunLaunch(Lane& lane, Operation& operation) {
  const Operation::Launch& l = operation.launch;
  std::span<const std::byte> bytes = operation.parameters();
  auto* parameters = const_cast<std::byte*>(bytes.data());
  if (l.slice.count < l.blocks()) {
    holding_.counters().slices.Add();
    return RunSlice(lane, operation);
  }
  if (l.cooperative) {
    std::vector<void*> pointers;
    for (const FunctionParameter& parameter : l.function->parameters)
      pointers.push_back(parameters + parameter.offset);
    return cu_.cuLaunchCooperativeKernel(l.function->handle, l.grid[0], l.grid[1], l.grid[2], l.block[0],
                                         l.block[1], l.block[2], l.shared_bytes, lane.stream,
                                         pointers.data());
  }
  size_t size = bytes.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  return cu_.cuLaunchKernel(l.function->handle, l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1],
                            l.block[2], l.shared_bytes, lane.stream, nullptr, size ? extra : nullptr);
}

CUresult Context::RunSlice(Lane& lane, Operation& operation) {
  const Operation::Launch& l = operation.launch;
  const SlicedFunction& sliced = *l.function->sliced;
  if (l.next_block == 0)
    for (const SlicedFunction::Constant& c : sliced.constants)
      if (CUresult code = cu_.cuMemcpyDtoDAsync_v2(c.copy, c.original, c.bytes, lane.stream)) return code;
  const std::span<const std::byte> own = operation.parameters();
  const std::vector<std::byte> more =
      ptx::SliceArguments(sliced.kernel, {l.grid[0], l.grid[1], l.grid[2]}, l.slice, sliced.globals);
  size_t size = sliced.kernel.arguments_offset + more.size();
  parameters_.assign(size, std::byte{});
  std::copy(own.begin(), own.end(), parameters_.begin());
  std::copy(more.begin(), more.end(), parameters_.begin() + sliced.kernel.arguments_offset);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, parameters_.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  return cu_.cuLaunchKernel(sliced.handle, l.slice.launch[0], l.slice.launch[1], l.slice.launch[2],
                            l.block[0], l.block[1], l.block[2], l.shared_bytes, lane.stream, nullptr, extra);
}

CUresult Context::RunCopy(Lane& lane, Operation& operation) {
  const Operation::Copy& c = operation.copy;
  const bool from_block = c.source_block != kNoBlock, to_block = c.target_block != kNoBlock;
  const uint64_t src = from_block ? reinterpret_cast<uintptr_t>(owner_.Block(c.source_block)) + c.src : c.src;
  const uint64_t dst = to_block ? reinterpret_cast<uintptr_t>(owner_.Block(c.target_block)) + c.dst : c.dst;
  if (operation.kind == OperationKind::kCopy) {
    if (from_block && !to_block) return cu_.cuMemcpyHtoDAsync_v2(dst, Pointer(src), c.bytes, lane.stream);
    if (to_block && !from_block) return cu_.cuMemcpyDtoHAsync_v2(Pointer(dst), src, c.bytes, lane.stream);
    return cu_.cuMemcpyAsync(dst, src, c.bytes, lane.stream);
  }
  CUDA_MEMCPY3D box{};
  auto side = [](bool block, uint64_t address, CUmemorytype& type, auto& host, CUdeviceptr& device) {
    type = block ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_UNIFIED;
    if (block) {
      host = Pointer(address);
    } else {
      device = address;
    }
  };
  side(from_block, src, box.srcMemoryType, box.srcHost, box.srcDevice);
  side(to_block, dst, box.dstMemoryType, box.dstHost, box.dstDevice);
  if (c.from.array) {
    box.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    box.srcDevice = 0;
    box.srcArray = c.from.array;
    box.srcXInBytes = c.from.x;
    box.srcY = c.from.y;
    box.srcZ = c.from.z;
  }
  if (c.to.array) {
    box.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    box.dstDevice = 0;
    box.dstArray = c.to.array;
    box.dstXInBytes = c.to.x;
    box.dstY = c.to.y;
    box.dstZ = c.to.z;
  }
  box.srcPitch = c.src_pitch;
  box.srcHeight = c.src_pitch ? c.src_slice / c.src_pitch : 0;
  box.dstPitch = c.dst_pitch;
  box.dstHeight = c.dst_pitch ? c.dst_slice / c.dst_pitch : 0;
  box.WidthInBytes = c.bytes;
  box.Height = c.height;
  box.Depth = c.depth;
  return cu_.cuMemcpy3DAsync_v2(&box, lane.stream);
}

CUresult Context::RunFill(Lane& lane, Operation& operation) {
  const Operation::Fill& f = operation.fill;
  if (f.height == 1) {
    switch (f.element_bytes) {
      case 1:
        return cu_.cuMemsetD8Async(f.dst, static_cast<uint8_t>(f.value), f.width, lane.stream);
      case 2:
        return cu_.cuMemsetD16Async(f.dst, static_cast<uint16_t>(f.value), f.width, lane.stream);
      default:
        return cu_.cuMemsetD32Async(f.dst, f.value, f.width, lane.stream);
    }
  }
  switch (f.element_bytes) {
    case 1:
      return cu_.cuMemsetD2D8Async(f.dst, f.pitch, static_cast<uint8_t>(f.value), f.width, f.height,
                                   lane.stream);
    case 2:
      return cu_.cuMemsetD2D16Async(f.dst, f.pitch, static_cast<uint16_t>(f.value), f.width, f.height,
                                    lane.stream);
    default:
      return cu_.cuMemsetD2D32Async(f.dst, f.pitch, f.value, f.width, f.height, lane.stream);
  }
}

}  // namespace cuplex::server
