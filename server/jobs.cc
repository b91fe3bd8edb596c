#include "server/jobs.h"

#include <utility>

namespace cuplex::server {

JobThreads::JobThreads(unsigned threads, std::function<void()> wake) : wake_(std::move(wake)) {
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

JobThreads::~JobThreads() {
  {
    std::lock_guard lock(lock_);
    ending_ = true;
  }
  ready_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void JobThreads::Post(Step work, Step done) {
  {
    std::lock_guard lock(lock_);
    waiting_.push_back({std::move(work), std::move(done)});
  }
  ready_.notify_one();
}

bool JobThreads::RunDone() {
  if (!any_done_.load(std::memory_order_acquire)) return false;
  std::vector<Step> done;
  {
    std::lock_guard lock(lock_);
    any_done_.store(false, std::memory_order_relaxed);
    done.swap(done_);
  }
  for (Step& step : done) step();
  return !done.empty();
}

void JobThreads::Run() {
  std::unique_lock lock(lock_);
  while (true) {
    ready_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    Job job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    job.work();
    job.work = nullptr;
    lock.lock();
    done_.push_back(std::move(job.done));
    any_done_.store(true, std::memory_order_release);
    wake_();
  }
}

bool JobsInline::RunDone() {
  if (waiting_.empty()) return false;
  auto [work, done] = std::move(waiting_.front());
  waiting_.pop_front();
  work();
  after_work_();
  done();
  return true;
}

}  // namespace cuplex::server
