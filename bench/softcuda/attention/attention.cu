// Attention without ever storing the scores: a thread holds a query, its running maximum, sum and output in
// registers, and walks over tiles of keys and values in shared memory.
#include "bench/softcuda/attention/attention.h"

using namespace cuplex::bench::attention;

extern "C" __global__ void attention(const float* queries, const float* keys, const float* values,
                                     float* out) {
  __shared__ float tile_k[kTile][kWidth];
  __shared__ float tile_v[kTile][kWidth];
  const int head = blockIdx.y * kLength * kWidth;
  const int own = head + (blockIdx.x * kThreads + threadIdx.x) * kWidth;
  float query[kWidth];
  float sum[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    query[i] = queries[own + i] * kScale;
    sum[i] = 0;
  }
  float largest = -INFINITY;
  float total = 0;
  for (int begin = 0; begin < kLength; begin += kTile) {
    for (int i = threadIdx.x; i < kTile * kWidth; i += kThreads) {
      tile_k[i / kWidth][i % kWidth] = keys[head + begin * kWidth + i];
      tile_v[i / kWidth][i % kWidth] = values[head + begin * kWidth + i];
    }
    __syncthreads();
    for (int k = 0; k < kTile; ++k) {
      float score = 0;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) score += query[i] * tile_k[k][i];
      const float now = fmaxf(largest, score);
      const float rescale = __expf(largest - now);
      const float weight = __expf(score - now);
      total = total * rescale + weight;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sum[i] = sum[i] * rescale + weight * tile_v[k][i];
      largest = now;
    }
    __syncthreads();
  }
  const float scale = 1.0f / total;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) out[own + i] = sum[i] * scale;
}
