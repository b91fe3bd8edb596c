#include "server/address_space.h"

#include <cassert>
#include <iterator>

namespace cuplex::server {

std::optional<uint64_t> AddressSpace::Take(uint64_t bytes, uint64_t alignment) {
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const uint64_t skip = (alignment - it->first % alignment) % alignment;
    if (it->second < skip || it->second - skip < bytes) continue;
    const uint64_t at = it->first + skip;
    const uint64_t behind = it->second - skip - bytes;
    if (skip) {
      it->second = skip;
    } else {
      free_.erase(it);
    }
    if (behind) free_.emplace(at + bytes, behind);
    return at;
  }
  return std::nullopt;
}

void AddressSpace::Give(uint64_t base, uint64_t bytes) {
  auto after = free_.lower_bound(base);
  assert(after == free_.end() || base + bytes <= after->first);
  if (after != free_.end() && after->first == base + bytes) {
    bytes += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    auto before = std::prev(after);
    assert(before->first + before->second <= base);
    if (before->first + before->second == base) {
      before->second += bytes;
      return;
    }
  }
  free_.emplace_hint(after, base, bytes);
}

}  // namespace cuplex::server
