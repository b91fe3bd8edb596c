#include "protocol/staging.h"

#include "base/futex.h"
#include "base/other_process.h"

namespace cuplex {

void FinishBlock(const Segment& s, uint32_t index, StagingBlock::State state, CUresult result) {
  StagingBlock* block = BlockAt(s, index);
  block->result = static_cast<int32_t>(result);
  if (block->state.exchange(state, std::memory_order_acq_rel) == StagingBlock::kInFlightAsleep)
    FutexWake(&block->state, 1 << 20);
}

bool AwaitBlock(StagingBlock* block, int spins, const std::atomic<bool>& gone) {
  auto in_flight = [&] {
    const uint32_t s = block->state.load(std::memory_order_acquire);
    if (s == StagingBlock::kInFlight || s == StagingBlock::kInFlightAsleep) return true;
    AfterHearingBack();
    return false;
  };
  for (int i = 0; i < spins; ++i) {
    if (!in_flight()) return true;
    SpinPause();
  }
  constexpr int64_t kLookAgainNs = 100'000'000;
  while (in_flight()) {
    if (gone.load(std::memory_order_acquire)) return false;
    uint32_t expected = StagingBlock::kInFlight;
    block->state.compare_exchange_strong(expected, StagingBlock::kInFlightAsleep, std::memory_order_acq_rel);
    FutexWait(&block->state, StagingBlock::kInFlightAsleep, kLookAgainNs);
  }
  return true;
}

}  // namespace cuplex
