// Flags of wireHostAlloc beside those of cuMemHostAlloc. Data.
#pragma once

#include <cstdint>

namespace cuplex {

/// Managed memory: charged as device memory, and freed by cuMemFree.
inline constexpr uint32_t kHostManaged = 1u << 16;

}  // namespace cuplex
