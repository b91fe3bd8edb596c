// Runs of keys, alternately rising and falling, are merged into runs of twice the length until one is left. A
// merge exchanges keys at half its length apart, then a quarter, ... : far ones in global memory, one launch
// for each distance; near ones in shared memory, all distances in one launch.

#include <cstdint>
#include <cstdio>

#include "examples/bitonic_sort/bitonic_sort_reference.h"
#include "examples/common/runtime.h"

using cuplex::examples::bitonic_sort::kChunk;
using cuplex::examples::bitonic_sort::kThreads;

namespace {

/// The lower of the two places that a pair's thread compares; the other is `distance` further.
__device__ unsigned LowerPlace(unsigned pair, unsigned distance) {
  return 2 * pair - (pair & (distance - 1));
}

__device__ void Exchange(std::uint32_t& lower, std::uint32_t& upper, bool rising) {
  if ((lower > upper) == rising) {
    const std::uint32_t moved = lower;
    lower = upper;
    upper = moved;
  }
}

}  // namespace

// Does the part of the network in which no two compared keys are in different chunks: merges into runs of
// `first_run` to `last_run` keys, beginning each with distances below a chunk.
extern "C" __global__ void exchange_near(std::uint32_t* keys, unsigned first_run, unsigned last_run) {
  __shared__ std::uint32_t chunk[kChunk];
  const unsigned begin = blockIdx.x * kChunk;
  chunk[threadIdx.x] = keys[begin + threadIdx.x];
  chunk[threadIdx.x + kThreads] = keys[begin + threadIdx.x + kThreads];
  for (unsigned run = first_run; run <= last_run; run *= 2) {
    for (unsigned distance = min(run, kChunk) / 2; distance > 0; distance /= 2) {
      __syncthreads();
      const unsigned place = LowerPlace(threadIdx.x, distance);
      Exchange(chunk[place], chunk[place + distance], ((begin + place) & run) == 0);
    }
  }
  __syncthreads();
  keys[begin + threadIdx.x] = chunk[threadIdx.x];
  keys[begin + threadIdx.x + kThreads] = chunk[threadIdx.x + kThreads];
}

// Does one distance of the merge into runs of `run` keys.
extern "C" __global__ void exchange_far(std::uint32_t* keys, unsigned run, unsigned distance) {
  const unsigned place = LowerPlace(blockIdx.x * kThreads + threadIdx.x, distance);
  Exchange(keys[place], keys[place + distance], (place & run) == 0);
}

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

  const DeviceArray<std::uint32_t> keys(padded);
  std::vector<std::uint32_t> sorted(count);
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "copy in, sort, copy out");
      static_assert(kLast == 0xffffffff, "cudaMemset sets bytes");
      Check(cudaMemset(keys.get(), 0xff, padded * sizeof(std::uint32_t)), "cudaMemset");
      keys.CopyFrom(problem.keys);
      exchange_near<<<blocks, kThreads>>>(keys.get(), 2, kChunk);
      CheckLaunch("exchange_near");
      for (unsigned run = 2 * kChunk; run <= padded; run *= 2) {
        for (unsigned distance = run / 2; distance >= kChunk; distance /= 2) {
          exchange_far<<<blocks, kThreads>>>(keys.get(), run, distance);
          CheckLaunch("exchange_far");
        }
        exchange_near<<<blocks, kThreads>>>(keys.get(), run, run);
        CheckLaunch("exchange_near");
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
