// Pinned and managed memory: shared with the server, at the same addresses there and here. Any thread.
#pragma once

#include <cstdint>

#include "client/allocation.h"
#include "cuda/driver_types.h"

namespace cuplex::client {

class Session;
struct Caller;

/// `wire_flags` as wireHostAlloc takes them.
CUresult AllocateHostMemory(const Caller& caller, uint64_t bytes, Allocation::Kind kind, unsigned wire_flags,
                            uint64_t* address);
/// Frees what was taken out of the table.
CUresult FreeHostMemory(Session& session, const Allocation& a);

}  // namespace cuplex::client
