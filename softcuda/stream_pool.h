// StreamPool: the threads of a device that run its streams. Any thread may Push.
//
// Streams with work are queued by priority; a thread takes one, runs it for a while and takes the next. At
// most one idle thread spins, briefly; the others sleep. So many streams never mean many spinning threads,
// and work that is submitted in quick succession costs no system call.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace cuplex::softcuda {

class Stream;

class StreamPool {
 public:
  static constexpr int kPriorities = 6;  // 0 .. -5

  explicit StreamPool(unsigned threads);
  /// Only when no stream has work left.
  ~StreamPool();

  /// Queues a stream that has work and that no thread runs.
  void Push(Stream* stream);

  /// Whether some stream waits for a thread.
  bool Wanted() const { return ready_.load(std::memory_order_relaxed) > 0; }
  bool MaySpin() const { return may_spin_; }

 private:
  struct Queue {
    Stream* first = nullptr;
    Stream* last = nullptr;
  };

  void ThreadMain();
  Stream* Take();
  Stream* Pop();  // under lock_

  const bool may_spin_;
  std::mutex lock_;
  std::condition_variable wake_;
  std::array<Queue, kPriorities> queues_;
  unsigned parked_ = 0;
  bool stop_ = false;
  std::atomic<int> ready_{0};
  std::atomic<int> spinners_{0};
  std::vector<std::thread> threads_;
};

}  // namespace cuplex::softcuda
