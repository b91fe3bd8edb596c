// StreamPool: the threads of a device that run its streams. Any thread may Push.
//
// Streams with work are queued by priority; a thread takes one, runs it for a while and takes the next. At
// most one idle thread spins, briefly; the others sleep. So many streams never mean many spinning threads,
// and work that is submitted in quick succession costs no system call.
//
// A function of the program (cuLaunchHostFunc) runs on the thread that came to it, which costs no hand-over.
// Since it may block for long, that thread does not count meanwhile, and another is started where streams
// wait for one.
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

  /// `threads` streams run at once.
  explicit StreamPool(unsigned threads);
  /// Only when no stream has work left.
  ~StreamPool();

  /// Queues a stream that has work and that no thread runs.
  void Push(Stream* stream);

  /// Whether some stream waits for a thread.
  bool Wanted() const { return ready_.load(std::memory_order_relaxed) > 0; }
  bool MaySpin() const { return may_spin_; }

  /// Around a function of the program, on a thread of the pool.
  void BeginHostCall();
  void EndHostCall();

 private:
  static constexpr size_t kMostThreads = 256 + 64;

  struct Queue {
    Stream* first = nullptr;
    Stream* last = nullptr;
  };

  void ThreadMain();
  /// The next stream for a thread that has none; null when it should end. `ran`: it had one.
  Stream* Take(bool ran);
  // Under lock_:
  Stream* Pop();
  bool
  MustWake();  // whether a sleeping thread must be woken for what is queued; starts one where all are away

  const bool may_spin_;
  const unsigned most_running_;
  std::mutex lock_;
  std::condition_variable wake_;
  std::array<Queue, kPriorities> queues_;
  // A thread runs a stream, or is in a host call, or sleeps, or is about to look for a stream.
  unsigned running_ = 0;
  unsigned in_host_calls_ = 0;
  unsigned parked_ = 0;
  bool stop_ = false;
  std::atomic<unsigned> ready_{0};
  std::atomic<bool> spinning_{false};
  std::vector<std::thread> threads_;
};

}  // namespace cuplex::softcuda
