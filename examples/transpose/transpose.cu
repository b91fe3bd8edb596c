// A tile goes through shared memory, so that both the reads and the writes of a warp are neighbours in global
// memory. One unused column keeps the threads of a warp on different banks.

#include <cstdio>

#include "examples/common/runtime.h"
#include "examples/transpose/transpose_reference.h"

using cuplex::examples::transpose::kThreadRows;
using cuplex::examples::transpose::kTile;

// Both pitches, the distances from one row to the next, are in elements.
extern "C" __global__ void transpose(const float* in, std::size_t in_pitch, float* out, std::size_t out_pitch,
                                     unsigned rows, unsigned columns) {
  __shared__ float tile[kTile][kTile + 1];
  const unsigned x = threadIdx.x;
  for (unsigned y = threadIdx.y; y < kTile; y += kThreadRows) {
    const unsigned row = blockIdx.y * kTile + y;
    const unsigned column = blockIdx.x * kTile + x;
    if (row < rows && column < columns) tile[y][x] = in[row * in_pitch + column];
  }
  __syncthreads();
  for (unsigned y = threadIdx.y; y < kTile; y += kThreadRows) {
    const unsigned row = blockIdx.x * kTile + y;
    const unsigned column = blockIdx.y * kTile + x;
    if (row < columns && column < rows) out[row * out_pitch + column] = tile[x][y];
  }
}

namespace cuplex::examples::transpose {
namespace {

bool Run(const Options& options) {
  const Problem problem(static_cast<unsigned>(options.size));
  const std::vector<float> expected = Reference(problem);
  std::printf("%u x %u becomes %u x %u, in tiles of %u x %u\n", problem.rows, problem.columns,
              problem.columns, problem.rows, kTile, kTile);

  const std::size_t row_bytes = problem.columns * sizeof(float);
  const std::size_t column_bytes = problem.rows * sizeof(float);
  float* in = nullptr;
  float* out = nullptr;
  std::size_t in_pitch = 0;
  std::size_t out_pitch = 0;
  Check(cudaMallocPitch(&in, &in_pitch, row_bytes, problem.rows), "cudaMallocPitch");
  Check(cudaMallocPitch(&out, &out_pitch, column_bytes, problem.columns), "cudaMallocPitch");

  std::vector<float> transposed(problem.matrix.size());
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "copy in, transpose, copy out");
      Check(cudaMemcpy2D(in, in_pitch, problem.matrix.data(), row_bytes, row_bytes, problem.rows,
                         cudaMemcpyHostToDevice),
            "cudaMemcpy2D");
      const dim3 grid(Tiles(problem.columns), Tiles(problem.rows));
      ::transpose<<<grid, dim3(kTile, kThreadRows)>>>(
          in, in_pitch / sizeof(float), out, out_pitch / sizeof(float), problem.rows, problem.columns);
      CheckLaunch("transpose");
      Check(cudaMemcpy2D(transposed.data(), column_bytes, out, out_pitch, column_bytes, problem.columns,
                         cudaMemcpyDeviceToHost),
            "cudaMemcpy2D");
    }
    difference = FirstDifference(transposed, expected);
  }
  Check(cudaFree(out), "cudaFree");
  Check(cudaFree(in), "cudaFree");
  return Report(kDescription.name, "transposed", difference, transposed);
}

}  // namespace
}  // namespace cuplex::examples::transpose

int main(int argc, char** argv) {
  namespace job = cuplex::examples::transpose;
  return cuplex::examples::RunProgram(argc, argv, job::kDescription, job::Run);
}
