// SlicedFunction: the second form of a kernel, of which parts of the grid can be launched; see
// ptx/passes/slice.h. Made on a job's thread, used on the reactor's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cuda/driver_table.h"
#include "ptx/passes/slice.h"
#include "server/sliced_texts.h"

namespace cuplex::server {

struct SlicedFunction {
  /// A .const variable, of which the sliced module has a copy.
  struct Constant {
    CUdeviceptr original = 0, copy = 0;
    size_t bytes = 0;
  };

  ptx::SlicedKernel kernel;
  CUmodule module = nullptr;  // to be unloaded before its context goes, or with it
  CUfunction handle = nullptr;
  std::vector<uint64_t> globals;  // addresses of kernel.globals in the original module
  std::vector<Constant> constants;
};

/// Makes the kernel `name` of `image`, its text from `texts`, which is loaded as `original` in `context`,
/// sliceable there. `arch` picks the PTX of a fatbin. The caller's thread has no context current afterwards.
/// Blame::kUnsupported, with the reason, where the kernel must run whole.
Result<SlicedFunction> MakeSliced(const DriverTable& cu, CUcontext context, CUmodule original,
                                  CUfunction whole, SlicedTexts& texts, std::string_view image, uint32_t arch,
                                  std::string_view name);

}  // namespace cuplex::server
