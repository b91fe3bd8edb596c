// What the client knows of a function, so that launches and attribute queries need no round trip. Data.
//
//     facts = FunctionFacts { FunctionParameter }       parameter_count of them
#pragma once

#include <cstdint>

namespace cuplex {

/// Each value as cuFuncGetAttribute gives it; sizes in bytes.
struct FunctionFacts {
  int32_t max_threads_per_block = 0;
  int32_t shared_bytes = 0;
  int32_t const_bytes = 0;
  int32_t local_bytes = 0;
  int32_t registers = 0;
  int32_t ptx_version = 0;
  int32_t binary_version = 0;
  int32_t cache_mode_ca = 0;
  int32_t max_dynamic_shared_bytes = 0;
  int32_t preferred_carveout = 0;
  uint32_t parameter_count = 0;
  uint32_t parameter_bytes = 0;  // where the last one ends
};
static_assert(sizeof(FunctionFacts) == 48);

struct FunctionParameter {
  uint32_t offset = 0;
  uint32_t size = 0;
};

}  // namespace cuplex
