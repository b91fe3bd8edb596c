// The driver that the conformance bodies run on, and what they share. One process, one driver: main opens it
// by path and every body calls it through Cu().
//
// Where a body needs what only this house promises (exact limits, codes for handles that never were), it asks
// Given() and is skipped on other drivers.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/driver_table.h"

/// GoogleTest shows a code by its name. (In the global namespace, where CUresult lies.)
void PrintTo(CUresult code, std::ostream* out);

namespace cuplex::conformance {

struct Options {
  std::string driver;        // path
  bool ours = true;          // softcuda, or the client in front of it: every promise of this house holds
  uint64_t total_bytes = 0;  // what the device must be said to have; 0: any
  CUresult before_init{};    // what a call before cuInit answered
};
const Options& Given();
const DriverTable& Cu();
/// The exported function of that name; null where there is none.
void* Exported(const char* name);

/// Throws, which fails the body, where `code` is not CUDA_SUCCESS.
void Must(CUresult code, const char* call, const char* file, int line);
#define MUST(call) ::cuplex::conformance::Must((call), #call, __FILE__, __LINE__)

/// Bytes that differ from their neighbours, by a seed.
std::vector<uint8_t> Noise(size_t count, uint32_t seed);

/// Free device memory, in bytes.
uint64_t FreeBytes();

/// Device memory, freed at the end of the scope.
class DeviceMemory {
 public:
  explicit DeviceMemory(size_t bytes) { MUST(Cu().cuMemAlloc_v2(&at, bytes)); }
  ~DeviceMemory() { (void)Cu().cuMemFree_v2(at); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  CUdeviceptr at = 0;
};

template <typename T>
std::vector<T> Read(CUdeviceptr from, size_t count) {
  std::vector<T> values(count);
  MUST(Cu().cuMemcpyDtoH_v2(values.data(), from, count * sizeof(T)));
  return values;
}
template <typename T>
void Write(CUdeviceptr to, const std::vector<T>& values) {
  MUST(Cu().cuMemcpyHtoD_v2(to, values.data(), values.size() * sizeof(T)));
}

/// A stream that ends with the scope.
class Stream {
 public:
  explicit Stream(unsigned flags = CU_STREAM_DEFAULT) { MUST(Cu().cuStreamCreate(&handle, flags)); }
  ~Stream() { (void)Cu().cuStreamDestroy_v2(handle); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator CUstream() const { return handle; }  // NOLINT: it stands for its handle
  CUstream handle = nullptr;
};

class Event {
 public:
  explicit Event(unsigned flags = CU_EVENT_DEFAULT) { MUST(Cu().cuEventCreate(&handle, flags)); }
  ~Event() { (void)Cu().cuEventDestroy_v2(handle); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator CUevent() const { return handle; }  // NOLINT
  CUevent handle = nullptr;
};

/// Holds a stream where it stands until opened: a host function that waits. Must outlive the stream's work;
/// opens when it goes.
class Gate {
 public:
  using Launch = CUresult (*)(CUstream, CUhostFn, void*);
  explicit Gate(CUstream stream, Launch launch = Cu().cuLaunchHostFunc) {
    MUST(launch(stream, &Gate::Wait, this));
  }
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void Open();
  /// Waits until the stream has come to the gate.
  void AwaitArrival();

 private:
  static void Wait(void* gate);
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false, arrived_ = false, passed_ = false;
};

/// Each body has a context of its own, which is current, and the module of kernels.cu when it asks for a
/// kernel. What it takes from the device must be back when it ends.
class Body : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  CUfunction Kernel(const char* name);
  CUmodule Kernels();

  /// Launches with one pointer a parameter; each must have the very type of the kernel's.
  template <typename... A>
  CUresult Launch(CUfunction f, unsigned blocks, unsigned threads, CUstream stream, A... arguments) {
    void* parameters[] = {&arguments..., nullptr};
    return Cu().cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr);
  }

  CUcontext context_ = nullptr;

 private:
  CUmodule module_ = nullptr;
};

#define ONLY_OURS() \
  if (!::cuplex::conformance::Given().ours) GTEST_SKIP() << "a promise that only this house makes"

}  // namespace cuplex::conformance
