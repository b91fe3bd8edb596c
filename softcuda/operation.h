// Operation: one piece of work in a stream, and OperationQueue, the stream's queue of them.
//
// One thread at a time pushes (it holds the context's lock) and one at a time takes (it runs the stream); the
// two may be different threads at the same moment. Memory is taken 32 operations at a time and used again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

namespace cuplex::softcuda {

class Stream;

/// kParked: not done; someone has been asked to push the stream back to its pool, and then the operation runs
/// again. After it is returned the stream may already run elsewhere.
enum class Progress { kDone, kParked };

struct alignas(64) Operation {
  static constexpr size_t kPayload = 256 - 32;

  Progress (*run)(void* payload, Stream& stream) = nullptr;
  void (*drop)(void* payload) = nullptr;  // null where there is nothing to destroy
  bool always = false;                    // runs even after the context has failed
  alignas(16) std::byte payload[kPayload];

  /// F is called as `Progress f(Stream&)`.
  template <typename F>
  void Set(F&& f, bool run_always) {
    using Body = std::decay_t<F>;
    static_assert(sizeof(Body) <= kPayload && alignof(Body) <= 16);
    new (payload) Body(std::forward<F>(f));
    run = [](void* p, Stream& stream) { return (*static_cast<Body*>(p))(stream); };
    drop = nullptr;
    if constexpr (!std::is_trivially_destructible_v<Body>) {
      drop = [](void* p) { static_cast<Body*>(p)->~Body(); };
    }
    always = run_always;
  }
};
static_assert(sizeof(Operation) == 256);

class OperationQueue {
 public:
  OperationQueue() { head_ = tail_ = new Chunk; }
  /// Only when empty.
  ~OperationQueue() {
    delete head_;
    delete spare_.load();
  }
  OperationQueue(const OperationQueue&) = delete;
  OperationQueue& operator=(const OperationQueue&) = delete;

  /// How many were ever pushed.
  uint64_t pushed() const { return pushed_.load(std::memory_order_seq_cst); }

  template <typename F>
  void Push(F&& f, bool always) {
    if (tail_at_ == kChunk) {
      Chunk* chunk = spare_.exchange(nullptr, std::memory_order_acquire);
      if (!chunk) chunk = new Chunk;
      chunk->next = nullptr;
      tail_->next = chunk;
      tail_ = chunk;
      tail_at_ = 0;
    }
    tail_->operations[tail_at_].Set(std::forward<F>(f), always);
    ++tail_at_;
    pushed_.store(pushed_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
  }

  /// The oldest; only where one is there.
  Operation& Front() {
    if (head_at_ == kChunk) {
      Chunk* used = std::exchange(head_, head_->next);
      head_at_ = 0;
      delete spare_.exchange(used, std::memory_order_acq_rel);
    }
    return head_->operations[head_at_];
  }
  void Pop() { ++head_at_; }

 private:
  static constexpr size_t kChunk = 32;
  struct Chunk {
    Operation operations[kChunk];
    Chunk* next = nullptr;
  };

  alignas(64) std::atomic<uint64_t> pushed_{0};  // what pushers write
  Chunk* tail_;
  size_t tail_at_ = 0;
  alignas(64) Chunk* head_;  // what the runner writes
  size_t head_at_ = 0;
  alignas(64) std::atomic<Chunk*> spare_{nullptr};
};

}  // namespace cuplex::softcuda
