#include "softcuda/stream_pool.h"

#include "softcuda/pause.h"
#include "softcuda/stream.h"

namespace cuplex::softcuda {
namespace {

constexpr int64_t kIdleSpinNs = 20'000;  // about what a futex wake-up costs both sides

}  // namespace

StreamPool::StreamPool(unsigned threads) : may_spin_(std::thread::hardware_concurrency() > 1) {
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

void StreamPool::Push(Stream* stream) {
  bool notify;
  {
    std::lock_guard lock(lock_);
    Queue& queue = queues_[-stream->priority];
    stream->next_ready = nullptr;
    (queue.last ? queue.last->next_ready : queue.first) = stream;
    queue.last = stream;
    int ready = ready_.fetch_add(1) + 1;
    notify = parked_ > 0 && ready > spinners_.load();
  }
  if (notify) wake_.notify_one();
}

Stream* StreamPool::Pop() {
  for (int i = kPriorities - 1; i >= 0; --i) {
    Queue& queue = queues_[i];
    Stream* stream = queue.first;
    if (!stream) continue;
    queue.first = stream->next_ready;
    if (!queue.first) queue.last = nullptr;
    ready_.fetch_sub(1);
    return stream;
  }
  return nullptr;
}

Stream* StreamPool::Take() {
  if (may_spin_ && !Wanted()) {
    if (spinners_.fetch_add(1) == 0) SpinUntil([this] { return Wanted(); }, kIdleSpinNs);
    // Given up before the lock is taken: whoever pushes from now on sees no spinner, or we see the push.
    spinners_.fetch_sub(1);
  }
  std::unique_lock lock(lock_);
  for (;;) {
    if (Stream* stream = Pop()) return stream;
    if (stop_) return nullptr;
    ++parked_;
    wake_.wait(lock);
    --parked_;
  }
}

void StreamPool::ThreadMain() {
  while (Stream* stream = Take()) stream->Run();
}

}  // namespace cuplex::softcuda
