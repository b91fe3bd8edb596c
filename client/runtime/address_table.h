// AddressTable: from an address in the program to what we know about it, read without a lock. Readers on any
// thread, at any time; writers one at a time (the owner locks).
//
// Open addressing with linear probes over a power of two of slots. A slot's key is written once; erasing
// clears the value alone, so a reader that walks past never sees a chain cut. A table that has grown stays
// allocated for readers that still walk it; as each is twice the last, that costs at most as much again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace cuplex::runtime {

template <typename T>
class AddressTable {
 public:
  AddressTable() { Grow(64); }
  AddressTable(const AddressTable&) = delete;
  AddressTable& operator=(const AddressTable&) = delete;

  /// What was inserted for `address`, or null. Wait-free but for the probe's length.
  T* Find(const void* address) const {
    const Slots* slots = current_.load(std::memory_order_acquire);
    for (size_t i = slots->Start(address);; i = slots->Next(i)) {
      const void* key = slots->at[i].key.load(std::memory_order_acquire);
      if (key == address) return slots->at[i].value.load(std::memory_order_acquire);
      if (!key) return nullptr;
    }
  }

  /// Inserts, or replaces. `address` is not null. Writers only.
  void Insert(const void* address, T* value) {
    Slots* slots = current_.load(std::memory_order_relaxed);
    if ((used_ + 1) * 2 > slots->at.size()) slots = Grow(slots->at.size() * 2);
    Put(slots, address, value);
  }

  /// Forgets `address`; nothing happens where it is unknown. Writers only.
  void Erase(const void* address) {
    Slots* slots = current_.load(std::memory_order_relaxed);
    for (size_t i = slots->Start(address);; i = slots->Next(i)) {
      const void* key = slots->at[i].key.load(std::memory_order_relaxed);
      if (key == address) return slots->at[i].value.store(nullptr, std::memory_order_release);
      if (!key) return;
    }
  }

 private:
  struct Slot {
    std::atomic<const void*> key{nullptr};
    std::atomic<T*> value{nullptr};
  };
  struct Slots {
    explicit Slots(size_t n) : at(n) {}
    size_t Start(const void* address) const {
      return (reinterpret_cast<uintptr_t>(address) * 0x9E3779B97F4A7C15ull >> 32) & (at.size() - 1);
    }
    size_t Next(size_t i) const { return (i + 1) & (at.size() - 1); }
    std::vector<Slot> at;
  };

  void Put(Slots* slots, const void* address, T* value) {
    for (size_t i = slots->Start(address);; i = slots->Next(i)) {
      const void* key = slots->at[i].key.load(std::memory_order_relaxed);
      if (key && key != address) continue;
      slots->at[i].value.store(value, std::memory_order_release);
      if (!key) {
        slots->at[i].key.store(address, std::memory_order_release);
        ++used_;
      }
      return;
    }
  }

  Slots* Grow(size_t n) {
    tables_.push_back(std::make_unique<Slots>(n));
    Slots* grown = tables_.back().get();
    const Slots* old = current_.load(std::memory_order_relaxed);
    used_ = 0;
    for (size_t i = 0; old && i < old->at.size(); ++i) {
      const void* key = old->at[i].key.load(std::memory_order_relaxed);
      T* value = old->at[i].value.load(std::memory_order_relaxed);
      if (key && value) Put(grown, key, value);
    }
    current_.store(grown, std::memory_order_release);
    return grown;
  }

  std::atomic<Slots*> current_{nullptr};
  std::vector<std::unique_ptr<Slots>> tables_;
  size_t used_ = 0;  // slots with a key, in the current table
};

}  // namespace cuplex::runtime
