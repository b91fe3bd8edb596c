// Launches, checked and ready to be sent: into a stream, or as a node of a graph. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/driver_types.h"
#include "protocol/calls_generated.h"
#include "protocol/handle.h"

namespace cuplex::client {

struct Caller;
struct Function;

inline constexpr uint32_t kCooperative = 1;  // flag of wireLaunch

struct LaunchShape {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
};

/// Borrows the program's parameters.
struct PreparedLaunch {
  wire::wireLaunchArgs args;
  const Function* function = nullptr;
  const void* buffer = nullptr;  // the parameters in one piece, or
  void** params = nullptr;       // one by one
  uint32_t bytes = 0;

  /// Writes `bytes` of parameters.
  void Gather(std::byte* to) const;
};

CUresult PrepareLaunch(const Caller& caller, CUfunction f, const LaunchShape& shape, Handle stream,
                       uint32_t flags, void** params, void** extra, PreparedLaunch* out);

}  // namespace cuplex::client
