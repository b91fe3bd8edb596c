// Copies and kernels on two streams. An event marks where a stream has come to; another stream waits for it.

#include <array>
#include <cstdio>

#include "examples/common/runtime.h"
#include "examples/saxpy/saxpy_reference.h"

extern "C" __global__ void saxpy(unsigned elements, float a, const float* x, float* y) {
  const unsigned stride = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += stride)
    y[i] = fmaf(a, x[i], y[i]);
}

namespace cuplex::examples::saxpy {
namespace {

bool Run(const Options& options) {
  const std::size_t elements = options.size;
  const Problem problem(elements);
  const std::vector<float> expected = Reference(problem);
  std::printf("y = %g * x + y for %zu floats, %zu parts on %d streams\n", kA, elements, kParts, kStreams);

  const DeviceArray<float> x(elements);
  const DeviceArray<float> y(elements);
  const std::array<Stream, kStreams> streams;
  const Event second_done;
  const Event begun;
  const Event ended;

  std::vector<float> result(elements);
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "all parts");
      Check(cudaEventRecord(begun.get(), streams[0].get()), "cudaEventRecord");
      Check(cudaStreamWaitEvent(streams[1].get(), begun.get(), 0), "cudaStreamWaitEvent");
      for (std::size_t part = 0; part < kParts; ++part) {
        const cudaStream_t stream = streams[part % kStreams].get();
        const std::size_t begin = PartBegin(elements, part);
        const std::size_t count = PartBegin(elements, part + 1) - begin;
        if (count == 0) continue;
        const std::size_t bytes = count * sizeof(float);
        Check(cudaMemcpyAsync(x.get() + begin, &problem.x[begin], bytes, cudaMemcpyHostToDevice, stream),
              "cudaMemcpyAsync");
        Check(cudaMemcpyAsync(y.get() + begin, &problem.y[begin], bytes, cudaMemcpyHostToDevice, stream),
              "cudaMemcpyAsync");
        ::saxpy<<<kBlocks, kThreads, 0, stream>>>(static_cast<unsigned>(count), kA, x.get() + begin,
                                                  y.get() + begin);
        CheckLaunch("saxpy");
      }
      // The first stream takes the whole of y home, once the second has done its parts.
      Check(cudaEventRecord(second_done.get(), streams[1].get()), "cudaEventRecord");
      Check(cudaStreamWaitEvent(streams[0].get(), second_done.get(), 0), "cudaStreamWaitEvent");
      Check(cudaMemcpyAsync(result.data(), y.get(), elements * sizeof(float), cudaMemcpyDeviceToHost,
                            streams[0].get()),
            "cudaMemcpyAsync");
      Check(cudaEventRecord(ended.get(), streams[0].get()), "cudaEventRecord");
      Check(cudaEventSynchronize(ended.get()), "cudaEventSynchronize");
    }
    float milliseconds = -1;
    Check(cudaEventElapsedTime(&milliseconds, begun.get(), ended.get()), "cudaEventElapsedTime");
    if (milliseconds < 0) throw Failure("the second event lies before the first");
    PrintDeviceTime(options, "all parts", milliseconds);
    difference = FirstDifference(result, expected);
  }
  return Report(kDescription.name, "y", difference, result);
}

}  // namespace
}  // namespace cuplex::examples::saxpy

int main(int argc, char** argv) {
  namespace job = cuplex::examples::saxpy;
  return cuplex::examples::RunProgram(argc, argv, job::kDescription, job::Run);
}
