// Kernels: attributes and occupancy.
#include "client/runtime/calls.h"
#include "client/runtime/launch_config.h"
#include "client/runtime/runtime.h"

namespace cuplex::runtime {

cudaError_t FuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  if (!attributes) return cudaErrorInvalidValue;
  return WithFunction(function, [&](const DriverTable& cu, CUfunction f) {
    *attributes = {};
    auto get = [&](CUfunction_attribute attribute) {
      int value = 0;
      return cu.cuFuncGetAttribute(&value, attribute, f) == CUDA_SUCCESS ? value
                                                                         : 0;  // 0 is "does not apply"
    };
    int threads;
    RUNTIME_TRY(FromDriver(cu.cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f)));
    attributes->maxThreadsPerBlock = threads;
    attributes->sharedSizeBytes = get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    attributes->constSizeBytes = get(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
    attributes->localSizeBytes = get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    attributes->numRegs = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
    attributes->ptxVersion = get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
    attributes->binaryVersion = get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    attributes->cacheModeCA = get(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
    attributes->maxDynamicSharedSizeBytes = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    attributes->preferredShmemCarveout = get(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    attributes->clusterDimMustBeSet = get(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
    attributes->requiredClusterWidth = get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
    attributes->requiredClusterHeight = get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
    attributes->requiredClusterDepth = get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
    attributes->clusterSchedulingPolicyPreference =
        get(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
    attributes->nonPortableClusterSizeAllowed = get(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
    return cudaSuccess;
  });
}

cudaError_t FuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return WithFunction(function, [&](const DriverTable& cu, CUfunction f) {
    return cu.cuFuncSetAttribute(f, static_cast<CUfunction_attribute>(attribute), value);
  });
}

cudaError_t FuncSetCacheConfig(const void* function, cudaFuncCache config) {
  return WithFunction(function, [&](const DriverTable& cu, CUfunction f) {
    return cu.cuFuncSetCacheConfig(f, static_cast<CUfunc_cache>(config));
  });
}

cudaError_t FuncSetSharedMemConfig(const void* function, cudaSharedMemConfig config) {
  return WithFunction(function, [&](const DriverTable& cu, CUfunction f) {
    return cu.cuFuncSetSharedMemConfig(f, static_cast<CUsharedconfig>(config));
  });
}

cudaError_t FuncGetName(const char** name, const void* function) {
  if (!name) return cudaErrorInvalidValue;
  Kernel* kernel = Root().FindKernel(function);
  if (kernel && kernel->image) {
    *name = kernel->name.c_str();
    return cudaSuccess;
  }
  return WithFunction(function,
                      [&](const DriverTable& cu, CUfunction f) { return cu.cuFuncGetName(name, f); });
}

cudaError_t FuncGetParamInfo(const void* function, size_t index, size_t* offset, size_t* size) {
  return WithFunction(function, [&](const DriverTable& cu, CUfunction f) {
    return cu.cuFuncGetParamInfo(f, index, offset, size);
  });
}

cudaError_t GetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  if (!function) return cudaErrorInvalidValue;
  return WithFunction(symbol, [&](const DriverTable&, CUfunction f) {
    *function = f;
    return cudaSuccess;
  });
}

cudaError_t GetKernel(cudaKernel_t* kernel, const void* function) {
  if (!kernel) return cudaErrorInvalidValue;
  Entered in;
  RUNTIME_TRY(Root().Enter(&in));
  return Root().LibraryKernelOf(in, function, kernel);
}

cudaError_t KernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value,
                                        int device) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuKernelSetAttribute(static_cast<CUfunction_attribute>(attribute), value, kernel, device);
  });
}

cudaError_t OccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int block_size,
                                                      size_t shared_bytes) {
  return WithFunction(function, [&](const DriverTable& cu, CUfunction f) {
    return cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, block_size, shared_bytes);
  });
}

cudaError_t OccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function,
                                                               int block_size, size_t shared_bytes,
                                                               unsigned int flags) {
  if (flags == 0)
    return OccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, shared_bytes);
  return WithFunction(function, [&](const DriverTable& cu, CUfunction f) {
    return cu.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, f, block_size, shared_bytes,
                                                                   flags);
  });
}

cudaError_t OccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function, int blocks,
                                                  int block_size) {
  return WithFunction(function, [&](const DriverTable& cu, CUfunction f) {
    return cu.cuOccupancyAvailableDynamicSMemPerBlock(bytes, f, blocks, block_size);
  });
}

cudaError_t OccupancyMaxActiveClusters(int* clusters, const void* function,
                                       const cudaLaunchConfig_t* config) {
  if (!config) return cudaErrorInvalidValue;
  return WithFunction(function, [&](const DriverTable& cu, CUfunction f) {
    CUlaunchConfig driver_config = DriverConfig(*config);
    return cu.cuOccupancyMaxActiveClusters(clusters, f, &driver_config);
  });
}

cudaError_t OccupancyMaxPotentialClusterSize(int* size, const void* function,
                                             const cudaLaunchConfig_t* config) {
  if (!config) return cudaErrorInvalidValue;
  return WithFunction(function, [&](const DriverTable& cu, CUfunction f) {
    CUlaunchConfig driver_config = DriverConfig(*config);
    return cu.cuOccupancyMaxPotentialClusterSize(size, f, &driver_config);
  });
}

}  // namespace cuplex::runtime
