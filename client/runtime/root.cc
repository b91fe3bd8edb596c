// libcudart's root: opens libcuda.so.1 as the loader finds it.
#include <pthread.h>

#include <cstdlib>

#include <fmt/format.h>

#include "client/runtime/runtime.h"
#include "cuda/driver.h"

namespace cuplex::runtime {
namespace {

Result<const DriverTable*> OpenSystemDriver() {
  auto driver = OpenDriver("libcuda.so.1");
  if (!driver.ok())
    return Fail(Blame::kSystem,
                "No CUDA driver was found, so CUDA calls answer cudaErrorInsufficientDriver: {}",
                driver.error().sentence);
  // Registered after the driver's own exit handlers, so it runs before them: whatever the program calls later
  // (destructors,
  // __cudaUnregisterFatBinary) finds the runtime ended, not a driver half torn down.
  atexit([] { Root().LeaveAtExit(); });
  // A child has the parent's handles but none of its threads or connections.
  pthread_atfork(nullptr, nullptr, [] { Root().LeaveAtFork(); });
  return &driver->release()->table();  // never closed: the program may call until its last instruction
}

}  // namespace

Runtime& Root() {
  static Runtime& root = *new Runtime(OpenSystemDriver);
  return root;
}

}  // namespace cuplex::runtime
