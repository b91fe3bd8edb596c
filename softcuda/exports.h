// What the generated exports of libcuda-soft.so call. Any thread.
#pragma once

#include "cuda/driver_api.h"
#include "cuda/proc_table.h"
#include "softcuda/call.h"

namespace cuplex::softcuda {

/// While it lives, NULL means the calling thread's own stream in calls that take no stream.
class PerThreadDefault {
 public:
  PerThreadDefault() : before_(std::exchange(Thread::Here().per_thread_default, true)) {}
  ~PerThreadDefault() { Thread::Here().per_thread_default = before_; }
  PerThreadDefault(const PerThreadDefault&) = delete;
  PerThreadDefault& operator=(const PerThreadDefault&) = delete;

 private:
  const bool before_;
};

/// What cuGetProcAddress knows; generated.
extern const ProcRow kProcRows[];
extern const size_t kProcRowCount;

/// CUDA_ERROR_NOT_SUPPORTED; logs the name, once a name.
CUresult NotCarried(const char* name);

}  // namespace cuplex::softcuda
