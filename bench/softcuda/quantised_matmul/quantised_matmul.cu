// A (rows of bytes) times B transposed (rows of bytes), four products an instruction, each row with its
// scale.
#include "bench/softcuda/quantised_matmul/quantised_matmul.h"

using namespace cuplex::bench::quantised_matmul;

extern "C" __global__ void quantised_matmul(const int* a, const int* b, const float* scale_a,
                                            const float* scale_b, float* c, int n, int words) {
  __shared__ int tile_a[kTile][kTile];
  __shared__ int tile_b[kTile][kTile + 1];
  const int row = blockIdx.y * kTile + threadIdx.y;
  const int column = blockIdx.x * kTile + threadIdx.x;
  int sum = 0;
  for (int begin = 0; begin < words; begin += kTile) {
    tile_a[threadIdx.y][threadIdx.x] = a[row * words + begin + threadIdx.x];
    tile_b[threadIdx.y][threadIdx.x] = b[(blockIdx.x * kTile + threadIdx.y) * words + begin + threadIdx.x];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum = __dp4a(tile_a[threadIdx.y][k], tile_b[threadIdx.x][k], sum);
    __syncthreads();
  }
  c[row * n + column] = static_cast<float>(sum) * scale_a[row] * scale_b[column];
}
