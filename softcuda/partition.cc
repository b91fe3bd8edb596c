#include "softcuda/partition.h"

#include <algorithm>
#include <cmath>
#include <system_error>

namespace cuplex::softcuda {

Partition::Threads Partition::ThreadsFor(unsigned some, unsigned all, unsigned workers) {
  const uint64_t parts = uint64_t{some} * workers;
  const uint64_t count = std::max<uint64_t>((parts + all - 1) / all, 1);
  return {static_cast<unsigned>(count), static_cast<double>(parts) / static_cast<double>(count * all)};
}

Result<std::unique_ptr<Partition>> Partition::Start(unsigned multiprocessors, Threads threads,
                                                    AddressWindow& window) {
  std::unique_ptr<Partition> partition(new Partition(multiprocessors));
  TRY(partition->workers_, Workers::Start(threads.count - 1, window, threads.duty));
  try {
    partition->streams_ = std::make_unique<StreamPool>(threads.count);
  } catch (const std::system_error& e) {
    return Fail(Blame::kSystem, "{} threads for streams did not start: {}", threads.count, e.what());
  }
  return partition;
}

}  // namespace cuplex::softcuda
