// How much device memory the variables of a module image take. Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace cuplex::server {

/// Bytes of the .global and .const variables in a PTX text, a fatbin (of the PTX that suits `arch`, ten times
/// the compute capability) or a cubin, each rounded up to 512 as a driver would. An image that cannot be read
/// is an error; whether it can be loaded is for the driver to say.
Result<uint64_t> GlobalBytes(std::string_view image, uint32_t arch);

}  // namespace cuplex::server
