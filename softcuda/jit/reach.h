// Reach: memory that a running kernel names, checked at run time, for instructions that move more than one
// register. Called by running kernels, on a thread that is Running.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuplex::softcuda {

struct Running;

/// Whether kernels may touch these bytes, as far as addresses tell; unmapped ones still fault.
bool MayTouch(Running& running, uint64_t address, size_t bytes);

/// Where the bytes lie. `shared`: the address is an offset in the block's shared memory, else it is generic
/// or global. An address out of bounds, or no multiple of `alignment`, leaves by RaiseFault; where nothing is
/// mapped the bytes still fault when they are touched.
std::byte* Reach(Running& running, bool shared, uint64_t address, uint64_t bytes, uint64_t alignment);

}  // namespace cuplex::softcuda
