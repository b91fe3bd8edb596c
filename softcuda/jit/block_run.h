// BlockRun: a block whose threads wait for each other, on its way. Steps its threads, warp by warp and lane
// by lane, and brings them together at barriers and collectives. One worker at a time; Advance runs `in_code`
// (running.h), so it owns nothing while it runs.
#pragma once

#include <array>
#include <cstdint>

#include "softcuda/jit/lane.h"
#include "softcuda/jit/program.h"
#include "softcuda/jit/running.h"

namespace cuplex::softcuda {

class BlockRun {
 public:
  /// Starts a block: `lanes` are its records, `local` its threads' local memory, `context` is filled in.
  void Begin(StepCode code, const BlockContext& context, std::byte* lanes, uint32_t lane_bytes,
             uintptr_t local);

  /// The records were used for something else.
  void Forget() { prepared_ = {}; }

  enum class State {
    kDone,
    kStalled,  // its threads wait for memory that they do not change themselves; run other blocks, then this
               // again
  };
  State Advance(Running& running);

 private:
  static constexpr uint32_t kBarriers = kNumberedBarriers + 1;

  struct Warp {
    uint32_t missing = 0;  // exited, or never there
    uint32_t ready = 0;
    uint32_t yielded = 0;
    uint32_t at_collective = 0;
    uint32_t converging = 0;
    uint32_t at_barrier = 0;
    std::array<uint32_t, kBarriers> arrived = {};  // by bar.arrive, and gone on
  };

  /// What the fixed fields of the records were filled in for.
  struct Prepared {
    const std::byte* lanes = nullptr;
    uint32_t lane_bytes = 0;
    uintptr_t local = 0;
    uint32_t local_bytes = 0;
    std::array<uint32_t, 3> ntid = {};
    bool operator==(const Prepared&) const = default;
  };

  Lane& LaneAt(uint32_t warp, uint32_t lane) {
    return *reinterpret_cast<Lane*>(lanes_ + (size_t{warp} * kWarpSize + lane) * lane_bytes_);
  }
  bool RunWarp(Running& running, uint32_t w);
  void StartBarrier(Running& running, Warp& warp, Lane& lane, uint32_t bit);
  bool Resolve(Running& running, uint32_t w);
  bool Converge(Running& running, uint32_t w);
  void Perform(Running& running, uint32_t w, Collective op, uint32_t group);
  void PerformMatrix(Running& running, uint32_t w, uint32_t group);
  bool TryBarrier(uint32_t id);
  uint32_t WaitingAt(uint32_t w, uint32_t id);

  StepCode code_ = nullptr;
  Prepared prepared_;
  BlockContext context_;
  std::byte* lanes_ = nullptr;
  uint32_t lane_bytes_ = 0;
  uint32_t warps_ = 0;
  uint32_t live_ = 0;
  uint32_t barriers_used_ = 0;  // by number
  uint32_t cluster_phase_ = 0;  // times that the cluster's barrier was complete
  std::array<uint32_t, kBarriers> expected_ = {};
  std::array<Warp, kMaxThreadsPerBlock / kWarpSize> warp_ = {};
};

}  // namespace cuplex::softcuda
