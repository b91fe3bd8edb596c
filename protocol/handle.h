// Handles of things the client creates: numbers the client chooses, so that creating costs no round trip.
// Data.
//
//     handle = id:u32 generation:u32     (id in the low half)
//
// The client's program sees a handle as a pointer value (CUstream, CUevent, ...) and may not look behind it.
// An id is used again only under a new generation, so a stale handle never names a new thing. The server
// looks a handle up in the table of the session it came from: another session's handles do not exist there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace cuplex {

using Handle = uint64_t;

/// The legacy default stream of the frame's context. Every other stream that travels is a handle.
inline constexpr Handle kLegacyStream = 1;
/// Ids begin here, so that no handle is NULL, CU_STREAM_LEGACY or CU_STREAM_PER_THREAD.
inline constexpr uint32_t kFirstHandleId = 16;
inline constexpr uint32_t kMaxHandleId = 1u << 20;

constexpr Handle MakeHandle(uint32_t id, uint32_t generation) {
  return static_cast<Handle>(generation) << 32 | id;
}
constexpr uint32_t HandleId(Handle h) { return static_cast<uint32_t>(h); }
constexpr uint32_t HandleGeneration(Handle h) { return static_cast<uint32_t>(h >> 32); }

/// Gives out handles and takes them back (client side). Any thread.
class HandleSource {
 public:
  /// A fresh handle; 0 where all kMaxHandleId are in use.
  Handle Take();
  void Return(Handle h);

 private:
  std::mutex mutex_;
  std::vector<Handle> free_;  // with the generation they will have next
  uint32_t next_ = kFirstHandleId;
};

/// What a session owns under handles of one kind (server side). One thread. T is movable and cheap to move.
template <typename T>
class HandleTable {
 public:
  /// False where the id is out of range or taken.
  bool Insert(Handle h, T value) {
    const uint32_t id = HandleId(h);
    if (id < kFirstHandleId || id >= kMaxHandleId) return false;
    if (id >= rows_.size()) rows_.resize(std::max<size_t>(id + 1, rows_.size() * 2));
    Row& row = rows_[id];
    if (row.used) return false;
    row = Row{HandleGeneration(h), true, std::move(value)};
    ++count_;
    return true;
  }
  /// nullptr where the session has no such thing, or had it once.
  T* Find(Handle h) {
    const uint32_t id = HandleId(h);
    if (id >= rows_.size()) return nullptr;
    Row& row = rows_[id];
    return row.used && row.generation == HandleGeneration(h) ? &row.value : nullptr;
  }
  bool Erase(Handle h) {
    if (!Find(h)) return false;
    rows_[HandleId(h)] = Row{};
    --count_;
    return true;
  }
  size_t size() const { return count_; }
  template <typename F>
  void ForEach(F f) {
    for (uint32_t id = 0; id < rows_.size(); ++id)
      if (rows_[id].used) f(MakeHandle(id, rows_[id].generation), rows_[id].value);
  }

 private:
  struct Row {
    uint32_t generation = 0;
    bool used = false;
    T value{};
  };
  std::vector<Row> rows_;
  size_t count_ = 0;
};

}  // namespace cuplex
