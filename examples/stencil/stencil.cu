// Every cell becomes a weighted mean of itself and its neighbours, from one plate into the other and back.
// The weights are in constant memory; the host's plate is pinned, so that the copies on the stream need not
// wait.

#include <algorithm>
#include <cstdio>
#include <utility>

#include "examples/common/runtime.h"
#include "examples/stencil/stencil_reference.h"

extern "C" {
__constant__ float stencil_weights[9];
}

extern "C" __global__ void stencil(const float* in, float* out, unsigned rows, unsigned columns) {
  const unsigned row = blockIdx.y * blockDim.y + threadIdx.y;
  const unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows || column >= columns) return;
  const unsigned i = row * columns + column;
  if (row == 0 || row == rows - 1 || column == 0 || column == columns - 1) {
    out[i] = in[i];
    return;
  }
  float sum = 0;
  for (int y = -1; y <= 1; ++y) {
    for (int x = -1; x <= 1; ++x) {
      sum +=
          stencil_weights[(y + 1) * 3 + x + 1] * in[static_cast<int>(i) + y * static_cast<int>(columns) + x];
    }
  }
  out[i] = sum;
}

namespace cuplex::examples::stencil {
namespace {

bool Run(const Options& options) {
  const Problem problem(static_cast<unsigned>(options.size));
  const std::vector<double> expected = Reference(problem);
  std::printf("%d steps on a plate of %u x %u, in blocks of %u x %u threads\n", kSteps, problem.rows,
              problem.columns, kBlockHeight, kBlockWidth);

  Check(cudaMemcpyToSymbol(stencil_weights, kWeights.data(), sizeof(kWeights)), "cudaMemcpyToSymbol");
  const Stream stream;
  const DeviceArray<float> first(expected.size());
  const DeviceArray<float> second(expected.size());
  const PinnedArray<float> pinned(expected.size());

  std::vector<float> plate(expected.size());
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    std::copy(problem.plate.begin(), problem.plate.end(), pinned.begin());
    {
      const Timed timed(options, "copy in, spread, copy out");
      Check(
          cudaMemcpyAsync(first.get(), pinned.begin(), pinned.Bytes(), cudaMemcpyHostToDevice, stream.get()),
          "cudaMemcpyAsync");
      const dim3 grid(Blocks(problem.columns, kBlockWidth), Blocks(problem.rows, kBlockHeight));
      float* now = first.get();
      float* next = second.get();
      for (int step = 0; step < kSteps; ++step) {
        ::stencil<<<grid, dim3(kBlockWidth, kBlockHeight), 0, stream.get()>>>(now, next, problem.rows,
                                                                              problem.columns);
        CheckLaunch("stencil");
        std::swap(now, next);
      }
      Check(cudaMemcpyAsync(pinned.begin(), now, pinned.Bytes(), cudaMemcpyDeviceToHost, stream.get()),
            "cudaMemcpyAsync");
      stream.Synchronize();
    }
    std::copy(pinned.begin(), pinned.end(), plate.begin());
    difference = Compare(plate, expected);
  }
  return Report(kDescription.name, "plate", difference, plate);
}

}  // namespace
}  // namespace cuplex::examples::stencil

int main(int argc, char** argv) {
  namespace job = cuplex::examples::stencil;
  return cuplex::examples::RunProgram(argc, argv, job::kDescription, job::Run);
}
