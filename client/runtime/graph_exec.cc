// Graphs made ready to run: instantiating, launching, changing.
#include "client/runtime/calls.h"
#include "client/runtime/graph_node.h"

namespace cuplex::runtime {

cudaError_t GraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphInstantiateWithFlags(exec, graph, flags); });
}

cudaError_t GraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return GraphInstantiate(exec, graph, flags);
}

cudaError_t GraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph,
                                       cudaGraphInstantiateParams* params) {
  return InContext(
      [&](const DriverTable& cu) { return cu.cuGraphInstantiateWithParams(exec, graph, params); });
}

cudaError_t GraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  return InContext([&](const DriverTable& cu) -> cudaError_t {
    if (!flags) return cudaErrorInvalidValue;
    cuuint64_t kept = 0;
    RUNTIME_TRY(AsError(cu.cuGraphExecGetFlags(exec, &kept)));
    *flags = kept;
    return cudaSuccess;
  });
}

cudaError_t GraphExecDestroy(cudaGraphExec_t exec) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphExecDestroy(exec); });
}

cudaError_t GraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphExecUpdate_v2(exec, graph, info); });
}

cudaError_t GraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphLaunch(exec, stream); });
}

cudaError_t GraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphUpload(exec, stream); });
}

cudaError_t GraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int enabled) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphNodeSetEnabled(exec, node, enabled); });
}

cudaError_t GraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int* enabled) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphNodeGetEnabled(exec, node, enabled); });
}

cudaError_t GraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraphNodeParams* params) {
  return WhereEntered([&](const Entered& in) -> cudaError_t {
    CUgraphNodeParams given;
    RUNTIME_TRY(ToDriver(in, params, &given));
    return AsError(in.driver->cuGraphExecNodeSetParams(exec, node, &given));
  });
}

cudaError_t GraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                         const cudaKernelNodeParams* params) {
  return WhereEntered([&](const Entered& in) -> cudaError_t {
    CUDA_KERNEL_NODE_PARAMS given;
    RUNTIME_TRY(ToDriver(in, params, &given));
    return AsError(in.driver->cuGraphExecKernelNodeSetParams_v2(exec, node, &given));
  });
}

cudaError_t GraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                         const cudaMemsetParams* params) {
  return WhereEntered([&](const Entered& in) -> cudaError_t {
    CUDA_MEMSET_NODE_PARAMS given;
    RUNTIME_TRY(ToDriver(params, &given));
    return AsError(in.driver->cuGraphExecMemsetNodeSetParams(exec, node, &given, in.context->handle));
  });
}

cudaError_t GraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                       const cudaHostNodeParams* params) {
  return InContext(
      [&](const DriverTable& cu) { return cu.cuGraphExecHostNodeSetParams(exec, node, params); });
}

cudaError_t GraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child) {
  return InContext(
      [&](const DriverTable& cu) { return cu.cuGraphExecChildGraphNodeSetParams(exec, node, child); });
}

cudaError_t GraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event) {
  return InContext(
      [&](const DriverTable& cu) { return cu.cuGraphExecEventRecordNodeSetEvent(exec, node, event); });
}

cudaError_t GraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event) {
  return InContext(
      [&](const DriverTable& cu) { return cu.cuGraphExecEventWaitNodeSetEvent(exec, node, event); });
}

}  // namespace cuplex::runtime
