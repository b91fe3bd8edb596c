// The runtime's descriptions of nodes as the driver's. Any thread that has entered.
#pragma once

#include "client/runtime/runtime.h"

namespace cuplex::runtime {

cudaError_t ToDriver(const Entered& in, const cudaKernelNodeParams* given, CUDA_KERNEL_NODE_PARAMS* out);
cudaError_t ToDriver(const cudaMemsetParams* given, CUDA_MEMSET_NODE_PARAMS* out);
/// cudaErrorNotSupported for a type that no driver underneath takes from here: semaphores and conditions.
cudaError_t ToDriver(const Entered& in, const cudaGraphNodeParams* given, CUgraphNodeParams* out);

}  // namespace cuplex::runtime
