// The runtime API's types, laid out as CUDA 13.0 (CUPLEX_CUDART_MAJOR 13) and CUDA 12.9 (12) lay them out.
// Data.
//
// Names are those of NVIDIA's driver_types.h and stand in the global namespace; never include both
// (abi_check.cc wraps this one in a namespace to hold the two against each other). Here is what the carried
// calls read and no more: an enumeration whose values pass through unread to the driver, which numbers them
// alike, has no enumerators.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "client/runtime/runtime_errors.h"
#include "cuda/driver_types.h"

#if CUPLEX_CUDART_MAJOR == 13
#define CUDART_VERSION 13000
#elif CUPLEX_CUDART_MAJOR == 12
#define CUDART_VERSION 12090
#else
#error "CUPLEX_CUDART_MAJOR is the runtime's major version: 12 or 13."
#endif

// clang-format off

struct dim3 { unsigned int x = 1, y = 1, z = 1; };
struct uint3 { unsigned int x, y, z; };

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
using cudaFunction_t = struct CUfunc_st*;
using cudaKernel_t = struct CUkern_st*;
using cudaLibrary_t = struct CUlib_st*;
using cudaMemPool_t = struct CUmemPoolHandle_st*;
using cudaGraph_t = struct CUgraph_st*;
using cudaGraphNode_t = struct CUgraphNode_st*;
using cudaGraphExec_t = struct CUgraphExec_st*;
using cudaUserObject_t = struct CUuserObject_st*;
using cudaArray_t = struct cudaArray*;
using cudaArray_const_t = const struct cudaArray*;
using cudaMipmappedArray_t = struct cudaMipmappedArray*;
using cudaMipmappedArray_const_t = const struct cudaMipmappedArray*;
using cudaTextureObject_t = unsigned long long;
using cudaSurfaceObject_t = unsigned long long;
using cudaUUID_t = struct CUuuid_st;

#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)
#define cudaInvalidDeviceId (-2)

using cudaHostFn_t = void (*)(void*);
using cudaStreamCallback_t = void (*)(cudaStream_t, cudaError_t, void*);

// Numbered as their driver twins: CUdevice_attribute, CUfunction_attribute, CUlimit, CUfunc_cache, CUsharedconfig,
// CUmem_advise, CUmemPool_attribute, CUmemAccess_flags, CUdevice_P2PAttribute, CUjit_option, CUlibraryOption,
// CUlaunchAttributeID, CUmemLocationType, CUmemAllocationType, CUmemAllocationHandleType, CUstreamCaptureMode.
enum cudaDeviceAttr : unsigned int {};
enum cudaFuncAttribute : unsigned int {};
enum cudaLimit : unsigned int {};
enum cudaFuncCache : unsigned int {};
enum cudaSharedMemConfig : unsigned int {};
enum cudaMemoryAdvise : unsigned int {};
enum cudaMemPoolAttr : unsigned int {};
enum cudaMemAccessFlags : unsigned int {};
enum cudaDeviceP2PAttr : unsigned int {};
enum cudaJitOption : unsigned int {};
enum cudaLibraryOption : unsigned int {};
enum cudaLaunchAttributeID : unsigned int {};
enum cudaStreamCaptureMode : unsigned int {};

enum cudaMemoryType {
  cudaMemoryTypeUnregistered = 0,
  cudaMemoryTypeHost = 1,
  cudaMemoryTypeDevice = 2,
  cudaMemoryTypeManaged = 3,
};

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};

enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone = 0,
  cudaStreamCaptureStatusActive = 1,
  cudaStreamCaptureStatusInvalidated = 2,
};

enum cudaDriverEntryPointQueryResult {
  cudaDriverEntryPointSuccess = 0,
  cudaDriverEntryPointSymbolNotFound = 1,
  cudaDriverEntryPointVersionNotSufficent = 2,
};

enum cudaChannelFormatKind : unsigned int {
  cudaChannelFormatKindSigned = 0,
  cudaChannelFormatKindUnsigned = 1,
  cudaChannelFormatKindFloat = 2,
  cudaChannelFormatKindNone = 3,
  cudaChannelFormatKindUnsignedNormalized8X1 = 5,
  cudaChannelFormatKindSignedNormalized16X4 = 16,  // the last of a run as CUarray_format has it
};

// Numbered as CUresourcetype, CUaddress_mode, CUfilter_mode, CUresourceViewFormat.
enum cudaResourceType : unsigned int {
  cudaResourceTypeArray = 0,
  cudaResourceTypeMipmappedArray = 1,
  cudaResourceTypeLinear = 2,
  cudaResourceTypePitch2D = 3,
};
enum cudaTextureAddressMode : unsigned int {};
enum cudaTextureFilterMode : unsigned int {};
enum cudaResourceViewFormat : unsigned int {};
enum cudaTextureReadMode : unsigned int { cudaReadModeElementType = 0, cudaReadModeNormalizedFloat = 1 };

struct cudaChannelFormatDesc {
  int x, y, z, w;
  enum cudaChannelFormatKind f;
};

struct cudaPitchedPtr {
  void* ptr;
  size_t pitch;  // bytes
  size_t xsize;
  size_t ysize;
};

struct cudaExtent {
  size_t width;  // bytes, where no array takes part
  size_t height;
  size_t depth;
};

struct cudaPos {
  size_t x, y, z;
};

struct cudaMemcpy3DParms {
  cudaArray_t srcArray;
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  cudaArray_t dstArray;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  cudaExtent extent;
  cudaMemcpyKind kind;
};

struct cudaResourceDesc {
  enum cudaResourceType resType;
  union {
    struct {
      cudaArray_t array;
    } array;
    struct {
      cudaMipmappedArray_t mipmap;
    } mipmap;
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      size_t sizeInBytes;
    } linear;
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      size_t width;  // texels
      size_t height;
      size_t pitchInBytes;
    } pitch2D;
#if CUPLEX_CUDART_MAJOR >= 13
    struct {
      int reserved[32];
    } reserved;
#endif
  } res;
#if CUPLEX_CUDART_MAJOR >= 13
  unsigned int flags;
#endif
};

struct cudaResourceViewDesc {
  enum cudaResourceViewFormat format;
  size_t width, height, depth;
  unsigned int firstMipmapLevel, lastMipmapLevel, firstLayer, lastLayer;
#if CUPLEX_CUDART_MAJOR >= 13
  unsigned int reserved[16];
#endif
};

struct cudaTextureDesc {
  enum cudaTextureAddressMode addressMode[3];
  enum cudaTextureFilterMode filterMode;
  enum cudaTextureReadMode readMode;
  int sRGB;
  float borderColor[4];
  int normalizedCoords;
  unsigned int maxAnisotropy;
  enum cudaTextureFilterMode mipmapFilterMode;
  float mipmapLevelBias;
  float minMipmapLevelClamp;
  float maxMipmapLevelClamp;
  int disableTrilinearOptimization;
  int seamlessCubemap;
};

// The driver's own structs under the runtime's names.
using cudaArrayMemoryRequirements = CUDA_ARRAY_MEMORY_REQUIREMENTS;
using cudaMemLocation = CUmemLocation;
using cudaMemAccessDesc = CUmemAccessDesc;
using cudaMemPoolProps = CUmemPoolProps;
using cudaIpcMemHandle_t = CUipcMemHandle;
using cudaIpcEventHandle_t = CUipcEventHandle;
using cudaLaunchAttributeValue = CUlaunchAttributeValue;
using cudaLaunchAttribute = CUlaunchAttribute;
using cudaGraphEdgeData = CUgraphEdgeData;
using cudaGraphNodeType = CUgraphNodeType;
using cudaGraphMemAttributeType = CUgraphMem_attribute;
using cudaGraphInstantiateParams = CUDA_GRAPH_INSTANTIATE_PARAMS;
using cudaGraphExecUpdateResultInfo = CUgraphExecUpdateResultInfo;
using cudaHostNodeParams = CUDA_HOST_NODE_PARAMS;
using cudaMemAllocNodeParams = CUDA_MEM_ALLOC_NODE_PARAMS;

struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned int numAttrs;
};

struct cudaKernelNodeParams {
  void* func;
  dim3 gridDim;
  dim3 blockDim;
  unsigned int sharedMemBytes;
  void** kernelParams;
  void** extra;
};

struct cudaMemsetParams {
  void* dst;
  size_t pitch;  // bytes
  unsigned int value;
  unsigned int elementSize;
  size_t width;  // elements
  size_t height;
};

struct cudaMemcpyNodeParams {
  int flags;
  int reserved[3];
  cudaMemcpy3DParms copyParams;
};

// Of external semaphores and conditions there is no more than their room.
struct cudaGraphNodeParams {
  cudaGraphNodeType type;
  int reserved0[3];
  union {
    long long reserved1[29];
    cudaKernelNodeParams kernel;
    cudaMemcpyNodeParams memcpy;
    cudaMemsetParams memset;
    cudaHostNodeParams host;
    CUDA_CHILD_GRAPH_NODE_PARAMS graph;
    CUDA_EVENT_WAIT_NODE_PARAMS eventWait;
    CUDA_EVENT_RECORD_NODE_PARAMS eventRecord;
    cudaMemAllocNodeParams alloc;
    CUDA_MEM_FREE_NODE_PARAMS free;
  };
  long long reserved2;
};

struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
  void* devicePointer;
  void* hostPointer;
#if CUPLEX_CUDART_MAJOR >= 13
  long reserved[8];
#endif
};

struct cudaFuncAttributes {
  size_t sharedSizeBytes;
  size_t constSizeBytes;
  size_t localSizeBytes;
  int maxThreadsPerBlock;
  int numRegs;
  int ptxVersion;
  int binaryVersion;
  int cacheModeCA;
  int maxDynamicSharedSizeBytes;
  int preferredShmemCarveout;
  int clusterDimMustBeSet;
  int requiredClusterWidth;
  int requiredClusterHeight;
  int requiredClusterDepth;
  int clusterSchedulingPolicyPreference;
  int nonPortableClusterSizeAllowed;
  int reserved[16];
};

struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  char luid[8];
  unsigned int luidDeviceNodeMask;
  size_t totalGlobalMem;
  size_t sharedMemPerBlock;
  int regsPerBlock;
  int warpSize;
  size_t memPitch;
  int maxThreadsPerBlock;
  int maxThreadsDim[3];
  int maxGridSize[3];
#if CUPLEX_CUDART_MAJOR == 12
  int clockRate;
#endif
  size_t totalConstMem;
  int major;
  int minor;
  size_t textureAlignment;
  size_t texturePitchAlignment;
#if CUPLEX_CUDART_MAJOR == 12
  int deviceOverlap;
#endif
  int multiProcessorCount;
#if CUPLEX_CUDART_MAJOR == 12
  int kernelExecTimeoutEnabled;
#endif
  int integrated;
  int canMapHostMemory;
#if CUPLEX_CUDART_MAJOR == 12
  int computeMode;
#endif
  int maxTexture1D;
  int maxTexture1DMipmap;
#if CUPLEX_CUDART_MAJOR == 12
  int maxTexture1DLinear;
#endif
  int maxTexture2D[2];
  int maxTexture2DMipmap[2];
  int maxTexture2DLinear[3];
  int maxTexture2DGather[2];
  int maxTexture3D[3];
  int maxTexture3DAlt[3];
  int maxTextureCubemap;
  int maxTexture1DLayered[2];
  int maxTexture2DLayered[3];
  int maxTextureCubemapLayered[2];
  int maxSurface1D;
  int maxSurface2D[2];
  int maxSurface3D[3];
  int maxSurface1DLayered[2];
  int maxSurface2DLayered[3];
  int maxSurfaceCubemap;
  int maxSurfaceCubemapLayered[2];
  size_t surfaceAlignment;
  int concurrentKernels;
  int ECCEnabled;
  int pciBusID;
  int pciDeviceID;
  int pciDomainID;
  int tccDriver;
  int asyncEngineCount;
  int unifiedAddressing;
#if CUPLEX_CUDART_MAJOR == 12
  int memoryClockRate;
#endif
  int memoryBusWidth;
  int l2CacheSize;
  int persistingL2CacheMaxSize;
  int maxThreadsPerMultiProcessor;
  int streamPrioritiesSupported;
  int globalL1CacheSupported;
  int localL1CacheSupported;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor;
  int managedMemory;
  int isMultiGpuBoard;
  int multiGpuBoardGroupID;
  int hostNativeAtomicSupported;
#if CUPLEX_CUDART_MAJOR == 12
  int singleToDoublePrecisionPerfRatio;
#endif
  int pageableMemoryAccess;
  int concurrentManagedAccess;
  int computePreemptionSupported;
  int canUseHostPointerForRegisteredMem;
  int cooperativeLaunch;
#if CUPLEX_CUDART_MAJOR == 12
  int cooperativeMultiDeviceLaunch;
#endif
  size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables;
  int directManagedMemAccessFromHost;
  int maxBlocksPerMultiProcessor;
  int accessPolicyMaxWindowSize;
  size_t reservedSharedMemPerBlock;
  int hostRegisterSupported;
  int sparseCudaArraySupported;
  int hostRegisterReadOnlySupported;
  int timelineSemaphoreInteropSupported;
  int memoryPoolsSupported;
  int gpuDirectRDMASupported;
  unsigned int gpuDirectRDMAFlushWritesOptions;
  int gpuDirectRDMAWritesOrdering;
  unsigned int memoryPoolSupportedHandleTypes;
  int deferredMappingCudaArraySupported;
  int ipcEventSupported;
  int clusterLaunch;
  int unifiedFunctionPointers;
#if CUPLEX_CUDART_MAJOR == 12
  int reserved[63];
#else
  int deviceNumaConfig;
  int deviceNumaId;
  int mpsEnabled;
  int hostNumaId;
  unsigned int gpuPciDeviceID;
  unsigned int gpuPciSubsystemID;
  int hostNumaMultinodeIpcSupported;
  int reserved[56];
#endif
};

// clang-format on

#if CUPLEX_CUDART_MAJOR == 13
static_assert(sizeof(cudaDeviceProp) == 1008 && sizeof(cudaPointerAttributes) == 88);
#else
static_assert(sizeof(cudaDeviceProp) == 1032 && sizeof(cudaPointerAttributes) == 24);
#endif
static_assert(sizeof(cudaFuncAttributes) == 144 && sizeof(cudaMemPoolProps) == 88);
static_assert(sizeof(cudaLaunchAttributeValue) == 64 && sizeof(cudaLaunchAttribute) == 72);
