// HostCalls: threads that run the functions which programs put into streams. Any thread.
//
// Such a function may block for long, so it never runs on a thread of the pool: its stream is parked
// meanwhile. A thread is added whenever all are busy, up to a bound, and each ends with the process.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace cuplex::softcuda {

class HostCalls {
 public:
  /// Runs `call` soon, on a thread that is neither the caller's nor the pool's.
  void Post(std::function<void()> call);

 private:
  static constexpr unsigned kMaxThreads = 64;

  void ThreadMain();

  std::mutex lock_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> calls_;
  unsigned threads_ = 0;
  unsigned idle_ = 0;
};

}  // namespace cuplex::softcuda
