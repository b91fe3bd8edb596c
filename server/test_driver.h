// TestDriver: a CUDA driver for tests that keeps books and computes nothing. It hands out handles and
// addresses, remembers what is mapped where, and completes work when the test says so. One at a time in a
// process; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cuda/driver_table.h"

namespace cuplex::server {

class TestDriver {
 public:
  static constexpr uint64_t kMemory = uint64_t{8} << 30;
  static constexpr uint64_t kGranule = 2 << 20;

  /// `confines`: it can confine a context to some multiprocessors.
  explicit TestDriver(bool confines = true);
  ~TestDriver();
  const DriverTable& table() const { return table_; }

  // ---------------------------------------------------------------------------------------- the books
  struct Mapped {
    uint64_t bytes = 0;
    uint64_t handle = 0;
    bool access = false;
  };
  std::map<uint64_t, uint64_t> reserved;  // base -> bytes
  std::map<uint64_t, uint64_t> physical;  // handle -> bytes
  std::map<uint64_t, Mapped> mapped;      // base -> what
  std::set<uint64_t> contexts, modules;
  std::map<uint64_t, unsigned> confined;  // context -> multiprocessors
  std::set<uint64_t> streams, events;     // of living contexts
  struct Link {
    std::vector<std::pair<int, uint64_t>> options;
    char *info = nullptr, *errors = nullptr;
    void **wall_time = nullptr, **threads = nullptr;
    std::string image;
  };
  std::map<uint64_t, Link> links;                     // not destroyed
  std::vector<std::pair<int, uint64_t>> linked_with;  // options of the last link that was complete
  std::vector<std::string> log;  // "launch F on S", "copy N", ..., in the order they came

  std::vector<uint64_t> grids;  // blocks along x of each launch

  uint64_t physical_bytes() const;

  // ---------------------------------------------------------------------------------------- the device
  /// While held, nothing that is given to a stream gets done.
  void Hold() { hold_ = true; }
  /// Everything that was given up to here is done.
  void Finish();
  /// The next so many pieces are: kernels, copies, records of events.
  void Finish(uint64_t pieces);
  void Release() {
    Finish();
    hold_ = false;
  }
  /// What a block takes on the device, in ns; blocks of a grid run one after another.
  uint64_t kernel_ns = 1000;
  /// Moves with the device's time, where it is set: work takes time, and time passes without work.
  ManualClock* clock = nullptr;
  /// Every query in this context answers the code from here on.
  void Fault(CUcontext context, CUresult code);

 private:
  friend struct TestCalls;
  void DoneTo(uint64_t piece);
  struct Event {
    uint64_t context = 0;
    uint64_t position = 0;  // of the device's work at which it was recorded
    int64_t time_ns = 0;
  };
  std::mutex lock_;
  DriverTable table_;
  bool confines_;
  bool hold_ = false;
  uint64_t next_ = 0x1000;  // handles
  uint64_t next_base_ = uint64_t{1} << 44;
  uint64_t given_ = 0, done_ = 0;  // pieces of work
  int64_t device_ns_ = 0;
  std::vector<int64_t> over_at_;  // when each piece of work is over
  std::map<uint64_t, Event> event_of_;
  std::map<uint64_t, uint64_t> context_of_;  // stream, module -> context
  std::map<uint64_t, CUresult> fault_of_;
};

}  // namespace cuplex::server
