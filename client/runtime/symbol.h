// What the copies of symbols share: a symbol's place, and which kinds of copy can have it as an end. Any
// thread.
#pragma once

#include "client/runtime/runtime.h"

namespace cuplex::runtime {

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

inline bool ReachesDevice(cudaMemcpyKind kind) {
  return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

inline bool LeavesDevice(cudaMemcpyKind kind) {
  return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

}  // namespace cuplex::runtime
