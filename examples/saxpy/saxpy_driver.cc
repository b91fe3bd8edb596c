// saxpy.cu through the driver API.

#include <cstdio>

#include "examples/common/driver.h"
#include "examples/saxpy/saxpy_ptx.h"
#include "examples/saxpy/saxpy_reference.h"

namespace cuplex::examples::saxpy {
namespace {

bool Run(const Options& options) {
  const std::size_t elements = options.size;
  const Problem problem(elements);
  const std::vector<float> expected = Reference(problem);
  std::printf("y = %g * x + y for %zu floats, %zu parts on %d streams\n", kA, elements, kParts, kStreams);

  const Driver cu;
  const Context context(cu);
  const Module module(cu, kPtx);
  const Kernel kernel = module.GetKernel("saxpy");
  const DeviceArray<float> x(cu, elements);
  const DeviceArray<float> y(cu, elements);
  const Stream streams[kStreams] = {Stream(cu), Stream(cu)};
  const Event second_done(cu);
  const Event begun(cu);
  const Event ended(cu);

  std::vector<float> result(elements);
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "all parts");
      cu.EventRecord(begun.get(), streams[0].get());
      cu.StreamWaitEvent(streams[1].get(), begun.get(), 0);
      for (std::size_t part = 0; part < kParts; ++part) {
        const CUstream stream = streams[part % kStreams].get();
        const std::size_t begin = PartBegin(elements, part);
        const std::size_t count = PartBegin(elements, part + 1) - begin;
        if (count == 0) continue;
        const CUdeviceptr part_x = x.address() + begin * sizeof(float);
        const CUdeviceptr part_y = y.address() + begin * sizeof(float);
        cu.MemcpyHtoDAsync(part_x, &problem.x[begin], count * sizeof(float), stream);
        cu.MemcpyHtoDAsync(part_y, &problem.y[begin], count * sizeof(float), stream);
        kernel.Launch({kBlocks}, {kThreads}, 0, stream, static_cast<unsigned>(count), kA, part_x, part_y);
      }
      // The first stream takes the whole of y home, once the second has done its parts.
      cu.EventRecord(second_done.get(), streams[1].get());
      cu.StreamWaitEvent(streams[0].get(), second_done.get(), 0);
      cu.MemcpyDtoHAsync(result.data(), y.address(), y.Bytes(), streams[0].get());
      cu.EventRecord(ended.get(), streams[0].get());
      cu.EventSynchronize(ended.get());
    }
    float milliseconds = -1;
    cu.EventElapsedTime(&milliseconds, begun.get(), ended.get());
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
