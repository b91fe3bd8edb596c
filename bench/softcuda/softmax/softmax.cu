// Softmax along each row, a block a row.
#include "bench/softcuda/softmax/softmax.h"

using namespace cuplex::bench::softmax;

template <typename Combine>
static __device__ float BlockReduce(float value, float* of_warp, Combine combine) {
  for (int offset = 16; offset > 0; offset /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffff, value, offset));
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warp[0];
  for (int i = 1; i < kThreads / 32; ++i) value = combine(value, of_warp[i]);
  return value;
}

extern "C" __global__ void softmax(const float* in, float* out, int columns) {
  __shared__ float maxima[kThreads / 32];
  __shared__ float sums[kThreads / 32];
  const float* row = in + static_cast<size_t>(blockIdx.x) * columns;
  float* result = out + static_cast<size_t>(blockIdx.x) * columns;
  float largest = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += kThreads) largest = fmaxf(largest, row[i]);
  largest = BlockReduce(largest, maxima, [](float a, float b) { return fmaxf(a, b); });
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += kThreads) {
    const float power = __expf(row[i] - largest);
    result[i] = power;
    sum += power;
  }
  sum = BlockReduce(sum, sums, [](float a, float b) { return a + b; });
  const float scale = 1.0f / sum;
  for (int i = threadIdx.x; i < columns; i += kThreads) result[i] *= scale;
}
