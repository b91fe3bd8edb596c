// bitonic_sort.cu through the driver API.

#include <cstdio>

#include "examples/bitonic_sort/bitonic_sort_ptx.h"
#include "examples/bitonic_sort/bitonic_sort_reference.h"
#include "examples/common/driver.h"

namespace cuplex::examples::bitonic_sort {
namespace {

bool Run(const Options& options) {
  const std::size_t count = options.size;
  const unsigned padded = Padded(count);
  const unsigned blocks = padded / kChunk;
  const Problem problem(count);
  const std::vector<std::uint32_t> expected = Reference(problem);
  std::printf("sorting %zu integers, filled up to %u, in %u block(s) of %u threads\n", count, padded, blocks,
              kThreads);

  const Driver cu;
  const Context context(cu);
  const Module module(cu, kPtx);
  const Kernel exchange_near = module.GetKernel("exchange_near");
  const Kernel exchange_far = module.GetKernel("exchange_far");
  const DeviceArray<std::uint32_t> keys(cu, padded);

  std::vector<std::uint32_t> sorted(count);
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "copy in, sort, copy out");
      cu.MemsetD32(keys.address(), kLast, padded);
      keys.CopyFrom(problem.keys);
      exchange_near.Launch({blocks}, {kThreads}, 0, nullptr, keys.address(), 2u, kChunk);
      for (unsigned run = 2 * kChunk; run <= padded; run *= 2) {
        for (unsigned distance = run / 2; distance >= kChunk; distance /= 2) {
          exchange_far.Launch({blocks}, {kThreads}, 0, nullptr, keys.address(), run, distance);
        }
        exchange_near.Launch({blocks}, {kThreads}, 0, nullptr, keys.address(), run, run);
      }
      keys.CopyTo(&sorted);
    }
    difference = FirstDifference(sorted, expected);
  }
  return Report(kDescription.name, "sorted", difference, sorted);
}

}  // namespace
}  // namespace cuplex::examples::bitonic_sort

int main(int argc, char** argv) {
  namespace job = cuplex::examples::bitonic_sort;
  return cuplex::examples::RunProgram(argc, argv, job::kDescription, job::Run);
}
