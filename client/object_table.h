// ObjectTable: things of this process that the program knows by a handle (streams, events, functions, ...).
//
// Any thread. Find takes no lock: rows never move and are never given back to the system, so a reader that
// races with Erase sees either the row it asked for or another handle, never freed memory.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "protocol/handle.h"

namespace cuplex::client {

template <typename T>
class ObjectTable {
 public:
  ObjectTable() = default;
  ObjectTable(const ObjectTable&) = delete;
  ~ObjectTable() {
    for (auto& chunk : chunks_) delete chunk.load(std::memory_order_relaxed);
  }

  /// A handle for `value`; 0 where there are too many.
  Handle Insert(T value) {
    const Handle h = source_.Take();
    if (!h) return 0;
    Row& row = RowOf(HandleId(h));
    row.value = std::move(value);
    row.handle.store(h, std::memory_order_release);
    return h;
  }

  /// nullptr for a handle that names nothing (any more).
  T* Find(Handle h) {
    const uint32_t id = HandleId(h);
    if (id < kFirstHandleId || id >= kMaxHandleId) return nullptr;
    Chunk* chunk = chunks_[id / kChunkRows].load(std::memory_order_acquire);
    if (!chunk) return nullptr;
    Row& row = (*chunk)[id % kChunkRows];
    return row.handle.load(std::memory_order_acquire) == h ? &row.value : nullptr;
  }

  /// False where the handle names nothing; so of two threads that erase, one is told so.
  bool Erase(Handle h) {
    if (!Find(h)) return false;
    Row& row = RowOf(HandleId(h));
    Handle expected = h;
    if (!row.handle.compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) return false;
    source_.Return(h);
    return true;
  }

  /// f(handle, value) for what is there; what others insert or erase meanwhile may be missed.
  template <typename F>
  void ForEach(F f) {
    for (auto& slot : chunks_) {
      Chunk* chunk = slot.load(std::memory_order_acquire);
      if (!chunk) continue;
      for (Row& row : *chunk)
        if (Handle h = row.handle.load(std::memory_order_acquire)) f(h, row.value);
    }
  }

 private:
  static constexpr uint32_t kChunkRows = 256;
  struct Row {
    std::atomic<Handle> handle{0};
    T value{};
  };
  using Chunk = std::array<Row, kChunkRows>;

  Row& RowOf(uint32_t id) {
    std::atomic<Chunk*>& slot = chunks_[id / kChunkRows];
    Chunk* chunk = slot.load(std::memory_order_acquire);
    if (!chunk) {
      std::lock_guard lock(grow_);
      chunk = slot.load(std::memory_order_acquire);
      if (!chunk) slot.store(chunk = new Chunk, std::memory_order_release);
    }
    return (*chunk)[id % kChunkRows];
  }

  HandleSource source_;
  std::mutex grow_;
  std::array<std::atomic<Chunk*>, kMaxHandleId / kChunkRows> chunks_{};
};

}  // namespace cuplex::client
