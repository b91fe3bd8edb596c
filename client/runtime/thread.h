// Thread: what the runtime keeps for each thread of the program. Its own thread only.
#pragma once

#include <cstddef>

#include "client/runtime/runtime_types.h"

namespace cuplex::runtime {

struct Context;

struct LaunchConfiguration {
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
};

struct Thread {
  /// Launches nest where a kernel's arguments launch kernels; deeper than this is refused.
  static constexpr unsigned kDepth = 8;

  cudaError_t last_error;
  int device;         // chosen by cudaSetDevice; 0 until then
  CUcontext current;  // the driver's current context when the thread last entered, and ...
  Context* context;   // ... what we know about it
  unsigned depth;     // launch configurations pushed and not yet popped
  LaunchConfiguration configurations[kDepth];
};

// Without constructor or destructor, so that it works before main, in threads about to end, and while the
// process exits. Initial-exec: one instruction to find, from the little space that the loader keeps for
// libraries loaded late.
extern thread_local constinit Thread this_thread __attribute__((tls_model("initial-exec")));

}  // namespace cuplex::runtime
