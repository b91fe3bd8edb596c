#include "softcuda/jit/texture_table.h"

#include <cstring>

#include <sys/mman.h>

namespace cuplex::softcuda {

TextureTable::~TextureTable() {
  if (Slot* slots = slots_.load()) munmap(slots, kSlots * sizeof(Slot));
}

const TextureTable::Slot* TextureTable::SlotOf(uint64_t handle) const {
  const Slot* slots = slots_.load(std::memory_order_acquire);
  return slots && handle ? slots + handle % kSlots : nullptr;
}

uint64_t TextureTable::Add(const TextureHeader& header) {
  std::lock_guard guard(lock_);
  Slot* slots = slots_.load(std::memory_order_relaxed);
  if (!slots) {
    // Fresh pages are zero, and so are the handles in them.
    void* got = mmap(nullptr, kSlots * sizeof(Slot), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) return 0;
    slots = static_cast<Slot*>(got);
    slots_.store(slots, std::memory_order_release);
  }
  size_t at;
  if (!free_.empty()) {
    at = free_.back();
    free_.pop_back();
  } else if (used_ < kSlots) {
    at = used_++;
  } else {
    return 0;
  }
  std::array<uint64_t, kWords> words;
  std::memcpy(words.data(), &header, sizeof(header));
  Slot& slot = slots[at];
  // Whoever still reads what was here sees the handle gone before the first new word.
  std::atomic_thread_fence(std::memory_order_release);
  for (size_t i = 0; i < kWords; ++i) slot.words[i].store(words[i], std::memory_order_relaxed);
  const uint64_t handle = (context_ & 0x7fff) << 48 | (++serial_ & 0xffffffff) << 16 | at;
  slot.handle.store(handle, std::memory_order_release);
  return handle;
}

bool TextureTable::Remove(uint64_t handle) {
  std::lock_guard guard(lock_);
  Slot* slot = const_cast<Slot*>(SlotOf(handle));
  if (!slot || slot->handle.load(std::memory_order_relaxed) != handle) return false;
  slot->handle.store(0, std::memory_order_relaxed);
  free_.push_back(static_cast<uint32_t>(handle % kSlots));
  return true;
}

bool TextureTable::Holds(uint64_t handle) const {
  const Slot* slot = SlotOf(handle);
  return slot && slot->handle.load(std::memory_order_relaxed) == handle;
}

bool TextureTable::Read(uint64_t handle, TextureHeader* out) const {
  const Slot* slot = SlotOf(handle);
  if (!slot || slot->handle.load(std::memory_order_acquire) != handle) return false;
  std::array<uint64_t, kWords> words;
  for (size_t i = 0; i < kWords; ++i) words[i] = slot->words[i].load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (slot->handle.load(std::memory_order_relaxed) != handle) return false;
  std::memcpy(static_cast<void*>(out), words.data(), sizeof(*out));
  return true;
}

}  // namespace cuplex::softcuda
