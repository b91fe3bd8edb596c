#include "server/context.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "server/driver_call.h"
#include "server/graph.h"
#include "server/queue.h"

namespace cuplex::server {

Result<Context::Parts> Context::Make(const DriverTable& cu, const Clock& clock, CUdevice device,
                                     unsigned multiprocessors) {
  Parts parts;
  if (multiprocessors) {
    CUexecAffinityParam affinity{};
    affinity.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT;
    affinity.param.smCount.val = multiprocessors;
    CUPLEX_TRY_DRIVER(cu, cuCtxCreate_v3, &parts.driver, &affinity, 1, CU_CTX_SCHED_BLOCKING_SYNC, device);
  } else {
    CUPLEX_TRY_DRIVER(cu, cuCtxCreate_v2, &parts.driver, CU_CTX_SCHED_BLOCKING_SYNC, device);
  }
  const char* step = "cuStreamCreate";
  CUstream stream = nullptr;
  CUresult code = cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (!code) {
    step = "cuEventCreate";
    code = cu.cuEventCreate(&parts.anchor, CU_EVENT_DEFAULT);
  }
  if (!code) {
    step = "cuEventRecord";
    code = cu.cuEventRecord(parts.anchor, stream);
  }
  if (!code) {
    step = "cuEventSynchronize";
    code = cu.cuEventSynchronize(parts.anchor);
    parts.anchor_ns = clock.NowNs();  // about; Context::TimeOf knows better soon
  }
  if (!code) {
    step = "cuStreamDestroy";
    code = cu.cuStreamDestroy_v2(stream);
  }
  Leave(cu);
  if (code) {
    (void)Unmake(cu, parts.driver);
    return DriverError(step, code);
  }
  return parts;
}

Status Context::Unmake(const DriverTable& cu, CUcontext context) {
  const CUresult code = cu.cuCtxDestroy_v2(context);
  Leave(cu);
  if (code) return DriverError("cuCtxDestroy", code);
  return {};
}

void Context::Leave(const DriverTable& cu) { (void)cu.cuCtxSetCurrent(nullptr); }

Context::Context(const DriverTable& cu, const Clock& clock, ContextOwner& owner, Tenant& tenant,
                 Holding& holding, DeviceQueue& queue, Parts parts)
    : cu_(cu),
      clock_(clock),
      owner_(owner),
      tenant_(tenant),
      holding_(holding),
      queue_(queue),
      driver_(parts.driver),
      anchor_(parts.anchor),
      anchor_ns_(parts.anchor_ns) {
  legacy_.context = this;
  legacy_.legacy = true;
  queue_.Add(*this);
}

Context::~Context() {
  for (Lane& lane : lanes_) {
    for (Interval& interval : lane.measuring) {
      if (interval.start) Drop(interval.start);
      Drop(interval.end);
    }
    if (lane.open && lane.interval.start) Drop(lane.interval.start);
    for (Mark* mark : lane.marks) Drop(mark);
  }
  if (anchor_mark_) Drop(anchor_mark_);
  queue_.Remove(*this);
  queue_.Leave(driver_);
  for (Mark* mark : marks_) {
    if (mark->references == 0) {
      delete mark;
    } else {  // another context waits for it, or an event that outlives this
      mark->context = nullptr;
      mark->state = Mark::State::kDone;
      mark->then.clear();
    }
  }
}

CUresult Context::Enter() { return queue_.Enter(driver_); }

// ------------------------------------------------------------------------------------------- streams

VirtualStream* Context::AddStream(bool blocking) {
  auto stream = std::make_unique<VirtualStream>();
  stream->context = this;
  stream->blocking = blocking;
  stream->lane = static_cast<uint8_t>(next_lane_);
  next_lane_ = next_lane_ + 1 < kLanes ? next_lane_ + 1 : 1;  // lane 0 is the legacy stream's
  streams_.push_back(std::move(stream));
  return streams_.back().get();
}

void Context::Retire(VirtualStream* stream) {
  stream->retired = true;
  if (stream->queue.empty()) std::erase_if(streams_, [&](const auto& each) { return each.get() == stream; });
}

Operation& Context::Push(VirtualStream& stream, OperationKind kind) {
  if (stream.slot < 0) {
    stream.slot = static_cast<int64_t>(working_.size());
    working_.push_back(&stream);
  }
  Operation& operation = stream.queue.push();
  operation.kind = kind;
  operation.sequence = ++sequence_;
  operation.arrived_ns = queue_.recording() ? clock_.NowNs() : 0;
  ++queued_;
  return operation;
}

void Context::Pushed() { queue_.Wake(*this); }

void Context::DropFront(VirtualStream& stream) {
  stream.queue.pop();
  --queued_;
  if (!stream.queue.empty()) return;
  working_.back()->slot = stream.slot;
  working_[static_cast<size_t>(stream.slot)] = working_.back();
  working_.pop_back();
  stream.slot = -1;
  if (stream.retired) std::erase_if(streams_, [&](const auto& each) { return each.get() == &stream; });
}

bool Context::Idle() const {
  return queued_ == 0 && std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& l) { return l.Idle(); });
}

bool Context::Idle(const VirtualStream& stream) const {
  if (!stream.legacy) return stream.queue.empty() && lanes_[stream.lane].completed >= stream.last;
  for (const VirtualStream* other : working_)
    if (other->blocking) return false;
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const Lane& l) { return l.completed >= l.blocking && l.completed >= l.legacy; });
}

void Context::WhenDone(VirtualStream& stream, std::function<void(CUresult)> done) {
  if (fault_ || Idle(stream)) return done(fault_);
  Push(stream, OperationKind::kArrive).countdown = new Countdown{1, CUDA_SUCCESS, std::move(done)};
  Pushed();
}

void Arrive(Countdown* countdown, CUresult code) {
  if (code && !countdown->result) countdown->result = code;
  if (--countdown->left) return;
  countdown->done(countdown->result);
  delete countdown;
}

void Context::WhenAllDone(std::function<void(CUresult)> done) {
  if (fault_ || Idle()) return done(fault_);
  auto* countdown = new Countdown{1, CUDA_SUCCESS, std::move(done)};
  if (!Enter()) {
    for (Lane& lane : lanes_) {
      if (lane.Idle()) continue;
      Mark* mark = MarkEnd(lane);
      if (!mark) continue;
      ++countdown->left;
      mark->then.push_back([countdown](CUresult code) { Arrive(countdown, code); });
      Drop(mark);
    }
  }
  for (size_t i = 0, n = fault_ ? 0 : working_.size(); i < n; ++i) {
    ++countdown->left;
    Push(*working_[i], OperationKind::kArrive).countdown = countdown;
  }
  if (!fault_) Pushed();
  Arrive(countdown, fault_);
}

bool Context::HostFuncDone(uint64_t cookie) {
  for (VirtualStream* stream : working_) {
    Operation& now = Now(stream->queue.front());
    if (now.kind != OperationKind::kHostFunc || !now.host_func.given || now.host_func.cookie != cookie)
      continue;
    if (Advance(stream->queue.front())) DropFront(*stream);
    queue_.Wake(*this);
    return true;
  }
  return false;
}

void Context::SlicingKnown(Function& function, std::unique_ptr<SlicedFunction> sliced) {
  function.slicing = sliced ? Function::Slicing::kReady : Function::Slicing::kCannot;
  function.sliced = std::move(sliced);
  if (queued_) queue_.Wake(*this);
}

// ------------------------------------------------------------------------------------------- order

bool Context::Ready(VirtualStream& stream) {
  Operation& head = stream.queue.front();
  if (stream.legacy) {
    for (const VirtualStream* other : working_)
      if (other->blocking && other != &stream &&
          const_cast<VirtualStream*>(other)->queue.front().sequence < head.sequence)
        return false;
  } else if (stream.blocking && !legacy_.queue.empty() && legacy_.queue.front().sequence < head.sequence) {
    return false;
  }
  const Operation& now = Now(head);
  if (now.kind == OperationKind::kLaunch) return now.launch.function->slicing != Function::Slicing::kAsked;
  if (now.kind == OperationKind::kWait) return now.mark->state != Mark::State::kAhead;
  if (now.kind == OperationKind::kHostFunc)
    return !now.host_func.given &&
           (!now.host_func.reached || now.host_func.reached->state == Mark::State::kDone);
  return true;
}

CUresult Context::OpenLane(Lane& lane) {
  if (lane.stream) return CUDA_SUCCESS;
  return cu_.cuStreamCreate(&lane.stream, CU_STREAM_NON_BLOCKING);
}

CUresult Context::WaitFor(Lane& lane, Lane& other, uint64_t position) {
  const size_t which = static_cast<size_t>(&other - lanes_.data());
  if (other.completed < position) {
    Mark* mark = nullptr;
    for (Mark* placed : other.marks) {
      if (placed->position < position) continue;
      mark = placed;
      break;
    }
    if (!mark) {
      mark = MarkEnd(other);
      if (!mark) return fault_;
      Drop(mark);  // the lane still holds it
    }
    if (CUresult code = OpenLane(lane)) return code;
    if (CUresult code = cu_.cuStreamWaitEvent(lane.stream, mark->event, 0)) return code;
    ++lane.submitted;
    lane.armed = false;
  }
  lane.waited[which] = position;
  return CUDA_SUCCESS;
}

CUresult Context::Order(VirtualStream& stream, Lane& lane) {
  if (stream.legacy) {
    for (Lane& other : lanes_)
      if (&other != &lane && other.blocking > lane.waited[static_cast<size_t>(&other - lanes_.data())])
        if (CUresult code = WaitFor(lane, other, other.blocking)) return code;
  } else if (stream.blocking && lanes_[0].legacy > lane.waited[0]) {
    return WaitFor(lane, lanes_[0], lanes_[0].legacy);
  }
  return CUDA_SUCCESS;
}

// ------------------------------------------------------------------------------------------- faults

void Context::Forget(Operation& operation, CUresult code) {
  switch (operation.kind) {
    case OperationKind::kCopy:
    case OperationKind::kCopyBox:
      if (operation.copy.source_block != kNoBlock) owner_.BlockDone(operation.copy.source_block, false, code);
      if (operation.copy.target_block != kNoBlock) owner_.BlockDone(operation.copy.target_block, true, code);
      break;
    case OperationKind::kRecord:
      if (operation.mark->state == Mark::State::kAhead) Finish(operation.mark, code);
      Drop(operation.mark);
      break;
    case OperationKind::kWait:
      Drop(operation.mark);
      break;
    case OperationKind::kHostFunc:
      if (operation.host_func.reached) Drop(operation.host_func.reached);
      break;
    case OperationKind::kArrive:
      Arrive(operation.countdown, code);
      break;
    case OperationKind::kGraph:
      do {
        Forget(Now(operation), code);
      } while (!Advance(operation));
      break;
    case OperationKind::kLaunch:
    case OperationKind::kFill:
      break;
  }
}

void Context::Fail(CUresult code) {
  if (fault_) return;
  fault_ = code;
  owner_.Faulted(*this, code);
  if (!running_) DropAll();  // else Dispatch does, when it is done with the operation at hand
}

void Context::Overrun() {
  if (fault_) return;
  Fail(CUDA_ERROR_LAUNCH_TIMEOUT);
  owner_.Overran(*this);
}

CUcontext Context::GiveUpDriver() {
  queue_.Leave(driver_);
  return std::exchange(driver_, nullptr);
}

void Context::DropAll() {
  while (!working_.empty()) {
    VirtualStream& stream = *working_.front();
    Operation dropped = std::move(stream.queue.front());
    DropFront(stream);
    Forget(dropped, fault_);
  }
  AbandonIntervals();
  for (Lane& lane : lanes_) {
    while (!lane.marks.empty()) {
      Mark* mark = lane.marks.front();
      lane.marks.pop_front();
      Finish(mark, fault_);
      Drop(mark);
    }
    lane.completed = lane.submitted;
  }
}

}  // namespace cuplex::server
