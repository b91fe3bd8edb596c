#include "softcuda/address_ranges.h"

#include <cassert>

namespace cuplex::softcuda {

void AddressRanges::Carve(Free::iterator from, uintptr_t base, size_t size) {
  auto [start, length] = *from;
  free_.erase(from);
  if (base > start) free_.emplace(start, base - start);
  if (start + length > base + size) free_.emplace(base + size, start + length - base - size);
}

std::optional<uintptr_t> AddressRanges::TakeLow(size_t size, size_t alignment) {
  if (!size) return std::nullopt;
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    uintptr_t end = it->first + it->second;
    uintptr_t base = (it->first + alignment - 1) & ~(alignment - 1);
    if (base < it->first || base >= end || end - base < size) continue;
    Carve(it, base, size);
    return base;
  }
  return std::nullopt;
}

std::optional<uintptr_t> AddressRanges::TakeHigh(size_t size, size_t alignment) {
  if (!size) return std::nullopt;
  for (auto it = free_.end(); it != free_.begin();) {
    --it;
    if (it->second < size) continue;
    uintptr_t base = (it->first + it->second - size) & ~(alignment - 1);
    if (base < it->first) continue;
    Carve(it, base, size);
    return base;
  }
  return std::nullopt;
}

bool AddressRanges::TakeAt(uintptr_t base, size_t size) {
  auto after = free_.upper_bound(base);
  if (!size || after == free_.begin()) return false;
  auto it = std::prev(after);
  size_t skipped = base - it->first;
  if (skipped >= it->second || it->second - skipped < size) return false;
  Carve(it, base, size);
  return true;
}

void AddressRanges::Give(uintptr_t base, size_t size) {
  auto after = free_.lower_bound(base);
  if (after != free_.begin()) {
    auto before = std::prev(after);
    assert(before->first + before->second <= base);
    if (before->first + before->second == base) {
      base = before->first;
      size += before->second;
      free_.erase(before);
    }
  }
  if (after != free_.end()) {
    assert(base + size <= after->first);
    if (base + size == after->first) {
      size += after->second;
      free_.erase(after);
    }
  }
  free_.emplace(base, size);
}

size_t AddressRanges::FreeBytes() const {
  size_t bytes = 0;
  for (auto& [base, size] : free_) bytes += size;
  return bytes;
}

}  // namespace cuplex::softcuda
