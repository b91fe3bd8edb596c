// What nvcc's host code calls before main, and while the process exits.
#include "client/runtime/calls.h"
#include "client/runtime/notice.h"
#include "client/runtime/runtime.h"

namespace cuplex::runtime {
namespace {

Image* ImageOf(void** handle) { return reinterpret_cast<Image*>(handle); }

std::unique_ptr<Variable> VariableOf(const void* host, const char* name, size_t bytes, void** managed) {
  auto variable = std::make_unique<Variable>();
  variable->host = host;
  variable->name = name;
  variable->bytes = bytes;
  variable->managed = managed;
  return variable;
}

}  // namespace

void** NvccRegisterFatBinary(void* wrapper) { return reinterpret_cast<void**>(Root().Register(wrapper)); }

void NvccRegisterFatBinaryEnd(void**) {}  // device code is loaded at its first use

void NvccUnregisterFatBinary(void** handle) { Root().Unregister(ImageOf(handle)); }

void NvccRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*, uint3*,
                          dim3*, dim3*, int*) {
  if (!handle || !host || !name) return;
  auto kernel = std::make_unique<Kernel>();
  kernel->host = host;
  kernel->name = name;
  Root().Register(ImageOf(handle), std::move(kernel));
}

void NvccRegisterVar(void** handle, char* host, char*, const char* name, int, size_t size, int, int) {
  if (!handle || !host || !name) return;
  Root().Register(ImageOf(handle), VariableOf(host, name, size, nullptr));
}

void NvccRegisterManagedVar(void** handle, void** host, char*, const char* name, int, size_t size, int, int) {
  if (!handle || !host || !name) return;
  Root().Register(ImageOf(handle), VariableOf(host, name, size, host));
}

char NvccInitModule(void** handle) {
  Entered in;
  cudaError_t error = Root().Enter(&in);
  if (error == cudaSuccess) error = Root().PlaceManaged(in, ImageOf(handle));
  if (error != cudaSuccess) this_thread.last_error = error;
  return error == cudaSuccess;
}

}  // namespace cuplex::runtime
