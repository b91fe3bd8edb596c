// Symbols: the program's __device__ and __constant__ variables, named by the address of their host shadow.
#include "client/runtime/calls.h"
#include "client/runtime/copy.h"
#include "client/runtime/runtime.h"

namespace cuplex::runtime {
namespace {

/// Calls `f(driver, address)` with the device address of `offset` in the symbol, after checking that `count`
/// bytes follow.
template <typename F>
cudaError_t WithSymbol(const void* symbol, size_t count, size_t offset, F&& f) {
  Entered in;
  RUNTIME_TRY(Root().Enter(&in));
  CUdeviceptr address;
  size_t bytes;
  RUNTIME_TRY(Root().AddressOf(in, symbol, &address, &bytes));
  if (offset > bytes || count > bytes - offset) return cudaErrorInvalidValue;
  return f(*in.driver, Pointer(address + offset));
}

bool ReachesDevice(cudaMemcpyKind kind) {
  return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

bool LeavesDevice(cudaMemcpyKind kind) {
  return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

}  // namespace

cudaError_t MemcpyToSymbol(const void* symbol, const void* src, size_t count, size_t offset,
                           cudaMemcpyKind kind, cudaStream_t stream) {
  if (!ReachesDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return WithSymbol(symbol, count, offset, [&](const DriverTable& cu, void* address) {
    return CopyNow(cu, address, src, count, kind, stream);
  });
}

cudaError_t MemcpyToSymbolAsync(const void* symbol, const void* src, size_t count, size_t offset,
                                cudaMemcpyKind kind, cudaStream_t stream) {
  if (!ReachesDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return WithSymbol(symbol, count, offset, [&](const DriverTable& cu, void* address) {
    return CopyQueued(cu, address, src, count, kind, stream);
  });
}

cudaError_t MemcpyFromSymbol(void* dst, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind,
                             cudaStream_t stream) {
  if (!LeavesDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return WithSymbol(symbol, count, offset, [&](const DriverTable& cu, void* address) {
    return CopyNow(cu, dst, address, count, kind, stream);
  });
}

cudaError_t MemcpyFromSymbolAsync(void* dst, const void* symbol, size_t count, size_t offset,
                                  cudaMemcpyKind kind, cudaStream_t stream) {
  if (!LeavesDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return WithSymbol(symbol, count, offset, [&](const DriverTable& cu, void* address) {
    return CopyQueued(cu, dst, address, count, kind, stream);
  });
}

cudaError_t GetSymbolAddress(void** pointer, const void* symbol) {
  if (!pointer) return cudaErrorInvalidValue;
  return WithSymbol(symbol, 0, 0, [&](const DriverTable&, void* address) {
    *pointer = address;
    return cudaSuccess;
  });
}

cudaError_t GetSymbolSize(size_t* size, const void* symbol) {
  if (!size) return cudaErrorInvalidValue;
  Entered in;
  RUNTIME_TRY(Root().Enter(&in));
  CUdeviceptr address;
  return Root().AddressOf(in, symbol, &address, size);
}

}  // namespace cuplex::runtime
