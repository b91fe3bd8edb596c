// DriverError: a driver call's code as an Error with a sentence. Any thread.
#pragma once

#include "base/result.h"
#include "cuda/driver_types.h"

namespace cuplex::server {

/// "CALL answered CODE." The error carries the code unchanged.
inline Error DriverError(const char* call, CUresult code) {
  Error error = Fail(code == CUDA_ERROR_OUT_OF_MEMORY ? Blame::kExhausted : Blame::kSystem,
                     "the driver's {} answered {}, 0 was expected.", call, static_cast<int>(code));
  error.driver_code = static_cast<int>(code);
  return error;
}

/// TRY for a driver call: passes an Error up unless it answers CUDA_SUCCESS.
#define CUPLEX_TRY_DRIVER(cu, call, ...)                                                 \
  do {                                                                                   \
    if (CUresult try_code = (cu).call(__VA_ARGS__)) return DriverError(#call, try_code); \
  } while (0)

/// A fault of a context: every call in it answers this from then on, until it is destroyed.
constexpr bool IsSticky(CUresult code) {
  switch (code) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
      return true;
    default:
      return false;
  }
}

/// What a program sees of an Error; see docs/errors.md.
constexpr CUresult CodeOf(const Error& error) {
  if (error.driver_code) return static_cast<CUresult>(error.driver_code);
  switch (error.blame) {
    case Blame::kCaller:
      return CUDA_ERROR_INVALID_VALUE;
    case Blame::kRefused:
      return CUDA_ERROR_NOT_PERMITTED;
    case Blame::kExhausted:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case Blame::kUnsupported:
      return CUDA_ERROR_NOT_SUPPORTED;
    case Blame::kGone:
      return CUDA_ERROR_DEVICE_UNAVAILABLE;
    case Blame::kSystem:
      return CUDA_ERROR_OPERATING_SYSTEM;
    case Blame::kOurs:
      return CUDA_ERROR_UNKNOWN;
  }
  return CUDA_ERROR_UNKNOWN;
}

}  // namespace cuplex::server
