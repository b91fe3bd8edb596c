// A picture filtered by 7 x 7 weights; a block fetches its tile and the margin around it, zero outside the
// picture.
#include "bench/softcuda/convolution/convolution.h"

using namespace cuplex::bench::convolution;

__constant__ float weights[kFilter][kFilter];

extern "C" __global__ void convolution(const float* in, float* out, int width, int height) {
  constexpr int kSide = kTile + 2 * kRadius;
  __shared__ float tile[kSide][kSide];
  const int left = blockIdx.x * kTile - kRadius;
  const int top = blockIdx.y * kTile - kRadius;
  for (int y = threadIdx.y; y < kSide; y += kTile) {
    for (int x = threadIdx.x; x < kSide; x += kTile) {
      const bool inside = left + x >= 0 && left + x < width && top + y >= 0 && top + y < height;
      tile[y][x] = inside ? in[(top + y) * width + left + x] : 0;
    }
  }
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int dy = 0; dy < kFilter; ++dy) {
#pragma unroll
    for (int dx = 0; dx < kFilter; ++dx) sum += weights[dy][dx] * tile[threadIdx.y + dy][threadIdx.x + dx];
  }
  out[(blockIdx.y * kTile + threadIdx.y) * width + blockIdx.x * kTile + threadIdx.x] = sum;
}
