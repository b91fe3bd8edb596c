// Slice: makes kernels of which parts of the grid can be launched one after another, with the results of the
// whole grid. Pure; any thread.
//
// The text that Slice() gives is a module of its own, to be loaded beside the one it was made of. It holds
// the kernels asked for that can be sliced, and what they need, under their own names. In them %ctaid and
// %nctaid are those of the whole grid, and .global variables are those of the original module: both come by
// one parameter more, the last.
//
//   slice       = first grid reciprocal_x reciprocal_y address*  ; 8-byte aligned, little-endian
//   first       = u32                ; what is added to %ctaid.x of the launch
//   grid        = x y z              ; u32 each: blocks of the whole grid
//   reciprocal  = multiplier shift   ; u32 each: n / d is (2 n * multiplier >> 32) >> shift for every n <
//   2^31;
//                                    ; d is grid.x in the first, grid.y in the second
//   address     = u64                ; of a .global variable, in the order of SlicedKernel::globals
//
// slice_plan.h makes these bytes, and decides which parts to launch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ptx/module.h"

namespace cuplex::ptx {

struct SlicedKernel {
  std::string name;
  std::string refusal;  // why it must run whole: one sentence with kernel and line. Empty: it is in the text.

  // The rest is only of kernels in the text.
  /// 1 to 3: so many axes of the grid, x first, are launched as one range of blocks along x; see NextSlice().
  unsigned axes = 1;
  uint32_t arguments_offset = 0;  // bytes from the start of the parameter buffer to `slice`
  uint32_t arguments_size = 0;    // bytes of `slice`, the buffer's last
  /// Variables of the original module whose device addresses `slice` ends with.
  std::vector<std::string> globals;
  /// .const variables. The text's module has its own, to be made equal to the original's before a launch.
  std::vector<std::string> constants;
};

struct SlicedModule {
  std::string text;  // empty where no kernel can be sliced
  std::vector<SlicedKernel> kernels;
};

/// Of the kernels in `wanted`, or of all where it is empty. What cannot be sliced: a kernel that is of a
/// cluster, or of a cooperative launch (%envreg), or reads %gridid; one that calls through a pointer, takes a
/// function's address or calls what the module does not define, as those do that launch kernels; one that
/// uses a texture reference, or so many parameters that no more fit; one that has been sliced already.
/// Blame::kCaller where a name of `wanted` is no kernel of the module.
Result<SlicedModule> Slice(const Module& module, std::span<const std::string_view> wanted = {});

}  // namespace cuplex::ptx
