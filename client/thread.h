// Thread: what the library knows of each thread of the program. Used by the thread itself alone.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cuda/driver_types.h"
#include "protocol/handle.h"

namespace cuplex::client {

struct Context;

struct Thread {
  uint64_t attach = 0;             // of which attachment the rest speaks
  std::vector<Context*> contexts;  // pushed ones; the last is current, nullptr may stand for none
  int per_thread_default = 0;      // how many PerThreadDefault scopes it is in
  bool in_host_function = false;   // it runs a function for a stream and may not call CUDA
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::vector<std::pair<uint32_t, Handle>> default_streams;  // its own, by context number

  Context* current() const { return contexts.empty() ? nullptr : contexts.back(); }
  void SetCurrent(Context* context);
};

/// The calling thread's.
Thread& ThisThread();

}  // namespace cuplex::client
