// Allocations: what memory this process knows to be its own, by address. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "client/snapshot.h"
#include "protocol/handle.h"

namespace cuplex::client {

struct Allocation {
  enum Kind : uint8_t {
    kDevice,
    kPool,        // device memory of cuMemAllocAsync
    kGraph,       // device memory of a graph's node; see client/graph/graphs.h
    kGlobal,      // a module's variable
    kPinned,      // host memory in the host window
    kManaged,     // the same, seen as device memory
    kRegistered,  // the program's own pages, marked
  };
  uint64_t base = 0;
  uint64_t bytes = 0;
  Kind kind = kDevice;
  uint32_t context = 0;  // number
  int device = 0;
  unsigned flags = 0;         // as given when it was made
  uint64_t mapped_bytes = 0;  // kPinned, kManaged: bytes of the mapping
  Handle module = 0;          // kGlobal
  uint64_t id = 0;            // never used twice

  bool in_host_window() const { return kind == kPinned || kind == kManaged; }
  bool on_device() const { return kind == kDevice || kind == kPool || kind == kGraph || kind == kGlobal; }
};

class AllocationTable {
 public:
  /// Replaces what has the same base.
  void Insert(Allocation a);
  /// The one that `address` lies in.
  std::optional<Allocation> Find(uint64_t address) const;
  /// All `bytes` from there lie in one of them.
  bool Holds(uint64_t address, uint64_t bytes) const;
  /// Removes the one that begins at `base` if it is of one of `kinds`; nullopt where there is none.
  std::optional<Allocation> Take(uint64_t base, std::initializer_list<Allocation::Kind> kinds);
  /// Drops what an ended context owned, and unmaps what of it lay in the host window.
  void Forget(uint32_t context);
  void ForgetModule(Handle module);

 private:
  mutable std::shared_mutex mutex_;
  std::map<uint64_t, Allocation> by_base_;
  uint64_t next_id_ = 1;
};

/// Gives [address, address + bytes) of the host window back to its reservation.
void UnmapHostMemory(uint64_t address, uint64_t bytes);

}  // namespace cuplex::client
