// Slots: where the replies of a session's waiting threads land.
//
//     slot = SlotHeader payload        slot_bytes together
//
// A thread claims a slot, submits a frame that names it, waits until it is done, reads, and frees it. Taking
// part: any number of client threads, each with its own slot; the server's session thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/futex.h"
#include "base/other_process.h"
#include "cuda/driver_types.h"
#include "protocol/segment.h"

namespace cuplex {

struct SlotHeader {
  enum State : uint32_t {
    kIdle = 0,
    kWaiting = 1,  // client, before submitting
    kAsleep = 2,   // client, before it waits on the futex: the server must wake
    kDone = 3,     // server, after result and payload
  };
  std::atomic<uint32_t> state;
  int32_t result;  // CUresult
  uint32_t bytes;  // of payload
  uint32_t unused;
};
static_assert(sizeof(SlotHeader) == 16);

inline SlotHeader* SlotAt(const Segment& s, uint32_t index) {
  return reinterpret_cast<SlotHeader*>(s.slots() + static_cast<size_t>(index) * s.geometry().slot_bytes);
}
inline std::byte* SlotPayload(SlotHeader* slot) { return reinterpret_cast<std::byte*>(slot + 1); }
inline uint32_t SlotCapacity(const Segment& s) { return s.geometry().slot_bytes - sizeof(SlotHeader); }

/// Server: writes a reply (payload cut to the slot's capacity) and wakes the waiter. `index` must be below
/// slot_count.
void CompleteSlot(const Segment& s, uint32_t index, CUresult result, std::span<const std::byte> payload);

/// Client: which slots are free. Any thread.
class SlotPool {
 public:
  explicit SlotPool(uint32_t count) : free_(count >= 64 ? ~0ull : (1ull << count) - 1) {}
  /// A free slot's index, or kNoFree where all are taken (by as many waiting threads).
  static constexpr uint32_t kNoFree = 0xffffffff;
  uint32_t Claim();
  void Free(uint32_t index) { free_.fetch_or(1ull << index, std::memory_order_release); }

 private:
  std::atomic<uint64_t> free_;
};

/// Client: marks a claimed slot as waiting; before the frame is submitted.
inline void ArmSlot(SlotHeader* slot) { slot->state.store(SlotHeader::kWaiting, std::memory_order_relaxed); }

/// Client: whether the answer is there.
inline bool IsDone(const SlotHeader* slot) {
  if (slot->state.load(std::memory_order_acquire) != SlotHeader::kDone) return false;
  AfterHearingBack();
  return true;
}

/// Client: waits until the slot is done, spinning `spins` turns first. False once `gone` is true and it is
/// not done.
bool AwaitSlot(SlotHeader* slot, int spins, const std::atomic<bool>& gone);

}  // namespace cuplex
