// A driver for tests that fails on demand: every call first asks a hook. One at a time in a process; set up
// before use.
#pragma once

#include "cuda/driver_table.h"

namespace cuplex {

class CallHook {
 public:
  virtual ~CallHook() = default;
  /// Called before each driver call, on its thread. CUDA_SUCCESS lets it pass; anything else is its answer.
  virtual CUresult Before(const char* name) = 0;
};

/// A table that asks `hook` (not owned, may be null) and then calls `real`.
DriverTable MakeFaultyDriver(const DriverTable& real, CallHook* hook);

}  // namespace cuplex
