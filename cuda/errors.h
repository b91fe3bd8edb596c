// The names and the sentences of the driver API's result codes. Any thread; constant data.
#pragma once

#include "cuda/driver_types.h"

namespace cuplex {

/// "CUDA_ERROR_OUT_OF_MEMORY"; nullptr for a number that is no result code. Never freed.
const char* CuErrorName(CUresult code);

/// What the code means, in a sentence without a full stop; nullptr for a number that is no result code. Never
/// freed.
const char* CuErrorText(CUresult code);

}  // namespace cuplex
