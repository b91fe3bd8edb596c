// How often each byte occurs: the input and what the CPU expects. Any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "examples/common/check.h"
#include "examples/common/numbers.h"
#include "examples/common/program.h"

namespace cuplex::examples::histogram {

inline constexpr Description kDescription{
    .name = "histogram",
    .purpose = "Counts byte values with atomic additions, first in shared memory, then in global memory.",
    .size_meaning = "bytes to count",
    .size = 500'009,
    .smallest = 1,
    .largest = 1 << 30,
};

inline constexpr unsigned kBins = 256;
inline constexpr unsigned kThreads = 192;    // a block; fewer than bins, and no power of two
inline constexpr unsigned kMostBlocks = 32;  // each thread strides through the input
constexpr unsigned Blocks(std::size_t elements) {
  return static_cast<unsigned>(std::min<std::size_t>((elements + kThreads - 1) / kThreads, kMostBlocks));
}

struct Problem {
  /// The sum of three dice with 85 faces each: values in the middle are frequent, which makes atomics meet.
  explicit Problem(std::size_t elements) : values(elements) {
    Numbers numbers(6);
    std::generate(values.begin(), values.end(), [&] {
      const std::uint32_t bits = numbers.Bits();
      return static_cast<std::uint8_t>((bits & 1023) % 85 + (bits >> 10 & 1023) % 85 +
                                       (bits >> 20 & 1023) % 85);
    });
  }

  std::vector<std::uint8_t> values;
};

/// Found by sorting: no counting is shared with the kernel.
inline std::vector<std::uint32_t> Reference(const Problem& problem) {
  std::vector<std::uint8_t> sorted(problem.values);
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::uint32_t> counts(kBins);
  for (unsigned bin = 0; bin < kBins; ++bin) {
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), static_cast<std::uint8_t>(bin));
    counts[bin] = static_cast<std::uint32_t>(last - first);
  }
  return counts;
}

}  // namespace cuplex::examples::histogram
