// A block computes one tile of the product; each element that it fetches into shared memory is used kTile
// times.
#include "bench/softcuda/matmul/matmul.h"

using namespace cuplex::bench::matmul;

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float tile_a[kTile][kTile];
  __shared__ float tile_b[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y;
  const int column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int begin = 0; begin < n; begin += kTile) {
    tile_a[threadIdx.y][threadIdx.x] = a[row * n + begin + threadIdx.x];
    tile_b[threadIdx.y][threadIdx.x] = b[(begin + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
