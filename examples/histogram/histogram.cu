// Every block counts into bins of its own, in shared memory, and adds them to the bins of all at its end.

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "examples/common/runtime.h"
#include "examples/histogram/histogram_reference.h"

using cuplex::examples::histogram::kBins;

extern "C" __global__ void histogram(const std::uint8_t* values, unsigned elements, unsigned* counts) {
  __shared__ unsigned block_counts[kBins];
  for (unsigned bin = threadIdx.x; bin < kBins; bin += blockDim.x) block_counts[bin] = 0;
  __syncthreads();
  const unsigned stride = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += stride) {
    atomicAdd(&block_counts[values[i]], 1u);
  }
  __syncthreads();
  for (unsigned bin = threadIdx.x; bin < kBins; bin += blockDim.x) {
    if (block_counts[bin] != 0) atomicAdd(&counts[bin], block_counts[bin]);
  }
}

namespace cuplex::examples::histogram {
namespace {

bool Run(const Options& options) {
  const std::size_t elements = options.size;
  const Problem problem(elements);
  const std::vector<std::uint32_t> expected = Reference(problem);
  std::printf("counting %zu bytes in %u blocks of %u threads\n", elements, Blocks(elements), kThreads);

  const DeviceArray<std::uint8_t> values(problem.values);
  const DeviceArray<std::uint32_t> bins(kBins);

  std::vector<std::uint32_t> counts(kBins);
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "clear, count, copy out");
      Check(cudaMemset(bins.get(), 0, kBins * sizeof(std::uint32_t)), "cudaMemset");
      ::histogram<<<Blocks(elements), kThreads>>>(values.get(), static_cast<unsigned>(elements), bins.get());
      CheckLaunch("histogram");
      bins.CopyTo(&counts);
    }
    difference = FirstDifference(counts, expected);
  }
  const auto most = std::max_element(counts.begin(), counts.end());
  std::printf("the most frequent byte is %td, %u times\n", most - counts.begin(), *most);
  return Report(kDescription.name, "counts", difference, counts);
}

}  // namespace
}  // namespace cuplex::examples::histogram

int main(int argc, char** argv) {
  namespace job = cuplex::examples::histogram;
  return cuplex::examples::RunProgram(argc, argv, job::kDescription, job::Run);
}
