// What a module's variable holds when the program starts. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ptx/module.h"

namespace cuplex::softcuda {

/// `places` has the device address of every module variable, for initialisers that name one.
Result<std::vector<std::byte>> BytesOf(const ptx::Module& module, uint32_t variable,
                                       const std::vector<uintptr_t>& places);

}  // namespace cuplex::softcuda
