// BlockSlot: the memory one block on the way needs: its piece of the aperture (parameters, shared, local) and
// the records of its threads. Used by one worker at a time.
//
//     piece:  [parameters 32 KiB | unmapped ... 1 MiB: shared 256 KiB | unmapped ... 2 MiB: local, per
//     thread]
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "softcuda/jit/lane.h"
#include "softcuda/window.h"

namespace cuplex::softcuda {

class BlockSlot {
 public:
  explicit BlockSlot(AddressWindow& window) : window_(window) {}
  ~BlockSlot();
  BlockSlot(const BlockSlot&) = delete;
  BlockSlot& operator=(const BlockSlot&) = delete;

  /// Makes room for `records` records (of threads, or of warps) of `record_bytes` each, and for the local
  /// memories of `threads` threads, `local_bytes` each.
  Status Fit(uint32_t records, uint32_t record_bytes, uint32_t threads, uint32_t local_bytes);

  uintptr_t params() const { return piece_.base; }
  uintptr_t shared() const { return piece_.base + kSharedAt; }
  uintptr_t local() const { return piece_.base + kLocalAt; }
  std::byte* lanes() const { return lanes_.get(); }

 private:
  static constexpr size_t kSharedAt = size_t{1} << 20;
  static constexpr size_t kLocalAt = size_t{2} << 20;

  struct Free {
    void operator()(std::byte* p) const;
  };

  AddressWindow& window_;
  Window piece_;
  size_t local_mapped_ = 0;
  std::unique_ptr<std::byte, Free> lanes_;
  size_t lanes_size_ = 0;
};

}  // namespace cuplex::softcuda
