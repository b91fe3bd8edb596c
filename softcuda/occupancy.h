// Occupancy: how many blocks of a function a multiprocessor of the reported kind would hold. Any thread.
#pragma once

#include <cstddef>

#include "softcuda/device.h"
#include "softcuda/module.h"

namespace cuplex::softcuda {

/// `threads` a block, `dynamic` bytes of dynamic shared memory. 0 where not even one fits.
int BlocksPerMultiprocessor(const Device& device, const Function& function, unsigned threads, size_t dynamic);

}  // namespace cuplex::softcuda
