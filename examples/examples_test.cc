// What the examples check their results against must itself be right: each reference is held here against
// something known of its problem, and each comparison must notice a wrong result.

#include <png.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "examples/bitonic_sort/bitonic_sort_reference.h"
#include "examples/black_scholes/black_scholes_reference.h"
#include "examples/common/png.h"
#include "examples/histogram/histogram_reference.h"
#include "examples/mandelbrot/mandelbrot_reference.h"
#include "examples/matrix_multiply/matrix_multiply_reference.h"
#include "examples/nbody/nbody_reference.h"
#include "examples/prefix_scan/prefix_scan_reference.h"
#include "examples/reduction/reduction_reference.h"
#include "examples/saxpy/saxpy_reference.h"
#include "examples/stencil/stencil_reference.h"
#include "examples/transpose/transpose_reference.h"
#include "examples/vector_add/vector_add_reference.h"

namespace cuplex::examples {
namespace {

using testing::ElementsAre;

std::uint64_t ChecksumOf(std::string_view text) {
  return Checksum(std::as_bytes(std::span<const char>(text.data(), text.size())));
}

TEST(Check, ChecksumIsFnv1a) {  // the values are those its authors publish
  EXPECT_EQ(ChecksumOf(""), 0xcbf29ce484222325u);
  EXPECT_EQ(ChecksumOf("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(ChecksumOf("foobar"), 0x85944171f73967e8u);
}

TEST(Check, FirstDifferenceNamesIndexAndBothValues) {
  using Ints = std::vector<int>;
  EXPECT_FALSE(FirstDifference(Ints{1, 2, 3}, Ints{1, 2, 3}));
  const auto difference = FirstDifference(Ints{1, 5, 4}, Ints{1, 2, 3});
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->index, 1u);
  EXPECT_EQ(difference->got, "5");
  EXPECT_EQ(difference->expected, "2");
  EXPECT_TRUE(FirstDifference(Ints{1, 2}, Ints{1, 2, 3}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(FirstDifference(std::vector<float>{nan}, std::vector<float>{nan}));
}

TEST(Check, FirstFarHasBothTolerances) {
  using Doubles = std::vector<double>;
  EXPECT_FALSE(FirstFar(Doubles{100.5}, Doubles{100}, 0.01, 0));
  EXPECT_TRUE(FirstFar(Doubles{101.5}, Doubles{100}, 0.01, 0));
  EXPECT_FALSE(FirstFar(Doubles{0.5}, Doubles{0}, 0, 0.5));
  EXPECT_TRUE(FirstFar(Doubles{0.75}, Doubles{0}, 0, 0.5));
  EXPECT_TRUE(FirstFar(Doubles{std::nan("")}, Doubles{0}, 1, 1));
  EXPECT_TRUE(FirstFar(Doubles{}, Doubles{0}, 1, 1));
}

TEST(Check, ReportPrintsTheMachineLine) {
  testing::internal::CaptureStdout();
  EXPECT_TRUE(Report("name", "array", std::nullopt, std::vector<std::uint8_t>{'a'}));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "name: ok checksum=af63dc4c8601ec8c elements=1\n");
  testing::internal::CaptureStdout();
  EXPECT_FALSE(Report("name", "array", Difference{3, "5", "2"}, std::vector<std::uint8_t>{'a'}));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "name: wrong array[3]: got 5, expected 2\n");
}

TEST(VectorAdd, ReferenceAdds) {
  vector_add::Problem problem(2);
  problem.a = {0.5f, -1};
  problem.b = {0.25f, 1};
  EXPECT_THAT(vector_add::Reference(problem), ElementsAre(0.75f, 0));
}

TEST(Saxpy, ReferenceRoundsOnce) {
  saxpy::Problem problem(1);
  // 2.5 * (1 + 2^-23) is no float: it lies 2^-24 above 2.5 + 2^-22, and only the fused form keeps that.
  problem.x = {1 + 0x1p-23f};
  problem.y = {-2.5f};
  EXPECT_THAT(saxpy::Reference(problem), ElementsAre(2.5f * 0x1p-23f));
  EXPECT_EQ(saxpy::PartBegin(7, saxpy::kParts), 7u);
}

TEST(MatrixMultiply, ReferenceMultipliesRowsByColumns) {
  matrix_multiply::Problem problem(1);
  problem.rows = 2;
  problem.inner = 3;
  problem.columns = 2;
  problem.a = {1, 2, 3, 4, 5, 6};
  problem.b = {7, 8, 9, 10, 11, 12};
  EXPECT_THAT(matrix_multiply::Reference(problem), ElementsAre(58, 64, 139, 154));
}

TEST(Reduction, ReferenceNeeds64Bits) {
  reduction::Problem problem(3);
  problem.values = {2'000'000'000, 2'000'000'000, -5};
  EXPECT_EQ(reduction::Reference(problem), 3'999'999'995);
}

TEST(PrefixScan, ReferenceIsExclusiveAndWraps) {
  prefix_scan::Problem problem(4);
  problem.values = {3, 0xffffffff, 5, 7};
  EXPECT_THAT(prefix_scan::Reference(problem), ElementsAre(0, 3, 2, 7));
}

TEST(PrefixScan, LevelsEndWithOneBlock) {
  EXPECT_THAT(prefix_scan::Levels(256), ElementsAre(256));
  EXPECT_THAT(prefix_scan::Levels(257), ElementsAre(257, 2));
  EXPECT_THAT(prefix_scan::Levels(150'001), ElementsAre(150'001, 586, 3));
}

TEST(Histogram, ReferenceCounts) {
  histogram::Problem problem(5);
  problem.values = {7, 255, 0, 7, 7};
  const std::vector<std::uint32_t> counts = histogram::Reference(problem);
  EXPECT_EQ(counts.size(), 256u);
  EXPECT_EQ(counts[0], 1u);
  EXPECT_EQ(counts[7], 3u);
  EXPECT_EQ(counts[255], 1u);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0u), 5u);
}

TEST(Transpose, ReferenceSwapsRowsAndColumns) {
  transpose::Problem problem(1);
  problem.rows = 2;
  problem.columns = 3;
  problem.matrix = {1, 2, 3, 4, 5, 6};
  EXPECT_THAT(transpose::Reference(problem), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(Stencil, ReferenceKeepsTheRimAndTheHeat) {
  stencil::Problem problem(41);
  std::fill(problem.plate.begin(), problem.plate.end(), 0.0f);
  problem.plate[problem.columns - 1] = 9;                        // in a corner
  problem.plate[std::size_t{20} * problem.columns + 50] = 1000;  // far from the rim
  const std::vector<double> plate = stencil::Reference(problem);
  EXPECT_EQ(plate[problem.columns - 1], 9);
  // In ten steps heat comes ten cells far, not one more; the weights add up to 1.
  EXPECT_GT(plate[std::size_t{10} * problem.columns + 40], 0);
  EXPECT_EQ(plate[std::size_t{9} * problem.columns + 50], 0);
  EXPECT_EQ(plate[std::size_t{20} * problem.columns + 39], 0);
  double inside = 0;
  for (std::size_t row = 9; row <= 31; ++row) {
    for (std::size_t column = 39; column <= 61; ++column) inside += plate[row * problem.columns + column];
  }
  EXPECT_NEAR(inside, 1000, 1e-3);
}

TEST(Stencil, CompareNoticesAWrongCell) {
  const stencil::Problem problem(20);
  const std::vector<double> expected = stencil::Reference(problem);
  std::vector<float> plate(expected.begin(), expected.end());
  EXPECT_FALSE(stencil::Compare(plate, expected));
  plate[300] *= 1.0001f;
  ASSERT_TRUE(stencil::Compare(plate, expected));
  EXPECT_EQ(stencil::Compare(plate, expected)->index, 300u);
}

TEST(NBody, ReferenceKeepsMomentum) {
  const nbody::Problem problem(50);
  const std::vector<double> moved = nbody::Reference(problem);
  // Pulls come in pairs, so the centre of mass moves as it began.
  for (std::size_t axis = 0; axis < 3; ++axis) {
    double before = 0;
    double after = 0;
    double drift = 0;
    for (std::size_t i = 0; i < moved.size(); i += 4) {
      const double mass = problem.positions[i + 3];
      EXPECT_EQ(moved[i + 3], mass);
      before += mass * problem.positions[i + axis];
      drift += mass * problem.velocities[i + axis];
      after += mass * moved[i + axis];
    }
    EXPECT_NEAR(after, before + drift * nbody::kSteps * double{nbody::kTimeStep}, 1e-12);
  }
}

TEST(NBody, ReferencePullsTwoBodiesTogether) {
  nbody::Problem problem(2);
  problem.positions = {-0.5f, 0, 0, 1, 0.5f, 0, 0, 3};
  problem.velocities = {0, 0, 0, 0, 0, 0, 0, 0};
  const std::vector<double> moved = nbody::Reference(problem);
  // The first step's pull on the first body is 3 / (1 + softening)^1.5; it acts 3, then 2, then 1 steps long.
  // The distance hardly changes meanwhile.
  const double pull = 3 / std::pow(1 + double{nbody::kSoftening}, 1.5);
  const double way = 6 * pull * double{nbody::kTimeStep} * double{nbody::kTimeStep};
  EXPECT_NEAR(moved[0], -0.5 + way, way * 0.02);
  EXPECT_NEAR(moved[4], 0.5 - way / 3, way * 0.02);
}

TEST(NBody, CompareNoticesAMissingPull) {
  const nbody::Problem problem(100);
  const std::vector<double> expected = nbody::Reference(problem);
  nbody::Problem lighter = problem;
  lighter.positions[4 * 42 + 3] = 0;
  const std::vector<double> other = nbody::Reference(lighter);
  std::vector<float> positions(other.begin(), other.end());
  positions[4 * 42 + 3] = problem.positions[4 * 42 + 3];
  EXPECT_TRUE(nbody::Compare(positions, expected));
}

TEST(Mandelbrot, ReferencePaintsInsideBlackAndOutsideInColour) {
  const mandelbrot::Palette palette = mandelbrot::MakePalette();
  const std::vector<std::uint8_t> pixels = mandelbrot::Reference(90, palette);
  ASSERT_EQ(pixels.size(), 4u * 90 * 60);
  std::size_t black = 0;
  for (std::size_t i = 0; i < pixels.size(); i += 4) {
    EXPECT_EQ(pixels[i + 3], 255);
    black += pixels[i] == 0 && pixels[i + 1] == 0 && pixels[i + 2] == 0;
  }
  EXPECT_GT(black, 0u);
  EXPECT_LT(black, 90u * 60 / 20);
}

TEST(Mandelbrot, PaletteComesRoundSmoothly) {
  const mandelbrot::Palette palette = mandelbrot::MakePalette();
  for (std::size_t i = 0; i < palette.size(); ++i) {
    for (std::size_t channel = 0; channel < 4; ++channel) {
      EXPECT_NEAR(palette[i][channel], palette[(i + 1) % palette.size()][channel], 10) << i;
    }
  }
}

TEST(BitonicSort, PaddedIsWholeChunksAndAPowerOfTwo) {
  EXPECT_EQ(bitonic_sort::Padded(1), 512u);
  EXPECT_EQ(bitonic_sort::Padded(512), 512u);
  EXPECT_EQ(bitonic_sort::Padded(513), 1024u);
  EXPECT_EQ(bitonic_sort::Padded(10'007), 16'384u);
}

/// The price of a call as what it means: the discounted mean of max(spot' - strike, 0) over a lognormal
/// spot', by Simpson's rule.
double CallByIntegration(double spot, double strike, double years) {
  const double spread = double{black_scholes::kMarket.volatility} * std::sqrt(years);
  const double rate = double{black_scholes::kMarket.rate};
  constexpr int kIntervals = 200'000;
  constexpr double kReach = 10;  // standard deviations
  double sum = 0;
  for (int i = 0; i <= kIntervals; ++i) {
    const double x = -kReach + 2 * kReach * i / kIntervals;
    const double later = spot * std::exp((rate * years - spread * spread / 2) + spread * x);
    const double gain = std::max(later - strike, 0.0) * std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0));
    sum += gain * (i == 0 || i == kIntervals ? 1 : i % 2 == 1 ? 4 : 2);
  }
  return std::exp(-rate * years) * sum * (2 * kReach / kIntervals) / 3;
}

TEST(BlackScholes, ReferenceAgreesWithIntegration) {
  const black_scholes::Problem problem(10);
  const std::vector<double> prices = black_scholes::Reference(problem);
  ASSERT_EQ(prices.size(), 20u);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(prices[i], CallByIntegration(problem.spots[i], problem.strikes[i], problem.years[i]), 1e-6);
    EXPECT_GE(prices[10 + i], 0);
  }
}

TEST(Png, ReadsBackAsWritten) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / "examples_test.png";
  const std::vector<std::uint8_t> pixels = {1, 2, 3, 255, 40, 50, 60, 255, 7, 8, 9, 255, 0, 0, 0, 255};
  WritePng(file.string(), 2, 2, pixels);
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  ASSERT_NE(png_image_begin_read_from_file(&image, file.c_str()), 0);
  EXPECT_EQ(image.width, 2u);
  EXPECT_EQ(image.height, 2u);
  image.format = PNG_FORMAT_RGBA;
  std::vector<std::uint8_t> read(PNG_IMAGE_SIZE(image));
  ASSERT_NE(png_image_finish_read(&image, nullptr, read.data(), 0, nullptr), 0);
  EXPECT_EQ(read, pixels);
  std::filesystem::remove(file);
}

TEST(Png, RefusesWhatItCannotWrite) {
  EXPECT_THROW(WritePng("unwritten.png", 2, 2, std::vector<std::uint8_t>(15)), Failure);
  EXPECT_THROW(WritePng("/no/such/folder/picture.png", 1, 1, std::vector<std::uint8_t>(4)), Failure);
}

}  // namespace
}  // namespace cuplex::examples
