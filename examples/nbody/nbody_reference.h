// Bodies that attract each other: the input and what the CPU expects. Any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "examples/common/check.h"
#include "examples/common/numbers.h"
#include "examples/common/program.h"

namespace cuplex::examples::nbody {

inline constexpr Description kDescription{
    .name = "nbody",
    .purpose = "Moves bodies under their mutual gravity, every pair computed.",
    .size_meaning = "bodies",
    .size = 600,
    .smallest = 1,
    .largest = 1 << 20,
};

inline constexpr unsigned kThreads = 128;  // a block, and the bodies it holds in shared memory at a time
inline constexpr int kSteps = 3;
inline constexpr float kTimeStep = 0.01f;
inline constexpr float kSoftening = 0.01f;  // added to every squared distance
constexpr unsigned Blocks(std::size_t bodies) {
  return static_cast<unsigned>((bodies + kThreads - 1) / kThreads);
}

/// Positions and velocities are four floats a body, x, y, z and, for a position, the mass.
struct Problem {
  explicit Problem(std::size_t bodies) : positions(4 * bodies), velocities(4 * bodies) {
    Numbers numbers(9);
    for (std::size_t i = 0; i < positions.size(); i += 4) {
      for (std::size_t axis = 0; axis < 3; ++axis) {
        positions[i + axis] = numbers.Between(-1, 1);
        velocities[i + axis] = numbers.Between(-0.1f, 0.1f);
      }
      positions[i + 3] = numbers.Between(0.5f, 1.5f) / static_cast<float>(bodies);
    }
  }

  std::vector<float> positions;
  std::vector<float> velocities;
};

/// The positions after kSteps steps, in double. Each pair is visited once and pulls both bodies, where the
/// kernel visits it from both sides.
inline std::vector<double> Reference(const Problem& problem) {
  std::vector<double> positions(problem.positions.begin(), problem.positions.end());
  std::vector<double> velocities(problem.velocities.begin(), problem.velocities.end());
  std::vector<double> pulls(positions.size());
  for (int step = 0; step < kSteps; ++step) {
    std::fill(pulls.begin(), pulls.end(), 0.0);
    for (std::size_t i = 0; i < positions.size(); i += 4) {
      for (std::size_t j = i + 4; j < positions.size(); j += 4) {
        std::array<double, 3> way = {};
        double squared = kSoftening;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          way[axis] = positions[j + axis] - positions[i + axis];
          squared += way[axis] * way[axis];
        }
        const double strength = 1 / (squared * std::sqrt(squared));
        for (std::size_t axis = 0; axis < 3; ++axis) {
          pulls[i + axis] += way[axis] * strength * positions[j + 3];
          pulls[j + axis] -= way[axis] * strength * positions[i + 3];
        }
      }
    }
    for (std::size_t i = 0; i < positions.size(); ++i) {
      if (i % 4 == 3) continue;
      velocities[i] += pulls[i] * kTimeStep;
      positions[i] += velocities[i] * kTimeStep;
    }
  }
  return positions;
}

/// A position is of the order of 1 and is rounded a few times a step; the pulls' errors shrink with the time
/// step.
inline std::optional<Difference> Compare(const std::vector<float>& positions,
                                         const std::vector<double>& expected) {
  return FirstFar(positions, expected, 1e-6, 2e-6);
}

}  // namespace cuplex::examples::nbody
