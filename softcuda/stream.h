// Stream: a queue of operations that run one after another, on whichever thread of the device's pool is free.
//
// The n-th operation that is submitted is number n, counting from 1; completed() is how many are done, so
// "number n is done" is one comparison, and that is what events and other streams wait for.
//
// Submitting happens under the context's lock (context.h, Submission); the rest is for any thread. A stream
// that has work holds a reference to itself, so it may be retired at any time and still finishes.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <semaphore>
#include <vector>

#include "softcuda/handles.h"
#include "softcuda/jit/workers.h"
#include "softcuda/operation.h"

namespace cuplex::softcuda {

class Context;
class GreenContext;
class Partition;
class StreamPool;

class Stream {
 public:
  enum class Kind {
    kLegacy,       // the NULL stream: waits for all blocking streams, and they for it
    kBlocking,     // ordered with the legacy stream
    kNonBlocking,  // ordered with nobody
  };

  /// `fault` is the context's: once it is not zero, operations are dropped instead of run.
  Stream(Context& context, Partition& partition, const std::atomic<int>& fault, Kind kind, int priority,
         uint64_t id, GreenContext* green);

  Context& context;  // outlives the stream's work, not the stream
  /// What runs it.
  Partition& partition;
  /// The green context that it was made in, for telling apart and asking while its handle is live; null:
  /// none.
  GreenContext* const green;
  const Kind kind;
  const int priority;  // 0 (least) .. -5
  const uint64_t id;
  Stream* next_ready = nullptr;  // the pool's
  /// What is submitted becomes nodes of a graph (graph/graphs.h) instead. Written under the lock of Graphs.
  std::atomic<bool> captured{false};

  // Guarded by the context's lock: what has been waited for already.
  uint64_t legacy_waited_for = 0;  // operations of this stream that the legacy stream waits for
  uint64_t waited_for_legacy = 0;  // operations of the legacy stream that this one waits for
  // Likewise: where cooperative grids of this stream keep their barrier; 0 until the first.
  GridControl control;  // of the grid that it runs
  uintptr_t workspace = 0;

  uint64_t submitted() const { return queue_.pushed(); }
  uint64_t completed() const { return completed_.load(std::memory_order_acquire); }
  bool Done(uint64_t number) const { return completed() >= number; }
  bool Idle() const { return Done(submitted()); }

  /// Appends an operation, under the context's lock. `always`: also after the context has failed.
  template <typename F>
  void Push(F&& f, bool always = false) {
    queue_.Push(std::forward<F>(f), always);
  }
  /// After Push, under the same lock: true where the caller must hand the stream to its pool.
  bool Activate();
  StreamPool& pool() { return pool_; }

  /// Blocks the calling thread until operation `number` is done.
  void Wait(uint64_t number);
  /// Has `waiter` pushed to its pool when operation `number` is done; false where it is done already.
  bool WakeWhenDone(uint64_t number, Stream& waiter);

  /// Runs what is queued; only the pool calls it.
  void Run();

 private:
  struct Waiter {
    uint64_t number;
    Stream* stream;                 // or
    std::binary_semaphore* thread;  // one of the two
  };

  void WakeWaiters();

  StreamPool& pool_;
  const std::atomic<int>& fault_;
  OperationQueue queue_;
  std::atomic<bool> scheduled_{false};  // queued in the pool, running, or parked
  alignas(64) std::atomic<uint64_t> completed_{0};
  std::atomic<uint32_t> waiting_{0};
  std::mutex waiters_lock_;
  std::vector<Waiter> waiters_;
};

}  // namespace cuplex::softcuda
