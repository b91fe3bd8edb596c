// vector_add.cu through the driver API, call by call: this one hides nothing behind the classes of driver.h.

#include <cstdio>

#include "examples/common/driver.h"
#include "examples/vector_add/vector_add_ptx.h"
#include "examples/vector_add/vector_add_reference.h"

namespace cuplex::examples::vector_add {
namespace {

bool Run(const Options& options) {
  const std::size_t elements = options.size;
  const std::size_t bytes = elements * sizeof(float);
  const Problem problem(elements);
  const std::vector<float> expected = Reference(problem);
  std::printf("adding 2 arrays of %zu floats in %u blocks of %u threads\n", elements, Blocks(elements),
              kThreads);

  const Driver cu;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  cu.DeviceGet(&device, 0);
  cu.DevicePrimaryCtxRetain(&context, device);
  cu.CtxSetCurrent(context);
  cu.ModuleLoadData(&module, kPtx);
  cu.ModuleGetFunction(&kernel, module, "vector_add");

  CUdeviceptr a = 0;
  CUdeviceptr b = 0;
  CUdeviceptr c = 0;
  cu.MemAlloc(&a, bytes);
  cu.MemAlloc(&b, bytes);
  cu.MemAlloc(&c, bytes);

  std::vector<float> sum(elements);
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "copy in, add, copy out");
      cu.MemcpyHtoD(a, problem.a.data(), bytes);
      cu.MemcpyHtoD(b, problem.b.data(), bytes);
      unsigned count = static_cast<unsigned>(elements);
      void* arguments[] = {&a, &b, &c, &count};
      cu.LaunchKernel(kernel, Blocks(elements), 1, 1, kThreads, 1, 1, 0, nullptr, arguments, nullptr);
      cu.MemcpyDtoH(sum.data(), c, bytes);
    }
    difference = FirstDifference(sum, expected);
  }

  cu.MemFree(c);
  cu.MemFree(b);
  cu.MemFree(a);
  cu.ModuleUnload(module);
  cu.DevicePrimaryCtxRelease(device);
  return Report(kDescription.name, "sum", difference, sum);
}

}  // namespace
}  // namespace cuplex::examples::vector_add

int main(int argc, char** argv) {
  namespace job = cuplex::examples::vector_add;
  return cuplex::examples::RunProgram(argc, argv, job::kDescription, job::Run);
}
