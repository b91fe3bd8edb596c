// Each row shifted and scaled to mean 0 and variance 1, then by gamma and beta; a block a row, four elements
// a thread.
#include "bench/softcuda/layer_norm/layer_norm.h"

using namespace cuplex::bench::layer_norm;

static __device__ float BlockSum(float value, float* of_warp) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < kThreads / 32; ++i) sum += of_warp[i];
  return sum;
}

extern "C" __global__ void layer_norm(const float4* in, const float4* gamma, const float4* beta,
                                      float4* out) {
  __shared__ float sums[kThreads / 32];
  __shared__ float squares[kThreads / 32];
  const int at = blockIdx.x * kThreads + threadIdx.x;
  const float4 x = in[at];
  const float mean = BlockSum(x.x + x.y + x.z + x.w, sums) / kColumns;
  const float4 d = make_float4(x.x - mean, x.y - mean, x.z - mean, x.w - mean);
  const float variance = BlockSum(d.x * d.x + d.y * d.y + d.z * d.z + d.w * d.w, squares) / kColumns;
  const float scale = rsqrtf(variance + kEpsilon);
  const float4 g = gamma[threadIdx.x];
  const float4 b = beta[threadIdx.x];
  out[at] = make_float4(d.x * scale * g.x + b.x, d.y * scale * g.y + b.y, d.z * scale * g.z + b.z,
                        d.w * scale * g.w + b.w);
}
