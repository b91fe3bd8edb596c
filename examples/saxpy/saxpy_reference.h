// y = a * x + y: the input and what the CPU expects. Any thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "examples/common/check.h"
#include "examples/common/numbers.h"
#include "examples/common/program.h"

namespace cuplex::examples::saxpy {

inline constexpr Description kDescription{
    .name = "saxpy",
    .purpose = "Computes y = a * x + y in parts on two streams, ordered by events.",
    .size_meaning = "elements in each array",
    .size = 250'001,
    .smallest = 1,
    .largest = 1 << 28,
};

inline constexpr float kA = 2.5f;
inline constexpr int kStreams = 2;
inline constexpr std::size_t kParts = 5;   // dealt out to the streams in turn
inline constexpr unsigned kThreads = 128;  // a block
inline constexpr unsigned kBlocks = 64;    // a part; each thread strides through it

/// Where part `part` begins; part kParts begins at the end.
constexpr std::size_t PartBegin(std::size_t elements, std::size_t part) { return elements * part / kParts; }

struct Problem {
  explicit Problem(std::size_t elements) : x(elements), y(elements) {
    Numbers numbers(2);
    std::generate(x.begin(), x.end(), [&] { return numbers.Between(-100, 100); });
    std::generate(y.begin(), y.end(), [&] { return numbers.Between(-100, 100); });
  }

  std::vector<float> x;
  std::vector<float> y;
};

/// The kernel multiplies and adds with one rounding, as std::fma does: the device's result must be equal.
inline std::vector<float> Reference(const Problem& problem) {
  std::vector<float> y(problem.y);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::fma(kA, problem.x[i], y[i]);
  return y;
}

}  // namespace cuplex::examples::saxpy
