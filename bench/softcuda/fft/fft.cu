// A block transforms one row of 1024 complex numbers in shared memory, two points a thread and step.
#include "bench/softcuda/fft/fft.h"

using namespace cuplex::bench::fft;

extern "C" __global__ void fft(const float2* in, float2* out, const float2* roots) {
  __shared__ float2 points[kPoints];
  const float2* row = in + blockIdx.x * kPoints;
  for (int i = threadIdx.x; i < kPoints; i += kThreads) points[__brev(i) >> (32 - kBits)] = row[i];
  __syncthreads();
  for (int half = 1; half < kPoints; half *= 2) {
    const int within = threadIdx.x & (half - 1);
    const int at = 2 * threadIdx.x - within;
    const float2 root = roots[within * (kPoints / 2 / half)];
    const float2 a = points[at];
    const float2 b = points[at + half];
    const float2 turned = make_float2(b.x * root.x - b.y * root.y, b.x * root.y + b.y * root.x);
    points[at] = make_float2(a.x + turned.x, a.y + turned.y);
    points[at + half] = make_float2(a.x - turned.x, a.y - turned.y);
    __syncthreads();
  }
  for (int i = threadIdx.x; i < kPoints; i += kThreads) out[blockIdx.x * kPoints + i] = points[i];
}
