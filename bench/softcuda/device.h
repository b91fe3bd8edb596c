// The device that is measured: a driver with a current context, and modules, kernels and memory on it. One
// thread. A call that does not give CUDA_SUCCESS throws Failure. Everything here must die before its Device.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cuda/driver.h"

namespace cuplex::bench {

/// Why something could not be measured. what() is one whole sentence.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Device {
 public:
  /// Opens the driver at `library`, and the first device's primary context.
  explicit Device(const std::string& library);

  const DriverTable& cu() const { return driver_->table(); }
  void Require(CUresult result, const char* call) const;
  void Synchronize() const { Require(cu().cuCtxSynchronize(), "cuCtxSynchronize"); }

 private:
  std::unique_ptr<Driver> driver_;
};

/// A grid in blocks, or a block in threads.
struct Extent {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

class Kernel {
 public:
  /// On the legacy default stream, returning at once. Each argument must have the very type of the kernel's
  /// parameter.
  template <typename... A>
  void Launch(Extent grid, Extent block, A... arguments) const {
    LaunchIn(nullptr, grid, block, arguments...);
  }
  /// The same in a stream.
  template <typename... A>
  void LaunchIn(CUstream stream, Extent grid, Extent block, A... arguments) const {
    void* pointers[] = {nullptr, &arguments...};
    LaunchWith(stream, grid, block, pointers + 1);
  }

 private:
  friend class Module;
  Kernel(const Device& device, CUfunction function) : device_(device), function_(function) {}
  void LaunchWith(CUstream stream, Extent grid, Extent block, void** arguments) const;

  const Device& device_;
  CUfunction function_;
};

class Module {
 public:
  Module(const Device& device, const char* ptx);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const Device& device() const { return device_; }
  Kernel GetKernel(const char* name) const;
  /// Fills the variable `name`, which must have exactly this size.
  void SetVariable(const char* name, const void* bytes, std::size_t size) const;

 private:
  const Device& device_;
  CUmodule module_ = nullptr;
};

/// `count` elements of device memory, zero, and touched: the first kernel that writes there pays for no page.
template <typename T>
class Array {
 public:
  Array(const Device& device, std::size_t count) : device_(device), count_(count) {
    device_.Require(device_.cu().cuMemAlloc_v2(&address_, count * sizeof(T)), "cuMemAlloc");
    Clear();
    device_.Synchronize();
  }
  Array(const Device& device, const std::vector<T>& values) : Array(device, values.size()) {
    device_.Require(device_.cu().cuMemcpyHtoD_v2(address_, values.data(), count_ * sizeof(T)),
                    "cuMemcpyHtoD");
  }
  ~Array() { device_.cu().cuMemFree_v2(address_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  CUdeviceptr at() const { return address_; }
  void Clear() const {
    device_.Require(device_.cu().cuMemsetD8Async(address_, 0, count_ * sizeof(T), nullptr),
                    "cuMemsetD8Async");
  }
  std::vector<T> Read() const {
    std::vector<T> values(count_);
    device_.Require(device_.cu().cuMemcpyDtoH_v2(values.data(), address_, count_ * sizeof(T)),
                    "cuMemcpyDtoH");
    return values;
  }

 private:
  const Device& device_;
  std::size_t count_;
  CUdeviceptr address_ = 0;
};

}  // namespace cuplex::bench
