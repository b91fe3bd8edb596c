#include "ptx/passes/slice_plan.h"

#include <cstring>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace cuplex::ptx {
namespace {

SlicedKernel Kernel(unsigned axes, size_t globals = 0) {
  SlicedKernel kernel;
  kernel.name = "k";
  kernel.axes = axes;
  kernel.arguments_size = static_cast<uint32_t>(32 + 8 * globals);
  kernel.globals.resize(globals);
  return kernel;
}

std::vector<uint32_t> Words(const std::vector<std::byte>& bytes) {
  std::vector<uint32_t> words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

uint64_t Quotient(uint32_t n, uint32_t multiplier, uint32_t shift) {
  return ((uint64_t{2} * n * multiplier) >> 32) >> shift;
}

TEST(SliceArguments, AreLaidOutAsDocumented) {
  const GridSlice slice = {12, 4, {4, 1, 1}, 12};
  const auto bytes =
      SliceArguments(Kernel(3, 2), {5, 3, 7}, slice, std::vector<uint64_t>{0x1122334455667788, 0x99});
  const auto words = Words(bytes);
  ASSERT_EQ(words.size(), 12u);
  EXPECT_EQ(words[0], 12u);
  EXPECT_EQ(words[1], 5u);
  EXPECT_EQ(words[2], 3u);
  EXPECT_EQ(words[3], 7u);
  EXPECT_EQ(words[8], 0x55667788u);
  EXPECT_EQ(words[9], 0x11223344u);
  EXPECT_EQ(words[10], 0x99u);
  EXPECT_EQ(words[11], 0u);
}

TEST(SliceArguments, ReciprocalsDivideExactly) {
  std::mt19937_64 random(1);
  std::vector<uint32_t> divisors;
  for (uint32_t d = 1; d < 300; ++d) divisors.push_back(d);
  for (unsigned bit = 8; bit < 32; ++bit) {
    for (int64_t d = (int64_t{1} << bit) - 2; d <= (int64_t{1} << bit) + 2; ++d)
      if (d < int64_t{1} << 31) divisors.push_back(static_cast<uint32_t>(d));
  }
  for (int i = 0; i < 2000; ++i) divisors.push_back(static_cast<uint32_t>(random() % 0x7fffffff + 1));
  constexpr uint64_t kEnd = 1ull << 31;
  for (uint32_t d : divisors) {
    const auto words = Words(SliceArguments(Kernel(3), {d, d, 1}, {}, {}));
    std::vector<uint64_t> dividends = {0, 1, d - 1ull, d, d + 1ull, kEnd - 1, kEnd - 2};
    for (uint64_t last = (kEnd - 1) / d * d; uint64_t n : {last - 1, last, last + 1, last + d - 1})
      dividends.push_back(n);
    for (int i = 0; i < 50; ++i) {
      const uint64_t near = random() % kEnd / d * d;
      dividends.insert(dividends.end(), {near, near - 1, near + d - 1, random() % kEnd});
    }
    for (uint64_t n : dividends) {
      if (n >= kEnd) continue;
      const auto narrow = static_cast<uint32_t>(n);
      ASSERT_EQ(Quotient(narrow, words[4], words[5]), n / d) << n << " / " << d;
      ASSERT_EQ(Quotient(narrow, words[6], words[7]), n / d) << n << " / " << d;
    }
  }
}

// Every block of the grid is run once, and each sees its own coordinates, by the arithmetic of slice.h.
TEST(NextSlice, SlicesMakeUpTheGrid) {
  std::mt19937 random(2);
  for (int round = 0; round < 400; ++round) {
    const auto kernel = Kernel(1 + round % 3);
    const GridSize grid = {1 + static_cast<uint32_t>(random() % 40), 1 + static_cast<uint32_t>(random() % 12),
                           1 + static_cast<uint32_t>(random() % 6)};
    ASSERT_TRUE(CheckGrid(kernel, grid).ok());
    const uint64_t blocks = BlocksOf(grid);
    std::map<std::array<uint64_t, 3>, uint64_t> seen;
    for (uint64_t first = 0; first < blocks;) {
      SliceBudget budget;
      budget.block_ns = random() % 8;
      budget.longest_ns = random() % 300;
      budget.wave = 1 + random() % 9;
      const GridSlice slice = NextSlice(kernel, grid, first, budget);
      ASSERT_EQ(slice.first, first);
      ASSERT_GT(slice.count, 0u);
      ASSERT_EQ(BlocksOf(slice.launch), slice.count);
      const auto words = Words(SliceArguments(kernel, grid, slice, {}));
      for (uint64_t x = 0; x < slice.launch[0]; ++x) {
        const auto n = static_cast<uint32_t>(x + words[0]);
        const uint64_t q = Quotient(n, words[4], words[5]);
        const uint64_t p = Quotient(static_cast<uint32_t>(q), words[6], words[7]);
        std::array<uint64_t, 3> place = {n, 0, 0};
        if (kernel.axes >= 2) place = {n - q * words[1], q, 0};
        if (kernel.axes == 3) place = {n - q * words[1], q - p * words[2], p};
        seen[place] += uint64_t{slice.launch[1]} * slice.launch[2];
      }
      first += slice.count;
      ASSERT_LE(first, blocks);
    }
    // What a kernel does not read it sees as often as there are such blocks.
    std::map<std::array<uint64_t, 3>, uint64_t> expected;
    for (uint64_t z = 0; z < grid[2]; ++z)
      for (uint64_t y = 0; y < grid[1]; ++y)
        for (uint64_t x = 0; x < grid[0]; ++x)
          ++expected[{x, kernel.axes >= 2 ? y : 0, kernel.axes == 3 ? z : 0}];
    EXPECT_EQ(seen, expected);
  }
}

TEST(NextSlice, IsOfWholeWavesInsideTheBudget) {
  const auto kernel = Kernel(1);
  // 2 ms at 10 us a block are 200 blocks, of which 192 are whole waves of 64: six slices, made alike.
  const SliceBudget budget = {10e3, 2e6, 64};
  const GridSize grid = {1000, 1, 1};
  std::vector<uint64_t> counts;
  for (uint64_t first = 0; first < 1000; first += counts.back())
    counts.push_back(NextSlice(kernel, grid, first, budget).count);
  EXPECT_EQ(counts, (std::vector<uint64_t>{192, 192, 192, 192, 128, 104}));
}

TEST(NextSlice, IsAWaveAtLeast) {
  const auto kernel = Kernel(1);
  EXPECT_EQ(NextSlice(kernel, {1000, 1, 1}, 0, {1e9, 2e6, 64}).count, 64u);
  EXPECT_EQ(NextSlice(kernel, {1000, 1, 1}, 0, {0, 2e6, 64}).count, 64u);  // not measured yet
  EXPECT_EQ(NextSlice(kernel, {1000, 1, 1}, 990, {0, 2e6, 64}).count, 10u);
  EXPECT_EQ(NextSlice(kernel, {50, 1, 1}, 0, {1e9, 2e6, 64}).count, 50u);
}

TEST(NextSlice, IsTheWholeGridWhereThatFits) {
  EXPECT_EQ(NextSlice(Kernel(1), {10, 20, 30}, 0, {1, 2e6, 64}), (GridSlice{0, 6000, {10, 20, 30}, 0}));
  EXPECT_EQ(NextSlice(Kernel(3), {10, 20, 30}, 0, {1, 2e6, 64}), (GridSlice{0, 6000, {6000, 1, 1}, 0}));
}

TEST(NextSlice, TakesRowsWhereBlocksAreNotNumberedAcrossThem) {
  const auto kernel = Kernel(1);
  const GridSize grid = {10, 20, 3};
  EXPECT_EQ(NextSlice(kernel, grid, 0, {1e3, 33e3, 1}), (GridSlice{0, 30, {10, 3, 1}, 0}));
  EXPECT_EQ(NextSlice(kernel, grid, 190, {1e3, 33e3, 1}), (GridSlice{190, 10, {10, 1, 1}, 0}));
  EXPECT_EQ(NextSlice(kernel, grid, 200, {1e3, 250e3, 1}), (GridSlice{200, 200, {10, 20, 1}, 0}));
  EXPECT_EQ(NextSlice(kernel, grid, 203, {1e3, 4e3, 1}), (GridSlice{203, 4, {4, 1, 1}, 3}));
}

TEST(CheckGrid, WantsRangesBelowTwoToThe31) {
  EXPECT_TRUE(CheckGrid(Kernel(1), {0x7fffffff, 65535, 65535}).ok());
  EXPECT_TRUE(CheckGrid(Kernel(2), {32767, 65535, 65535}).ok());
  EXPECT_FALSE(CheckGrid(Kernel(2), {32769, 65535, 1}).ok());
  EXPECT_FALSE(CheckGrid(Kernel(3), {2, 65535, 65535}).ok());
  EXPECT_FALSE(CheckGrid(Kernel(1), {1, 0, 1}).ok());
}

}  // namespace
}  // namespace cuplex::ptx
