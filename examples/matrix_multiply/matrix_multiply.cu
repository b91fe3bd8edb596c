// A block computes one tile of the result. Its threads fetch a tile of each factor into shared memory, wait
// for each other, and use every fetched element kTile times.

#include <cstdio>

#include "examples/common/runtime.h"
#include "examples/matrix_multiply/matrix_multiply_reference.h"

using cuplex::examples::matrix_multiply::kTile;

extern "C" __global__ void matrix_multiply(const float* a, const float* b, float* c, unsigned rows,
                                           unsigned inner, unsigned columns) {
  __shared__ float tile_a[kTile][kTile];
  __shared__ float tile_b[kTile][kTile];
  const unsigned row = blockIdx.y * kTile + threadIdx.y;
  const unsigned column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (unsigned begin = 0; begin < inner; begin += kTile) {
    const unsigned k_a = begin + threadIdx.x;
    const unsigned k_b = begin + threadIdx.y;
    tile_a[threadIdx.y][threadIdx.x] = row < rows && k_a < inner ? a[row * inner + k_a] : 0;
    tile_b[threadIdx.y][threadIdx.x] = k_b < inner && column < columns ? b[k_b * columns + column] : 0;
    __syncthreads();
    for (unsigned k = 0; k < kTile; ++k) sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
    __syncthreads();
  }
  if (row < rows && column < columns) c[row * columns + column] = sum;
}

namespace cuplex::examples::matrix_multiply {
namespace {

bool Run(const Options& options) {
  const Problem problem(static_cast<unsigned>(options.size));
  const std::vector<float> expected = Reference(problem);
  std::printf("%u x %u times %u x %u, in tiles of %u x %u\n", problem.rows, problem.inner, problem.inner,
              problem.columns, kTile, kTile);

  const DeviceArray<float> a(problem.a);
  const DeviceArray<float> b(problem.b);
  const DeviceArray<float> c(expected.size());

  std::vector<float> product(expected.size());
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "multiply, copy out");
      const dim3 grid(Tiles(problem.columns), Tiles(problem.rows));
      ::matrix_multiply<<<grid, dim3(kTile, kTile)>>>(a.get(), b.get(), c.get(), problem.rows, problem.inner,
                                                      problem.columns);
      CheckLaunch("matrix_multiply");
      c.CopyTo(&product);
    }
    difference = FirstDifference(product, expected);
  }
  return Report(kDescription.name, "product", difference, product);
}

}  // namespace
}  // namespace cuplex::examples::matrix_multiply

int main(int argc, char** argv) {
  namespace job = cuplex::examples::matrix_multiply;
  return cuplex::examples::RunProgram(argc, argv, job::kDescription, job::Run);
}
