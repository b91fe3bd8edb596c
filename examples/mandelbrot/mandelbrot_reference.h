// A picture of the edge of the Mandelbrot set: the view, its colours, and what the CPU expects. Any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "examples/common/check.h"
#include "examples/common/program.h"

namespace cuplex::examples::mandelbrot {

inline constexpr Description kDescription{
    .name = "mandelbrot",
    .purpose = "Paints a part of the Mandelbrot set and writes it as a PNG.",
    .size_meaning = "width of the picture in pixels; its height is two thirds of that",
    .size = 300,
    .smallest = 3,
    .largest = 16383,
    .output = "mandelbrot.png",
};

inline constexpr unsigned kBlockWidth = 16;
inline constexpr unsigned kBlockHeight = 8;
constexpr unsigned Blocks(unsigned length, unsigned block) { return (length + block - 1) / block; }
constexpr unsigned Height(unsigned width) { return width * 2 / 3; }

/// What the kernel is given about the picture.
struct View {
  float left;    // of the first pixel of a row, on the real axis
  float top;     // of the first row, on the imaginary axis
  float step;    // from pixel to pixel, and down from row to row
  int most;      // iterations; a point that takes them all counts as inside
  float cycles;  // colours a doubling of the iterations
};
inline View MakeView(unsigned width) {
  return View{.left = -0.7463f,
              .top = 0.1340f,
              .step = 0.0055f / static_cast<float>(width),
              .most = 600,
              .cycles = 64.0f};
}

inline constexpr float kEscape = 65536;  // squared distance from 0 at which a point counts as gone

/// One colour, red, green, blue, alpha, as it lies in memory.
using Colour = std::array<std::uint8_t, 4>;
inline constexpr std::size_t kColours = 256;
using Palette = std::array<Colour, kColours>;

/// Colours that change smoothly and come round to where they began, between a few chosen ones.
inline Palette MakePalette() {
  struct Stop {
    double at;
    std::array<double, 3> colour;
  };
  constexpr std::array<Stop, 6> kStops = {{{0.00, {4, 10, 48}},
                                           {0.18, {24, 88, 170}},
                                           {0.42, {232, 248, 255}},
                                           {0.62, {255, 178, 24}},
                                           {0.84, {96, 16, 24}},
                                           {1.00, {4, 10, 48}}}};
  Palette palette = {};
  for (std::size_t i = 0; i < kColours; ++i) {
    const double at = static_cast<double>(i) / kColours;
    const auto* next = std::find_if(kStops.begin(), kStops.end(), [&](const Stop& s) { return s.at > at; });
    const auto* stop = next - 1;
    double share = (at - stop->at) / (next->at - stop->at);
    share = share * share * (3 - 2 * share);
    for (std::size_t channel = 0; channel < 3; ++channel) {
      palette[i][channel] = static_cast<std::uint8_t>(
          std::lround(stop->colour[channel] + share * (next->colour[channel] - stop->colour[channel])));
    }
    palette[i][3] = 255;
  }
  return palette;
}

/// Four bytes a pixel, row by row. The orbit is computed in float with every operation rounded by itself, as
/// the kernel does it: near the edge of the set the slightest difference grows into another picture.
inline std::vector<std::uint8_t> Reference(unsigned width, const Palette& palette) {
  const View view = MakeView(width);
  std::vector<std::uint8_t> pixels;
  pixels.reserve(std::size_t{4} * width * Height(width));
  for (unsigned row = 0; row < Height(width); ++row) {
    for (unsigned column = 0; column < width; ++column) {
      const std::complex<float> c(view.left + view.step * static_cast<float>(column),
                                  view.top - view.step * static_cast<float>(row));
      std::complex<float> z = c;
      int iterations = 0;
      while (iterations < view.most && std::norm(z) < kEscape) {
        z = std::complex<float>(z.real() * z.real() - z.imag() * z.imag() + c.real(),
                                2 * (z.real() * z.imag()) + c.imag());
        ++iterations;
      }
      Colour colour = {0, 0, 0, 255};
      if (iterations < view.most) {
        // How far beyond the limit it went tells how much of the last iteration was needed.
        const double smooth = iterations + 5 - std::log2(std::log2(double{std::norm(z)}));
        double place = view.cycles * std::log2(smooth);
        place -= std::floor(place / kColours) * kColours;
        const std::size_t low = std::min(static_cast<std::size_t>(place), kColours - 1);
        for (std::size_t channel = 0; channel < 4; ++channel) {
          const double from = palette[low][channel];
          const double to = palette[(low + 1) % kColours][channel];
          colour[channel] =
              static_cast<std::uint8_t>(std::lround(from + (place - double(low)) * (to - from)));
        }
      }
      pixels.insert(pixels.end(), colour.begin(), colour.end());
    }
  }
  return pixels;
}

/// The logarithms of a device are a little off, and a channel may round the other way.
inline std::optional<Difference> Compare(const std::vector<std::uint8_t>& pixels,
                                         const std::vector<std::uint8_t>& expected) {
  return FirstFar(pixels, expected, 0, 1);
}

}  // namespace cuplex::examples::mandelbrot
