// A thread moves one body. The block's threads fetch one body each into shared memory, all use all of them,
// and the next lot follows.

#include <cstdio>
#include <utility>

#include "examples/common/runtime.h"
#include "examples/nbody/nbody_reference.h"

using cuplex::examples::nbody::kThreads;

extern "C" __global__ void nbody_step(const float4* positions, float4* new_positions, float4* velocities,
                                      unsigned bodies, float time_step, float softening) {
  __shared__ float4 others[kThreads];
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  const float4 here = i < bodies ? positions[i] : make_float4(0, 0, 0, 0);
  float pull_x = 0;
  float pull_y = 0;
  float pull_z = 0;
  for (unsigned begin = 0; begin < bodies; begin += kThreads) {
    const unsigned j = begin + threadIdx.x;
    others[threadIdx.x] = j < bodies ? positions[j] : make_float4(0, 0, 0, 0);  // no mass, no pull
    __syncthreads();
    for (unsigned k = 0; k < kThreads; ++k) {
      const float4 other = others[k];
      const float x = other.x - here.x;
      const float y = other.y - here.y;
      const float z = other.z - here.z;
      const float inverse = rsqrtf(x * x + y * y + z * z + softening);
      const float strength = other.w * inverse * inverse * inverse;
      pull_x += x * strength;
      pull_y += y * strength;
      pull_z += z * strength;
    }
    __syncthreads();
  }
  if (i >= bodies) return;
  float4 velocity = velocities[i];
  velocity.x += pull_x * time_step;
  velocity.y += pull_y * time_step;
  velocity.z += pull_z * time_step;
  velocities[i] = velocity;
  new_positions[i] = make_float4(here.x + velocity.x * time_step, here.y + velocity.y * time_step,
                                 here.z + velocity.z * time_step, here.w);
}

namespace cuplex::examples::nbody {
namespace {

bool Run(const Options& options) {
  const std::size_t bodies = options.size;
  const Problem problem(bodies);
  const std::vector<double> expected = Reference(problem);
  std::printf("%d steps of %zu bodies, in %u blocks of %u threads\n", kSteps, bodies, Blocks(bodies),
              kThreads);

  const DeviceArray<float> first(expected.size());
  const DeviceArray<float> second(expected.size());
  const DeviceArray<float> velocities(expected.size());

  std::vector<float> positions(expected.size());
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "copy in, move, copy out");
      first.CopyFrom(problem.positions);
      velocities.CopyFrom(problem.velocities);
      float* now = first.get();
      float* next = second.get();
      for (int step = 0; step < kSteps; ++step) {
        nbody_step<<<Blocks(bodies), kThreads>>>(reinterpret_cast<const float4*>(now),
                                                 reinterpret_cast<float4*>(next),
                                                 reinterpret_cast<float4*>(velocities.get()),
                                                 static_cast<unsigned>(bodies), kTimeStep, kSoftening);
        CheckLaunch("nbody_step");
        std::swap(now, next);
      }
      Check(cudaMemcpy(positions.data(), now, positions.size() * sizeof(float), cudaMemcpyDeviceToHost),
            "cudaMemcpy");
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
