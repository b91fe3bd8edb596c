// Launching: the shortest way from a host function's address to the driver. No lock, no allocation, but at a
// kernel's first launch in a context.
#include "client/runtime/calls.h"
#include "client/runtime/launch_config.h"
#include "client/runtime/runtime.h"

namespace cuplex::runtime {
namespace {

cudaError_t Launch(Kernel& kernel, dim3 grid, dim3 block, void** args, size_t shared_bytes,
                   cudaStream_t stream) {
  Entered in;
  RUNTIME_TRY(Root().Enter(&in));
  CUfunction function;
  RUNTIME_TRY(Root().FunctionOf(in, kernel, &function));
  return FromDriver(in.driver->cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                              static_cast<unsigned>(shared_bytes), stream, args, nullptr));
}

}  // namespace

unsigned NvccPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream) {
  if (this_thread.depth == Thread::kDepth) {
    this_thread.last_error = cudaErrorMissingConfiguration;
    return 1;  // the program skips this launch
  }
  this_thread.configurations[this_thread.depth++] = {grid, block, shared_bytes, stream};
  return 0;
}

cudaError_t NvccPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
  if (this_thread.depth == 0) return cudaErrorMissingConfiguration;
  const LaunchConfiguration& top = this_thread.configurations[--this_thread.depth];
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

// nvcc's host code keeps the answer and launches through it alone, so it is our own record, which launches
// fastest.
cudaError_t NvccGetKernel(cudaKernel_t* handle, const void* function) {
  Kernel* kernel = Root().FindKernel(function);
  if (!kernel) return cudaErrorInvalidDeviceFunction;
  *handle = reinterpret_cast<cudaKernel_t>(kernel);
  return cudaSuccess;
}

cudaError_t LaunchKernel(const void* function, dim3 grid, dim3 block, void** args, size_t shared_bytes,
                         cudaStream_t stream) {
  Kernel* kernel = Root().FindKernel(function);
  if (!kernel) return cudaErrorInvalidDeviceFunction;
  return Launch(*kernel, grid, block, args, shared_bytes, stream);
}

cudaError_t NvccLaunchKernel(cudaKernel_t handle, dim3 grid, dim3 block, void** args, size_t shared_bytes,
                             cudaStream_t stream) {
  if (!handle) return cudaErrorInvalidResourceHandle;
  return Launch(*reinterpret_cast<Kernel*>(handle), grid, block, args, shared_bytes, stream);
}

cudaError_t LaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** args) {
  if (!config || (config->numAttrs && !config->attrs)) return cudaErrorInvalidValue;
  if (config->numAttrs == 0)
    return LaunchKernel(function, config->gridDim, config->blockDim, args, config->dynamicSmemBytes,
                        config->stream);
  return WithFunction(function, [&](const DriverTable& cu, CUfunction f) {
    CUlaunchConfig driver_config = DriverConfig(*config);
    return cu.cuLaunchKernelEx(&driver_config, f, args, nullptr);
  });
}

cudaError_t LaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** args,
                                    size_t shared_bytes, cudaStream_t stream) {
  return WithFunction(function, [&](const DriverTable& cu, CUfunction f) {
    return cu.cuLaunchCooperativeKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                        static_cast<unsigned>(shared_bytes), stream, args);
  });
}

cudaError_t LaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void* user_data) {
  if (!fn) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) { return cu.cuLaunchHostFunc(stream, fn, user_data); });
}

}  // namespace cuplex::runtime
