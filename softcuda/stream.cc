#include "softcuda/stream.h"

#include <algorithm>

#include "softcuda/partition.h"
#include "softcuda/pause.h"

namespace cuplex::softcuda {
namespace {

constexpr int kTurn = 64;                 // operations before other streams have a turn
constexpr int64_t kRunnerSpinNs = 2'000;  // a submitter in a loop is back within this time
constexpr int64_t kWaitSpinNs = 30'000;

}  // namespace

Stream::Stream(Context& context, Partition& partition, const std::atomic<int>& fault, Kind kind, int priority,
               uint64_t id, GreenContext* green)
    : context(context),
      partition(partition),
      green(green),
      kind(kind),
      priority(priority),
      id(id),
      pool_(partition.streams()),
      fault_(fault) {}

bool Stream::Activate() {
  if (scheduled_.load(std::memory_order_seq_cst)) return false;
  bool idle = false;
  if (!scheduled_.compare_exchange_strong(idle, true, std::memory_order_seq_cst)) return false;
  HandleTable<Stream>::Hold(this);  // until Run finds nothing more to do
  return true;
}

void Stream::Run() {
  for (int turn = 0;; ++turn) {
    uint64_t done = completed_.load(std::memory_order_relaxed);
    if (done == queue_.pushed()) {
      auto more = [&] { return queue_.pushed() != done; };
      if (pool_.MaySpin()) SpinUntil([&] { return more() || pool_.Wanted(); }, kRunnerSpinNs);
      if (more()) continue;
      scheduled_.store(false, std::memory_order_seq_cst);
      // Whoever pushed since then either found the stream scheduled, and is seen here, or schedules it
      // itself.
      bool idle = false;
      if (more() && scheduled_.compare_exchange_strong(idle, true, std::memory_order_seq_cst)) continue;
      HandleTable<Stream>::Drop(this);
      return;
    }
    if (turn >= kTurn) {
      turn = 0;
      if (pool_.Wanted()) {
        pool_.Push(this);
        return;
      }
    }
    Operation& operation = queue_.Front();
    if (operation.always || !fault_.load(std::memory_order_relaxed)) {
      if (operation.run(operation.payload, *this) == Progress::kParked) return;
    }
    if (operation.drop) operation.drop(operation.payload);
    queue_.Pop();
    completed_.store(done + 1, std::memory_order_seq_cst);
    if (waiting_.load(std::memory_order_seq_cst)) WakeWaiters();
  }
}

void Stream::WakeWaiters() {
  std::lock_guard lock(waiters_lock_);
  uint64_t done = completed_.load(std::memory_order_seq_cst);
  auto ready = std::partition(waiters_.begin(), waiters_.end(),
                              [&](const Waiter& waiter) { return waiter.number > done; });
  for (auto it = ready; it != waiters_.end(); ++it) {
    if (it->stream) it->stream->pool_.Push(it->stream);
    if (it->thread) it->thread->release();
  }
  waiting_.fetch_sub(static_cast<uint32_t>(waiters_.end() - ready), std::memory_order_seq_cst);
  waiters_.erase(ready, waiters_.end());
}

bool Stream::WakeWhenDone(uint64_t number, Stream& waiter) {
  std::lock_guard lock(waiters_lock_);
  waiting_.fetch_add(1, std::memory_order_seq_cst);
  if (completed_.load(std::memory_order_seq_cst) >= number) {
    waiting_.fetch_sub(1, std::memory_order_seq_cst);
    return false;
  }
  waiters_.push_back({number, &waiter, nullptr});
  return true;
}

void Stream::Wait(uint64_t number) {
  if (Done(number) || (pool_.MaySpin() && SpinUntil([&] { return Done(number); }, kWaitSpinNs))) return;
  std::binary_semaphore woken(0);
  {
    std::lock_guard lock(waiters_lock_);
    waiting_.fetch_add(1, std::memory_order_seq_cst);
    if (completed_.load(std::memory_order_seq_cst) >= number) {
      waiting_.fetch_sub(1, std::memory_order_seq_cst);
      return;
    }
    waiters_.push_back({number, nullptr, &woken});
  }
  woken.acquire();
  // The one who woke us is done with the semaphore once it has let go of the lock.
  std::lock_guard lock(waiters_lock_);
}

}  // namespace cuplex::softcuda
