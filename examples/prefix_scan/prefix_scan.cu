// Each block scans its elements and notes their sum; the sums are scanned in the same way, which gives every
// block the sum of all blocks before it, to be added to its elements.

#include <cstdint>
#include <cstdio>
#include <memory>

#include "examples/common/runtime.h"
#include "examples/prefix_scan/prefix_scan_reference.h"

namespace {

constexpr unsigned kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffff;

/// The sum of `value` over this lane and all lanes before it.
__device__ std::uint32_t WarpInclusiveScan(std::uint32_t value, unsigned lane) {
  for (unsigned distance = 1; distance < kWarp; distance *= 2) {
    const std::uint32_t before = __shfl_up_sync(kAllLanes, value, distance);
    if (lane >= distance) value += before;
  }
  return value;
}

}  // namespace

extern "C" __global__ void scan_blocks(std::uint32_t* values, unsigned elements, std::uint32_t* block_sums) {
  __shared__ std::uint32_t warp_sums[kWarp];
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned warp = threadIdx.x / kWarp;
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const std::uint32_t value = i < elements ? values[i] : 0;

  std::uint32_t sum = WarpInclusiveScan(value, lane);
  if (lane == kWarp - 1) warp_sums[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    const unsigned warps = blockDim.x / kWarp;
    warp_sums[lane] = WarpInclusiveScan(lane < warps ? warp_sums[lane] : 0, lane);
  }
  __syncthreads();
  if (warp > 0) sum += warp_sums[warp - 1];

  if (i < elements) values[i] = sum - value;
  if (threadIdx.x == blockDim.x - 1) block_sums[blockIdx.x] = sum;
}

extern "C" __global__ void add_block_sums(std::uint32_t* values, unsigned elements,
                                          const std::uint32_t* block_sums) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < elements) values[i] += block_sums[blockIdx.x];
}

namespace cuplex::examples::prefix_scan {
namespace {

bool Run(const Options& options) {
  const std::size_t elements = options.size;
  const Problem problem(elements);
  const std::vector<std::uint32_t> expected = Reference(problem);
  const std::vector<std::size_t> lengths = Levels(elements);
  std::printf("scanning %zu integers in blocks of %u, %zu level(s)\n", elements, kThreads, lengths.size());

  // One array more than there are levels: the last one takes the sum of everything.
  std::vector<std::unique_ptr<DeviceArray<std::uint32_t>>> levels;
  for (const std::size_t length : lengths)
    levels.push_back(std::make_unique<DeviceArray<std::uint32_t>>(length));
  levels.push_back(std::make_unique<DeviceArray<std::uint32_t>>(1));

  std::vector<std::uint32_t> sums(elements);
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "copy in, scan, copy out");
      levels[0]->CopyFrom(problem.values);
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        scan_blocks<<<Blocks(lengths[i]), kThreads>>>(levels[i]->get(), static_cast<unsigned>(lengths[i]),
                                                      levels[i + 1]->get());
        CheckLaunch("scan_blocks");
      }
      for (std::size_t i = lengths.size() - 1; i-- > 0;) {
        add_block_sums<<<Blocks(lengths[i]), kThreads>>>(levels[i]->get(), static_cast<unsigned>(lengths[i]),
                                                         levels[i + 1]->get());
        CheckLaunch("add_block_sums");
      }
      levels[0]->CopyTo(&sums);
    }
    difference = FirstDifference(sums, expected);
  }
  return Report(kDescription.name, "sums", difference, sums);
}

}  // namespace
}  // namespace cuplex::examples::prefix_scan

int main(int argc, char** argv) {
  namespace job = cuplex::examples::prefix_scan;
  return cuplex::examples::RunProgram(argc, argv, job::kDescription, job::Run);
}
