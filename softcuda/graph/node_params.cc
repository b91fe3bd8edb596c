#include "softcuda/graph/node_params.h"

#include <utility>

#include "base/log.h"
#include "softcuda/graph/exec.h"

namespace cuplex::softcuda {
namespace {

CUresult ReadContext(Context& context, CUcontext given) {
  return !given || context.driver.contexts.Find(given) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

// Takes work that means something in `context`.
CUresult Take(Context& context, graph::Work work, graph::Work* out) {
  Step step;
  if (CUresult wrong = Compile(context, work, &step)) return wrong;
  *out = std::move(work);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult ReadKernelNode(Context& context, const CUDA_KERNEL_NODE_PARAMS* given, graph::Work* out) {
  if (!given || (given->func && given->kern)) return CUDA_ERROR_INVALID_VALUE;
  Ref<Context> other;
  Context* of = &context;
  if (given->ctx) {
    other = context.driver.contexts.Find(given->ctx);
    if (!other) return CUDA_ERROR_INVALID_CONTEXT;
    of = other.get();
  }
  const CUfunction function = given->func ? given->func : reinterpret_cast<CUfunction>(given->kern);
  const Shape shape = {{given->gridDimX, given->gridDimY, given->gridDimZ},
                       {given->blockDimX, given->blockDimY, given->blockDimZ},
                       given->sharedMemBytes};
  graph::KernelWork work;
  if (CUresult wrong = ReadKernelWork(*of, function, shape, given->kernelParams, given->extra, false, &work))
    return wrong;
  *out = std::move(work);
  return CUDA_SUCCESS;
}

CUresult ReadCopyNode(Context& context, const CUDA_MEMCPY3D* given, CUcontext of, graph::Work* out) {
  if (!given) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult wrong = ReadContext(context, of)) return wrong;
  return Take(context, graph::CopyWork{*given}, out);
}

CUresult ReadFillNode(Context& context, const CUDA_MEMSET_NODE_PARAMS* given, CUcontext of,
                      graph::Work* out) {
  if (!given) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult wrong = ReadContext(context, of)) return wrong;
  return Take(context, graph::FillWork{*given}, out);
}

CUresult ReadHostNode(const CUDA_HOST_NODE_PARAMS* given, graph::Work* out) {
  if (!given || !given->fn) return CUDA_ERROR_INVALID_VALUE;
  *out = graph::HostWork{given->fn, given->userData};
  return CUDA_SUCCESS;
}

CUresult ReadEventNode(Context& context, CUevent event, bool record, graph::Work* out) {
  if (record) return Take(context, graph::RecordWork{event}, out);
  return Take(context, graph::WaitWork{event}, out);
}

CUresult ReadChildNode(Graphs& graphs, CUgraph child, graph::Work* out) {
  graph::Graph* found = graphs.Find(child);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  if (found->HasMemory()) return CUDA_ERROR_NOT_SUPPORTED;
  *out = graph::ChildWork{found->Clone()};
  return CUDA_SUCCESS;
}

CUresult ReadFreeNode(Graphs& graphs, CUdeviceptr address, graph::Work* out) {
  auto memory = graphs.MemoryAt(address);
  if (!memory) return CUDA_ERROR_INVALID_VALUE;
  *out = graph::FreeWork{std::move(memory)};
  return CUDA_SUCCESS;
}

CUresult ReadNode(Context& context, Graphs& graphs, const CUgraphNodeParams* given, graph::Work* out) {
  if (!given) return CUDA_ERROR_INVALID_VALUE;
  switch (given->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return ReadKernelNode(context, &given->kernel, out);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      if (given->memcpy.flags) return CUDA_ERROR_INVALID_VALUE;
      return ReadCopyNode(context, &given->memcpy.copyParams, given->memcpy.copyCtx, out);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const auto& fill = given->memset;
      const CUDA_MEMSET_NODE_PARAMS narrow = {fill.dst,         fill.pitch, fill.value,
                                              fill.elementSize, fill.width, fill.height};
      return ReadFillNode(context, &narrow, fill.ctx, out);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      const CUDA_HOST_NODE_PARAMS host = {given->host.fn, given->host.userData};
      return ReadHostNode(&host, out);
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
      if (given->graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) break;
      return ReadChildNode(graphs, given->graph.graph, out);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      *out = graph::EmptyWork{};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return ReadEventNode(context, given->eventWait.event, false, out);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return ReadEventNode(context, given->eventRecord.event, true, out);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return ReadFreeNode(graphs, given->free.dptr, out);
    default:
      break;
  }
  Log().warn(
      "softcuda does not carry nodes of graphs of type {}: conditions, semaphores, batches of memory "
      "operations, and child graphs that are moved",
      static_cast<int>(given->type));
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace cuplex::softcuda
