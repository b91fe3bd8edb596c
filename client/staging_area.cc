#include "client/staging_area.h"

#include <sched.h>

#include "client/submission.h"

namespace cuplex::client {
namespace {

constexpr int kSpins = 500;

}  // namespace

StagingArea::StagingArea(const Segment& segment, const std::atomic<bool>& gone)
    : segment_(segment), gone_(gone) {}

std::optional<uint32_t> StagingArea::TryClaim() {
  const uint32_t count = block_count();
  // The lowest first: a few blocks used over and over stay in the caches of both processes.
  for (uint32_t block = 0; block < count; ++block) {
    uint32_t expected = StagingBlock::kFree;
    if (BlockAt(segment_, block)
            ->state.compare_exchange_strong(expected, StagingBlock::kInFlight, std::memory_order_acq_rel)) {
      next_.store((block + 1) % count, std::memory_order_relaxed);
      return block;
    }
  }
  return std::nullopt;
}

std::optional<uint32_t> StagingArea::Claim() {
  while (true) {
    if (auto block = TryClaim()) return block;
    // The block behind the last one claimed has been in flight the longest.
    if (!AwaitBlock(BlockAt(segment_, next_.load(std::memory_order_relaxed) % block_count()), kSpins, gone_))
      return std::nullopt;
    sched_yield();  // where another thread is about to empty it
  }
}

bool StagingArea::AwaitSettled(uint32_t block) { return AwaitBlock(BlockAt(segment_, block), kSpins, gone_); }

CUresult StagingArea::AwaitFilled(uint32_t block) {
  StagingBlock* b = BlockAt(segment_, block);
  if (!AwaitBlock(b, kSpins, gone_)) return kServerGone;
  return static_cast<CUresult>(b->result);
}

void StagingArea::Release(uint32_t block) {
  BlockAt(segment_, block)->state.store(StagingBlock::kFree, std::memory_order_release);
}

}  // namespace cuplex::client
