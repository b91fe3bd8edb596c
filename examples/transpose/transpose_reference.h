// Rows become columns: the input and what the CPU expects. Any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "examples/common/check.h"
#include "examples/common/numbers.h"
#include "examples/common/program.h"

namespace cuplex::examples::transpose {

inline constexpr Description kDescription{
    .name = "transpose",
    .purpose = "Transposes a matrix of floats that lies in pitched memory.",
    .size_meaning = "rows of the input; it has as many columns and 112 more",
    .size = 389,
    .smallest = 1,
    .largest = 16384,
};

inline constexpr unsigned kTile = 32;
inline constexpr unsigned kThreadRows =
    8;  // a block has kTile * kThreadRows threads; each moves four elements
constexpr unsigned Tiles(unsigned length) { return (length + kTile - 1) / kTile; }

struct Problem {
  explicit Problem(unsigned size) : rows(size), columns(size + 112), matrix(std::size_t{rows} * columns) {
    Numbers numbers(7);
    std::generate(matrix.begin(), matrix.end(), [&] { return numbers.Between(-1, 1); });
  }

  unsigned rows;
  unsigned columns;
  std::vector<float> matrix;  // row by row
};

inline std::vector<float> Reference(const Problem& problem) {
  std::vector<float> transposed;
  transposed.reserve(problem.matrix.size());
  for (std::size_t column = 0; column < problem.columns; ++column) {
    for (std::size_t i = column; i < problem.matrix.size(); i += problem.columns) {
      transposed.push_back(problem.matrix[i]);
    }
  }
  return transposed;
}

}  // namespace cuplex::examples::transpose
