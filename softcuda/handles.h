// HandleTable: the live objects of one kind, found by the handles that programs hold. Any thread.
//
// A handle is the object's address. The slots that objects live in are never unmapped and never used for
// another kind, so any number a program hands in can be looked at safely: it is a live object of this kind or
// it is refused. A slot that was given back is used again only after all others that are free.
//
// An object dies when the last Ref to it does; the table holds one until Retire.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

namespace cuplex::softcuda {

template <typename T>
class HandleTable;

/// A counted reference to an object in a HandleTable; may be null.
template <typename T>
class Ref {
 public:
  Ref() = default;
  Ref(const Ref& o) : object_(o.object_) {
    if (object_) HandleTable<T>::Hold(object_);
  }
  Ref(Ref&& o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(object_, o.object_);
    return *this;
  }
  ~Ref() {
    if (object_) HandleTable<T>::Drop(object_);
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  friend class HandleTable<T>;
  explicit Ref(T* object) : object_(object) {}

  T* object_ = nullptr;
};

template <typename T>
class HandleTable {
 public:
  explicit HandleTable(size_t capacity = size_t{1} << 18) : capacity_(capacity) {
    void* got = mmap(nullptr, capacity * sizeof(Slot), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) throw std::bad_alloc();
    slots_ = static_cast<Slot*>(got);
  }
  /// Only when no object and no Ref is left.
  ~HandleTable() { munmap(slots_, capacity_ * sizeof(Slot)); }
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  /// A new object, live from here on; null when the table is full. `owner` is what Peek asks for.
  template <typename... A>
  Ref<T> Make(const void* owner, A&&... args) {
    Slot* slot = TakeSlot();
    if (!slot) return {};
    T* object;
    try {
      object = new (slot->body) T(std::forward<A>(args)...);
    } catch (...) {
      GiveSlot(slot);
      throw;
    }
    slot->owner.store(owner, std::memory_order_relaxed);
    slot->refs.store(2, std::memory_order_relaxed);  // the table's and the caller's
    slot->live.store(true, std::memory_order_release);
    return Ref<T>(object);
  }

  /// The live object of that handle, or null.
  Ref<T> Find(const void* handle) const {
    Slot* slot = SlotAt(handle);
    if (!slot) return {};
    uint32_t refs = slot->refs.load(std::memory_order_relaxed);
    do {
      if (!refs) return {};
    } while (!slot->refs.compare_exchange_weak(refs, refs + 1, std::memory_order_acquire));
    Ref<T> found(ObjectIn(slot));
    if (!slot->live.load(std::memory_order_acquire)) return {};
    return found;
  }

  /// The live object of that handle and owner, or null, without a reference: for callers that hold the lock
  /// under which `owner` makes and retires its objects.
  T* Peek(const void* handle, const void* owner) const {
    Slot* slot = SlotAt(handle);
    if (!slot || !slot->live.load(std::memory_order_acquire) ||
        slot->owner.load(std::memory_order_relaxed) != owner) {
      return nullptr;
    }
    return ObjectIn(slot);
  }

  /// Takes the object out of the table; false where someone else did already. The object lives on while there
  /// are Refs.
  static bool Retire(T* object) {
    if (!SlotOf(object)->live.exchange(false, std::memory_order_acq_rel)) return false;
    Drop(object);
    return true;
  }

  static bool IsLive(const T* object) {
    return SlotOf(const_cast<T*>(object))->live.load(std::memory_order_acquire);
  }

  /// Another reference to an object that the caller knows to be alive.
  static Ref<T> Share(T* object) {
    Hold(object);
    return Ref<T>(object);
  }

  /// The two halves of a Ref, for objects that keep themselves alive.
  static void Hold(T* object) { SlotOf(object)->refs.fetch_add(1, std::memory_order_relaxed); }
  static void Drop(T* object) {
    Slot* slot = SlotOf(object);
    if (slot->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    object->~T();
    slot->table->GiveSlot(slot);
  }

 private:
  struct Slot {
    std::atomic<uint32_t> refs{0};
    std::atomic<bool> live{false};
    std::atomic<const void*> owner{nullptr};
    HandleTable* table;
    Slot* next_free;
    alignas(T) std::byte body[sizeof(T)];
  };

  static T* ObjectIn(Slot* slot) { return std::launder(reinterpret_cast<T*>(slot->body)); }
  static Slot* SlotOf(T* object) {
    return reinterpret_cast<Slot*>(reinterpret_cast<std::byte*>(object) - offsetof(Slot, body));
  }

  Slot* SlotAt(const void* handle) const {
    uintptr_t distance =
        reinterpret_cast<uintptr_t>(handle) - (reinterpret_cast<uintptr_t>(slots_) + offsetof(Slot, body));
    size_t index = distance / sizeof(Slot);
    if (distance % sizeof(Slot) || index >= used_.load(std::memory_order_acquire)) return nullptr;
    return slots_ + index;
  }

  Slot* TakeSlot() {
    std::lock_guard lock(lock_);
    size_t used = used_.load(std::memory_order_relaxed);
    if (free_first_ && (free_count_ > kQuarantine || used == capacity_)) {
      Slot* slot = free_first_;
      free_first_ = slot->next_free;
      if (!free_first_) free_last_ = nullptr;
      --free_count_;
      return slot;
    }
    if (used == capacity_) return nullptr;
    Slot* slot = new (slots_ + used) Slot;
    slot->table = this;
    used_.store(used + 1, std::memory_order_release);
    return slot;
  }

  void GiveSlot(Slot* slot) {
    std::lock_guard lock(lock_);
    slot->next_free = nullptr;
    (free_last_ ? free_last_->next_free : free_first_) = slot;
    free_last_ = slot;
    ++free_count_;
  }

  // A stale handle is recognised for as long as its slot waits here.
  static constexpr size_t kQuarantine = 64;

  const size_t capacity_;
  Slot* slots_ = nullptr;
  std::atomic<size_t> used_{0};
  std::mutex lock_;
  Slot* free_first_ = nullptr;
  Slot* free_last_ = nullptr;
  size_t free_count_ = 0;
};

}  // namespace cuplex::softcuda
