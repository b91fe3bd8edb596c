#include "softcuda/host_calls.h"

#include <thread>

namespace cuplex::softcuda {

void HostCalls::Post(std::function<void()> call) {
  std::lock_guard lock(lock_);
  calls_.push_back(std::move(call));
  if (idle_ >= calls_.size() || threads_ == kMaxThreads) {
    wake_.notify_one();
    return;
  }
  ++threads_;
  std::thread([this] { ThreadMain(); }).detach();
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
