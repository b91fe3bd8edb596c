#include "softcuda/stream_pool.h"

#include <system_error>

#include "softcuda/pause.h"
#include "softcuda/stream.h"

namespace cuplex::softcuda {
namespace {

constexpr int64_t kIdleSpinNs = 20'000;  // about what a futex wake-up costs both sides

}  // namespace

StreamPool::StreamPool(unsigned threads)
    : may_spin_(std::thread::hardware_concurrency() > 1), most_running_(threads) {
  std::lock_guard lock(lock_);
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { ThreadMain(); });
}

StreamPool::~StreamPool() {
  {
    std::lock_guard lock(lock_);
    stop_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

bool StreamPool::MustWake() {
  size_t looking = threads_.size() - running_ - in_host_calls_ - parked_;
  if (running_ >= most_running_ || ready_.load() <= looking) return false;
  if (parked_) return true;
  if (in_host_calls_ && threads_.size() < kMostThreads) {
    try {
      threads_.emplace_back([this] { ThreadMain(); });
    } catch (const std::system_error&) {
      // The streams wait for a thread to come back.
    }
  }
  return false;
}

void StreamPool::Push(Stream* stream) {
  bool wake;
  {
    std::lock_guard lock(lock_);
    Queue& queue = queues_[-stream->priority];
    stream->next_ready = nullptr;
    (queue.last ? queue.last->next_ready : queue.first) = stream;
    queue.last = stream;
    ready_.fetch_add(1);
    wake = MustWake();
  }
  if (wake) wake_.notify_one();
}

void StreamPool::BeginHostCall() {
  bool wake;
  {
    std::lock_guard lock(lock_);
    --running_;
    ++in_host_calls_;
    wake = MustWake();
  }
  if (wake) wake_.notify_one();
}

void StreamPool::EndHostCall() {
  std::lock_guard lock(lock_);
  --in_host_calls_;
  ++running_;  // one too many, perhaps, until a stream has had its turn
}

Stream* StreamPool::Pop() {
  if (running_ >= most_running_) return nullptr;
  for (int i = kPriorities - 1; i >= 0; --i) {
    Queue& queue = queues_[i];
    Stream* stream = queue.first;
    if (!stream) continue;
    queue.first = stream->next_ready;
    if (!queue.first) queue.last = nullptr;
    ready_.fetch_sub(1);
    ++running_;
    return stream;
  }
  return nullptr;
}

Stream* StreamPool::Take(bool ran) {
  std::unique_lock lock(lock_);
  if (ran) --running_;
  if (Stream* stream = Pop()) return stream;
  if (may_spin_ && !spinning_.exchange(true)) {
    lock.unlock();
    SpinUntil([this] { return Wanted(); }, kIdleSpinNs);
    lock.lock();
    spinning_.store(false);
  }
  for (;;) {
    if (Stream* stream = Pop()) return stream;
    if (stop_) return nullptr;
    ++parked_;
    wake_.wait(lock);
    --parked_;
  }
}

void StreamPool::ThreadMain() {
  Stream* stream = Take(false);
  while (stream) {
    stream->Run();
    stream = Take(true);
  }
}

}  // namespace cuplex::softcuda
