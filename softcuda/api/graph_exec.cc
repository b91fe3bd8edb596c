// Graphs that have been instantiated: making, launching and changing them; and the memory of graphs as a
// device counts it.
#include <memory>
#include <utility>

#include "softcuda/exports.h"
#include "softcuda/graph/exec.h"
#include "softcuda/graph/locked.h"
#include "softcuda/graph/recorder.h"

using namespace cuplex;
using namespace cuplex::softcuda;
using cuplex::graph::Graph;
using cuplex::graph::GraphNode;

namespace {

CUresult Make(CUgraphExec* out, CUgraph handle, unsigned long long flags, CUgraphNode* at_fault) {
  constexpr unsigned long long kKnown =
      CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
      CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  if (at_fault) *at_fault = nullptr;
  if (!out || flags & ~kKnown) return CUDA_ERROR_INVALID_VALUE;
  if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) {
    Log().warn("cuGraphInstantiate: softcuda does not carry graphs that kernels launch");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return InGraphContext([&](Context& context, Graphs& graphs) -> CUresult {
    Graph* graph = graphs.Find(handle);
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    if (graphs.captures.Into(graph)) return CUDA_ERROR_ILLEGAL_STATE;
    std::unique_ptr<GraphExec> exec;
    GraphNode* wrong = nullptr;
    if (CUresult failed = Instantiate(context, *graph, flags, &exec, &wrong)) {
      if (at_fault && wrong) *at_fault = wrong->handle();
      return failed;
    }
    graphs.Learn(*exec);
    *out = exec.release()->handle();
    return CUDA_SUCCESS;
  });
}

// f(GraphExec&, size_t step), where the node has become one.
template <typename F>
CUresult WithStep(CUgraphExec exec_handle, CUgraphNode handle, F f) {
  return InGraphs([&](Graphs& graphs) -> CUresult {
    GraphExec* exec = graphs.Find(exec_handle);
    GraphNode* node = graphs.Find(handle);
    const ptrdiff_t step = exec && node ? exec->StepOf(*node) : -1;
    return step < 0 ? CUDA_ERROR_INVALID_VALUE : f(*exec, static_cast<size_t>(step));
  });
}

}  // namespace

CUresult cuGraphInstantiateWithFlags(CUgraphExec* phGraphExec, CUgraph hGraph, unsigned long long flags) {
  return Make(phGraphExec, hGraph, flags, nullptr);
}

CUresult cuGraphInstantiate_v2(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode,
                               char* logBuffer, size_t bufferSize) {
  if (logBuffer && bufferSize) logBuffer[0] = '\0';
  return Make(phGraphExec, hGraph, 0, phErrorNode);
}

CUresult cuGraphInstantiate(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode,
                            char* logBuffer, size_t bufferSize) {
  return cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams) {
  if (!instantiateParams) return CUDA_ERROR_INVALID_VALUE;
  CUDA_GRAPH_INSTANTIATE_PARAMS& params = *instantiateParams;
  const CUresult result = Make(phGraphExec, hGraph, params.flags, &params.hErrNode_out);
  params.result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                      : result == CUDA_ERROR_NOT_SUPPORTED
                          ? CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED
                          : CUDA_GRAPH_INSTANTIATE_ERROR;
  if (result || !(params.flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)) return result;
  return cuGraphUpload(*phGraphExec, params.hUploadStream);
}

CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t* flags) {
  return InGraphs([&](Graphs& graphs) -> CUresult {
    GraphExec* exec = graphs.Find(hGraphExec);
    if (!exec || !flags) return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec) {
  std::unique_ptr<GraphExec> gone;  // outside of the lock: what it holds may call the program
  return InGraphs([&](Graphs& graphs) -> CUresult {
    GraphExec* exec = graphs.Find(hGraphExec);
    if (!exec) return CUDA_ERROR_INVALID_VALUE;
    graphs.Forget(*exec);
    gone.reset(exec);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphLaunch(CUgraphExec hGraph, CUstream hStream) {
  return InContext([&](Context& context) -> CUresult {
    Graphs& graphs = context.driver.graphs;
    std::unique_ptr<Graph> part;
    {
      Submission submission(context, hStream, Submission::Captured::kTake);
      if (submission.result) return submission.result;
      if (submission.captured()) [[unlikely]] {
        // A graph that is launched into a capture becomes a part of what is captured.
        CapturedStream to(submission);
        {
          std::lock_guard guard(graphs.lock);
          GraphExec* exec = graphs.Find(hGraph);
          if (!exec) return CUDA_ERROR_INVALID_VALUE;
          if (exec->source->HasMemory()) return CUDA_ERROR_NOT_SUPPORTED;
          part = exec->source->Clone();
        }
        return to.Append(graph::ChildWork{std::move(part)});
      }
    }
    std::lock_guard guard(graphs.lock);
    GraphExec* exec = graphs.Find(hGraph);
    return exec ? LaunchExec(context, *exec, hStream) : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphUpload(CUgraphExec hGraph, CUstream hStream) {
  return InContext([&](Context& context) -> CUresult {
    {
      Submission submission(context, hStream);
      if (submission.result) return submission.result;
    }
    std::lock_guard guard(context.driver.graphs.lock);
    // All there is to do was done when it was instantiated.
    return context.driver.graphs.Find(hGraph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                              CUgraphExecUpdateResultInfo* resultInfo) {
  return InGraphContext([&](Context& context, Graphs& graphs) -> CUresult {
    if (!resultInfo) return CUDA_ERROR_INVALID_VALUE;
    *resultInfo = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
    GraphExec* exec = graphs.Find(hGraphExec);
    Graph* graph = graphs.Find(hGraph);
    if (!exec || !graph) return CUDA_ERROR_INVALID_VALUE;
    return UpdateExec(context, *exec, *exec->source, *graph, resultInfo);
  });
}

CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode* hErrorNode_out,
                           CUgraphExecUpdateResult* updateResult_out) {
  CUgraphExecUpdateResultInfo info = {CU_GRAPH_EXEC_UPDATE_ERROR, nullptr, nullptr};
  const CUresult result = cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);
  if (hErrorNode_out) *hErrorNode_out = info.errorNode;
  if (updateResult_out) *updateResult_out = info.result;
  return result;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled) {
  return WithStep(hGraphExec, hNode, [&](GraphExec& exec, size_t step) -> CUresult {
    const CUgraphNodeType type = TypeOf(exec.nodes[step]->work);
    if (type != CU_GRAPH_NODE_TYPE_KERNEL && type != CU_GRAPH_NODE_TYPE_MEMCPY &&
        type != CU_GRAPH_NODE_TYPE_MEMSET) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    exec.Own().disabled[step] = !isEnabled;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int* isEnabled) {
  return WithStep(hGraphExec, hNode, [&](GraphExec& exec, size_t step) -> CUresult {
    if (!isEnabled) return CUDA_ERROR_INVALID_VALUE;
    *isEnabled = !exec.program->disabled[step];
    return CUDA_SUCCESS;
  });
}
