// c = a + b, element by element: the input and what the CPU expects. Any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include "examples/common/check.h"
#include "examples/common/numbers.h"
#include "examples/common/program.h"

namespace cuplex::examples::vector_add {

inline constexpr Description kDescription{
    .name = "vector_add",
    .purpose = "Adds two arrays of floats on the device.",
    .size_meaning = "elements in each array",
    .size = 300'007,
    .smallest = 1,
    .largest = 1 << 28,
};

inline constexpr unsigned kThreads = 256;  // a block
constexpr unsigned Blocks(std::size_t elements) {
  return static_cast<unsigned>((elements + kThreads - 1) / kThreads);
}

struct Problem {
  explicit Problem(std::size_t elements) : a(elements), b(elements) {
    Numbers numbers(1);
    std::generate(a.begin(), a.end(), [&] { return numbers.Between(-1, 1); });
    std::generate(b.begin(), b.end(), [&] { return numbers.Between(-1, 1); });
  }

  std::vector<float> a;
  std::vector<float> b;
};

/// One addition is rounded once, on any machine alike: the device's result must be equal.
inline std::vector<float> Reference(const Problem& problem) {
  std::vector<float> c;
  c.reserve(problem.a.size());
  std::transform(problem.a.begin(), problem.a.end(), problem.b.begin(), std::back_inserter(c), std::plus<>());
  return c;
}

}  // namespace cuplex::examples::vector_add
