#include "examples/common/driver.h"

#include <dlfcn.h>

#include <cstdint>

#include "examples/common/program.h"

namespace cuplex::examples {
namespace {

void* OpenLibrary(const char* library) {
  void* opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    throw Failure(std::string("no CUDA driver: ") + dlerror() +
                  " (LD_LIBRARY_PATH can name the folder that holds one)");
  }
  return opened;
}

}  // namespace

Driver::Driver(const char* library) : library_(OpenLibrary(library)) { Init(0); }

void* Driver::Symbol(const char* name) const {
  void* symbol = dlsym(library_, name);
  if (symbol == nullptr) throw Failure(std::string("the CUDA driver has no ") + name);
  return symbol;
}

void Driver::ThrowFailure(const char* name, CUresult result) const {
  const char* code = nullptr;
  const char* words = nullptr;
  if (GetErrorName.Try(result, &code) != CUDA_SUCCESS || code == nullptr) code = "an unknown code";
  if (GetErrorString.Try(result, &words) != CUDA_SUCCESS || words == nullptr) words = "no description";
  throw Failure(std::string(name) + " gave " + code + " (" + std::to_string(result) + "): " + words);
}

Context::Context(const Driver& driver) : driver_(driver) {
  driver_.DeviceGet(&device_, 0);
  CUcontext context = nullptr;
  driver_.DevicePrimaryCtxRetain(&context, device_);
  driver_.CtxSetCurrent(context);
}

Context::~Context() {
  driver_.CtxSetCurrent.Try(nullptr);
  driver_.DevicePrimaryCtxRelease.Try(device_);
}

int Context::DeviceAttribute(CUdevice_attribute attribute) const {
  int value = 0;
  driver_.DeviceGetAttribute(&value, attribute, device_);
  return value;
}

void Kernel::LaunchWith(Extent grid, Extent block, unsigned shared_bytes, CUstream stream,
                        void** arguments) const {
  driver_.LaunchKernel(function_, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes, stream,
                       arguments, nullptr);
}

Module::Module(const Driver& driver, const char* ptx) : driver_(driver) {
  std::string log(4096, '\0');
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(std::uintptr_t{log.size() - 1})};
  const CUresult result = driver_.ModuleLoadDataEx.Try(&module_, ptx, 2, options, values);
  if (result == CUDA_SUCCESS) return;
  log.resize(log.find('\0'));
  if (log.empty()) driver_.ThrowFailure("cuModuleLoadDataEx", result);
  throw Failure("cuModuleLoadDataEx gave " + std::to_string(result) + ": " + log);
}

Module::~Module() { driver_.ModuleUnload.Try(module_); }

Kernel Module::GetKernel(const char* name) const {
  CUfunction function = nullptr;
  driver_.ModuleGetFunction(&function, module_, name);
  return Kernel(driver_, function);
}

CUdeviceptr Module::GetGlobal(const char* name, std::size_t bytes) const {
  CUdeviceptr address = 0;
  std::size_t found = 0;
  driver_.ModuleGetGlobal(&address, &found, module_, name);
  if (found != bytes) {
    throw Failure(std::string("the module's ") + name + " takes " + std::to_string(found) +
                  " bytes, expected " + std::to_string(bytes));
  }
  return address;
}

}  // namespace cuplex::examples
