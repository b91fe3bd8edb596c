// transpose.cu through the driver API.

#include <cstdio>

#include "examples/common/driver.h"
#include "examples/transpose/transpose_ptx.h"
#include "examples/transpose/transpose_reference.h"

namespace cuplex::examples::transpose {
namespace {

/// A copy between packed rows of the host and pitched rows of the device; the caller says which way.
CUDA_MEMCPY2D Rows(std::size_t row_bytes, std::size_t rows) {
  CUDA_MEMCPY2D copy = {};
  copy.WidthInBytes = row_bytes;
  copy.Height = rows;
  return copy;
}

bool Run(const Options& options) {
  const Problem problem(static_cast<unsigned>(options.size));
  const std::vector<float> expected = Reference(problem);
  std::printf("%u x %u becomes %u x %u, in tiles of %u x %u\n", problem.rows, problem.columns,
              problem.columns, problem.rows, kTile, kTile);

  const Driver cu;
  const Context context(cu);
  const Module module(cu, kPtx);
  const Kernel kernel = module.GetKernel("transpose");
  const std::size_t row_bytes = problem.columns * sizeof(float);
  const std::size_t column_bytes = problem.rows * sizeof(float);
  CUdeviceptr in = 0;
  CUdeviceptr out = 0;
  std::size_t in_pitch = 0;
  std::size_t out_pitch = 0;
  cu.MemAllocPitch(&in, &in_pitch, row_bytes, problem.rows, sizeof(float));
  cu.MemAllocPitch(&out, &out_pitch, column_bytes, problem.columns, sizeof(float));

  std::vector<float> transposed(problem.matrix.size());
  CUDA_MEMCPY2D copy_in = Rows(row_bytes, problem.rows);
  copy_in.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy_in.srcHost = problem.matrix.data();
  copy_in.srcPitch = row_bytes;
  copy_in.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy_in.dstDevice = in;
  copy_in.dstPitch = in_pitch;
  CUDA_MEMCPY2D copy_out = Rows(column_bytes, problem.columns);
  copy_out.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy_out.srcDevice = out;
  copy_out.srcPitch = out_pitch;
  copy_out.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy_out.dstHost = transposed.data();
  copy_out.dstPitch = column_bytes;

  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "copy in, transpose, copy out");
      cu.Memcpy2D(&copy_in);
      kernel.Launch({Tiles(problem.columns), Tiles(problem.rows)}, {kTile, kThreadRows}, 0, nullptr, in,
                    in_pitch / sizeof(float), out, out_pitch / sizeof(float), problem.rows, problem.columns);
      cu.Memcpy2D(&copy_out);
    }
    difference = FirstDifference(transposed, expected);
  }
  cu.MemFree(out);
  cu.MemFree(in);
  return Report(kDescription.name, "transposed", difference, transposed);
}

}  // namespace
}  // namespace cuplex::examples::transpose

int main(int argc, char** argv) {
  namespace job = cuplex::examples::transpose;
  return cuplex::examples::RunProgram(argc, argv, job::kDescription, job::Run);
}
