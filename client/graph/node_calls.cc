// cuGraph* that concern single nodes: adding them, asking what they do, giving them other work.
#include <utility>

#include "client/copy.h"
#include "client/exports.h"
#include "client/graph/capture.h"
#include "client/graph/exec.h"
#include "client/graph/locked.h"

namespace cuplex::client {
namespace {

/// Reads what a program says a node does; nothing is changed.
CUresult ReadContext(const Caller& caller, CUcontext context) {
  return !context || caller.session->contexts.Find(context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult ReadKernelNode(const LockedCaller& in, const CUDA_KERNEL_NODE_PARAMS* given, Work* out) {
  if (!given || (given->func && given->kern)) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult r = ReadContext(in, given->ctx)) return r;
  KernelWork work;
  if (CUresult r = ReadKernel(in, *given, 0, &work)) return r;
  *out = std::move(work);
  return CUDA_SUCCESS;
}

CUDA_KERNEL_NODE_PARAMS Widened(const CUDA_KERNEL_NODE_PARAMS_v1& p) {
  return {p.func,      p.gridDimX,       p.gridDimY,     p.gridDimZ, p.blockDimX, p.blockDimY,
          p.blockDimZ, p.sharedMemBytes, p.kernelParams, p.extra,    nullptr,     nullptr};
}

CUresult ReadCopyNode(const LockedCaller& in, const CUDA_MEMCPY3D* given, CUcontext context, Work* out) {
  if (!given) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult r = ReadContext(in, context)) return r;
  if (given->WidthInBytes && given->Height && given->Depth) {
    Box box;
    if (CUresult r = ReadBox(in, *given, &box)) return r;
  }
  *out = CopyWork{*given};
  return CUDA_SUCCESS;
}

CUresult ReadFillNode(const LockedCaller& in, const CUDA_MEMSET_NODE_PARAMS* given, CUcontext context,
                      Work* out) {
  if (!given) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult r = ReadContext(in, context)) return r;
  std::string frame;
  if (CUresult r = FillFrame(*in.session, *given, &frame)) return r;
  *out = FillWork{*given};
  return CUDA_SUCCESS;
}

CUresult ReadHostNode(const CUDA_HOST_NODE_PARAMS* given, Work* out) {
  if (!given || !given->fn) return CUDA_ERROR_INVALID_VALUE;
  *out = HostWork{given->fn, given->userData};
  return CUDA_SUCCESS;
}

CUresult ReadEventNode(const LockedCaller& in, CUevent event, bool record, Work* out) {
  if (!in.session->events.Find(reinterpret_cast<Handle>(event))) return CUDA_ERROR_INVALID_VALUE;
  if (record) {
    *out = RecordWork{event};
  } else {
    *out = WaitWork{event};
  }
  return CUDA_SUCCESS;
}

CUresult ReadChildNode(const LockedCaller& in, CUgraph child, Work* out) {
  Graph* graph = in.graphs->Find(child);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  if (graph->HasMemory()) return CUDA_ERROR_NOT_SUPPORTED;
  *out = ChildWork{graph->Clone()};
  return CUDA_SUCCESS;
}

CUresult ReadFreeNode(const LockedCaller& in, CUdeviceptr address, Work* out) {
  auto memory = in.graphs->FindMemory(address);
  if (!memory) return CUDA_ERROR_INVALID_VALUE;
  *out = FreeWork{std::move(memory)};
  return CUDA_SUCCESS;
}

/// Any node but an allocation.
CUresult ReadNode(const LockedCaller& in, const CUgraphNodeParams* given, Work* out) {
  if (!given) return CUDA_ERROR_INVALID_VALUE;
  switch (given->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return ReadKernelNode(in, &given->kernel, out);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return given->memcpy.flags ? CUDA_ERROR_INVALID_VALUE
                                 : ReadCopyNode(in, &given->memcpy.copyParams, given->memcpy.copyCtx, out);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const auto& fill = given->memset;
      const CUDA_MEMSET_NODE_PARAMS narrow{fill.dst,         fill.pitch, fill.value,
                                           fill.elementSize, fill.width, fill.height};
      return ReadFillNode(in, &narrow, fill.ctx, out);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      const CUDA_HOST_NODE_PARAMS host{given->host.fn, given->host.userData};
      return ReadHostNode(&host, out);
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
      if (given->graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) return CUDA_ERROR_NOT_SUPPORTED;
      return ReadChildNode(in, given->graph.graph, out);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      *out = EmptyWork{};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return ReadEventNode(in, given->eventWait.event, false, out);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return ReadEventNode(in, given->eventRecord.event, true, out);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return ReadFreeNode(in, given->free.dptr, out);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

/// Where a new node goes.
struct NewNode {
  CUgraphNode* out;
  CUgraph graph;
  const CUgraphNode* dependencies;
  const CUgraphEdgeData* edges;
  size_t count;
};

CUresult FindPlace(const LockedCaller& in, const NewNode& place, Graph** graph,
                   std::vector<GraphNode*>* before) {
  *graph = in.graphs->Find(place.graph);
  if (!*graph || !place.out || (place.count && !place.dependencies)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < place.count; ++i) {
    GraphNode* node = in.graphs->Find(place.dependencies[i]);
    if (!node || node->graph != *graph) return CUDA_ERROR_INVALID_VALUE;
    if (place.edges && (place.edges[i].from_port || place.edges[i].to_port || place.edges[i].type))
      return CUDA_ERROR_NOT_SUPPORTED;
    before->push_back(node);
  }
  return CUDA_SUCCESS;
}

template <typename Read>
CUresult AddNode(const NewNode& place, Read read) {
  LockedCaller in;
  if (CUresult r = in.Enter()) return r;
  Graph* graph;
  std::vector<GraphNode*> before;
  if (CUresult r = FindPlace(in, place, &graph, &before)) return r;
  Work work;
  if (CUresult r = read(in, &work)) return r;
  GraphNode* node = graph->Add(std::move(work), before);
  in.graphs->Learn(*node);
  *place.out = node->handle();
  return CUDA_SUCCESS;
}

CUresult AddAlloc(const NewNode& place, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  LockedCaller in;
  if (CUresult r = in.Enter()) return r;
  Graph* graph;
  std::vector<GraphNode*> before;
  if (CUresult r = FindPlace(in, place, &graph, &before)) return r;
  GraphNode* node;
  if (CUresult r = AddAllocNode(in, *in.graphs, *graph, before, params, &node)) return r;
  *place.out = node->handle();
  return CUDA_SUCCESS;
}

template <typename W, typename Get>
CUresult GetFrom(CUgraphNode hNode, const void* out, Get get) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  Locked in;
  if (CUresult r = in.Enter()) return r;
  GraphNode* node = in.graphs->Find(hNode);
  W* work = node ? std::get_if<W>(&node->work) : nullptr;
  if (!work) return CUDA_ERROR_INVALID_VALUE;
  get(*work);
  return CUDA_SUCCESS;
}

/// A kernel's attributes are no part of its parameters.
void KeepAttributes(const Work& old, Work* work) {
  if (auto* kernel = std::get_if<KernelWork>(work))
    if (auto* was = std::get_if<KernelWork>(&old)) kernel->attributes = was->attributes;
}

template <typename Read>
CUresult SetNode(CUgraphNode hNode, CUgraphNodeType type, Read read) {
  LockedCaller in;
  if (CUresult r = in.Enter()) return r;
  GraphNode* node = in.graphs->Find(hNode);
  if (!node || TypeOf(node->work) != type) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  if (CUresult r = read(in, &work)) return r;
  KeepAttributes(node->work, &work);
  node->work = std::move(work);
  return CUDA_SUCCESS;
}

template <typename Read>
CUresult SetExecNode(CUgraphExec hExec, CUgraphNode hNode, CUgraphNodeType type, Read read) {
  LockedCaller in;
  if (CUresult r = in.Enter()) return r;
  GraphExec* exec = in.graphs->Find(hExec);
  GraphNode* node = in.graphs->Find(hNode);
  GraphExec::Step* step = exec && node ? exec->StepOf(*node) : nullptr;
  if (!step || TypeOf(step->node->work) != type) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  if (CUresult r = read(in, &work)) return r;
  KeepAttributes(step->node->work, &work);
  return ChangeStep(in, *exec, *step, std::move(work));
}

void ShowKernel(KernelWork& work, CUDA_KERNEL_NODE_PARAMS* out) {
  work.shown.clear();
  for (const auto& p : work.layout) work.shown.push_back(work.parameters.data() + p.offset);
  *out = {work.function, work.grid[0],      work.grid[1],      work.grid[2], work.block[0], work.block[1],
          work.block[2], work.shared_bytes, work.shown.data(), nullptr,      nullptr,       work.context};
}

}  // namespace
}  // namespace cuplex::client

using namespace cuplex::client;

extern "C" {

// ------------------------------------------------------------------------------------------------ kernels

CUresult cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS* params) {
  return AddNode({out, graph, dependencies, nullptr, count},
                 [&](const LockedCaller& in, Work* work) { return ReadKernelNode(in, params, work); });
}

CUresult cuGraphAddKernelNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = Widened(*params);
  return cuGraphAddKernelNode_v2(out, graph, dependencies, count, &wide);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* out) {
  return GetFrom<KernelWork>(node, out, [&](KernelWork& work) { ShowKernel(work, out); });
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* out) {
  return GetFrom<KernelWork>(node, out, [&](KernelWork& work) {
    CUDA_KERNEL_NODE_PARAMS p;
    ShowKernel(work, &p);
    *out = {p.func,      p.gridDimX,  p.gridDimY,       p.gridDimZ,     p.blockDimX,
            p.blockDimY, p.blockDimZ, p.sharedMemBytes, p.kernelParams, p.extra};
  });
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  return SetNode(node, CU_GRAPH_NODE_TYPE_KERNEL,
                 [&](const LockedCaller& in, Work* work) { return ReadKernelNode(in, params, work); });
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = Widened(*params);
  return cuGraphKernelNodeSetParams_v2(node, &wide);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* params) {
  return SetExecNode(exec, node, CU_GRAPH_NODE_TYPE_KERNEL,
                     [&](const LockedCaller& in, Work* work) { return ReadKernelNode(in, params, work); });
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = Widened(*params);
  return cuGraphExecKernelNodeSetParams_v2(exec, node, &wide);
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src) {
  Locked in;
  if (CUresult r = in.Enter()) return r;
  GraphNode* to = in.graphs->Find(dst);
  GraphNode* from = in.graphs->Find(src);
  auto* a = to ? std::get_if<KernelWork>(&to->work) : nullptr;
  auto* b = from ? std::get_if<KernelWork>(&from->work) : nullptr;
  if (!a || !b) return CUDA_ERROR_INVALID_VALUE;
  a->attributes = b->attributes;
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID attr,
                                       CUkernelNodeAttrValue* value) {
  if (attr <= CU_LAUNCH_ATTRIBUTE_IGNORE || attr > CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING)
    return CUDA_ERROR_INVALID_VALUE;
  return GetFrom<KernelWork>(node, value, [&](KernelWork& work) {
    auto at = work.attributes.find(attr);
    *value = at == work.attributes.end() ? CUkernelNodeAttrValue{} : at->second;
  });
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID attr,
                                       const CUkernelNodeAttrValue* value) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult wrong = cuplex::graph::CheckAttribute(attr, *value)) return wrong;
  return GetFrom<KernelWork>(node, value, [&](KernelWork& work) { work.attributes[attr] = *value; });
}

// ------------------------------------------------------------------------------------------------ copies and
// fills

CUresult cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_MEMCPY3D* params, CUcontext ctx) {
  return AddNode({out, graph, dependencies, nullptr, count},
                 [&](const LockedCaller& in, Work* work) { return ReadCopyNode(in, params, ctx, work); });
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* out) {
  return GetFrom<CopyWork>(node, out, [&](CopyWork& work) { *out = work.copy; });
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* params) {
  return SetNode(node, CU_GRAPH_NODE_TYPE_MEMCPY,
                 [&](const LockedCaller& in, Work* work) { return ReadCopyNode(in, params, nullptr, work); });
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* params,
                                        CUcontext ctx) {
  return SetExecNode(exec, node, CU_GRAPH_NODE_TYPE_MEMCPY,
                     [&](const LockedCaller& in, Work* work) { return ReadCopyNode(in, params, ctx, work); });
}

CUresult cuGraphAddMemsetNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS* params, CUcontext ctx) {
  return AddNode({out, graph, dependencies, nullptr, count},
                 [&](const LockedCaller& in, Work* work) { return ReadFillNode(in, params, ctx, work); });
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* out) {
  return GetFrom<FillWork>(node, out, [&](FillWork& work) { *out = work.fill; });
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params) {
  return SetNode(node, CU_GRAPH_NODE_TYPE_MEMSET,
                 [&](const LockedCaller& in, Work* work) { return ReadFillNode(in, params, nullptr, work); });
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* params, CUcontext ctx) {
  return SetExecNode(exec, node, CU_GRAPH_NODE_TYPE_MEMSET,
                     [&](const LockedCaller& in, Work* work) { return ReadFillNode(in, params, ctx, work); });
}

// ------------------------------------------------------------------------------------------------ the rest

CUresult cuGraphAddHostNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                            const CUDA_HOST_NODE_PARAMS* params) {
  return AddNode({out, graph, dependencies, nullptr, count},
                 [&](const LockedCaller&, Work* work) { return ReadHostNode(params, work); });
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* out) {
  return GetFrom<HostWork>(node, out, [&](HostWork& work) { *out = {work.fn, work.data}; });
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
  return SetNode(node, CU_GRAPH_NODE_TYPE_HOST,
                 [&](const LockedCaller&, Work* work) { return ReadHostNode(params, work); });
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS* params) {
  return SetExecNode(exec, node, CU_GRAPH_NODE_TYPE_HOST,
                     [&](const LockedCaller&, Work* work) { return ReadHostNode(params, work); });
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                  size_t count, CUgraph child) {
  return AddNode({out, graph, dependencies, nullptr, count},
                 [&](const LockedCaller& in, Work* work) { return ReadChildNode(in, child, work); });
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* out) {
  return GetFrom<ChildWork>(node, out, [&](ChildWork& work) { *out = work.graph->handle(); });
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec hExec, CUgraphNode hNode, CUgraph child) {
  LockedCaller in;
  if (CUresult r = in.Enter()) return r;
  GraphExec* exec = in.graphs->Find(hExec);
  GraphNode* node = in.graphs->Find(hNode);
  Graph* graph = in.graphs->Find(child);
  if (!exec || !node || !graph) return CUDA_ERROR_INVALID_VALUE;
  ChildWork* part = nullptr;
  exec->source->ForEachNode([&](GraphNode& each) {
    if (each.origin == node->id) part = std::get_if<ChildWork>(&each.work);
  });
  if (!part) return CUDA_ERROR_INVALID_VALUE;
  CUgraphExecUpdateResultInfo info;
  return UpdateExec(in, *exec, *part->graph, *graph, &info);
}

CUresult cuGraphAddEmptyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count) {
  return AddNode({out, graph, dependencies, nullptr, count},
                 [](const LockedCaller&, Work*) { return CUDA_SUCCESS; });
}

CUresult cuGraphAddEventRecordNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                   size_t count, CUevent event) {
  return AddNode({out, graph, dependencies, nullptr, count},
                 [&](const LockedCaller& in, Work* work) { return ReadEventNode(in, event, true, work); });
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* out) {
  return GetFrom<RecordWork>(node, out, [&](RecordWork& work) { *out = work.event; });
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  return SetNode(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                 [&](const LockedCaller& in, Work* work) { return ReadEventNode(in, event, true, work); });
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return SetExecNode(exec, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, [&](const LockedCaller& in, Work* work) {
    return ReadEventNode(in, event, true, work);
  });
}

CUresult cuGraphAddEventWaitNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                 size_t count, CUevent event) {
  return AddNode({out, graph, dependencies, nullptr, count},
                 [&](const LockedCaller& in, Work* work) { return ReadEventNode(in, event, false, work); });
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* out) {
  return GetFrom<WaitWork>(node, out, [&](WaitWork& work) { *out = work.event; });
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  return SetNode(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT,
                 [&](const LockedCaller& in, Work* work) { return ReadEventNode(in, event, false, work); });
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return SetExecNode(exec, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, [&](const LockedCaller& in, Work* work) {
    return ReadEventNode(in, event, false, work);
  });
}

CUresult cuGraphAddMemAllocNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return AddAlloc({out, graph, dependencies, nullptr, count}, params);
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* out) {
  return GetFrom<AllocWork>(node, out, [&](AllocWork& work) {
    *out = work.params;
    out->accessDescs = work.access.empty() ? nullptr : work.access.data();
  });
}

CUresult cuGraphAddMemFreeNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                               CUdeviceptr address) {
  return AddNode({out, graph, dependencies, nullptr, count},
                 [&](const LockedCaller& in, Work* work) { return ReadFreeNode(in, address, work); });
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* out) {
  return GetFrom<FreeWork>(node, out, [&](FreeWork& work) { *out = work.memory->address; });
}

CUresult cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* params) {
  if (params && params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
    return AddAlloc({out, graph, dependencies, edges, count}, &params->alloc);
  return AddNode({out, graph, dependencies, edges, count},
                 [&](const LockedCaller& in, Work* work) { return ReadNode(in, params, work); });
}

CUresult cuGraphAddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                        CUgraphNodeParams* params) {
  return cuGraphAddNode_v2(out, graph, dependencies, nullptr, count, params);
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
  if (!params || params->type == CU_GRAPH_NODE_TYPE_GRAPH) return CUDA_ERROR_INVALID_VALUE;
  return SetNode(node, params->type,
                 [&](const LockedCaller& in, Work* work) { return ReadNode(in, params, work); });
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  if (params->type == CU_GRAPH_NODE_TYPE_GRAPH)
    return cuGraphExecChildGraphNodeSetParams(exec, node, params->graph.graph);
  return SetExecNode(exec, node, params->type,
                     [&](const LockedCaller& in, Work* work) { return ReadNode(in, params, work); });
}

}  // extern "C"
