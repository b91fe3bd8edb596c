#include "softcuda/jit/warp_block.h"

#include <algorithm>
#include <bit>
#include <new>

namespace cuplex::softcuda {

void WarpBlock::Begin(WarpCode code, BlockContext& context, std::byte* records, uint32_t bytes,
                      uint32_t lanes, uintptr_t local) {
  code_ = code;
  context_ = &context;
  records_ = records;
  bytes_ = bytes;
  lanes_ = lanes;
  warps_ = (context.threads + lanes - 1) / lanes;
  live_ = warps_;
  uint32_t x = 0, y = 0, z = 0;
  for (uint32_t w = 0; w < warps_; ++w) {
    auto* warp = new (records + size_t{w} * bytes) Warp;
    warp->first = w * lanes;
    uint32_t threads = std::min(lanes, context.threads - warp->first);
    warp->lanes = threads == 32 ? ~0u : (1u << threads) - 1;
    warp->tid[0] = x;
    warp->tid[1] = y;
    warp->tid[2] = z;
    warp->local = local + uint64_t{warp->first} * context.local_bytes;
    warp->lane.linear = warp->first;
    state_[w] = State::kReady;
    for (x += lanes; x >= context.ntid[0] && w + 1 < warps_; x -= context.ntid[0]) {
      if (++y == context.ntid[1]) y = 0, ++z;
    }
  }
  if (barriers_used_) {
    arrived_ = {};
    barriers_used_ = 0;
  }
}

CUPLEX_CALLS_MACHINE_CODE void WarpBlock::Step(Running& running, uint32_t w) {
  Warp& warp = At(w);
  running.lane = &warp.lane;
  warp.lane.linear = warp.first;
  for (;;) {
    if (code_(context_, &warp) == static_cast<uint32_t>(softcuda::Step::kDone)) {
      state_[w] = State::kDone;
      --live_;
      return;
    }
    uint32_t id = warp.barrier;
    if (id >= kBarriers) {
      RaiseFault(running, Fault::Kind::kLaunchFailure, 0, "a barrier whose number is above 15");
    }
    barriers_used_ |= 1u << id;
    expected_[id] = (warp.count + kWarpSize - 1) / kWarpSize * kWarpSize;
    if (!warp.arrives) {
      state_[w] = State::kAtBarrier;
      return;
    }
    arrived_[id] += lanes_;  // barriers count whole warps
  }
}

/// Lets the warps go that wait at the barrier, if there are enough of them.
bool WarpBlock::Open(uint32_t id) {
  uint32_t came = arrived_[id], waiting = 0;
  for (uint32_t w = 0; w < warps_; ++w) {
    waiting += state_[w] == State::kAtBarrier && At(w).barrier == id;
  }
  came += waiting * lanes_;
  // Barriers count whole warps of 32, also where the block has fewer threads.
  if (state_[warps_ - 1] == State::kAtBarrier) came += (context_->threads + 31) / 32 * 32 - warps_ * lanes_;
  // Without a count it is for all threads of the block; those that have ended are not waited for.
  if (!came || (expected_[id] ? came < expected_[id] : waiting < live_)) return false;
  uint32_t yes = 0, votes = 0;
  for (uint32_t w = 0; w < warps_; ++w) {
    Warp& warp = At(w);
    if (state_[w] != State::kAtBarrier || warp.barrier != id) continue;
    if (static_cast<BarrierVote>(warp.vote) == BarrierVote::kNone) continue;
    votes += static_cast<uint32_t>(std::popcount(warp.waiting));
    yes += static_cast<uint32_t>(std::popcount(warp.ballot));
  }
  for (uint32_t w = 0; w < warps_; ++w) {
    Warp& warp = At(w);
    if (state_[w] != State::kAtBarrier || warp.barrier != id) continue;
    switch (static_cast<BarrierVote>(warp.vote)) {
      case BarrierVote::kNone:
        break;
      case BarrierVote::kPopc:
        warp.result = yes;
        break;
      case BarrierVote::kAnd:
        warp.result = yes == votes;
        break;
      case BarrierVote::kOr:
        warp.result = yes != 0;
        break;
    }
    state_[w] = State::kReady;
  }
  arrived_[id] = 0;
  return true;
}

void WarpBlock::Run(Running& running) {
  running.block = context_;
  for (;;) {
    bool moved = false;
    for (uint32_t w = 0; w < warps_; ++w) {
      if (state_[w] != State::kReady) continue;
      Step(running, w);
      moved = true;
    }
    if (!live_) return;
    for (uint32_t ids = barriers_used_; ids; ids &= ids - 1) {
      moved |= Open(static_cast<uint32_t>(std::countr_zero(ids)));
    }
    if (moved) continue;
    for (uint32_t w = 0; w < warps_; ++w) {
      if (state_[w] == State::kAtBarrier) running.lane = &At(w).lane;
    }
    RaiseFault(running, Fault::Kind::kLaunchFailure, 0,
               "a barrier that some threads of the block never reach");
  }
}

}  // namespace cuplex::softcuda
