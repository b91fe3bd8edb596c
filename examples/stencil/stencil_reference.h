// Heat spreading over a plate whose rim keeps its temperature: the input and what the CPU expects. Any
// thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "examples/common/check.h"
#include "examples/common/numbers.h"
#include "examples/common/program.h"

namespace cuplex::examples::stencil {

inline constexpr Description kDescription{
    .name = "stencil",
    .purpose = "Spreads heat over a plate, step by step, by weights in constant memory.",
    .size_meaning = "rows of the plate; it has as many columns and 59 more",
    .size = 201,
    .smallest = 3,
    .largest = 16384,
};

inline constexpr int kSteps = 10;
inline constexpr unsigned kBlockWidth = 32;
inline constexpr unsigned kBlockHeight = 4;
constexpr unsigned Blocks(unsigned length, unsigned block) { return (length + block - 1) / block; }

/// What a cell takes over from itself (in the middle) and from its eight neighbours, row by row.
using Weights = std::array<float, 9>;
inline constexpr Weights kWeights = {0.05f, 0.1f, 0.05f, 0.1f, 0.4f, 0.1f, 0.05f, 0.1f, 0.05f};

struct Problem {
  explicit Problem(unsigned size) : rows(size), columns(size + 59), plate(std::size_t{rows} * columns) {
    Numbers numbers(8);
    std::generate(plate.begin(), plate.end(), [&] { return numbers.Between(0, 100); });
  }

  unsigned rows;
  unsigned columns;
  std::vector<float> plate;  // row by row
};

/// In double, and spread from each cell to its neighbours where the kernel gathers from them.
inline std::vector<double> Reference(const Problem& problem) {
  const std::size_t columns = problem.columns;
  std::vector<double> now(problem.plate.begin(), problem.plate.end());
  std::vector<double> next(now.size());
  for (int step = 0; step < kSteps; ++step) {
    std::fill(next.begin(), next.end(), 0.0);
    for (std::size_t row = 0; row < problem.rows; ++row) {
      for (std::size_t column = 0; column < columns; ++column) {
        const double heat = now[row * columns + column];
        const std::size_t top = row == 0 ? 0 : row - 1;
        const std::size_t bottom = std::min<std::size_t>(row + 1, problem.rows - 1);
        const std::size_t left = column == 0 ? 0 : column - 1;
        const std::size_t right = std::min(column + 1, columns - 1);
        for (std::size_t to_row = top; to_row <= bottom; ++to_row) {
          for (std::size_t to_column = left; to_column <= right; ++to_column) {
            // Seen from the cell that takes, the giver lies the other way.
            const std::size_t weight = (row + 1 - to_row) * 3 + (column + 1 - to_column);
            next[to_row * columns + to_column] += kWeights[weight] * heat;
          }
        }
      }
    }
    // The rim keeps its heat.
    for (std::size_t column = 0; column < columns; ++column) {
      next[column] = now[column];
      next[(problem.rows - 1) * columns + column] = now[(problem.rows - 1) * columns + column];
    }
    for (std::size_t row = 0; row < problem.rows; ++row) {
      next[row * columns] = now[row * columns];
      next[row * columns + columns - 1] = now[row * columns + columns - 1];
    }
    std::swap(now, next);
  }
  return now;
}

/// Nine roundings a step, each of at most 2^-24 of the value.
inline std::optional<Difference> Compare(const std::vector<float>& plate,
                                         const std::vector<double>& expected) {
  return FirstFar(plate, expected, kSteps * 9 * 0x1p-24, 0);
}

}  // namespace cuplex::examples::stencil
