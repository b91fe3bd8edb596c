// Nodes of graphs, but for those that copy.
#include "client/runtime/graph_node.h"

#include "client/runtime/calls.h"
#include "client/runtime/copy.h"

namespace cuplex::runtime {
namespace {

cudaError_t AddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                    const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* params) {
  return WhereEntered([&](const Entered& in) -> cudaError_t {
    CUgraphNodeParams given;
    RUNTIME_TRY(ToDriver(in, params, &given));
    RUNTIME_TRY(AsError(in.driver->cuGraphAddNode_v2(node, graph, dependencies, edges, count, &given)));
    if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) params->alloc.dptr = given.alloc.dptr;
    return cudaSuccess;
  });
}

}  // namespace

cudaError_t ToDriver(const Entered& in, const cudaKernelNodeParams* given, CUDA_KERNEL_NODE_PARAMS* out) {
  if (!given) return cudaErrorInvalidValue;
  Kernel* kernel = Root().FindKernel(given->func);
  if (!kernel) return cudaErrorInvalidDeviceFunction;
  *out = {};
  RUNTIME_TRY(Root().FunctionOf(in, *kernel, &out->func));
  out->gridDimX = given->gridDim.x;
  out->gridDimY = given->gridDim.y;
  out->gridDimZ = given->gridDim.z;
  out->blockDimX = given->blockDim.x;
  out->blockDimY = given->blockDim.y;
  out->blockDimZ = given->blockDim.z;
  out->sharedMemBytes = given->sharedMemBytes;
  out->kernelParams = given->kernelParams;
  out->extra = given->extra;
  return cudaSuccess;
}

cudaError_t ToDriver(const cudaMemsetParams* given, CUDA_MEMSET_NODE_PARAMS* out) {
  if (!given) return cudaErrorInvalidValue;
  *out = {Device(given->dst), given->pitch, given->value, given->elementSize, given->width, given->height};
  return cudaSuccess;
}

cudaError_t ToDriver(const Entered& in, const cudaGraphNodeParams* given, CUgraphNodeParams* out) {
  if (!given) return cudaErrorInvalidValue;
  *out = {};
  out->type = given->type;
  switch (given->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return ToDriver(in, &given->kernel, &out->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      out->memcpy.flags = given->memcpy.flags;
      out->memcpy.copyCtx = in.context->handle;
      return Describe3D(*in.driver, &given->memcpy.copyParams, &out->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      CUDA_MEMSET_NODE_PARAMS fill;
      RUNTIME_TRY(ToDriver(&given->memset, &fill));
      out->memset = {fill.dst,   fill.pitch,  fill.value,        fill.elementSize,
                     fill.width, fill.height, in.context->handle};
      return cudaSuccess;
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      out->host = {given->host.fn, given->host.userData};
      return cudaSuccess;
    case CU_GRAPH_NODE_TYPE_GRAPH:
      out->graph = given->graph;
      return cudaSuccess;
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return cudaSuccess;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      out->eventWait = given->eventWait;
      return cudaSuccess;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      out->eventRecord = given->eventRecord;
      return cudaSuccess;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      out->alloc = given->alloc;
      return cudaSuccess;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      out->free = given->free;
      return cudaSuccess;
    default:
      return cudaErrorNotSupported;
  }
}

#if CUPLEX_CUDART_MAJOR == 12
cudaError_t GraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                         size_t count, cudaGraphNodeParams* params) {
  return AddNode(node, graph, dependencies, nullptr, count, params);
}

cudaError_t GraphAddNode_v2(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                            const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* params) {
#else
cudaError_t GraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                         const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* params) {
#endif
  return AddNode(node, graph, dependencies, edges, count, params);
}

cudaError_t GraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* params) {
  return WhereEntered([&](const Entered& in) -> cudaError_t {
    CUgraphNodeParams given;
    RUNTIME_TRY(ToDriver(in, params, &given));
    return AsError(in.driver->cuGraphNodeSetParams(node, &given));
  });
}

cudaError_t GraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                               size_t count, const cudaKernelNodeParams* params) {
  return WhereEntered([&](const Entered& in) -> cudaError_t {
    CUDA_KERNEL_NODE_PARAMS given;
    RUNTIME_TRY(ToDriver(in, params, &given));
    return AsError(in.driver->cuGraphAddKernelNode_v2(node, graph, dependencies, count, &given));
  });
}

cudaError_t GraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* params) {
  return WhereEntered([&](const Entered& in) -> cudaError_t {
    if (!params) return cudaErrorInvalidValue;
    CUDA_KERNEL_NODE_PARAMS kept{};
    RUNTIME_TRY(AsError(in.driver->cuGraphKernelNodeGetParams_v2(node, &kept)));
    const CUfunction function = kept.func ? kept.func : reinterpret_cast<CUfunction>(kept.kern);
    *params = {const_cast<void*>(Root().HostOf(in, function)),
               {kept.gridDimX, kept.gridDimY, kept.gridDimZ},
               {kept.blockDimX, kept.blockDimY, kept.blockDimZ},
               kept.sharedMemBytes,
               kept.kernelParams,
               kept.extra};
    return cudaSuccess;
  });
}

cudaError_t GraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* params) {
  return WhereEntered([&](const Entered& in) -> cudaError_t {
    CUDA_KERNEL_NODE_PARAMS given;
    RUNTIME_TRY(ToDriver(in, params, &given));
    return AsError(in.driver->cuGraphKernelNodeSetParams_v2(node, &given));
  });
}

cudaError_t GraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphKernelNodeCopyAttributes(to, from); });
}

cudaError_t GraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                        cudaLaunchAttributeValue* value) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuGraphKernelNodeGetAttribute(node, static_cast<CUkernelNodeAttrID>(attribute), value);
  });
}

cudaError_t GraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                        const cudaLaunchAttributeValue* value) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuGraphKernelNodeSetAttribute(node, static_cast<CUkernelNodeAttrID>(attribute), value);
  });
}

cudaError_t GraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                               size_t count, const cudaMemsetParams* params) {
  return WhereEntered([&](const Entered& in) -> cudaError_t {
    CUDA_MEMSET_NODE_PARAMS given;
    RUNTIME_TRY(ToDriver(params, &given));
    return AsError(
        in.driver->cuGraphAddMemsetNode(node, graph, dependencies, count, &given, in.context->handle));
  });
}

cudaError_t GraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* params) {
  return InContext([&](const DriverTable& cu) -> cudaError_t {
    if (!params) return cudaErrorInvalidValue;
    CUDA_MEMSET_NODE_PARAMS kept;
    RUNTIME_TRY(AsError(cu.cuGraphMemsetNodeGetParams(node, &kept)));
    *params = {Pointer(kept.dst), kept.pitch, kept.value, kept.elementSize, kept.width, kept.height};
    return cudaSuccess;
  });
}

cudaError_t GraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* params) {
  return InContext([&](const DriverTable& cu) -> cudaError_t {
    CUDA_MEMSET_NODE_PARAMS given;
    RUNTIME_TRY(ToDriver(params, &given));
    return AsError(cu.cuGraphMemsetNodeSetParams(node, &given));
  });
}

cudaError_t GraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                             size_t count, const cudaHostNodeParams* params) {
  return InContext(
      [&](const DriverTable& cu) { return cu.cuGraphAddHostNode(node, graph, dependencies, count, params); });
}

cudaError_t GraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* params) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphHostNodeGetParams(node, params); });
}

cudaError_t GraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* params) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphHostNodeSetParams(node, params); });
}

cudaError_t GraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count, cudaGraph_t child) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuGraphAddChildGraphNode(node, graph, dependencies, count, child);
  });
}

cudaError_t GraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* graph) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphChildGraphNodeGetGraph(node, graph); });
}

cudaError_t GraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                              size_t count) {
  return InContext(
      [&](const DriverTable& cu) { return cu.cuGraphAddEmptyNode(node, graph, dependencies, count); });
}

cudaError_t GraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                    const cudaGraphNode_t* dependencies, size_t count, cudaEvent_t event) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuGraphAddEventRecordNode(node, graph, dependencies, count, event);
  });
}

cudaError_t GraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphEventRecordNodeGetEvent(node, event); });
}

cudaError_t GraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphEventRecordNodeSetEvent(node, event); });
}

cudaError_t GraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                  const cudaGraphNode_t* dependencies, size_t count, cudaEvent_t event) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuGraphAddEventWaitNode(node, graph, dependencies, count, event);
  });
}

cudaError_t GraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphEventWaitNodeGetEvent(node, event); });
}

cudaError_t GraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphEventWaitNodeSetEvent(node, event); });
}

cudaError_t GraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                 const cudaGraphNode_t* dependencies, size_t count,
                                 cudaMemAllocNodeParams* params) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuGraphAddMemAllocNode(node, graph, dependencies, count, params);
  });
}

cudaError_t GraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams* params) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphMemAllocNodeGetParams(node, params); });
}

cudaError_t GraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                size_t count, void* address) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuGraphAddMemFreeNode(node, graph, dependencies, count, Device(address));
  });
}

cudaError_t GraphMemFreeNodeGetParams(cudaGraphNode_t node, void* address) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuGraphMemFreeNodeGetParams(node, static_cast<CUdeviceptr*>(address));
  });
}

}  // namespace cuplex::runtime
