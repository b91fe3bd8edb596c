// Partition: some of a device's multiprocessors, and the threads that stand for them: those that run its
// streams, and the workers of their grids. The whole device is one; exec affinity and green contexts make
// others. Any thread.
//
// A device has `workers` threads to run kernels and says that it has so many multiprocessors; k of n of these
// are k / n of the threads, rounded up, each of which runs for so much of the time only that together they
// come to exactly that. So a partition gives the same speed whatever the others do, as one of a GPU does.
#pragma once

#include <bitset>
#include <memory>

#include "base/result.h"
#include "softcuda/jit/workers.h"
#include "softcuda/stream_pool.h"

namespace cuplex::softcuda {

class Partition {
 public:
  static constexpr size_t kMostMultiprocessors = 1024;
  /// Which of the device's multiprocessors.
  using Set = std::bitset<kMostMultiprocessors>;

  struct Threads {
    unsigned count;
    double duty;  // the part of the time that each of them runs, in (0, 1]
  };
  /// What `some` of `all` multiprocessors are on a device with `workers` threads.
  static Threads ThreadsFor(unsigned some, unsigned all, unsigned workers);

  /// An Error where the machine gives no threads.
  static Result<std::unique_ptr<Partition>> Start(unsigned multiprocessors, Threads threads,
                                                  AddressWindow& window);

  const unsigned multiprocessors;
  StreamPool& streams() { return *streams_; }
  Workers& workers() { return *workers_; }

 private:
  explicit Partition(unsigned multiprocessors) : multiprocessors(multiprocessors) {}

  // Streams run grids, so their threads end first.
  std::unique_ptr<Workers> workers_;
  std::unique_ptr<StreamPool> streams_;
};

}  // namespace cuplex::softcuda
