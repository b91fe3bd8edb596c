// What the exported functions share: keeping errors, refusing, and the per-thread default stream. Any thread.
#pragma once

#include "client/runtime/runtime_types.h"
#include "client/runtime/thread.h"

#define CUPLEX_EXPORTED __attribute__((visibility("default")))

namespace cuplex::runtime {

/// Keeps an error for cudaGetLastError, and passes it on.
inline cudaError_t Keep(cudaError_t error) {
  if (error != cudaSuccess) [[unlikely]]
    this_thread.last_error = error;
  return error;
}

/// cudaErrorNotSupported, and a sentence with the name the first time.
cudaError_t Refuse(const char* name);

/// What an argument means in a program built with per-thread default streams (_ptsz).
inline cudaStream_t PerThread(cudaStream_t stream) { return stream ? stream : cudaStreamPerThread; }

/// The flags of cudaGetDriverEntryPoint: 0 leaves the choice of stream to the runtime, 2 is the per-thread
/// one.
inline unsigned long long PerThread(unsigned long long flags) { return flags ? flags : 2; }

class PerThreadConfig {
 public:
  explicit PerThreadConfig(const cudaLaunchConfig_t* given) : given_(given) {
    if (!given) return;
    copy_ = *given;
    copy_.stream = PerThread(copy_.stream);
  }
  operator const cudaLaunchConfig_t*() const { return given_ ? &copy_ : nullptr; }

 private:
  const cudaLaunchConfig_t* given_;
  cudaLaunchConfig_t copy_{};
};
inline PerThreadConfig PerThread(const cudaLaunchConfig_t* config) { return PerThreadConfig(config); }

/// An instantiation's parameters, which carry answers too: the program's own struct, with another stream
/// while the call lasts.
class PerThreadUpload {
 public:
  explicit PerThreadUpload(cudaGraphInstantiateParams* given)
      : given_(given), stream_(given ? given->hUploadStream : nullptr) {
    if (given_) given_->hUploadStream = PerThread(stream_);
  }
  PerThreadUpload(const PerThreadUpload&) = delete;
  PerThreadUpload& operator=(const PerThreadUpload&) = delete;
  ~PerThreadUpload() {
    if (given_) given_->hUploadStream = stream_;
  }
  operator cudaGraphInstantiateParams*() const { return given_; }

 private:
  cudaGraphInstantiateParams* given_;
  cudaStream_t stream_;
};
inline PerThreadUpload PerThread(cudaGraphInstantiateParams* params) { return PerThreadUpload(params); }

}  // namespace cuplex::runtime
