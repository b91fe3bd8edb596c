// histogram.cu through the driver API.

#include <algorithm>
#include <cstdio>

#include "examples/common/driver.h"
#include "examples/histogram/histogram_ptx.h"
#include "examples/histogram/histogram_reference.h"

namespace cuplex::examples::histogram {
namespace {

bool Run(const Options& options) {
  const std::size_t elements = options.size;
  const Problem problem(elements);
  const std::vector<std::uint32_t> expected = Reference(problem);
  std::printf("counting %zu bytes in %u blocks of %u threads\n", elements, Blocks(elements), kThreads);

  const Driver cu;
  const Context context(cu);
  const Module module(cu, kPtx);
  const Kernel kernel = module.GetKernel("histogram");
  const DeviceArray<std::uint8_t> values(cu, problem.values);
  const DeviceArray<std::uint32_t> bins(cu, kBins);

  std::vector<std::uint32_t> counts(kBins);
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "clear, count, copy out");
      cu.MemsetD8(bins.address(), 0, bins.Bytes());
      kernel.Launch({Blocks(elements)}, {kThreads}, 0, nullptr, values.address(),
                    static_cast<unsigned>(elements), bins.address());
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
