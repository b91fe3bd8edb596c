// Event: a place in a stream, and the time at which the stream came past it. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "cuda/driver_types.h"
#include "softcuda/handles.h"
#include "softcuda/stream.h"

namespace cuplex::softcuda {

class Event {
 public:
  Event(Context& context, unsigned flags) : context(context), flags(flags) {}

  Context& context;  // lives as long as the event's handle
  const unsigned flags;
  size_t place = 0;                   // in the context's list, guarded by the context's lock
  std::atomic<bool> captured{false};  // its last record was in a captured stream; see graph/graphs.h
  bool timed() const { return !(flags & CU_EVENT_DISABLE_TIMING); }

  /// Where the last record stands; `stream` is null before the first.
  struct Mark {
    Ref<Stream> stream;
    uint64_t number = 0;
    uint64_t record = 0;

    bool Done() const { return !stream || stream->Done(number); }
  };
  Mark mark() const;
  void Set(Ref<Stream> stream, uint64_t number, uint64_t record);
  /// The number of a record that is about to be submitted.
  uint64_t NextRecord() { return records_.fetch_add(1, std::memory_order_relaxed) + 1; }

  /// The stream passes record number `record`. Only the last record's time is kept.
  void Stamp(uint64_t record, int64_t now_ns);
  /// When the last record was passed, once it is done.
  int64_t time_ns() const { return time_ns_.load(std::memory_order_acquire); }

 private:
  mutable std::mutex lock_;
  Mark mark_;
  uint64_t stamped_ = 0;
  std::atomic<uint64_t> records_{0};
  std::atomic<int64_t> time_ns_{0};
};

}  // namespace cuplex::softcuda
