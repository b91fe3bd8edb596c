// Warp: the record of a warp that runs in lockstep, shared by its code and its scheduler (warp_block.h). Byte
// layout is that of the struct; code takes it by offsetof. Registers that live across a barrier follow.
#pragma once

#include <cstddef>
#include <cstdint>

#include "softcuda/jit/lane.h"

namespace cuplex::softcuda {

struct alignas(64) Warp {
  uint32_t resume = 0;   // where to go on; 0 is the kernel's start
  uint32_t first = 0;    // number of its first thread in the block
  uint32_t lanes = 0;    // bit i: there is a thread for lane i
  uint32_t waiting = 0;  // lanes at the barrier; the others have ended
  // The barrier it waits at, as in Lane.
  uint32_t barrier = 0;
  uint32_t count = 0;
  uint32_t vote = 0;
  uint32_t arrives = 0;
  uint32_t ballot = 0;  // the lanes' predicates
  uint32_t result = 0;
  uint32_t tid[3] = {};  // of the first thread
  uint32_t reserved = 0;
  uint64_t local = 0;  // address of the first thread's local memory
  /// For runtime functions that are called for one lane.
  Lane lane;
};
static_assert(sizeof(Warp) % 64 == 0);

/// Addresses of the lanes of a warp, described: base + lane * stride, and for each extension of 32 bits that
/// went into them what it is off by where it wraps.
struct WarpAddresses {
  static constexpr uint32_t kMostWraps = 4;
  struct Wrap {
    uint32_t narrow = 0;  // what was extended, in lane 0
    int32_t stride = 0;
    int64_t times = 0;
    uint64_t is_signed = 0;
  };

  uint64_t base = 0;
  int64_t stride = 0;
  uint64_t wraps = 0;
  Wrap wrap[kMostWraps];

  uint64_t At(uint32_t lane) const {
    uint64_t at = base + lane * static_cast<uint64_t>(stride);
    for (uint64_t i = 0; i < wraps; ++i) {
      const Wrap& w = wrap[i];
      uint32_t n = w.narrow + lane * static_cast<uint32_t>(w.stride);
      auto extend = [&](uint32_t v) {
        return w.is_signed ? static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(v)))
                           : uint64_t{v};
      };
      uint64_t off = extend(n) - extend(w.narrow) - lane * static_cast<uint64_t>(int64_t{w.stride});
      at += off * static_cast<uint64_t>(w.times);
    }
    return at;
  }
};

/// Runs a warp to its next barrier or to its end: Step::kBarrier or Step::kDone.
using WarpCode = uint32_t (*)(BlockContext* block, Warp* warp);

}  // namespace cuplex::softcuda
