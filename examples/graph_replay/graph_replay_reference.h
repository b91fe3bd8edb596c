// Two hundred small kernels, captured once and run again and again: the input and what the CPU expects. Any
// thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "examples/common/check.h"
#include "examples/common/numbers.h"
#include "examples/common/program.h"

namespace cuplex::examples::graph_replay {

inline constexpr Description kDescription{
    .name = "graph_replay",
    .purpose = "Captures 200 small kernels and a copy as a graph, and launches it several times.",
    .size_meaning = "generators of random numbers",
    .size = 4'001,
    .smallest = 1,
    .largest = 1 << 26,
};

inline constexpr unsigned kKernels = 200;
inline constexpr int kReplays = 5;
inline constexpr unsigned kThreads = 128;  // a block
inline constexpr unsigned kBlocks = 8;     // each thread strides through the generators
inline constexpr unsigned kMultiplier = 1664525;

struct Problem {
  explicit Problem(std::size_t elements) : state(elements) {
    Numbers numbers(17);
    std::generate(state.begin(), state.end(), [&] { return numbers.Bits(); });
  }

  std::vector<unsigned> state;
};

/// A kernel makes x * m + step of x. All of them together make x * a + b, which is worked out once.
inline std::vector<unsigned> Reference(const Problem& problem) {
  unsigned a = 1, b = 0;
  for (int replay = 0; replay < kReplays; ++replay)
    for (unsigned step = 0; step < kKernels; ++step) {
      a *= kMultiplier;
      b = b * kMultiplier + step;
    }
  std::vector<unsigned> state(problem.state);
  for (unsigned& x : state) x = x * a + b;
  return state;
}

}  // namespace cuplex::examples::graph_replay
