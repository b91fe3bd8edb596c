// prefix_scan.cu through the driver API.

#include <cstdio>
#include <memory>

#include "examples/common/driver.h"
#include "examples/prefix_scan/prefix_scan_ptx.h"
#include "examples/prefix_scan/prefix_scan_reference.h"

namespace cuplex::examples::prefix_scan {
namespace {

bool Run(const Options& options) {
  const std::size_t elements = options.size;
  const Problem problem(elements);
  const std::vector<std::uint32_t> expected = Reference(problem);
  const std::vector<std::size_t> lengths = Levels(elements);
  std::printf("scanning %zu integers in blocks of %u, %zu level(s)\n", elements, kThreads, lengths.size());

  const Driver cu;
  const Context context(cu);
  const Module module(cu, kPtx);
  const Kernel scan_blocks = module.GetKernel("scan_blocks");
  const Kernel add_block_sums = module.GetKernel("add_block_sums");
  // One array more than there are levels: the last one takes the sum of everything.
  std::vector<std::unique_ptr<DeviceArray<std::uint32_t>>> levels;
  for (const std::size_t length : lengths) {
    levels.push_back(std::make_unique<DeviceArray<std::uint32_t>>(cu, length));
  }
  levels.push_back(std::make_unique<DeviceArray<std::uint32_t>>(cu, 1));

  std::vector<std::uint32_t> sums(elements);
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "copy in, scan, copy out");
      levels[0]->CopyFrom(problem.values);
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        scan_blocks.Launch({static_cast<unsigned>(Blocks(lengths[i]))}, {kThreads}, 0, nullptr,
                           levels[i]->address(), static_cast<unsigned>(lengths[i]), levels[i + 1]->address());
      }
      for (std::size_t i = lengths.size() - 1; i-- > 0;) {
        add_block_sums.Launch({static_cast<unsigned>(Blocks(lengths[i]))}, {kThreads}, 0, nullptr,
                              levels[i]->address(), static_cast<unsigned>(lengths[i]),
                              levels[i + 1]->address());
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
