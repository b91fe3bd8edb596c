#include "bench/softcuda/device.h"

namespace cuplex::bench {

Device::Device(const std::string& library) {
  auto opened = OpenDriver(library);
  if (!opened.ok()) throw Failure(opened.error().sentence);
  driver_ = *std::move(opened);
  CUdevice device = 0;
  CUcontext context = nullptr;
  Require(cu().cuInit(0), "cuInit");
  Require(cu().cuDeviceGet(&device, 0), "cuDeviceGet");
  Require(cu().cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  Require(cu().cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

void Device::Require(CUresult result, const char* call) const {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cu().cuGetErrorName(result, &name);
  throw Failure(std::string(call) + " answered " + (name ? name : std::to_string(result)) +
                ", CUDA_SUCCESS was expected.");
}

void Kernel::LaunchWith(CUstream stream, Extent grid, Extent block, void** arguments) const {
  device_.Require(device_.cu().cuLaunchKernel(function_, grid.x, grid.y, grid.z, block.x, block.y, block.z, 0,
                                              stream, arguments, nullptr),
                  "cuLaunchKernel");
}

Module::Module(const Device& device, const char* ptx) : device_(device) {
  device_.Require(device_.cu().cuModuleLoadData(&module_, ptx), "cuModuleLoadData");
}

Module::~Module() { device_.cu().cuModuleUnload(module_); }

Kernel Module::GetKernel(const char* name) const {
  CUfunction function = nullptr;
  device_.Require(device_.cu().cuModuleGetFunction(&function, module_, name), "cuModuleGetFunction");
  return Kernel(device_, function);
}

void Module::SetVariable(const char* name, const void* bytes, std::size_t size) const {
  CUdeviceptr address = 0;
  std::size_t actual = 0;
  device_.Require(device_.cu().cuModuleGetGlobal_v2(&address, &actual, module_, name), "cuModuleGetGlobal");
  if (actual != size) {
    throw Failure(std::string(name) + " has " + std::to_string(actual) + " bytes, " + std::to_string(size) +
                  " were expected.");
  }
  device_.Require(device_.cu().cuMemcpyHtoD_v2(address, bytes, size), "cuMemcpyHtoD");
}

}  // namespace cuplex::bench
