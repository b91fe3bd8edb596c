// Symbols: the program's __device__ and __constant__ variables, named by the address of their host shadow.
#include "client/runtime/symbol.h"
#include "client/runtime/calls.h"
#include "client/runtime/copy.h"

namespace cuplex::runtime {

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
