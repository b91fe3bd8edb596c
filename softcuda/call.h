// What every exported function begins with: finding the driver and the calling thread's context, and keeping
// C++ exceptions out of the program. Any thread.
#pragma once

#include <new>
#include <utility>
#include <vector>

#include "base/log.h"
#include "cuda/driver_types.h"
#include "softcuda/context.h"
#include "softcuda/driver.h"

namespace cuplex::softcuda {

/// What softcuda remembers of a thread.
struct Thread {
  Thread();
  ~Thread();

  struct OwnStream {
    Ref<Context> context;
    Ref<Stream> stream;
  };

  struct Current {
    Ref<Context> context;     // may be null
    Ref<GreenContext> green;  // where it was made current as one
  };
  std::vector<Current> contexts;    // the stack; the last is current
  std::vector<OwnStream> streams;   // default streams of this thread, one a context
  bool per_thread_default = false;  // NULL means this thread's own stream
  const uint64_t id;                // never used twice
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

  static Thread& Here();
  Context* current() const { return contexts.empty() ? nullptr : contexts.back().context.get(); }
  GreenContext* green() const { return contexts.empty() ? nullptr : contexts.back().green.get(); }
  void SetCurrent(Current current);
  /// This thread's default stream in `context`, made when first asked for; null where there is no room.
  Ref<Stream> StreamIn(Context& context);
};

template <typename F>
CUresult Guarded(F&& f) noexcept {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    Log().error("softcuda: {}", e.what());
    return CUDA_ERROR_UNKNOWN;
  }
}

/// f(Driver&), where the driver runs.
template <typename F>
CUresult InDriver(F&& f) noexcept {
  Driver* driver = RunningDriver();
  if (!driver) return CUDA_ERROR_NOT_INITIALIZED;
  return Guarded([&] { return f(*driver); });
}

/// f(Device&), where there is a device of that number.
template <typename F>
CUresult OnDevice(CUdevice number, F&& f) noexcept {
  return InDriver([&](Driver& driver) -> CUresult {
    Device* device = driver.DeviceAt(number);
    return device ? f(*device) : CUDA_ERROR_INVALID_DEVICE;
  });
}

/// f(Context&), where the calling thread has a current context that lives and has not failed.
template <typename F>
CUresult InContext(F&& f) noexcept {
  if (!RunningDriver()) return CUDA_ERROR_NOT_INITIALIZED;
  Context* context = Thread::Here().current();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->dead()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (CUresult fault = context->fault()) {
    context->GiveText();
    return fault;
  }
  return Guarded([&] { return f(*context); });
}

}  // namespace cuplex::softcuda
