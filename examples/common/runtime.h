// The CUDA runtime API for the .cu forms of the examples: a check for every call, and memory released by
// scope.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include "examples/common/program.h"

namespace cuplex::examples {

/// Throws Failure unless `code` is cudaSuccess. `call` names what gave it.
inline void Check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  throw Failure(std::string(call) + " gave " + cudaGetErrorName(code) + " (" + std::to_string(int{code}) +
                "): " + cudaGetErrorString(code));
}

/// To be said after each <<<...>>>, which itself says nothing.
inline void CheckLaunch(const char* kernel) { Check(cudaGetLastError(), kernel); }

/// `count` elements of device memory, uninitialised. It converts to the pointer that a kernel takes.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    Check(cudaMalloc(reinterpret_cast<void**>(&memory_), count * sizeof(T)), "cudaMalloc");
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) { CopyFrom(values); }
  ~DeviceArray() { cudaFree(memory_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() const { return memory_; }
  std::size_t size() const { return count_; }

  /// Both copy as many elements as the vector has; it must not be longer than the array.
  void CopyFrom(const std::vector<T>& values) const {
    Check(cudaMemcpy(memory_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
          "cudaMemcpy");
  }
  void CopyTo(std::vector<T>* values) const {
    Check(cudaMemcpy(values->data(), memory_, values->size() * sizeof(T), cudaMemcpyDeviceToHost),
          "cudaMemcpy");
  }

 private:
  std::size_t count_;
  T* memory_ = nullptr;
};

/// `count` elements of page-locked host memory, uninitialised.
template <typename T>
class PinnedArray {
 public:
  explicit PinnedArray(std::size_t count) : count_(count) {
    Check(cudaMallocHost(reinterpret_cast<void**>(&memory_), count * sizeof(T)), "cudaMallocHost");
  }
  ~PinnedArray() { cudaFreeHost(memory_); }
  PinnedArray(const PinnedArray&) = delete;
  PinnedArray& operator=(const PinnedArray&) = delete;

  T* begin() const { return memory_; }
  T* end() const { return memory_ + count_; }
  std::size_t Bytes() const { return count_ * sizeof(T); }

 private:
  std::size_t count_;
  T* memory_ = nullptr;
};

class Stream {
 public:
  Stream() { Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t get() const { return stream_; }
  void Synchronize() const { Check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { Check(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace cuplex::examples
