// cudaDeviceProp, filled from the driver's attributes.
#include <cstddef>
#include <cstring>

#include "client/runtime/calls.h"
#include "client/runtime/runtime.h"

namespace cuplex::runtime {
namespace {

struct IntProperty {
  int cudaDeviceProp::* member;
  CUdevice_attribute attribute;
};
struct UnsignedProperty {
  unsigned int cudaDeviceProp::* member;
  CUdevice_attribute attribute;
};
struct SizeProperty {
  size_t cudaDeviceProp::* member;
  CUdevice_attribute attribute;
};

// clang-format off
constexpr IntProperty kInts[] = {
    {&cudaDeviceProp::regsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
    {&cudaDeviceProp::warpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    {&cudaDeviceProp::maxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {&cudaDeviceProp::major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
    {&cudaDeviceProp::minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
    {&cudaDeviceProp::multiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {&cudaDeviceProp::integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED},
    {&cudaDeviceProp::canMapHostMemory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY},
    {&cudaDeviceProp::maxTexture1D, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH},
    {&cudaDeviceProp::maxTexture1DMipmap, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH},
    {&cudaDeviceProp::maxTextureCubemap, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH},
    {&cudaDeviceProp::maxSurface1D, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH},
    {&cudaDeviceProp::maxSurfaceCubemap, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH},
    {&cudaDeviceProp::concurrentKernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS},
    {&cudaDeviceProp::ECCEnabled, CU_DEVICE_ATTRIBUTE_ECC_ENABLED},
    {&cudaDeviceProp::pciBusID, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID},
    {&cudaDeviceProp::pciDeviceID, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID},
    {&cudaDeviceProp::pciDomainID, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID},
    {&cudaDeviceProp::tccDriver, CU_DEVICE_ATTRIBUTE_TCC_DRIVER},
    {&cudaDeviceProp::asyncEngineCount, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
    {&cudaDeviceProp::unifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING},
    {&cudaDeviceProp::memoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
    {&cudaDeviceProp::l2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
    {&cudaDeviceProp::persistingL2CacheMaxSize, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE},
    {&cudaDeviceProp::maxThreadsPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::streamPrioritiesSupported, CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED},
    {&cudaDeviceProp::globalL1CacheSupported, CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED},
    {&cudaDeviceProp::localL1CacheSupported, CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED},
    {&cudaDeviceProp::regsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::managedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
    {&cudaDeviceProp::isMultiGpuBoard, CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD},
    {&cudaDeviceProp::multiGpuBoardGroupID, CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID},
    {&cudaDeviceProp::hostNativeAtomicSupported, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED},
    {&cudaDeviceProp::pageableMemoryAccess, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS},
    {&cudaDeviceProp::concurrentManagedAccess, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS},
    {&cudaDeviceProp::computePreemptionSupported, CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED},
    {&cudaDeviceProp::canUseHostPointerForRegisteredMem, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM},
    {&cudaDeviceProp::cooperativeLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH},
    {&cudaDeviceProp::pageableMemoryAccessUsesHostPageTables, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES},
    {&cudaDeviceProp::directManagedMemAccessFromHost, CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST},
    {&cudaDeviceProp::maxBlocksPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::accessPolicyMaxWindowSize, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE},
#if CUPLEX_CUDART_MAJOR == 12
    {&cudaDeviceProp::clockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
    {&cudaDeviceProp::deviceOverlap, CU_DEVICE_ATTRIBUTE_GPU_OVERLAP},
    {&cudaDeviceProp::kernelExecTimeoutEnabled, CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT},
    {&cudaDeviceProp::computeMode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE},
    {&cudaDeviceProp::maxTexture1DLinear, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH},
    {&cudaDeviceProp::memoryClockRate, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE},
    {&cudaDeviceProp::singleToDoublePrecisionPerfRatio, CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO},
    {&cudaDeviceProp::cooperativeMultiDeviceLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH},
#endif
};

// Members that came with CUDA 12, at the struct's end.
constexpr IntProperty kLateInts[] = {
    {&cudaDeviceProp::hostRegisterSupported, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED},
    {&cudaDeviceProp::sparseCudaArraySupported, CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED},
    {&cudaDeviceProp::hostRegisterReadOnlySupported, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED},
    {&cudaDeviceProp::timelineSemaphoreInteropSupported, CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED},
    {&cudaDeviceProp::memoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
    {&cudaDeviceProp::gpuDirectRDMASupported, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED},
    {&cudaDeviceProp::gpuDirectRDMAWritesOrdering, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING},
    {&cudaDeviceProp::deferredMappingCudaArraySupported, CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED},
    {&cudaDeviceProp::ipcEventSupported, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED},
    {&cudaDeviceProp::clusterLaunch, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH},
    {&cudaDeviceProp::unifiedFunctionPointers, CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS},
#if CUPLEX_CUDART_MAJOR >= 13
    {&cudaDeviceProp::deviceNumaConfig, CU_DEVICE_ATTRIBUTE_NUMA_CONFIG},
    {&cudaDeviceProp::deviceNumaId, CU_DEVICE_ATTRIBUTE_NUMA_ID},
    {&cudaDeviceProp::mpsEnabled, CU_DEVICE_ATTRIBUTE_MPS_ENABLED},
    {&cudaDeviceProp::hostNumaId, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID},
    {&cudaDeviceProp::hostNumaMultinodeIpcSupported, CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED},
#endif
};

constexpr UnsignedProperty kLateUnsigneds[] = {
    {&cudaDeviceProp::gpuDirectRDMAFlushWritesOptions, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS},
    {&cudaDeviceProp::memoryPoolSupportedHandleTypes, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES},
#if CUPLEX_CUDART_MAJOR >= 13
    {&cudaDeviceProp::gpuPciDeviceID, CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID},
    {&cudaDeviceProp::gpuPciSubsystemID, CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID},
#endif
};

constexpr SizeProperty kSizes[] = {
    {&cudaDeviceProp::sharedMemPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK},
    {&cudaDeviceProp::memPitch, CU_DEVICE_ATTRIBUTE_MAX_PITCH},
    {&cudaDeviceProp::totalConstMem, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY},
    {&cudaDeviceProp::textureAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT},
    {&cudaDeviceProp::texturePitchAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT},
    {&cudaDeviceProp::surfaceAlignment, CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT},
    {&cudaDeviceProp::sharedMemPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::sharedMemPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
    {&cudaDeviceProp::reservedSharedMemPerBlock, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK},
};

struct Dimensions {
  size_t offset;  // of an int array in cudaDeviceProp
  CUdevice_attribute attributes[3];
  int count;
};
#define CUPLEX_AT(member) offsetof(cudaDeviceProp, member)
constexpr Dimensions kDimensions[] = {
    {CUPLEX_AT(maxThreadsDim), {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z}, 3},
    {CUPLEX_AT(maxGridSize), {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z}, 3},
    {CUPLEX_AT(maxTexture2D), {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT}, 2},
    {CUPLEX_AT(maxTexture2DMipmap), {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT}, 2},
    {CUPLEX_AT(maxTexture2DLinear), {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH}, 3},
    {CUPLEX_AT(maxTexture2DGather), {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT}, 2},
    {CUPLEX_AT(maxTexture3D), {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH}, 3},
    {CUPLEX_AT(maxTexture3DAlt), {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE}, 3},
    {CUPLEX_AT(maxTexture1DLayered), {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS}, 2},
    {CUPLEX_AT(maxTexture2DLayered), {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS}, 3},
    {CUPLEX_AT(maxTextureCubemapLayered), {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS}, 2},
    {CUPLEX_AT(maxSurface2D), {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT}, 2},
    {CUPLEX_AT(maxSurface3D), {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH}, 3},
    {CUPLEX_AT(maxSurface1DLayered), {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS}, 2},
    {CUPLEX_AT(maxSurface2DLayered), {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS}, 3},
    {CUPLEX_AT(maxSurfaceCubemapLayered), {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS}, 2},
};
#undef CUPLEX_AT
// clang-format on

cudaError_t Fill(cudaDeviceProp* properties, int device) {
  return InDriver([&](const DriverTable& cu) {
    int count = 0;
    RUNTIME_TRY(FromDriver(cu.cuDeviceGetCount(&count)));
    if (device < 0 || device >= count) return cudaErrorInvalidDevice;
    CUdevice number;
    RUNTIME_TRY(FromDriver(cu.cuDeviceGet(&number, device)));
    // An attribute that the driver does not know is a feature it does not have.
    auto get = [&](CUdevice_attribute attribute) {
      int value = 0;
      return cu.cuDeviceGetAttribute(&value, attribute, number) == CUDA_SUCCESS ? value : 0;
    };
    *properties = {};
    RUNTIME_TRY(FromDriver(cu.cuDeviceGetName(properties->name, sizeof(properties->name), number)));
    RUNTIME_TRY(FromDriver(cu.cuDeviceTotalMem_v2(&properties->totalGlobalMem, number)));
    if (cu.cuDeviceGetUuid_v2(&properties->uuid, number) != CUDA_SUCCESS) properties->uuid = {};
    for (const IntProperty& p : kInts) properties->*p.member = get(p.attribute);
    for (const IntProperty& p : kLateInts) properties->*p.member = get(p.attribute);
    for (const UnsignedProperty& p : kLateUnsigneds)
      properties->*p.member = static_cast<unsigned>(get(p.attribute));
    for (const SizeProperty& p : kSizes) properties->*p.member = static_cast<size_t>(get(p.attribute));
    for (const Dimensions& d : kDimensions) {
      for (int i = 0; i < d.count; ++i) {
        int value = get(d.attributes[i]);
        memcpy(reinterpret_cast<char*>(properties) + d.offset + i * sizeof(int), &value, sizeof(value));
      }
    }
    return cudaSuccess;
  });
}

}  // namespace

#if CUPLEX_CUDART_MAJOR == 12
cudaError_t GetDeviceProperties_v2(cudaDeviceProp* properties, int device) {
  return properties ? Fill(properties, device) : cudaErrorInvalidValue;
}

// Programs that call the name without _v2 were built against a struct that ended before CUDA 12's members.
cudaError_t GetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!properties) return cudaErrorInvalidValue;
  cudaDeviceProp whole;
  RUNTIME_TRY(Fill(&whole, device));
  memcpy(static_cast<void*>(properties), &whole, offsetof(cudaDeviceProp, hostRegisterSupported));
  return cudaSuccess;
}
#else
cudaError_t GetDeviceProperties(cudaDeviceProp* properties, int device) {
  return properties ? Fill(properties, device) : cudaErrorInvalidValue;
}
#endif

}  // namespace cuplex::runtime
