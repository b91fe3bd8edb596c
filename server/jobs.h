// Jobs: slow driver calls (compiling a module, making a context, mapping memory) off the reactor's thread.
//
// A job is two functions: `work` runs on any thread and touches nothing but the driver and what it captured;
// `done` runs afterwards on the reactor's thread, in RunDone.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cuplex::server {

class Jobs {
 public:
  using Step = std::function<void()>;
  virtual ~Jobs() = default;
  /// Reactor's thread.
  virtual void Post(Step work, Step done) = 0;
  /// Runs the `done` of jobs whose work is over; reactor's thread. True where there was one.
  virtual bool RunDone() = 0;
};

/// A few threads. `wake` is called on them whenever RunDone has something to do.
class JobThreads final : public Jobs {
 public:
  JobThreads(unsigned threads, std::function<void()> wake);
  /// Waits for running work; what has not begun is dropped.
  ~JobThreads() override;
  void Post(Step work, Step done) override;
  bool RunDone() override;

 private:
  struct Job {
    Step work, done;
  };
  void Run();

  std::function<void()> wake_;
  std::mutex lock_;
  std::condition_variable ready_;
  std::deque<Job> waiting_;
  std::vector<Step> done_;
  std::atomic<bool> any_done_{false};  // so that looking takes no lock
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

/// No threads: work is done when RunDone is called. For tests.
class JobsInline final : public Jobs {
 public:
  /// `after_work` is called between the two, on the thread that then has what work left behind.
  explicit JobsInline(Step after_work) : after_work_(std::move(after_work)) {}
  void Post(Step work, Step done) override { waiting_.push_back({std::move(work), std::move(done)}); }
  bool RunDone() override;

 private:
  Step after_work_;
  std::deque<std::pair<Step, Step>> waiting_;
};

}  // namespace cuplex::server
