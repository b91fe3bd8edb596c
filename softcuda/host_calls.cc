#include "softcuda/host_calls.h"

#include <system_error>
#include <thread>

namespace cuplex::softcuda {

void HostCalls::Post(std::function<void()> call) {
  std::unique_lock lock(lock_);
  calls_.push_back(std::move(call));
  if (idle_ >= calls_.size() || threads_ == kMaxThreads) {
    wake_.notify_one();
    return;
  }
  try {
    std::thread([this] { ThreadMain(); }).detach();
    ++threads_;
  } catch (const std::system_error&) {
    // Without another thread the call waits for one of those there are, or is run right here.
    if (threads_) return;
    auto here = std::move(calls_.back());
    calls_.pop_back();
    lock.unlock();
    here();
  }
}

void HostCalls::ThreadMain() {
  std::unique_lock lock(lock_);
  for (;;) {
    while (calls_.empty()) {
      ++idle_;
      wake_.wait(lock);
      --idle_;
    }
    auto call = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    call();
    lock.lock();
  }
}

}  // namespace cuplex::softcuda
