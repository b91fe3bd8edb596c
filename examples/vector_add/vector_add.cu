// The first CUDA program: one thread adds one pair of numbers.

#include <cstdio>

#include "examples/common/runtime.h"
#include "examples/vector_add/vector_add_reference.h"

extern "C" __global__ void vector_add(const float* a, const float* b, float* c, unsigned elements) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < elements) c[i] = a[i] + b[i];
}

namespace cuplex::examples::vector_add {
namespace {

bool Run(const Options& options) {
  const std::size_t elements = options.size;
  const std::size_t bytes = elements * sizeof(float);
  const Problem problem(elements);
  const std::vector<float> expected = Reference(problem);
  std::printf("adding 2 arrays of %zu floats in %u blocks of %u threads\n", elements, Blocks(elements),
              kThreads);

  float* a = nullptr;
  float* b = nullptr;
  float* c = nullptr;
  Check(cudaMalloc(&a, bytes), "cudaMalloc");
  Check(cudaMalloc(&b, bytes), "cudaMalloc");
  Check(cudaMalloc(&c, bytes), "cudaMalloc");

  std::vector<float> sum(elements);
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "copy in, add, copy out");
      Check(cudaMemcpy(a, problem.a.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
      Check(cudaMemcpy(b, problem.b.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
      ::vector_add<<<Blocks(elements), kThreads>>>(a, b, c, static_cast<unsigned>(elements));
      CheckLaunch("vector_add");
      Check(cudaMemcpy(sum.data(), c, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
    }
    difference = FirstDifference(sum, expected);
  }

  Check(cudaFree(c), "cudaFree");
  Check(cudaFree(b), "cudaFree");
  Check(cudaFree(a), "cudaFree");
  return Report(kDescription.name, "sum", difference, sum);
}

}  // namespace
}  // namespace cuplex::examples::vector_add

int main(int argc, char** argv) {
  namespace job = cuplex::examples::vector_add;
  return cuplex::examples::RunProgram(argc, argv, job::kDescription, job::Run);
}
