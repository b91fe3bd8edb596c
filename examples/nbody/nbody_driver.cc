// nbody.cu through the driver API.

#include <cstdio>
#include <utility>

#include "examples/common/driver.h"
#include "examples/nbody/nbody_ptx.h"
#include "examples/nbody/nbody_reference.h"

namespace cuplex::examples::nbody {
namespace {

bool Run(const Options& options) {
  const std::size_t bodies = options.size;
  const Problem problem(bodies);
  const std::vector<double> expected = Reference(problem);
  std::printf("%d steps of %zu bodies, in %u blocks of %u threads\n", kSteps, bodies, Blocks(bodies),
              kThreads);

  const Driver cu;
  const Context context(cu);
  const Module module(cu, kPtx);
  const Kernel kernel = module.GetKernel("nbody_step");
  const DeviceArray<float> first(cu, expected.size());
  const DeviceArray<float> second(cu, expected.size());
  const DeviceArray<float> velocities(cu, expected.size());

  std::vector<float> positions(expected.size());
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "copy in, move, copy out");
      first.CopyFrom(problem.positions);
      velocities.CopyFrom(problem.velocities);
      CUdeviceptr now = first.address();
      CUdeviceptr next = second.address();
      for (int step = 0; step < kSteps; ++step) {
        kernel.Launch({Blocks(bodies)}, {kThreads}, 0, nullptr, now, next, velocities.address(),
                      static_cast<unsigned>(bodies), kTimeStep, kSoftening);
        std::swap(now, next);
      }
      cu.MemcpyDtoH(positions.data(), now, positions.size() * sizeof(float));
    }
    difference = Compare(positions, expected);
  }
  return Report(kDescription.name, "positions", difference, positions);
}

}  // namespace
}  // namespace cuplex::examples::nbody

int main(int argc, char** argv) {
  namespace job = cuplex::examples::nbody;
  return cuplex::examples::RunProgram(argc, argv, job::kDescription, job::Run);
}
