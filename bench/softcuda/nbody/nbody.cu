// The acceleration of every body by all bodies; a block holds the bodies that it looks at in shared memory.
#include "bench/softcuda/nbody/nbody.h"

using namespace cuplex::bench::nbody;

extern "C" __global__ void nbody(const float4* bodies, float4* accelerations, int count) {
  __shared__ float4 tile[kThreads];
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float4 own = bodies[i];
  float ax = 0;
  float ay = 0;
  float az = 0;
  for (int begin = 0; begin < count; begin += kThreads) {
    tile[threadIdx.x] = bodies[begin + threadIdx.x];
    __syncthreads();
#pragma unroll 8
    for (int j = 0; j < kThreads; ++j) {
      const float4 other = tile[j];
      const float dx = other.x - own.x;
      const float dy = other.y - own.y;
      const float dz = other.z - own.z;
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + kSoftening);
      const float pull = other.w * inverse * inverse * inverse;
      ax += dx * pull;
      ay += dy * pull;
      az += dz * pull;
    }
    __syncthreads();
  }
  accelerations[i] = make_float4(ax, ay, az, 0);
}
