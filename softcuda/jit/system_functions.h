// The functions that a CUDA program may call without defining them: which there are, and which function of
// the runtime (runtime.h) does their work. Pure; any thread.
#pragma once

#include <string_view>

#include "softcuda/jit/layout.h"

namespace cuplex::softcuda {

struct SystemFunction {
  std::string_view name;
  std::string_view runtime;          // takes the context, the lane, then the parameters
  std::vector<uint32_t> parameters;  // bytes of each: 4 or 8
  uint32_t result = 0;               // bytes, 0: none
  bool returns = true;
};

/// Whether one of that name may be called without a definition.
bool IsSystemFunction(std::string_view name);

/// Null where there is no such function, or the declaration has other parameters than it.
const SystemFunction* FindSystemFunction(std::string_view name, const FunctionLayout& declared);

}  // namespace cuplex::softcuda
