// AddressRanges: which parts of a range of addresses are free. Pure bookkeeping; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace cuplex::softcuda {

class AddressRanges {
 public:
  AddressRanges(uintptr_t base, size_t size) { free_.emplace(base, size); }

  /// `size` bytes at a multiple of `alignment` (a power of two), as low, or as high, as there is room;
  /// nullopt without room.
  std::optional<uintptr_t> TakeLow(size_t size, size_t alignment);
  std::optional<uintptr_t> TakeHigh(size_t size, size_t alignment);
  /// Exactly this range; false where part of it is taken or outside.
  bool TakeAt(uintptr_t base, size_t size);
  /// Gives back what was taken, whole or in parts.
  void Give(uintptr_t base, size_t size);

  size_t FreeBytes() const;

 private:
  using Free = std::map<uintptr_t, size_t>;
  void Carve(Free::iterator from, uintptr_t base, size_t size);

  Free free_;  // base -> size, never touching one another
};

}  // namespace cuplex::softcuda
