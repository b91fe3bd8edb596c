#include "ptx/passes/slice_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace cuplex::ptx {
namespace {

constexpr uint64_t kMostInRange = (1ull << 31) - 1;

/// The grid as it is launched: the first `axes` of it as one.
std::array<uint64_t, 3> Folded(unsigned axes, const GridSize& grid) {
  std::array<uint64_t, 3> folded = {grid[0], grid[1], grid[2]};
  for (unsigned axis = 1; axis < axes && axis < 3; ++axis) {
    folded[0] *= folded[axis];
    folded[axis] = 1;
  }
  return folded;
}

/// Blocks to aim at: whole waves inside the budget, all slices that are left alike.
uint64_t Aim(uint64_t left, const SliceBudget& budget) {
  const uint64_t wave = std::max<uint64_t>(1, budget.wave);
  if (!(budget.block_ns > 0)) return std::min(left, wave);
  const double fitting = std::floor(budget.longest_ns / budget.block_ns);
  if (!(fitting < static_cast<double>(left))) return left;
  const uint64_t most = std::max(wave, static_cast<uint64_t>(std::max(0.0, fitting)) / wave * wave);
  const uint64_t slices = (left + most - 1) / most;
  const uint64_t even = (left + slices - 1) / slices;
  return std::min(left, (even + wave - 1) / wave * wave);
}

struct Reciprocal {
  uint32_t multiplier;
  uint32_t shift;
};

// Let 2^(l-1) < d <= 2^l. The multiplier is m = 2^(31+l) / d rounded up, which lies in [2^31, 2^32). As m * d
// passes 2^(31+l) by less than d, n * m passes 2^(31+l) * n / d by less than n < 2^31, and that is too little
// to reach the next quotient: those are 2^(31+l) / d >= 2^31 apart.
Reciprocal ReciprocalOf(uint32_t extent) {
  const uint32_t divisor = std::clamp(extent, 1u, 1u << 31);
  const auto shift = static_cast<uint32_t>(std::bit_width(divisor - 1));
  const uint64_t power = 1ull << (31 + shift);
  return {static_cast<uint32_t>((power + divisor - 1) / divisor), shift};
}

}  // namespace

uint64_t BlocksOf(const GridSize& grid) {
  const auto blocks = static_cast<unsigned __int128>(uint64_t{grid[0]} * grid[1]) * grid[2];
  constexpr uint64_t kMost = 1ull << 63;
  return blocks > kMost ? kMost : static_cast<uint64_t>(blocks);
}

Status CheckGrid(const SlicedKernel& kernel, const GridSize& grid) {
  for (uint32_t extent : grid) {
    if (!extent) return Fail(Blame::kCaller, "a grid of {}x{}x{} blocks has none", grid[0], grid[1], grid[2]);
  }
  unsigned __int128 range = 1;
  for (unsigned axis = 0; axis < kernel.axes && axis < 3; ++axis) range *= grid[axis];
  if (range <= kMostInRange) return {};
  return Fail(
      Blame::kUnsupported,
      "kernel `{}` cannot be sliced on a grid of {}x{}x{} blocks: it numbers the blocks of {} axes as "
      "one range, and that has 2^31 or more",
      kernel.name, grid[0], grid[1], grid[2], kernel.axes);
}

GridSlice NextSlice(const SlicedKernel& kernel, const GridSize& grid, uint64_t first,
                    const SliceBudget& budget) {
  const auto [row, rows, planes] = Folded(kernel.axes, grid);
  const uint64_t plane = row * rows;
  GridSlice slice;
  slice.first = first;
  const uint64_t aim = Aim(BlocksOf(grid) - first, budget);
  const uint64_t x = first % row;
  const uint64_t y = first / row % rows;
  const uint64_t z = first / plane;
  // Whole planes, or whole rows, or a part of a row.
  if (x == 0 && y == 0 && aim >= plane) {
    const uint64_t deep = std::min(aim / plane, planes - z);
    slice.launch = {static_cast<uint32_t>(row), static_cast<uint32_t>(rows), static_cast<uint32_t>(deep)};
  } else if (x == 0 && aim >= row) {
    slice.launch = {static_cast<uint32_t>(row), static_cast<uint32_t>(std::min(aim / row, rows - y)), 1};
  } else {
    slice.launch = {static_cast<uint32_t>(std::min(aim, row - x)), 1, 1};
    slice.offset = static_cast<uint32_t>(x);
  }
  slice.count = BlocksOf(slice.launch);
  return slice;
}

std::vector<std::byte> SliceArguments(const SlicedKernel& kernel, const GridSize& grid,
                                      const GridSlice& slice, std::span<const uint64_t> globals) {
  const Reciprocal x = ReciprocalOf(grid[0]);
  const Reciprocal y = ReciprocalOf(grid[1]);
  const std::array<uint32_t, 8> head = {slice.offset, grid[0], grid[1],      grid[2],
                                        x.multiplier, x.shift, y.multiplier, y.shift};
  std::vector<std::byte> bytes(kernel.arguments_size);
  const size_t of_head = std::min(sizeof(head), bytes.size());
  std::memcpy(bytes.data(), head.data(), of_head);
  const size_t of_globals = std::min(globals.size_bytes(), bytes.size() - of_head);
  if (of_globals) std::memcpy(bytes.data() + of_head, globals.data(), of_globals);
  return bytes;
}

}  // namespace cuplex::ptx
