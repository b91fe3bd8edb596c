// cuGraph* that concern what has been instantiated.
#include "client/exports.h"
#include "client/graph/capture.h"
#include "client/graph/exec.h"
#include "client/graph/locked.h"

namespace cuplex::client {
namespace {

constexpr unsigned long long kKnownFlags =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
    CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

CUresult Instantiate(CUgraphExec* out, CUgraph hGraph, unsigned long long flags, CUgraphNode* error_node) {
  if (error_node) *error_node = nullptr;
  if (!out || (flags & ~kKnownFlags)) return CUDA_ERROR_INVALID_VALUE;
  if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) return CUDA_ERROR_NOT_SUPPORTED;
  LockedCaller in;
  if (CUresult r = in.Enter()) return r;
  Graph* graph = in.graphs->Find(hGraph);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  if (in.graphs->captures.Into(graph)) return CUDA_ERROR_ILLEGAL_STATE;
  GraphExec* exec = nullptr;
  GraphNode* wrong = nullptr;
  if (CUresult r = InstantiateGraph(in, *in.graphs, *graph, flags, &exec, &wrong)) {
    if (error_node && wrong) *error_node = wrong->handle();
    return r;
  }
  *out = exec->exec();
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace cuplex::client

using namespace cuplex::client;
using cuplex::Handle;

extern "C" {

CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
  return Instantiate(out, graph, flags, nullptr);
}

CUresult cuGraphInstantiate_v2(CUgraphExec* out, CUgraph graph, CUgraphNode* error_node, char* log,
                               size_t bytes) {
  if (log && bytes) log[0] = '\0';
  return Instantiate(out, graph, 0, error_node);
}

CUresult cuGraphInstantiate(CUgraphExec* out, CUgraph graph, CUgraphNode* error_node, char* log,
                            size_t bytes) {
  return cuGraphInstantiate_v2(out, graph, error_node, log, bytes);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* out, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  const CUresult r = Instantiate(out, graph, params->flags, &params->hErrNode_out);
  params->result_out = r == CUDA_SUCCESS               ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                       : r == CUDA_ERROR_NOT_SUPPORTED ? CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED
                                                       : CUDA_GRAPH_INSTANTIATE_ERROR;
  if (r || !(params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)) return r;
  return cuGraphUpload(*out, params->hUploadStream);
}

CUresult cuGraphExecGetFlags(CUgraphExec hExec, cuuint64_t* flags) {
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  Locked in;
  if (CUresult r = in.Enter()) return r;
  GraphExec* exec = in.graphs->Find(hExec);
  if (!exec) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec hExec) {
  std::shared_ptr<Graph> gone;  // outside of the lock: what it holds may call the program
  Locked in;
  if (CUresult r = in.Enter()) return r;
  GraphExec* exec = in.graphs->Find(hExec);
  if (!exec) return CUDA_ERROR_INVALID_VALUE;
  gone = DestroyExec(*in.session, *in.graphs, exec);
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec hExec, CUstream hStream) {
  LockedCaller in;
  if (CUresult r = in.Enter()) return r;
  GraphExec* exec = in.graphs->Find(hExec);
  if (!exec) return CUDA_ERROR_INVALID_VALUE;
  if (Capturing(in)) [[unlikely]] {
    // A graph that is launched into a capture becomes a part of what is captured.
    std::shared_ptr<Graph> part = exec->source->Clone();
    CUresult captured;
    in.lock.unlock();
    if (CaptureWork(in, hStream, ChildWork{std::move(part)}, &captured)) return captured;
    in.lock.lock();
    exec = in.graphs->Find(hExec);
    if (!exec) return CUDA_ERROR_INVALID_VALUE;
  }
  Handle stream;
  if (CUresult r = ResolveStream(in, hStream, &stream)) return r;
  return LaunchGraph(in, *in.graphs, *exec, stream);
}

CUresult cuGraphUpload(CUgraphExec hExec, CUstream hStream) {
  LockedCaller in;
  if (CUresult r = in.Enter()) return r;
  Handle stream;
  if (CUresult r = ResolveStream(in, hStream, &stream)) return r;
  return in.graphs->Find(hExec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;  // the server has had it all along
}

CUresult cuGraphExecUpdate_v2(CUgraphExec hExec, CUgraph hGraph, CUgraphExecUpdateResultInfo* info) {
  if (!info) return CUDA_ERROR_INVALID_VALUE;
  *info = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
  LockedCaller in;
  if (CUresult r = in.Enter()) return r;
  GraphExec* exec = in.graphs->Find(hExec);
  Graph* graph = in.graphs->Find(hGraph);
  if (!exec || !graph) return CUDA_ERROR_INVALID_VALUE;
  return UpdateExec(in, *exec, *exec->source, *graph, info);
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                           CUgraphExecUpdateResult* result) {
  CUgraphExecUpdateResultInfo info;
  const CUresult r = cuGraphExecUpdate_v2(exec, graph, &info);
  if (error_node) *error_node = info.errorNode;
  if (result) *result = info.result;
  return r;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec hExec, CUgraphNode hNode, unsigned int enabled) {
  Locked in;
  if (CUresult r = in.Enter()) return r;
  GraphExec* exec = in.graphs->Find(hExec);
  GraphNode* node = in.graphs->Find(hNode);
  GraphExec::Step* step = exec && node ? exec->StepOf(*node) : nullptr;
  if (!step) return CUDA_ERROR_INVALID_VALUE;
  const CUgraphNodeType type = TypeOf(step->node->work);
  if (type != CU_GRAPH_NODE_TYPE_KERNEL && type != CU_GRAPH_NODE_TYPE_MEMCPY &&
      type != CU_GRAPH_NODE_TYPE_MEMSET)
    return CUDA_ERROR_INVALID_VALUE;
  EnableStep(*exec, *step, enabled != 0);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec hExec, CUgraphNode hNode, unsigned int* enabled) {
  if (!enabled) return CUDA_ERROR_INVALID_VALUE;
  Locked in;
  if (CUresult r = in.Enter()) return r;
  GraphExec* exec = in.graphs->Find(hExec);
  GraphNode* node = in.graphs->Find(hNode);
  GraphExec::Step* step = exec && node ? exec->StepOf(*node) : nullptr;
  if (!step) return CUDA_ERROR_INVALID_VALUE;
  *enabled = step->enabled;
  return CUDA_SUCCESS;
}

}  // extern "C"
