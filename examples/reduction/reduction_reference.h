// The sum of an array: the input and what the CPU expects. Any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "examples/common/check.h"
#include "examples/common/numbers.h"
#include "examples/common/program.h"

namespace cuplex::examples::reduction {

inline constexpr Description kDescription{
    .name = "reduction",
    .purpose = "Sums an array of integers: a tree with barriers down to a warp, then shuffles.",
    .size_meaning = "elements in the array",
    .size = 400'009,
    .smallest = 1,
    .largest = 1 << 28,
};

inline constexpr unsigned kThreads = 256;    // a block of the first step
inline constexpr unsigned kMostBlocks = 64;  // so many partial sums does the second step add
constexpr unsigned Blocks(std::size_t elements) {
  return static_cast<unsigned>(std::min<std::size_t>((elements + kThreads - 1) / kThreads, kMostBlocks));
}

using Sum = long long;  // as the kernel has it; 64 bits

struct Problem {
  explicit Problem(std::size_t elements) : values(elements) {
    Numbers numbers(4);
    std::generate(values.begin(), values.end(), [&] { return static_cast<std::int32_t>(numbers.Bits()); });
  }

  std::vector<std::int32_t> values;
};

inline Sum Reference(const Problem& problem) {
  return std::accumulate(problem.values.begin(), problem.values.end(), Sum{0});
}

}  // namespace cuplex::examples::reduction
