// SlicePlan: which part of a sliced kernel's grid to launch next, and with what arguments. Pure; any thread.
//
// Slices come in the order of their blocks' numbers (x fastest, then y, then z), as a device takes the blocks
// of a whole grid, so that a block may count on those before it having run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "ptx/passes/slice.h"

namespace cuplex::ptx {

/// Blocks along x, y and z; each at least 1.
using GridSize = std::array<uint32_t, 3>;

/// In blocks; at most 2^63.
uint64_t BlocksOf(const GridSize& grid);

/// Whether a grid of this size can be sliced: a range of blocks ends below 2^31. The sentence says what is
/// too large.
Status CheckGrid(const SlicedKernel& kernel, const GridSize& grid);

struct SliceBudget {
  double block_ns = 0;    // device time of a grid divided by its blocks; 0: not known, the slice is one wave
  double longest_ns = 0;  // what a slice should take at most; a slice is one wave at least
  uint64_t wave = 1;      // blocks that the device holds at once; at least 1
};

struct GridSlice {
  uint64_t first = 0;  // blocks [first, first + count) of the grid
  uint64_t count = 0;
  GridSize launch = {1, 1, 1};  // the grid to launch
  uint32_t offset = 0;          // `first` of the arguments

  bool operator==(const GridSlice&) const = default;
};

/// The slice that begins at block `first`, which is 0 or where another slice ended, and below BlocksOf(grid).
/// It is of whole waves as far as grid and budget let it be. What is left is shared out evenly, so that the
/// last slice is not a small one; the budget may change from slice to slice.
GridSlice NextSlice(const SlicedKernel& kernel, const GridSize& grid, uint64_t first,
                    const SliceBudget& budget);

/// The bytes that go into the parameter buffer at kernel.arguments_offset; kernel.arguments_size of them.
/// `globals`: the addresses, in the order of kernel.globals and as many.
std::vector<std::byte> SliceArguments(const SlicedKernel& kernel, const GridSize& grid,
                                      const GridSlice& slice, std::span<const uint64_t> globals);

}  // namespace cuplex::ptx
