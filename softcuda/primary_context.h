// Making contexts, and the use of a device's primary one, which programs and green contexts share. Any
// thread.
#pragma once

#include "softcuda/context.h"

namespace cuplex::softcuda {

/// `multiprocessors`: so many of the device's; 0: all.
CUresult MakeContext(Device& device, unsigned multiprocessors, unsigned flags, bool primary,
                     unsigned api_version, Ref<Context>* made);
/// Makes the primary context where nobody uses it yet.
CUresult RetainPrimary(Device& device, Ref<Context>* primary);
/// The last user's release ends it. CUDA_ERROR_INVALID_CONTEXT where there is no user.
CUresult ReleasePrimary(Device& device);
/// Ends it, however many use it.
void ResetPrimary(Device& device);

}  // namespace cuplex::softcuda
