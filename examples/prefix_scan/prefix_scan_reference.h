// Every element becomes the sum of all before it: the input and what the CPU expects. Any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "examples/common/check.h"
#include "examples/common/numbers.h"
#include "examples/common/program.h"

namespace cuplex::examples::prefix_scan {

inline constexpr Description kDescription{
    .name = "prefix_scan",
    .purpose = "Computes the exclusive prefix sums of an array, level by level.",
    .size_meaning = "elements in the array",
    .size = 150'001,
    .smallest = 1,
    .largest = 1 << 28,
};

inline constexpr unsigned kThreads = 256;  // a block, and the elements that it scans
constexpr std::size_t Blocks(std::size_t elements) { return (elements + kThreads - 1) / kThreads; }

/// The lengths of the arrays to scan: the input, the sums of its blocks, their blocks' sums, ... one block.
inline std::vector<std::size_t> Levels(std::size_t elements) {
  std::vector<std::size_t> lengths = {elements};
  while (lengths.back() > kThreads) lengths.push_back(Blocks(lengths.back()));
  return lengths;
}

struct Problem {
  explicit Problem(std::size_t elements) : values(elements) {
    Numbers numbers(5);
    std::generate(values.begin(), values.end(), [&] { return numbers.Below(100'000); });
  }

  std::vector<std::uint32_t> values;
};

/// Sums wrap around at 2^32, here and on the device.
inline std::vector<std::uint32_t> Reference(const Problem& problem) {
  std::vector<std::uint32_t> sums;
  sums.reserve(problem.values.size());
  std::uint32_t sum = 0;
  for (const std::uint32_t value : problem.values) {
    sums.push_back(sum);
    sum += value;
  }
  return sums;
}

}  // namespace cuplex::examples::prefix_scan
