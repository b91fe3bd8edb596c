// Linear copies, shared by the copies of memory and of symbols. Any thread that has entered.
#pragma once

#include "client/runtime/runtime_types.h"
#include "cuda/driver_table.h"

namespace cuplex::runtime {

/// Which side of a copy is device memory. Managed memory counts as device memory, pinned memory as host
/// memory.
struct Direction {
  bool to_device;
  bool from_device;
};

/// For cudaMemcpyDefault asks the driver what the pointers are; memory it does not know is host memory.
cudaError_t DirectionOf(const DriverTable& cu, const void* dst, const void* src, cudaMemcpyKind kind,
                        Direction* direction);

/// The driver's description of a copy of a box.
cudaError_t Describe3D(const DriverTable& cu, const cudaMemcpy3DParms* given, CUDA_MEMCPY3D* copy);

/// Queues the copy on `stream`.
cudaError_t CopyQueued(const DriverTable& cu, void* dst, const void* src, size_t bytes, cudaMemcpyKind kind,
                       cudaStream_t stream);

/// Copies, with the default stream `stream` (null: the legacy one), and returns when the copy is done as far
/// as CUDA promises for its kind.
cudaError_t CopyNow(const DriverTable& cu, void* dst, const void* src, size_t bytes, cudaMemcpyKind kind,
                    cudaStream_t stream);

}  // namespace cuplex::runtime
