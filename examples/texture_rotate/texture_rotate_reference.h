// A picture that repeats itself, turned about its middle: the input and what the CPU expects. Any thread.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "examples/common/check.h"
#include "examples/common/program.h"

namespace cuplex::examples::texture_rotate {

inline constexpr Description kDescription{
    .name = "texture_rotate",
    .purpose = "Turns a picture, read from a filtered texture, written to a surface.",
    .size_meaning = "rows of the picture; it has as many columns and 37 more",
    .size = 190,
    .smallest = 2,
    .largest = 8192,
};

inline constexpr unsigned kBlockWidth = 16;
inline constexpr unsigned kBlockHeight = 8;
constexpr unsigned Blocks(unsigned length, unsigned block) { return (length + block - 1) / block; }

inline constexpr double kAngle = 0.6;  // radians

struct Problem {
  explicit Problem(unsigned size) : rows(size), columns(size + 37), picture(std::size_t{rows} * columns) {
    constexpr double kTurn = 6.283185307179586;
    for (unsigned row = 0; row < rows; ++row) {
      for (unsigned column = 0; column < columns; ++column) {
        // Waves that go on over the rims.
        const double u = kTurn * column / columns;
        const double v = kTurn * row / rows;
        picture[std::size_t{row} * columns + column] =
            static_cast<float>(0.5 + 0.2 * std::sin(3 * u) + 0.2 * std::cos(2 * v + u));
      }
    }
  }

  unsigned rows;
  unsigned columns;
  std::vector<float> picture;  // row by row
};

/// In double, with weights that nothing rounds.
inline std::vector<double> Reference(const Problem& problem) {
  const double cosine = std::cos(kAngle), sine = std::sin(kAngle);
  const auto columns = static_cast<long>(problem.columns), rows = static_cast<long>(problem.rows);
  auto texel = [&](long x, long y) {
    x = ((x % columns) + columns) % columns;
    y = ((y % rows) + rows) % rows;
    return static_cast<double>(problem.picture[static_cast<std::size_t>(y * columns + x)]);
  };
  std::vector<double> turned(problem.picture.size());
  for (long row = 0; row < rows; ++row) {
    for (long column = 0; column < columns; ++column) {
      const double u = static_cast<double>(column) / static_cast<double>(columns) - 0.5;
      const double v = static_cast<double>(row) / static_cast<double>(rows) - 0.5;
      const double x = (u * cosine - v * sine + 0.5) * static_cast<double>(columns) - 0.5;
      const double y = (v * cosine + u * sine + 0.5) * static_cast<double>(rows) - 0.5;
      const long i = static_cast<long>(std::floor(x)), j = static_cast<long>(std::floor(y));
      const double a = x - std::floor(x), b = y - std::floor(y);
      turned[static_cast<std::size_t>(row * columns + column)] =
          (1 - b) * ((1 - a) * texel(i, j) + a * texel(i + 1, j)) +
          b * ((1 - a) * texel(i, j + 1) + a * texel(i + 1, j + 1));
    }
  }
  return turned;
}

/// A device weighs texels in steps of 1/256, on both axes; neighbours differ by less than the whole range.
inline std::optional<Difference> Compare(const std::vector<float>& turned,
                                         const std::vector<double>& expected) {
  return FirstFar(turned, expected, 0, 0.01);
}

}  // namespace cuplex::examples::texture_rotate
