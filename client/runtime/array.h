// What the runtime's calls for arrays, textures and copies share: channel formats, and arrays as ends of
// copies. Any thread that has entered.
#pragma once

#include "client/runtime/copy.h"
#include "client/runtime/runtime_types.h"
#include "cuda/driver_table.h"

namespace cuplex::runtime {

inline CUarray DriverArray(cudaArray_const_t array) {
  return reinterpret_cast<CUarray>(const_cast<struct cudaArray*>(array));
}
inline CUmipmappedArray DriverArray(cudaMipmappedArray_const_t array) {
  return reinterpret_cast<CUmipmappedArray>(const_cast<struct cudaMipmappedArray*>(array));
}

/// The driver's format and number of channels; cudaErrorInvalidChannelDescriptor where it has no such.
cudaError_t FormatOf(const cudaChannelFormatDesc& desc, CUarray_format* format, unsigned* channels);
cudaChannelFormatDesc ChannelsOf(CUarray_format format, unsigned channels);

/// The bytes of one texel of an array.
cudaError_t TexelBytesOf(const DriverTable& cu, cudaArray_const_t array, size_t* bytes);

/// Which sides of a copy are device memory where one is an array and the other `memory`, or, where that is
/// null, an array too. `to_array`: the array is the target.
cudaError_t BesideArray(const DriverTable& cu, const void* memory, cudaMemcpyKind kind, bool to_array,
                        Direction* direction);

}  // namespace cuplex::runtime
