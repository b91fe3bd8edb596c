// The CUDA driver API for the examples: found at run time, checked at every call, released by scope.
//
// Nothing of CUDA is linked. Driver opens "libcuda.so.1" with dlopen and looks each call up by its exported
// name, so one binary runs on whatever LD_LIBRARY_PATH puts first: softcuda, the client library of cuplexd,
// or a real driver. A call that does not give CUDA_SUCCESS throws Failure with the call's name and the
// driver's words. Main thread only. Each object here must die before the Driver and the Context it was made
// with.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cuda/driver_api.h"

namespace cuplex::examples {

class Driver;

/// One call of the driver.
template <typename F>
class Call;

template <typename... P>
class Call<CUresult (*)(P...)> {
 public:
  Call(const Driver& driver, const char* symbol);

  /// Throws Failure unless the driver gives CUDA_SUCCESS.
  void operator()(P... parameters) const;
  /// For destructors and for callers that want the code.
  CUresult Try(P... parameters) const { return function_(parameters...); }

 private:
  const Driver& driver_;
  const char* symbol_;
  CUresult (*function_)(P...);
};

class Driver {
 public:
  /// Opens the library and initialises it. Throws Failure if it is not there or lacks a call.
  explicit Driver(const char* library = "libcuda.so.1");
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  void* Symbol(const char* name) const;                                // throws Failure if there is none
  [[noreturn]] void ThrowFailure(const char* name, CUresult r) const;  // in the driver's own words

 private:
  void* library_;  // never closed: drivers start threads

 public:
#define CUPLEX_EXAMPLES_CALL(name, symbol) \
  Call<decltype(&::symbol)> name { *this, #symbol }
  CUPLEX_EXAMPLES_CALL(Init, cuInit);
  CUPLEX_EXAMPLES_CALL(GetErrorName, cuGetErrorName);
  CUPLEX_EXAMPLES_CALL(GetErrorString, cuGetErrorString);
  CUPLEX_EXAMPLES_CALL(DeviceGet, cuDeviceGet);
  CUPLEX_EXAMPLES_CALL(DeviceGetAttribute, cuDeviceGetAttribute);
  CUPLEX_EXAMPLES_CALL(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain);
  CUPLEX_EXAMPLES_CALL(DevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2);
  CUPLEX_EXAMPLES_CALL(CtxSetCurrent, cuCtxSetCurrent);
  CUPLEX_EXAMPLES_CALL(ModuleLoadData, cuModuleLoadData);
  CUPLEX_EXAMPLES_CALL(ModuleLoadDataEx, cuModuleLoadDataEx);
  CUPLEX_EXAMPLES_CALL(ModuleUnload, cuModuleUnload);
  CUPLEX_EXAMPLES_CALL(ModuleGetFunction, cuModuleGetFunction);
  CUPLEX_EXAMPLES_CALL(ModuleGetGlobal, cuModuleGetGlobal_v2);
  CUPLEX_EXAMPLES_CALL(MemAlloc, cuMemAlloc_v2);
  CUPLEX_EXAMPLES_CALL(MemAllocPitch, cuMemAllocPitch_v2);
  CUPLEX_EXAMPLES_CALL(MemFree, cuMemFree_v2);
  CUPLEX_EXAMPLES_CALL(MemHostAlloc, cuMemHostAlloc);
  CUPLEX_EXAMPLES_CALL(MemFreeHost, cuMemFreeHost);
  CUPLEX_EXAMPLES_CALL(MemcpyHtoD, cuMemcpyHtoD_v2);
  CUPLEX_EXAMPLES_CALL(MemcpyDtoH, cuMemcpyDtoH_v2);
  CUPLEX_EXAMPLES_CALL(Memcpy2D, cuMemcpy2D_v2);
  CUPLEX_EXAMPLES_CALL(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2);
  CUPLEX_EXAMPLES_CALL(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2);
  CUPLEX_EXAMPLES_CALL(Array3DCreate, cuArray3DCreate_v2);
  CUPLEX_EXAMPLES_CALL(ArrayDestroy, cuArrayDestroy);
  CUPLEX_EXAMPLES_CALL(TexObjectCreate, cuTexObjectCreate);
  CUPLEX_EXAMPLES_CALL(TexObjectDestroy, cuTexObjectDestroy);
  CUPLEX_EXAMPLES_CALL(SurfObjectCreate, cuSurfObjectCreate);
  CUPLEX_EXAMPLES_CALL(SurfObjectDestroy, cuSurfObjectDestroy);
  CUPLEX_EXAMPLES_CALL(MemsetD8, cuMemsetD8_v2);
  CUPLEX_EXAMPLES_CALL(MemsetD32, cuMemsetD32_v2);
  CUPLEX_EXAMPLES_CALL(LaunchKernel, cuLaunchKernel);
  CUPLEX_EXAMPLES_CALL(StreamCreate, cuStreamCreate);
  CUPLEX_EXAMPLES_CALL(StreamDestroy, cuStreamDestroy_v2);
  CUPLEX_EXAMPLES_CALL(StreamSynchronize, cuStreamSynchronize);
  CUPLEX_EXAMPLES_CALL(StreamWaitEvent, cuStreamWaitEvent);
  CUPLEX_EXAMPLES_CALL(StreamBeginCapture, cuStreamBeginCapture_v2);
  CUPLEX_EXAMPLES_CALL(StreamEndCapture, cuStreamEndCapture);
  CUPLEX_EXAMPLES_CALL(GraphDestroy, cuGraphDestroy);
  CUPLEX_EXAMPLES_CALL(GraphInstantiate, cuGraphInstantiateWithFlags);
  CUPLEX_EXAMPLES_CALL(GraphLaunch, cuGraphLaunch);
  CUPLEX_EXAMPLES_CALL(GraphExecDestroy, cuGraphExecDestroy);
  CUPLEX_EXAMPLES_CALL(EventCreate, cuEventCreate);
  CUPLEX_EXAMPLES_CALL(EventDestroy, cuEventDestroy_v2);
  CUPLEX_EXAMPLES_CALL(EventRecord, cuEventRecord);
  CUPLEX_EXAMPLES_CALL(EventSynchronize, cuEventSynchronize);
  CUPLEX_EXAMPLES_CALL(EventElapsedTime, cuEventElapsedTime_v2);
#undef CUPLEX_EXAMPLES_CALL
};

template <typename... P>
Call<CUresult (*)(P...)>::Call(const Driver& driver, const char* symbol)
    : driver_(driver),
      symbol_(symbol),
      function_(reinterpret_cast<CUresult (*)(P...)>(driver.Symbol(symbol))) {}

template <typename... P>
void Call<CUresult (*)(P...)>::operator()(P... parameters) const {
  const CUresult result = function_(parameters...);
  if (result != CUDA_SUCCESS) driver_.ThrowFailure(symbol_, result);
}

/// The primary context of the first device, current on this thread.
class Context {
 public:
  explicit Context(const Driver& driver);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int DeviceAttribute(CUdevice_attribute attribute) const;

 private:
  const Driver& driver_;
  CUdevice device_ = 0;
};

/// A kernel's extent in blocks, or a block's in threads.
struct Extent {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

class Kernel {
 public:
  /// Each argument must have the very type of the kernel's parameter.
  template <typename... A>
  void Launch(Extent grid, Extent block, unsigned shared_bytes, CUstream stream, A... arguments) const {
    void* pointers[] = {&arguments...};
    LaunchWith(grid, block, shared_bytes, stream, pointers);
  }

 private:
  friend class Module;
  Kernel(const Driver& driver, CUfunction function) : driver_(driver), function_(function) {}
  void LaunchWith(Extent grid, Extent block, unsigned shared_bytes, CUstream stream, void** arguments) const;

  const Driver& driver_;
  CUfunction function_;
};

/// A module made from PTX text. A compiler's complaint becomes part of the Failure.
class Module {
 public:
  Module(const Driver& driver, const char* ptx);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  Kernel GetKernel(const char* name) const;
  /// The address of a variable of the module. Throws Failure unless it takes `bytes` bytes.
  CUdeviceptr GetGlobal(const char* name, std::size_t bytes) const;

 private:
  const Driver& driver_;
  CUmodule module_ = nullptr;
};

/// `count` elements of device memory, uninitialised.
template <typename T>
class DeviceArray {
 public:
  DeviceArray(const Driver& driver, std::size_t count) : driver_(driver), count_(count) {
    driver_.MemAlloc(&address_, Bytes());
  }
  DeviceArray(const Driver& driver, const std::vector<T>& values) : DeviceArray(driver, values.size()) {
    CopyFrom(values);
  }
  ~DeviceArray() { driver_.MemFree.Try(address_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  CUdeviceptr address() const { return address_; }
  std::size_t size() const { return count_; }
  std::size_t Bytes() const { return count_ * sizeof(T); }

  /// Both copy as many elements as the vector has; it must not be longer than the array.
  void CopyFrom(const std::vector<T>& values) const {
    driver_.MemcpyHtoD(address_, values.data(), values.size() * sizeof(T));
  }
  void CopyTo(std::vector<T>* values) const {
    driver_.MemcpyDtoH(values->data(), address_, values->size() * sizeof(T));
  }

 private:
  const Driver& driver_;
  std::size_t count_;
  CUdeviceptr address_ = 0;
};

/// `count` elements of page-locked host memory, uninitialised.
template <typename T>
class PinnedArray {
 public:
  PinnedArray(const Driver& driver, std::size_t count) : driver_(driver), count_(count) {
    void* memory = nullptr;
    driver_.MemHostAlloc(&memory, count * sizeof(T), 0);
    memory_ = static_cast<T*>(memory);
  }
  ~PinnedArray() { driver_.MemFreeHost.Try(memory_); }
  PinnedArray(const PinnedArray&) = delete;
  PinnedArray& operator=(const PinnedArray&) = delete;

  T* begin() const { return memory_; }
  T* end() const { return memory_ + count_; }
  std::size_t Bytes() const { return count_ * sizeof(T); }

 private:
  const Driver& driver_;
  std::size_t count_;
  T* memory_ = nullptr;
};

class Stream {
 public:
  explicit Stream(const Driver& driver) : driver_(driver) {
    driver_.StreamCreate(&stream_, CU_STREAM_NON_BLOCKING);
  }
  ~Stream() { driver_.StreamDestroy.Try(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  CUstream get() const { return stream_; }
  void Synchronize() const { driver_.StreamSynchronize(stream_); }

 private:
  const Driver& driver_;
  CUstream stream_ = nullptr;
};

class Event {
 public:
  explicit Event(const Driver& driver) : driver_(driver) { driver_.EventCreate(&event_, CU_EVENT_DEFAULT); }
  ~Event() { driver_.EventDestroy.Try(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  CUevent get() const { return event_; }

 private:
  const Driver& driver_;
  CUevent event_ = nullptr;
};

}  // namespace cuplex::examples
