#include "softcuda/jit/block_run.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "softcuda/jit/matrix.h"

namespace cuplex::softcuda {

void BlockRun::Begin(StepCode code, const BlockContext& context, std::byte* lanes, uint32_t lane_bytes,
                     uintptr_t local) {
  code_ = code;
  context_ = context;
  lanes_ = lanes;
  lane_bytes_ = lane_bytes;
  live_ = context.threads;
  warps_ = (context.threads + kWarpSize - 1) / kWarpSize;
  Prepared now{
      lanes, lane_bytes, local, context.local_bytes, {context.ntid[0], context.ntid[1], context.ntid[2]}};
  if (now == prepared_) {  // the block before had the same threads in the same place
    for (uint32_t t = 0; t < context.threads; ++t) {
      auto* lane = reinterpret_cast<Lane*>(lanes + size_t{t} * lane_bytes);
      lane->resume = 0;
      lane->cluster_phase = 0;
    }
  } else {
    prepared_ = now;
    uint32_t x = 0, y = 0, z = 0;
    for (uint32_t t = 0; t < context.threads; ++t) {
      auto* lane = new (lanes + size_t{t} * lane_bytes) Lane;
      lane->linear = t;
      lane->tid[0] = x;
      lane->tid[1] = y;
      lane->tid[2] = z;
      lane->local = local + size_t{t} * context.local_bytes;
      if (++x == context.ntid[0]) {
        x = 0;
        if (++y == context.ntid[1]) y = 0, ++z;
      }
    }
  }
  for (uint32_t w = 0; w < warps_; ++w) {
    Warp& warp = warp_[w];
    uint32_t lanes_in = std::min(kWarpSize, context.threads - w * kWarpSize);
    warp.ready = lanes_in == 32 ? ~0u : (1u << lanes_in) - 1;
    warp.missing = ~warp.ready;
    warp.yielded = warp.at_collective = warp.converging = warp.at_barrier = 0;
    if (barriers_used_) warp.arrived = {};
  }
  barriers_used_ = 0;
  cluster_phase_ = 0;
}

BlockRun::State BlockRun::Advance(Running& running) {
  running.block = &context_;
  for (;;) {
    bool moved = false;
    for (uint32_t w = 0; w < warps_; ++w) moved |= RunWarp(running, w);
    if (!live_) return State::kDone;
    for (uint32_t ids = barriers_used_; ids; ids &= ids - 1) {
      moved |= TryBarrier(static_cast<uint32_t>(std::countr_zero(ids)));
    }
    bool yielded = false;
    for (uint32_t w = 0; w < warps_; ++w) {
      Warp& warp = warp_[w];
      yielded |= warp.yielded != 0;
      warp.ready |= warp.yielded;
      warp.yielded = 0;
    }
    if (moved) continue;
    if (yielded) return State::kStalled;
    // Nobody can go on, ever: say where one of them waits.
    for (uint32_t w = 0; w < warps_; ++w) {
      uint32_t waiting = ~warp_[w].missing;
      if (!waiting) continue;
      uint32_t bit = static_cast<uint32_t>(std::countr_zero(waiting));
      running.lane = &LaneAt(w, bit);
      RaiseFault(running, Fault::Kind::kLaunchFailure, 0,
                 warp_[w].at_barrier >> bit & 1
                     ? "a barrier that some threads of the block never reach"
                     : "a warp collective that some lanes of its mask never reach");
    }
  }
}

/// True where a thread got somewhere: ended, or reached a place to wait at.
CUPLEX_CALLS_MACHINE_CODE bool BlockRun::RunWarp(Running& running, uint32_t w) {
  Warp& warp = warp_[w];
  bool moved = false;
  for (;;) {
    while (warp.ready) {
      uint32_t todo = warp.ready;
      warp.ready = 0;
      for (; todo; todo &= todo - 1) {
        uint32_t i = static_cast<uint32_t>(std::countr_zero(todo));
        uint32_t bit = 1u << i;
        Lane& lane = LaneAt(w, i);
        running.lane = &lane;
        switch (static_cast<Step>(code_(&context_, &lane))) {
          case Step::kDone:
            warp.missing |= bit;
            --live_;
            moved = true;
            break;
          case Step::kYield:
            warp.yielded |= bit;
            break;
          case Step::kBarrier:
            StartBarrier(running, warp, lane, bit);
            moved = true;
            break;
          case Step::kCollective:
            warp.at_collective |= bit;
            break;
          case Step::kConverge:
            warp.converging |= bit;
            break;
        }
      }
      if (warp.at_collective) moved |= Resolve(running, w);
    }
    if (!warp.converging) return moved;
    moved |= Converge(running, w);
  }
}

void BlockRun::StartBarrier(Running& running, Warp& warp, Lane& lane, uint32_t bit) {
  uint32_t id = lane.op;
  if (id >= kBarriers) {
    RaiseFault(running, Fault::Kind::kLaunchFailure, 0, "a barrier whose number is above 15");
  }
  barriers_used_ |= 1u << id;
  expected_[id] = (lane.count + kWarpSize - 1) / kWarpSize * kWarpSize;
  if (id == kClusterBarrier) {
    if (lane.c) {
      lane.cluster_phase = cluster_phase_;
    } else if (lane.cluster_phase != cluster_phase_) {  // everybody has arrived since
      warp.ready |= bit;
      return;
    }
  }
  if (lane.c) {  // bar.arrive
    warp.arrived[id] |= bit;
    warp.ready |= bit;
  } else {
    warp.at_barrier |= bit;
  }
}

uint32_t BlockRun::WaitingAt(uint32_t w, uint32_t id) {
  uint32_t waiting = warp_[w].at_barrier;
  if (barriers_used_ == 1u << id) return waiting;
  uint32_t here = 0;
  for (uint32_t m = waiting; m; m &= m - 1) {
    uint32_t i = static_cast<uint32_t>(std::countr_zero(m));
    if (LaneAt(w, i).op == id) here |= 1u << i;
  }
  return here;
}

bool BlockRun::TryBarrier(uint32_t id) {
  uint32_t total = 0;
  bool all = true, any = false;
  std::array<uint32_t, kMaxThreadsPerBlock / kWarpSize> here;
  for (uint32_t w = 0; w < warps_; ++w) {
    here[w] = WaitingAt(w, id);
    uint32_t came = here[w] | warp_[w].arrived[id];
    any |= came != 0;
    // Barriers count whole warps: lanes that are gone come along with the ones that are there.
    if (came) total += static_cast<uint32_t>(std::popcount(came | warp_[w].missing));
    all &= (came | warp_[w].missing) == ~0u;
  }
  if (!any || (expected_[id] ? total < expected_[id] : !all)) return false;
  cluster_phase_ += id == kClusterBarrier;
  uint32_t yes = 0, votes = 0;
  for (uint32_t w = 0; w < warps_; ++w) {
    for (uint32_t m = here[w]; m; m &= m - 1) {
      Lane& lane = LaneAt(w, static_cast<uint32_t>(std::countr_zero(m)));
      if (static_cast<BarrierVote>(lane.b) == BarrierVote::kNone) {
        if (!votes) break;
        continue;
      }
      ++votes;
      yes += lane.value != 0;
    }
  }
  for (uint32_t w = 0; w < warps_; ++w) {
    if (votes) {
      for (uint32_t m = here[w]; m; m &= m - 1) {
        Lane& lane = LaneAt(w, static_cast<uint32_t>(std::countr_zero(m)));
        BarrierVote vote = static_cast<BarrierVote>(lane.b);
        lane.result = vote == BarrierVote::kPopc ? yes : vote == BarrierVote::kAnd ? yes == votes : yes != 0;
      }
    }
    warp_[w].ready |= here[w];
    warp_[w].at_barrier &= ~here[w];
    warp_[w].arrived[id] = 0;
  }
  return true;
}

bool BlockRun::Resolve(Running& running, uint32_t w) {
  Warp& warp = warp_[w];
  bool moved = false;
  uint32_t candidates = warp.at_collective;
  while (candidates) {
    const Lane& first = LaneAt(w, static_cast<uint32_t>(std::countr_zero(candidates)));
    uint32_t group = 0;
    for (uint32_t m = candidates; m; m &= m - 1) {
      uint32_t i = static_cast<uint32_t>(std::countr_zero(m));
      const Lane& lane = LaneAt(w, i);
      if (lane.op == first.op && lane.mask == first.mask) group |= 1u << i;
    }
    candidates &= ~group;
    uint32_t needed = first.mask & ~warp.missing;
    if ((group & needed) != needed) continue;
    Perform(running, w, static_cast<Collective>(first.op), group);
    warp.at_collective &= ~group;
    warp.ready |= group;
    moved = true;
  }
  return moved;
}

bool BlockRun::Converge(Running& running, uint32_t w) {
  Warp& warp = warp_[w];
  const Lane& first = LaneAt(w, static_cast<uint32_t>(std::countr_zero(warp.converging)));
  uint32_t group = 0;
  for (uint32_t m = warp.converging; m; m &= m - 1) {
    uint32_t i = static_cast<uint32_t>(std::countr_zero(m));
    if (LaneAt(w, i).resume == first.resume) group |= 1u << i;
  }
  Perform(running, w, static_cast<Collective>(first.op), group);
  warp.converging &= ~group;
  warp.ready |= group;
  return true;
}

/// What lanes that are not there would hand over is zero.
void BlockRun::PerformMatrix(Running& running, uint32_t w, uint32_t group) {
  uint32_t first = static_cast<uint32_t>(std::countr_zero(group));
  Lane& leader = LaneAt(w, first);
  running.lane = &leader;
  const MatrixOp op = MatrixOp::Unpack(leader.value);
  alignas(64) uint32_t in[kMatrixWords][32] = {};
  alignas(64) uint32_t out[kMatrixWords][32];
  auto words = [&](uint32_t lane) {
    return reinterpret_cast<uint32_t*>(reinterpret_cast<std::byte*>(&LaneAt(w, lane)) + leader.b);
  };
  for (uint32_t m = group; m; m &= m - 1) {
    uint32_t i = static_cast<uint32_t>(std::countr_zero(m));
    const uint32_t* from = words(i);
    for (unsigned k = 0; k < op.WordsIn(); ++k) in[k][i] = from[k];
  }
  RunMatrix(op, running, in, out);
  for (uint32_t m = group; m; m &= m - 1) {
    uint32_t i = static_cast<uint32_t>(std::countr_zero(m));
    uint32_t* to = words(i);
    for (unsigned k = 0; k < op.WordsOut(); ++k) to[k] = out[k][i];
  }
}

void BlockRun::Perform(Running& running, uint32_t w, Collective op, uint32_t group) {
  auto each = [&](auto&& visit) {
    for (uint32_t m = group; m; m &= m - 1) {
      uint32_t i = static_cast<uint32_t>(std::countr_zero(m));
      visit(i, LaneAt(w, i));
    }
  };
  auto give = [&](uint64_t result, bool predicate = false) {
    each([&](uint32_t, Lane& lane) {
      lane.result = result;
      lane.result_predicate = predicate;
    });
  };
  auto reduce = [&](auto start, auto&& combine) {
    auto v = start;
    each([&](uint32_t, Lane& lane) { v = combine(v, static_cast<decltype(v)>(lane.value)); });
    give(static_cast<uint32_t>(v));
  };
  switch (op) {
    case Collective::kSync:
      return;
    case Collective::kShflUp:
    case Collective::kShflDown:
    case Collective::kShflBfly:
    case Collective::kShflIdx:
      each([&](uint32_t i, Lane& lane) {
        uint32_t clamp = lane.c & 31, segment = lane.c >> 8 & 31, b = lane.b & 31;
        uint32_t last = (i & segment) | (clamp & ~segment & 31), start = i & segment;
        int32_t from = static_cast<int32_t>(i);
        bool inside = false;
        if (op == Collective::kShflUp) {
          from -= static_cast<int32_t>(b);
          inside = from >= static_cast<int32_t>(last);
        } else {
          from = op == Collective::kShflDown   ? from + static_cast<int32_t>(b)
                 : op == Collective::kShflBfly ? static_cast<int32_t>(i ^ b)
                                               : static_cast<int32_t>(start | (b & ~segment & 31));
          inside = from <= static_cast<int32_t>(last);
        }
        if (!inside) from = static_cast<int32_t>(i);
        // What a lane that is not there would give is undefined; it is the reader's own value here.
        bool there = from >= 0 && from < 32 && (group >> from & 1);
        lane.result = there ? LaneAt(w, static_cast<uint32_t>(from)).value : lane.value;
        lane.result_predicate = inside;
      });
      return;
    case Collective::kVoteAll:
    case Collective::kVoteAny:
    case Collective::kVoteUni:
    case Collective::kVoteBallot: {
      uint32_t ballot = 0;
      each([&](uint32_t i, Lane& lane) { ballot |= lane.value ? 1u << i : 0; });
      give(op == Collective::kVoteAll   ? ballot == group
           : op == Collective::kVoteAny ? ballot != 0
           : op == Collective::kVoteUni ? ballot == group || ballot == 0
                                        : ballot);
      return;
    }
    case Collective::kMatchAny32:
    case Collective::kMatchAny64:
      each([&](uint32_t, Lane& lane) {
        uint32_t same = 0;
        each([&](uint32_t j, Lane& other) { same |= other.value == lane.value ? 1u << j : 0; });
        lane.result = same;
        lane.result_predicate = 1;
      });
      return;
    case Collective::kMatchAll32:
    case Collective::kMatchAll64: {
      uint64_t value = LaneAt(w, static_cast<uint32_t>(std::countr_zero(group))).value;
      bool same = true;
      each([&](uint32_t, Lane& lane) { same &= lane.value == value; });
      give(same ? group : 0, same);
      return;
    }
    case Collective::kReduxAdd:
      return reduce(0u, [](uint32_t a, uint32_t b) { return a + b; });
    case Collective::kReduxAnd:
      return reduce(~0u, [](uint32_t a, uint32_t b) { return a & b; });
    case Collective::kReduxOr:
      return reduce(0u, [](uint32_t a, uint32_t b) { return a | b; });
    case Collective::kReduxXor:
      return reduce(0u, [](uint32_t a, uint32_t b) { return a ^ b; });
    case Collective::kReduxMinS:
      return reduce(INT32_MAX, [](int32_t a, int32_t b) { return std::min(a, b); });
    case Collective::kReduxMinU:
      return reduce(UINT32_MAX, [](uint32_t a, uint32_t b) { return std::min(a, b); });
    case Collective::kReduxMaxS:
      return reduce(INT32_MIN, [](int32_t a, int32_t b) { return std::max(a, b); });
    case Collective::kReduxMaxU:
      return reduce(0u, [](uint32_t a, uint32_t b) { return std::max(a, b); });
    case Collective::kReduxMinF:
    case Collective::kReduxMaxF: {
      bool max = op == Collective::kReduxMaxF,
           nan_wins = LaneAt(w, static_cast<uint32_t>(std::countr_zero(group))).b;
      constexpr uint32_t kNan = 0x7fffffff;
      uint32_t v = kNan;
      bool any_nan = false;
      each([&](uint32_t, Lane& lane) {
        auto bits = static_cast<uint32_t>(lane.value);
        if ((bits & kNan) > 0x7f800000) {
          any_nan = true;
          return;
        }
        // In the order of these numbers floats are in theirs, -0 below +0.
        auto order = [](uint32_t f) { return f >> 31 ? ~f : f | 0x80000000; };
        if (v == kNan || (max ? order(bits) > order(v) : order(bits) < order(v))) v = bits;
      });
      return give(any_nan && nan_wins ? kNan : v);
    }
    case Collective::kElect: {
      uint32_t leader = static_cast<uint32_t>(std::countr_zero(group));
      each([&](uint32_t i, Lane& lane) {
        lane.result = leader;
        lane.result_predicate = i == leader;
      });
      return;
    }
    case Collective::kActivemask:
      return give(group);
    case Collective::kMatrix:
      return PerformMatrix(running, w, group);
  }
}

}  // namespace cuplex::softcuda
