// Holds our types against NVIDIA's cuda_runtime_api.h 13.0, where it is installed: built and never run.
// Signatures are held against it by a generated neighbour of the same name.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#undef CUDART_VERSION
#undef cudaStreamLegacy
#undef cudaStreamPerThread
#undef cudaInvalidDeviceId

namespace ours {
#include "client/runtime/runtime_types.h"
}

namespace {

#define CHECK_SIZE(type) \
  static_assert(sizeof(::type) == sizeof(ours::type) && alignof(::type) == alignof(ours::type))
#define CHECK_MEMBER(type, member)                                          \
  static_assert(offsetof(::type, member) == offsetof(ours::type, member) && \
                sizeof(::type::member) == sizeof(ours::type::member))

CHECK_SIZE(dim3);
CHECK_SIZE(uint3);
CHECK_SIZE(cudaError_t);
CHECK_SIZE(cudaChannelFormatDesc);
CHECK_SIZE(cudaPitchedPtr);
CHECK_SIZE(cudaExtent);
CHECK_SIZE(cudaPos);
CHECK_SIZE(cudaMemcpy3DParms);
CHECK_SIZE(cudaResourceDesc);
CHECK_SIZE(cudaResourceViewDesc);
CHECK_SIZE(cudaTextureDesc);
CHECK_SIZE(cudaArrayMemoryRequirements);
CHECK_SIZE(cudaMemLocation);
CHECK_SIZE(cudaMemAccessDesc);
CHECK_SIZE(cudaMemPoolProps);
CHECK_SIZE(cudaIpcMemHandle_t);
CHECK_SIZE(cudaIpcEventHandle_t);
CHECK_SIZE(cudaLaunchAttributeValue);
CHECK_SIZE(cudaLaunchAttribute);
CHECK_SIZE(cudaLaunchConfig_t);
CHECK_SIZE(cudaKernelNodeParams);
CHECK_SIZE(cudaMemsetParams);
CHECK_SIZE(cudaMemcpyNodeParams);
CHECK_SIZE(cudaHostNodeParams);
CHECK_SIZE(cudaMemAllocNodeParams);
CHECK_SIZE(cudaGraphNodeParams);
CHECK_SIZE(cudaGraphEdgeData);
CHECK_SIZE(cudaGraphInstantiateParams);
CHECK_SIZE(cudaGraphExecUpdateResultInfo);
CHECK_SIZE(cudaPointerAttributes);
CHECK_SIZE(cudaFuncAttributes);
CHECK_SIZE(cudaDeviceProp);
CHECK_SIZE(cudaUUID_t);
CHECK_SIZE(cudaDeviceAttr);
CHECK_SIZE(cudaFuncAttribute);
CHECK_SIZE(cudaMemcpyKind);
CHECK_SIZE(cudaMemoryType);

CHECK_MEMBER(cudaPitchedPtr, ptr);
CHECK_MEMBER(cudaPitchedPtr, pitch);
CHECK_MEMBER(cudaPitchedPtr, xsize);
CHECK_MEMBER(cudaPitchedPtr, ysize);

CHECK_MEMBER(cudaExtent, width);
CHECK_MEMBER(cudaExtent, height);
CHECK_MEMBER(cudaExtent, depth);

CHECK_MEMBER(cudaMemcpy3DParms, srcArray);
CHECK_MEMBER(cudaMemcpy3DParms, srcPos);
CHECK_MEMBER(cudaMemcpy3DParms, srcPtr);
CHECK_MEMBER(cudaMemcpy3DParms, dstArray);
CHECK_MEMBER(cudaMemcpy3DParms, dstPos);
CHECK_MEMBER(cudaMemcpy3DParms, dstPtr);
CHECK_MEMBER(cudaMemcpy3DParms, extent);
CHECK_MEMBER(cudaMemcpy3DParms, kind);

CHECK_MEMBER(cudaMemPoolProps, allocType);
CHECK_MEMBER(cudaMemPoolProps, handleTypes);
CHECK_MEMBER(cudaMemPoolProps, location);
CHECK_MEMBER(cudaMemPoolProps, maxSize);
CHECK_MEMBER(cudaMemPoolProps, usage);

CHECK_MEMBER(cudaLaunchConfig_t, gridDim);
CHECK_MEMBER(cudaLaunchConfig_t, blockDim);
CHECK_MEMBER(cudaLaunchConfig_t, dynamicSmemBytes);
CHECK_MEMBER(cudaLaunchConfig_t, stream);
CHECK_MEMBER(cudaLaunchConfig_t, attrs);
CHECK_MEMBER(cudaLaunchConfig_t, numAttrs);

CHECK_MEMBER(cudaKernelNodeParams, func);
CHECK_MEMBER(cudaKernelNodeParams, blockDim);
CHECK_MEMBER(cudaKernelNodeParams, sharedMemBytes);
CHECK_MEMBER(cudaKernelNodeParams, extra);
CHECK_MEMBER(cudaMemsetParams, value);
CHECK_MEMBER(cudaMemsetParams, height);
CHECK_MEMBER(cudaMemcpyNodeParams, copyParams);
CHECK_MEMBER(cudaMemAllocNodeParams, dptr);
CHECK_MEMBER(cudaGraphNodeParams, kernel);
CHECK_MEMBER(cudaGraphNodeParams, memcpy);
CHECK_MEMBER(cudaGraphNodeParams, memset);
CHECK_MEMBER(cudaGraphNodeParams, reserved2);

CHECK_MEMBER(cudaPointerAttributes, type);
CHECK_MEMBER(cudaPointerAttributes, device);
CHECK_MEMBER(cudaPointerAttributes, devicePointer);
CHECK_MEMBER(cudaPointerAttributes, hostPointer);

CHECK_MEMBER(cudaFuncAttributes, sharedSizeBytes);
CHECK_MEMBER(cudaFuncAttributes, constSizeBytes);
CHECK_MEMBER(cudaFuncAttributes, localSizeBytes);
CHECK_MEMBER(cudaFuncAttributes, maxThreadsPerBlock);
CHECK_MEMBER(cudaFuncAttributes, numRegs);
CHECK_MEMBER(cudaFuncAttributes, ptxVersion);
CHECK_MEMBER(cudaFuncAttributes, binaryVersion);
CHECK_MEMBER(cudaFuncAttributes, cacheModeCA);
CHECK_MEMBER(cudaFuncAttributes, maxDynamicSharedSizeBytes);
CHECK_MEMBER(cudaFuncAttributes, preferredShmemCarveout);
CHECK_MEMBER(cudaFuncAttributes, clusterDimMustBeSet);
CHECK_MEMBER(cudaFuncAttributes, requiredClusterWidth);
CHECK_MEMBER(cudaFuncAttributes, requiredClusterHeight);
CHECK_MEMBER(cudaFuncAttributes, requiredClusterDepth);
CHECK_MEMBER(cudaFuncAttributes, clusterSchedulingPolicyPreference);
CHECK_MEMBER(cudaFuncAttributes, nonPortableClusterSizeAllowed);

CHECK_MEMBER(cudaDeviceProp, name);
CHECK_MEMBER(cudaDeviceProp, uuid);
CHECK_MEMBER(cudaDeviceProp, luid);
CHECK_MEMBER(cudaDeviceProp, luidDeviceNodeMask);
CHECK_MEMBER(cudaDeviceProp, totalGlobalMem);
CHECK_MEMBER(cudaDeviceProp, sharedMemPerBlock);
CHECK_MEMBER(cudaDeviceProp, regsPerBlock);
CHECK_MEMBER(cudaDeviceProp, warpSize);
CHECK_MEMBER(cudaDeviceProp, memPitch);
CHECK_MEMBER(cudaDeviceProp, maxThreadsPerBlock);
CHECK_MEMBER(cudaDeviceProp, maxThreadsDim);
CHECK_MEMBER(cudaDeviceProp, maxGridSize);
CHECK_MEMBER(cudaDeviceProp, totalConstMem);
CHECK_MEMBER(cudaDeviceProp, major);
CHECK_MEMBER(cudaDeviceProp, minor);
CHECK_MEMBER(cudaDeviceProp, textureAlignment);
CHECK_MEMBER(cudaDeviceProp, texturePitchAlignment);
CHECK_MEMBER(cudaDeviceProp, multiProcessorCount);
CHECK_MEMBER(cudaDeviceProp, integrated);
CHECK_MEMBER(cudaDeviceProp, canMapHostMemory);
CHECK_MEMBER(cudaDeviceProp, maxTexture1D);
CHECK_MEMBER(cudaDeviceProp, maxTexture1DMipmap);
CHECK_MEMBER(cudaDeviceProp, maxTexture2D);
CHECK_MEMBER(cudaDeviceProp, maxTexture2DMipmap);
CHECK_MEMBER(cudaDeviceProp, maxTexture2DLinear);
CHECK_MEMBER(cudaDeviceProp, maxTexture2DGather);
CHECK_MEMBER(cudaDeviceProp, maxTexture3D);
CHECK_MEMBER(cudaDeviceProp, maxTexture3DAlt);
CHECK_MEMBER(cudaDeviceProp, maxTextureCubemap);
CHECK_MEMBER(cudaDeviceProp, maxTexture1DLayered);
CHECK_MEMBER(cudaDeviceProp, maxTexture2DLayered);
CHECK_MEMBER(cudaDeviceProp, maxTextureCubemapLayered);
CHECK_MEMBER(cudaDeviceProp, maxSurface1D);
CHECK_MEMBER(cudaDeviceProp, maxSurface2D);
CHECK_MEMBER(cudaDeviceProp, maxSurface3D);
CHECK_MEMBER(cudaDeviceProp, maxSurface1DLayered);
CHECK_MEMBER(cudaDeviceProp, maxSurface2DLayered);
CHECK_MEMBER(cudaDeviceProp, maxSurfaceCubemap);
CHECK_MEMBER(cudaDeviceProp, maxSurfaceCubemapLayered);
CHECK_MEMBER(cudaDeviceProp, surfaceAlignment);
CHECK_MEMBER(cudaDeviceProp, concurrentKernels);
CHECK_MEMBER(cudaDeviceProp, ECCEnabled);
CHECK_MEMBER(cudaDeviceProp, pciBusID);
CHECK_MEMBER(cudaDeviceProp, pciDeviceID);
CHECK_MEMBER(cudaDeviceProp, pciDomainID);
CHECK_MEMBER(cudaDeviceProp, tccDriver);
CHECK_MEMBER(cudaDeviceProp, asyncEngineCount);
CHECK_MEMBER(cudaDeviceProp, unifiedAddressing);
CHECK_MEMBER(cudaDeviceProp, memoryBusWidth);
CHECK_MEMBER(cudaDeviceProp, l2CacheSize);
CHECK_MEMBER(cudaDeviceProp, persistingL2CacheMaxSize);
CHECK_MEMBER(cudaDeviceProp, maxThreadsPerMultiProcessor);
CHECK_MEMBER(cudaDeviceProp, streamPrioritiesSupported);
CHECK_MEMBER(cudaDeviceProp, globalL1CacheSupported);
CHECK_MEMBER(cudaDeviceProp, localL1CacheSupported);
CHECK_MEMBER(cudaDeviceProp, sharedMemPerMultiprocessor);
CHECK_MEMBER(cudaDeviceProp, regsPerMultiprocessor);
CHECK_MEMBER(cudaDeviceProp, managedMemory);
CHECK_MEMBER(cudaDeviceProp, isMultiGpuBoard);
CHECK_MEMBER(cudaDeviceProp, multiGpuBoardGroupID);
CHECK_MEMBER(cudaDeviceProp, hostNativeAtomicSupported);
CHECK_MEMBER(cudaDeviceProp, pageableMemoryAccess);
CHECK_MEMBER(cudaDeviceProp, concurrentManagedAccess);
CHECK_MEMBER(cudaDeviceProp, computePreemptionSupported);
CHECK_MEMBER(cudaDeviceProp, canUseHostPointerForRegisteredMem);
CHECK_MEMBER(cudaDeviceProp, cooperativeLaunch);
CHECK_MEMBER(cudaDeviceProp, sharedMemPerBlockOptin);
CHECK_MEMBER(cudaDeviceProp, pageableMemoryAccessUsesHostPageTables);
CHECK_MEMBER(cudaDeviceProp, directManagedMemAccessFromHost);
CHECK_MEMBER(cudaDeviceProp, maxBlocksPerMultiProcessor);
CHECK_MEMBER(cudaDeviceProp, accessPolicyMaxWindowSize);
CHECK_MEMBER(cudaDeviceProp, reservedSharedMemPerBlock);
CHECK_MEMBER(cudaDeviceProp, hostRegisterSupported);
CHECK_MEMBER(cudaDeviceProp, sparseCudaArraySupported);
CHECK_MEMBER(cudaDeviceProp, hostRegisterReadOnlySupported);
CHECK_MEMBER(cudaDeviceProp, timelineSemaphoreInteropSupported);
CHECK_MEMBER(cudaDeviceProp, memoryPoolsSupported);
CHECK_MEMBER(cudaDeviceProp, gpuDirectRDMASupported);
CHECK_MEMBER(cudaDeviceProp, gpuDirectRDMAFlushWritesOptions);
CHECK_MEMBER(cudaDeviceProp, gpuDirectRDMAWritesOrdering);
CHECK_MEMBER(cudaDeviceProp, memoryPoolSupportedHandleTypes);
CHECK_MEMBER(cudaDeviceProp, deferredMappingCudaArraySupported);
CHECK_MEMBER(cudaDeviceProp, ipcEventSupported);
CHECK_MEMBER(cudaDeviceProp, clusterLaunch);
CHECK_MEMBER(cudaDeviceProp, unifiedFunctionPointers);
CHECK_MEMBER(cudaDeviceProp, deviceNumaConfig);
CHECK_MEMBER(cudaDeviceProp, deviceNumaId);
CHECK_MEMBER(cudaDeviceProp, mpsEnabled);
CHECK_MEMBER(cudaDeviceProp, hostNumaId);
CHECK_MEMBER(cudaDeviceProp, gpuPciDeviceID);
CHECK_MEMBER(cudaDeviceProp, gpuPciSubsystemID);
CHECK_MEMBER(cudaDeviceProp, hostNumaMultinodeIpcSupported);
CHECK_MEMBER(cudaDeviceProp, reserved);

#define CHECK_ERROR(name, number, sentence) static_assert(static_cast<int>(::name) == number);
CUPLEX_RUNTIME_ERRORS(CHECK_ERROR)

#define CHECK_NUMBER(theirs, number) \
  static_assert(static_cast<int>(::theirs) == static_cast<int>(ours::number))
CHECK_NUMBER(cudaMemoryTypeUnregistered, cudaMemoryTypeUnregistered);
CHECK_NUMBER(cudaMemoryTypeHost, cudaMemoryTypeHost);
CHECK_NUMBER(cudaMemoryTypeDevice, cudaMemoryTypeDevice);
CHECK_NUMBER(cudaMemoryTypeManaged, cudaMemoryTypeManaged);
CHECK_NUMBER(cudaMemcpyHostToHost, cudaMemcpyHostToHost);
CHECK_NUMBER(cudaMemcpyHostToDevice, cudaMemcpyHostToDevice);
CHECK_NUMBER(cudaMemcpyDeviceToHost, cudaMemcpyDeviceToHost);
CHECK_NUMBER(cudaMemcpyDeviceToDevice, cudaMemcpyDeviceToDevice);
CHECK_NUMBER(cudaMemcpyDefault, cudaMemcpyDefault);
CHECK_NUMBER(cudaStreamCaptureStatusNone, cudaStreamCaptureStatusNone);
CHECK_NUMBER(cudaStreamCaptureStatusActive, cudaStreamCaptureStatusActive);
CHECK_NUMBER(cudaStreamCaptureStatusInvalidated, cudaStreamCaptureStatusInvalidated);
CHECK_NUMBER(cudaDriverEntryPointSuccess, cudaDriverEntryPointSuccess);
CHECK_NUMBER(cudaDriverEntryPointSymbolNotFound, cudaDriverEntryPointSymbolNotFound);
CHECK_NUMBER(cudaDriverEntryPointVersionNotSufficent, cudaDriverEntryPointVersionNotSufficent);

// Numbers that pass through to the driver unread: its first, its last, and some between.
CHECK_NUMBER(cudaDevAttrMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
CHECK_NUMBER(cudaDevAttrWarpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
CHECK_NUMBER(cudaDevAttrMultiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
CHECK_NUMBER(cudaDevAttrComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
CHECK_NUMBER(cudaDevAttrMaxSharedMemoryPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
CHECK_NUMBER(cudaDevAttrMemoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
CHECK_NUMBER(cudaDevAttrHostNumaId, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
CHECK_NUMBER(cudaDevAttrOnlyPartialHostNativeAtomicSupported,
             CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED);
CHECK_NUMBER(cudaFuncAttributeMaxDynamicSharedMemorySize, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
CHECK_NUMBER(cudaFuncAttributePreferredSharedMemoryCarveout,
             CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
CHECK_NUMBER(cudaFuncAttributeClusterSchedulingPolicyPreference,
             CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
CHECK_NUMBER(cudaLimitStackSize, CU_LIMIT_STACK_SIZE);
CHECK_NUMBER(cudaLimitMallocHeapSize, CU_LIMIT_MALLOC_HEAP_SIZE);
CHECK_NUMBER(cudaLimitPersistingL2CacheSize, CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
CHECK_NUMBER(cudaFuncCachePreferEqual, CU_FUNC_CACHE_PREFER_EQUAL);
CHECK_NUMBER(cudaSharedMemBankSizeEightByte, CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
CHECK_NUMBER(cudaMemAdviseUnsetAccessedBy, CU_MEM_ADVISE_UNSET_ACCESSED_BY);
CHECK_NUMBER(cudaMemPoolAttrReleaseThreshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
CHECK_NUMBER(cudaMemPoolAttrUsedMemHigh, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
CHECK_NUMBER(cudaMemAccessFlagsProtReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
CHECK_NUMBER(cudaDevP2PAttrNativeAtomicSupported, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED);
CHECK_NUMBER(cudaJitOverrideDirectiveValues, CU_JIT_OVERRIDE_DIRECTIVE_VALUES);
CHECK_NUMBER(cudaLibraryBinaryIsPreserved, CU_LIBRARY_BINARY_IS_PRESERVED);
CHECK_NUMBER(cudaLaunchAttributeClusterDimension, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
CHECK_NUMBER(cudaLaunchAttributePriority, CU_LAUNCH_ATTRIBUTE_PRIORITY);
CHECK_NUMBER(cudaMemLocationTypeDevice, CU_MEM_LOCATION_TYPE_DEVICE);
CHECK_NUMBER(cudaStreamCaptureModeRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);

}  // namespace
