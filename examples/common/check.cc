#include "examples/common/check.h"

#include <cstdio>

namespace cuplex::examples {

std::uint64_t Checksum(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte b : bytes) {
    hash ^= std::to_integer<std::uint64_t>(b);
    hash *= 0x100000001b3;
  }
  return hash;
}

bool Report(const char* name, const char* what, const std::optional<Difference>& difference,
            std::span<const std::byte> bytes, std::size_t elements) {
  if (difference) {
    std::printf("%s: wrong %s[%zu]: got %s, expected %s\n", name, what, difference->index,
                difference->got.c_str(), difference->expected.c_str());
    return false;
  }
  std::printf("%s: ok checksum=%016llx elements=%zu\n", name,
              static_cast<unsigned long long>(Checksum(bytes)), elements);
  return true;
}

}  // namespace cuplex::examples
