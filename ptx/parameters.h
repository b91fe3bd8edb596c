// Parameter layout of a kernel: where each argument lies in the parameter buffer of a launch. Any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ptx/module.h"

namespace cuplex::ptx {

struct ParameterSlot {
  uint32_t offset = 0;     // bytes from the start of the buffer
  uint32_t size = 0;       // bytes
  uint32_t alignment = 1;  // power of two
  bool pointer = false;    // declared .ptr

  bool operator==(const ParameterSlot&) const = default;
};

struct ParameterLayout {
  std::vector<ParameterSlot> slots;  // in the order of the entry's parameters
  uint32_t size = 0;                 // end of the last slot, not padded
};

/// Fails with Blame::kCaller where `entry` is not an .entry or the parameters pass 32764 bytes.
Result<ParameterLayout> LayoutOf(const Function& entry);

}  // namespace cuplex::ptx
