// Holds our declarations against NVIDIA's cuda.h, where it is installed: built and never run.
//
// Ours are wrapped in a namespace, so types differ by name; what must agree is each argument's size and kind.
#include <cstddef>
#include <cstdint>
#include <type_traits>

#define __CUDA_API_VERSION_INTERNAL  // cuda.h then declares every exported form under its own name
#include <cuda.h>
#include <cudaProfiler.h>
#undef CU_IPC_HANDLE_SIZE
#undef CU_STREAM_LEGACY
#undef CU_STREAM_PER_THREAD
#undef CU_LAUNCH_PARAM_END
#undef CU_LAUNCH_PARAM_BUFFER_POINTER
#undef CU_LAUNCH_PARAM_BUFFER_SIZE
#undef CU_MEMHOSTALLOC_PORTABLE
#undef CU_MEMHOSTALLOC_DEVICEMAP
#undef CU_MEMHOSTALLOC_WRITECOMBINED
#undef CU_MEMHOSTREGISTER_PORTABLE
#undef CU_MEMHOSTREGISTER_DEVICEMAP
#undef CU_MEMHOSTREGISTER_IOMEMORY
#undef CU_MEMHOSTREGISTER_READ_ONLY
#undef CU_DEVICE_CPU
#undef CU_DEVICE_INVALID
#undef CUDA_VERSION
#undef CUDAAPI
#undef CUDA_CB

#define CUPLEX_ABI_CHECK
namespace ours {
#include "cuda/driver_api.h"
}

namespace {

template <typename A, typename B>
constexpr bool SameArgument() {
  return sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> &&
         std::is_floating_point_v<A> == std::is_floating_point_v<B> &&
         std::is_class_v<A> == std::is_class_v<B>;
}

template <typename A, typename B>
struct SameCall : std::false_type {};
template <typename R, typename S, typename... A, typename... B>
  requires(sizeof...(A) == sizeof...(B))
struct SameCall<R(A...), S(B...)>
    : std::bool_constant<(SameArgument<A, B>() && ... && (sizeof(R) == sizeof(S)))> {};

#define CHECK_CALL(name) static_assert(SameCall<decltype(::name), decltype(ours::name)>::value, #name)
#include "cuda/abi_calls.inc"

#define CHECK_SIZE(type) \
  static_assert(sizeof(::type) == sizeof(ours::type) && alignof(::type) == alignof(ours::type))
CHECK_SIZE(CUuuid);
CHECK_SIZE(CUdevResource);
CHECK_SIZE(CUdevSmResource);
CHECK_SIZE(CUexecAffinityParam);
CHECK_SIZE(CUDA_MEMCPY2D);
CHECK_SIZE(CUDA_MEMCPY3D);
CHECK_SIZE(CUDA_MEMCPY3D_PEER);
CHECK_SIZE(CUDA_ARRAY_DESCRIPTOR);
CHECK_SIZE(CUDA_ARRAY3D_DESCRIPTOR);
CHECK_SIZE(CUDA_ARRAY_MEMORY_REQUIREMENTS);
CHECK_SIZE(CUDA_RESOURCE_DESC);
CHECK_SIZE(CUDA_RESOURCE_VIEW_DESC);
CHECK_SIZE(CUDA_TEXTURE_DESC);
CHECK_SIZE(CUDA_KERNEL_NODE_PARAMS);
CHECK_SIZE(CUDA_MEMSET_NODE_PARAMS);
CHECK_SIZE(CUDA_HOST_NODE_PARAMS);
CHECK_SIZE(CUDA_KERNEL_NODE_PARAMS_v1);
CHECK_SIZE(CUDA_KERNEL_NODE_PARAMS_v3);
CHECK_SIZE(CUDA_MEMSET_NODE_PARAMS_v2);
CHECK_SIZE(CUDA_MEMCPY_NODE_PARAMS);
CHECK_SIZE(CUDA_MEM_ALLOC_NODE_PARAMS_v1);
CHECK_SIZE(CUDA_MEM_ALLOC_NODE_PARAMS_v2);
CHECK_SIZE(CUDA_MEM_FREE_NODE_PARAMS);
CHECK_SIZE(CUDA_CHILD_GRAPH_NODE_PARAMS);
CHECK_SIZE(CUDA_EVENT_RECORD_NODE_PARAMS);
CHECK_SIZE(CUDA_EVENT_WAIT_NODE_PARAMS);
CHECK_SIZE(CUDA_GRAPH_INSTANTIATE_PARAMS);
CHECK_SIZE(CUgraphEdgeData);
CHECK_SIZE(CUgraphExecUpdateResultInfo);
CHECK_SIZE(CUgraphNodeParams);
CHECK_SIZE(CUDA_LAUNCH_PARAMS);
CHECK_SIZE(CUdevprop);
CHECK_SIZE(CUlaunchConfig);
CHECK_SIZE(CUlaunchAttribute);
CHECK_SIZE(CUlaunchAttributeValue);
CHECK_SIZE(CUctxCreateParams);
CHECK_SIZE(CUexecAffinityParam);
CHECK_SIZE(CUmemAllocationProp);
CHECK_SIZE(CUmemAccessDesc);
CHECK_SIZE(CUmemLocation);
CHECK_SIZE(CUmemPoolProps);
CHECK_SIZE(CUipcMemHandle);
CHECK_SIZE(CUipcEventHandle);
CHECK_SIZE(CUDA_RESOURCE_DESC);
CHECK_SIZE(CUDA_TEXTURE_DESC);
CHECK_SIZE(CUDA_RESOURCE_VIEW_DESC);

#define CHECK_FIELD(type, field) static_assert(offsetof(::type, field) == offsetof(ours::type, field))
CHECK_FIELD(CUDA_MEMCPY2D, dstXInBytes);
CHECK_FIELD(CUDA_MEMCPY2D, Height);
CHECK_FIELD(CUDA_MEMCPY3D, dstHost);
CHECK_FIELD(CUDA_MEMCPY3D, Depth);
CHECK_FIELD(CUlaunchConfig, hStream);
CHECK_FIELD(CUlaunchConfig, attrs);
CHECK_FIELD(CUlaunchConfig, numAttrs);
CHECK_FIELD(CUlaunchAttribute, value);
CHECK_FIELD(CUmemAllocationProp, location);
CHECK_FIELD(CUmemAllocationProp, allocFlags);
CHECK_FIELD(CUmemPoolProps, maxSize);
CHECK_FIELD(CUgraphNodeParams, memcpy);
CHECK_FIELD(CUgraphNodeParams, reserved2);
CHECK_FIELD(CUDA_MEMCPY_NODE_PARAMS, copyParams);
CHECK_FIELD(CUDA_MEM_ALLOC_NODE_PARAMS, dptr);
CHECK_FIELD(CUDA_GRAPH_INSTANTIATE_PARAMS, result_out);
CHECK_FIELD(CUctxCreateParams, cigParams);

#define CHECK_VALUE(name) \
  static_assert(static_cast<long long>(::name) == static_cast<long long>(ours::name), #name)
#include "cuda/abi_values.inc"

}  // namespace
