// stencil.cu through the driver API.

#include <algorithm>
#include <cstdio>
#include <utility>

#include "examples/common/driver.h"
#include "examples/stencil/stencil_ptx.h"
#include "examples/stencil/stencil_reference.h"

namespace cuplex::examples::stencil {
namespace {

bool Run(const Options& options) {
  const Problem problem(static_cast<unsigned>(options.size));
  const std::vector<double> expected = Reference(problem);
  std::printf("%d steps on a plate of %u x %u, in blocks of %u x %u threads\n", kSteps, problem.rows,
              problem.columns, kBlockHeight, kBlockWidth);

  const Driver cu;
  const Context context(cu);
  const Module module(cu, kPtx);
  const Kernel kernel = module.GetKernel("stencil");
  cu.MemcpyHtoD(module.GetGlobal("stencil_weights", sizeof(kWeights)), kWeights.data(), sizeof(kWeights));
  const Stream stream(cu);
  const DeviceArray<float> first(cu, expected.size());
  const DeviceArray<float> second(cu, expected.size());
  const PinnedArray<float> pinned(cu, expected.size());

  std::vector<float> plate(expected.size());
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    std::copy(problem.plate.begin(), problem.plate.end(), pinned.begin());
    {
      const Timed timed(options, "copy in, spread, copy out");
      cu.MemcpyHtoDAsync(first.address(), pinned.begin(), pinned.Bytes(), stream.get());
      const Extent grid = {Blocks(problem.columns, kBlockWidth), Blocks(problem.rows, kBlockHeight)};
      CUdeviceptr now = first.address();
      CUdeviceptr next = second.address();
      for (int step = 0; step < kSteps; ++step) {
        kernel.Launch(grid, {kBlockWidth, kBlockHeight}, 0, stream.get(), now, next, problem.rows,
                      problem.columns);
        std::swap(now, next);
      }
      cu.MemcpyDtoHAsync(pinned.begin(), now, pinned.Bytes(), stream.get());
      stream.Synchronize();
    }
    std::copy(pinned.begin(), pinned.end(), plate.begin());
    difference = Compare(plate, expected);
  }
  return Report(kDescription.name, "plate", difference, plate);
}

}  // namespace
}  // namespace cuplex::examples::stencil

int main(int argc, char** argv) {
  namespace job = cuplex::examples::stencil;
  return cuplex::examples::RunProgram(argc, argv, job::kDescription, job::Run);
}
