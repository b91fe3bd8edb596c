// Memory pools: each device's default one; what cuMemAllocAsync gives. Any thread.
//
// A pool here is an account, not a store: memory comes from the server at once and goes back to it in stream
// order, so nothing is ever kept in reserve and the attributes about reuse are remembered without effect.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "client/allocation.h"
#include "cuda/driver_types.h"

namespace cuplex::client {

struct Caller;

/// Asks for device memory and enters it into the table.
CUresult AllocateDevice(const Caller& caller, uint64_t bytes, Allocation::Kind kind, CUdeviceptr* out);

class MemoryPools {
 public:
  explicit MemoryPools(int devices);

  CUmemoryPool DefaultOf(int device) const;
  /// The device of a pool; -1 where it is none.
  int DeviceOf(CUmemoryPool pool) const;
  void Took(int device, uint64_t bytes);
  void Gave(int device, uint64_t bytes);
  CUresult Get(CUmemoryPool pool, CUmemPool_attribute attribute, void* value);
  CUresult Set(CUmemoryPool pool, CUmemPool_attribute attribute, const void* value);

 private:
  struct Pool {
    uint64_t used = 0;
    uint64_t most_used = 0;
    uint64_t release_threshold = 0;
    int reuse[4] = {0, 1, 1, 1};  // by attribute, 1 .. 3
  };
  std::mutex mutex_;
  std::vector<std::unique_ptr<Pool>> pools_;
};

}  // namespace cuplex::client
