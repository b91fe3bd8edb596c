// Many numbers become one in two launches. In each block, every thread first sums its share; then half of the
// threads that are left add the other half's sums, again and again: in shared memory with a barrier between
// the steps while more than one warp is left, and by shuffles inside the last warp.

#include <cstdint>
#include <cstdio>

#include "examples/common/runtime.h"
#include "examples/reduction/reduction_reference.h"

namespace {

constexpr unsigned kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffff;

/// Gives thread 0 the sum of every thread's `value`. The block has a power of two of threads, at least a
/// warp.
__device__ long long BlockSum(long long value, long long* partial) {
  const unsigned thread = threadIdx.x;
  partial[thread] = value;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half >= kWarp; half /= 2) {
    if (thread < half) partial[thread] += partial[thread + half];
    __syncthreads();
  }
  if (thread >= kWarp) return 0;
  long long sum = partial[thread];
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(kAllLanes, sum, distance);
  }
  return sum;
}

}  // namespace

extern __shared__ long long partial_sums[];  // one a thread

extern "C" __global__ void sum_shares(const std::int32_t* values, unsigned elements, long long* block_sums) {
  long long share = 0;
  const unsigned stride = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += stride) share += values[i];
  const long long sum = BlockSum(share, partial_sums);
  if (threadIdx.x == 0) block_sums[blockIdx.x] = sum;
}

extern "C" __global__ void sum_blocks(const long long* block_sums, unsigned blocks, long long* total) {
  const long long sum = BlockSum(threadIdx.x < blocks ? block_sums[threadIdx.x] : 0, partial_sums);
  if (threadIdx.x == 0) *total = sum;
}

namespace cuplex::examples::reduction {
namespace {

bool Run(const Options& options) {
  const std::size_t elements = options.size;
  const unsigned blocks = Blocks(elements);
  const Problem problem(elements);
  const std::vector<Sum> expected = {Reference(problem)};
  std::printf("summing %zu integers: %u blocks of %u threads, then 1 block of %u\n", elements, blocks,
              kThreads, kMostBlocks);

  const DeviceArray<std::int32_t> values(problem.values);
  const DeviceArray<Sum> block_sums(blocks);
  const DeviceArray<Sum> total(1);

  std::vector<Sum> sum(1);
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "sum, copy out");
      sum_shares<<<blocks, kThreads, kThreads * sizeof(Sum)>>>(values.get(), static_cast<unsigned>(elements),
                                                               block_sums.get());
      CheckLaunch("sum_shares");
      sum_blocks<<<1, kMostBlocks, kMostBlocks * sizeof(Sum)>>>(block_sums.get(), blocks, total.get());
      CheckLaunch("sum_blocks");
      total.CopyTo(&sum);
    }
    difference = FirstDifference(sum, expected);
  }
  std::printf("the sum is %lld\n", sum[0]);
  return Report(kDescription.name, "sum", difference, sum);
}

}  // namespace
}  // namespace cuplex::examples::reduction

int main(int argc, char** argv) {
  namespace job = cuplex::examples::reduction;
  return cuplex::examples::RunProgram(argc, argv, job::kDescription, job::Run);
}
