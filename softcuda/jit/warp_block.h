// WarpBlock: a block whose warps run in lockstep, on its way: runs each warp to its next barrier and opens
// the barriers. One worker at a time; Advance runs `in_code` (running.h), so it owns nothing while it runs.
#pragma once

#include <array>
#include <cstdint>

#include "softcuda/jit/lockstep/warp.h"
#include "softcuda/jit/program.h"
#include "softcuda/jit/running.h"

namespace cuplex::softcuda {

class WarpBlock {
 public:
  /// `records` has room for a record of `bytes` bytes for every `lanes` threads, `local` is the threads'
  /// local memory. `context` must live as long as the block runs.
  void Begin(WarpCode code, BlockContext& context, std::byte* records, uint32_t bytes, uint32_t lanes,
             uintptr_t local);
  /// Runs the block to its end.
  void Run(Running& running);

 private:
  static constexpr uint32_t kBarriers = 16;
  static constexpr uint32_t kMostWarps = kMaxThreadsPerBlock / 8;

  enum class State : uint8_t { kReady, kAtBarrier, kDone };

  Warp& At(uint32_t w) { return *reinterpret_cast<Warp*>(records_ + size_t{w} * bytes_); }
  void Step(Running& running, uint32_t w);
  bool Open(uint32_t id);

  WarpCode code_ = nullptr;
  BlockContext* context_ = nullptr;
  std::byte* records_ = nullptr;
  uint32_t bytes_ = 0, lanes_ = 32, warps_ = 0, live_ = 0;
  uint32_t barriers_used_ = 0;  // by number
  std::array<uint32_t, kBarriers> expected_ = {};
  std::array<uint32_t, kBarriers> arrived_ = {};  // threads that went on
  std::array<State, kMostWarps> state_ = {};
};

}  // namespace cuplex::softcuda
