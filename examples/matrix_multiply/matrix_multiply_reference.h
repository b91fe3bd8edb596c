// C = A * B for matrices that no tile divides: the input and what the CPU expects. Any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "examples/common/check.h"
#include "examples/common/numbers.h"
#include "examples/common/program.h"

namespace cuplex::examples::matrix_multiply {

inline constexpr Description kDescription{
    .name = "matrix_multiply",
    .purpose = "Multiplies two matrices of floats, tile by tile in shared memory.",
    .size_meaning = "rows of the result; it has as many columns and 7 more",
    .size = 150,
    .smallest = 1,
    .largest = 4096,
};

inline constexpr unsigned kTile = 16;  // a block has kTile * kTile threads
constexpr unsigned Tiles(unsigned length) { return (length + kTile - 1) / kTile; }

/// All matrices lie row by row. The three lengths differ, so that none can stand in for another.
struct Problem {
  explicit Problem(unsigned size)
      : rows(size),
        inner(size - size / 5),
        columns(size + 7),
        a(std::size_t{rows} * inner),
        b(std::size_t{inner} * columns) {
    Numbers numbers(3);
    std::generate(a.begin(), a.end(), [&] { return numbers.Eighths(); });
    std::generate(b.begin(), b.end(), [&] { return numbers.Eighths(); });
  }

  unsigned rows;
  unsigned inner;
  unsigned columns;
  std::vector<float> a;  // rows x inner
  std::vector<float> b;  // inner x columns
};

/// The elements are eighths, their products 64ths: every sum is exact, whatever its order, and must be equal.
inline std::vector<float> Reference(const Problem& problem) {
  std::vector<float> c(std::size_t{problem.rows} * problem.columns);
  std::vector<double> row(problem.columns);
  for (std::size_t i = 0; i < problem.rows; ++i) {
    std::fill(row.begin(), row.end(), 0.0);
    for (std::size_t k = 0; k < problem.inner; ++k) {
      const double factor = problem.a[i * problem.inner + k];
      for (std::size_t j = 0; j < problem.columns; ++j) row[j] += factor * problem.b[k * problem.columns + j];
    }
    std::copy(row.begin(), row.end(), c.begin() + i * problem.columns);
  }
  return c;
}

}  // namespace cuplex::examples::matrix_multiply
