#include "protocol/slot.h"

#include <algorithm>
#include <bit>

namespace cuplex {

void CompleteSlot(const Segment& s, uint32_t index, CUresult result, std::span<const std::byte> payload) {
  SlotHeader* slot = SlotAt(s, index);
  const size_t bytes = std::min<size_t>(payload.size(), SlotCapacity(s));
  if (bytes) std::memcpy(SlotPayload(slot), payload.data(), bytes);
  slot->result = static_cast<int32_t>(result);
  slot->bytes = static_cast<uint32_t>(bytes);
  if (slot->state.exchange(SlotHeader::kDone, std::memory_order_acq_rel) == SlotHeader::kAsleep)
    FutexWake(&slot->state, 1);
}

uint32_t SlotPool::Claim() {
  uint64_t free = free_.load(std::memory_order_relaxed);
  while (free) {
    const uint32_t index = static_cast<uint32_t>(std::countr_zero(free));
    if (free_.compare_exchange_weak(free, free & ~(1ull << index), std::memory_order_acquire)) return index;
  }
  return kNoFree;
}

bool AwaitSlot(SlotHeader* slot, int spins, const std::atomic<bool>& gone) {
  for (int i = 0; i < spins; ++i) {
    if (IsDone(slot)) return true;
    SpinPause();
  }
  uint32_t expected = SlotHeader::kWaiting;
  slot->state.compare_exchange_strong(expected, SlotHeader::kAsleep, std::memory_order_acq_rel);
  constexpr int64_t kLookAgainNs =
      100'000'000;  // whoever learns that the server is gone may not know this slot
  while (!IsDone(slot)) {
    if (gone.load(std::memory_order_acquire)) return false;
    FutexWait(&slot->state, SlotHeader::kAsleep, kLookAgainNs);
  }
  return true;
}

}  // namespace cuplex
