// Sorting 32-bit keys: the input and what the CPU expects. Any thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "examples/common/check.h"
#include "examples/common/numbers.h"
#include "examples/common/program.h"

namespace cuplex::examples::bitonic_sort {

inline constexpr Description kDescription{
    .name = "bitonic_sort",
    .purpose = "Sorts integers with a bitonic network, its short exchanges in shared memory.",
    .size_meaning = "keys to sort",
    .size = 10'007,
    .smallest = 1,
    .largest = 1 << 26,
};

inline constexpr unsigned kThreads = 256;           // a block
inline constexpr unsigned kChunk = 2 * kThreads;    // the keys that a block holds in shared memory
inline constexpr std::uint32_t kLast = 0xffffffff;  // fills the array up; no key sorts after it

/// The network sorts powers of two, and whole chunks.
constexpr unsigned Padded(std::size_t keys) {
  return std::max(kChunk, static_cast<unsigned>(std::bit_ceil(keys)));
}

struct Problem {
  explicit Problem(std::size_t count) : keys(count) {
    Numbers numbers(10);
    std::generate(keys.begin(), keys.end(), [&] { return numbers.Bits(); });
  }

  std::vector<std::uint32_t> keys;
};

inline std::vector<std::uint32_t> Reference(const Problem& problem) {
  std::vector<std::uint32_t> sorted(problem.keys);
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace cuplex::examples::bitonic_sort
