// AddressSpace: places ranges inside one larger range of addresses. Pure; one thread at a time.
//
// It keeps what is free, joined with its neighbours, and takes the lowest place that fits. An arena uses it
// for pieces of whole granules, a chunk for the small allocations inside it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace cuplex::server {

class AddressSpace {
 public:
  AddressSpace() = default;
  AddressSpace(uint64_t base, uint64_t bytes) : base_(base), bytes_(bytes), free_{{base, bytes}} {}

  uint64_t base() const { return base_; }
  uint64_t bytes() const { return bytes_; }

  /// The lowest free range of `bytes` (> 0), aligned to `alignment` (a power of two); nullopt where none is.
  std::optional<uint64_t> Take(uint64_t bytes, uint64_t alignment);
  /// Gives back exactly what Take gave.
  void Give(uint64_t base, uint64_t bytes);

  bool Empty() const { return free_.size() == 1 && free_.begin()->second == bytes_; }

 private:
  uint64_t base_ = 0;
  uint64_t bytes_ = 0;
  std::map<uint64_t, uint64_t> free_;  // base -> bytes; neighbours are joined
};

}  // namespace cuplex::server
