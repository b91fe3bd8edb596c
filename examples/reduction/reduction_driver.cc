// reduction.cu through the driver API.

#include <cstdio>

#include "examples/common/driver.h"
#include "examples/reduction/reduction_ptx.h"
#include "examples/reduction/reduction_reference.h"

namespace cuplex::examples::reduction {
namespace {

bool Run(const Options& options) {
  const std::size_t elements = options.size;
  const unsigned blocks = Blocks(elements);
  const Problem problem(elements);
  const std::vector<Sum> expected = {Reference(problem)};
  std::printf("summing %zu integers: %u blocks of %u threads, then 1 block of %u\n", elements, blocks,
              kThreads, kMostBlocks);

  const Driver cu;
  const Context context(cu);
  const Module module(cu, kPtx);
  const Kernel sum_shares = module.GetKernel("sum_shares");
  const Kernel sum_blocks = module.GetKernel("sum_blocks");
  const DeviceArray<std::int32_t> values(cu, problem.values);
  const DeviceArray<Sum> block_sums(cu, blocks);
  const DeviceArray<Sum> total(cu, 1);

  std::vector<Sum> sum(1);
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "sum, copy out");
      sum_shares.Launch({blocks}, {kThreads}, kThreads * sizeof(Sum), nullptr, values.address(),
                        static_cast<unsigned>(elements), block_sums.address());
      sum_blocks.Launch({1}, {kMostBlocks}, kMostBlocks * sizeof(Sum), nullptr, block_sums.address(), blocks,
                        total.address());
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
