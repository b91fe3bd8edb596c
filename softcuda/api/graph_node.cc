// Nodes of graphs: adding them, asking what they do, giving them other work.
#include <utility>

#include "softcuda/exports.h"
#include "softcuda/graph/exec.h"
#include "softcuda/graph/locked.h"
#include "softcuda/graph/node_params.h"

using namespace cuplex;
using namespace cuplex::softcuda;
using cuplex::graph::Graph;
using cuplex::graph::GraphNode;
using cuplex::graph::Work;

namespace {

// Where a new node goes.
struct NewNode {
  CUgraphNode* out;
  CUgraph graph;
  const CUgraphNode* dependencies;
  const CUgraphEdgeData* edges;
  size_t count;
};

CUresult FindPlace(Graphs& graphs, const NewNode& place, Graph** graph, std::vector<GraphNode*>* before) {
  *graph = graphs.Find(place.graph);
  if (!*graph || !place.out || (place.count && !place.dependencies)) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult wrong = CheckEdges(place.edges, place.count)) return wrong;
  for (size_t i = 0; i < place.count; ++i) {
    GraphNode* node = graphs.Find(place.dependencies[i]);
    if (!node || node->graph != *graph) return CUDA_ERROR_INVALID_VALUE;
    before->push_back(node);
  }
  return CUDA_SUCCESS;
}

// read(Context&, Graphs&, Work*)
template <typename Read>
CUresult AddNode(const NewNode& place, Read read) {
  return InGraphContext([&](Context& context, Graphs& graphs) -> CUresult {
    Graph* graph;
    std::vector<GraphNode*> before;
    if (CUresult wrong = FindPlace(graphs, place, &graph, &before)) return wrong;
    Work work;
    if (CUresult wrong = read(context, graphs, &work)) return wrong;
    GraphNode* node = graph->Add(std::move(work), before);
    graphs.Learn(*node);
    *place.out = node->handle();
    return CUDA_SUCCESS;
  });
}

CUresult AddAlloc(const NewNode& place, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  return AddNode(place, [&](Context& context, Graphs& graphs, Work* out) {
    graph::AllocWork work;
    const CUresult result = MakeGraphMemory(context, graphs, params, &work);
    *out = std::move(work);
    return result;
  });
}

template <typename W, typename Get>
CUresult GetFrom(CUgraphNode handle, const void* out, Get get) {
  return InGraphs([&](Graphs& graphs) -> CUresult {
    GraphNode* node = graphs.Find(handle);
    W* work = node ? std::get_if<W>(&node->work) : nullptr;
    if (!work || !out) return CUDA_ERROR_INVALID_VALUE;
    get(*work);
    return CUDA_SUCCESS;
  });
}

// A kernel's attributes are no part of its parameters.
void KeepAttributes(const Work& old, Work* work) {
  if (auto* kernel = std::get_if<graph::KernelWork>(work))
    if (auto* was = std::get_if<graph::KernelWork>(&old)) kernel->attributes = was->attributes;
}

template <typename Read>
CUresult SetNode(CUgraphNode handle, CUgraphNodeType type, Read read) {
  return InGraphContext([&](Context& context, Graphs& graphs) -> CUresult {
    GraphNode* node = graphs.Find(handle);
    if (!node || TypeOf(node->work) != type) return CUDA_ERROR_INVALID_VALUE;
    Work work;
    if (CUresult wrong = read(context, graphs, &work)) return wrong;
    KeepAttributes(node->work, &work);
    node->work = std::move(work);
    return CUDA_SUCCESS;
  });
}

template <typename Read>
CUresult SetExecNode(CUgraphExec exec_handle, CUgraphNode handle, CUgraphNodeType type, Read read) {
  return InGraphContext([&](Context& context, Graphs& graphs) -> CUresult {
    GraphExec* exec = graphs.Find(exec_handle);
    GraphNode* node = graphs.Find(handle);
    const ptrdiff_t step = exec && node ? exec->StepOf(*node) : -1;
    if (step < 0 || TypeOf(node->work) != type) return CUDA_ERROR_INVALID_VALUE;
    Work work;
    if (CUresult wrong = read(context, graphs, &work)) return wrong;
    KeepAttributes(exec->nodes[static_cast<size_t>(step)]->work, &work);
    return ChangeStep(context, *exec, static_cast<size_t>(step), std::move(work));
  });
}

void ShowKernel(graph::KernelWork& work, CUDA_KERNEL_NODE_PARAMS* out) {
  work.shown.clear();
  for (const auto& p : work.layout) work.shown.push_back(work.parameters.data() + p.offset);
  *out = {work.function, work.grid[0],      work.grid[1],      work.grid[2], work.block[0], work.block[1],
          work.block[2], work.shared_bytes, work.shown.data(), nullptr,      nullptr,       work.context};
}

}  // namespace

CUresult cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph to, const CUgraphNode* dependencies, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS* params) {
  return AddNode({out, to, dependencies, nullptr, count}, [&](Context& context, Graphs& graphs, Work* work) {
    return ReadKernelNode(context, params, work);
  });
}

CUresult cuGraphAddKernelNode(CUgraphNode* out, CUgraph to, const CUgraphNode* dependencies, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = Widened(*params);
  return cuGraphAddKernelNode_v2(out, to, dependencies, count, &wide);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* out) {
  return GetFrom<graph::KernelWork>(node, out, [&](graph::KernelWork& work) { ShowKernel(work, out); });
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* out) {
  return GetFrom<graph::KernelWork>(node, out, [&](graph::KernelWork& work) {
    CUDA_KERNEL_NODE_PARAMS p;
    ShowKernel(work, &p);
    *out = {p.func,      p.gridDimX,  p.gridDimY,       p.gridDimZ,     p.blockDimX,
            p.blockDimY, p.blockDimZ, p.sharedMemBytes, p.kernelParams, p.extra};
  });
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  return SetNode(node, CU_GRAPH_NODE_TYPE_KERNEL, [&](Context& context, Graphs& graphs, Work* work) {
    return ReadKernelNode(context, params, work);
  });
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = Widened(*params);
  return cuGraphKernelNodeSetParams_v2(node, &wide);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS* params) {
  return SetExecNode(
      exec, node, CU_GRAPH_NODE_TYPE_KERNEL,
      [&](Context& context, Graphs& graphs, Work* work) { return ReadKernelNode(context, params, work); });
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = Widened(*params);
  return cuGraphExecKernelNodeSetParams_v2(exec, node, &wide);
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src) {
  return InGraphs([&](Graphs& graphs) -> CUresult {
    GraphNode* to = graphs.Find(dst);
    GraphNode* from = graphs.Find(src);
    auto* a = to ? std::get_if<graph::KernelWork>(&to->work) : nullptr;
    auto* b = from ? std::get_if<graph::KernelWork>(&from->work) : nullptr;
    if (!a || !b) return CUDA_ERROR_INVALID_VALUE;
    a->attributes = b->attributes;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID attr,
                                       CUkernelNodeAttrValue* value) {
  if (attr <= CU_LAUNCH_ATTRIBUTE_IGNORE || attr > CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING)
    return CUDA_ERROR_INVALID_VALUE;
  return GetFrom<graph::KernelWork>(node, value, [&](graph::KernelWork& work) {
    auto at = work.attributes.find(attr);
    *value = at == work.attributes.end() ? CUkernelNodeAttrValue{} : at->second;
  });
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID attr,
                                       const CUkernelNodeAttrValue* value) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult wrong = cuplex::graph::CheckAttribute(attr, *value)) return wrong;
  return GetFrom<graph::KernelWork>(node, value,
                                    [&](graph::KernelWork& work) { work.attributes[attr] = *value; });
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph to, const CUgraphNode* dependencies, size_t count,
                              const CUDA_MEMCPY3D* params, CUcontext ctx) {
  return AddNode({out, to, dependencies, nullptr, count}, [&](Context& context, Graphs& graphs, Work* work) {
    return ReadCopyNode(context, params, ctx, work);
  });
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* out) {
  return GetFrom<graph::CopyWork>(node, out, [&](graph::CopyWork& work) { *out = work.copy; });
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* params) {
  return SetNode(node, CU_GRAPH_NODE_TYPE_MEMCPY, [&](Context& context, Graphs& graphs, Work* work) {
    return ReadCopyNode(context, params, nullptr, work);
  });
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* params,
                                        CUcontext ctx) {
  return SetExecNode(
      exec, node, CU_GRAPH_NODE_TYPE_MEMCPY,
      [&](Context& context, Graphs& graphs, Work* work) { return ReadCopyNode(context, params, ctx, work); });
}

CUresult cuGraphAddMemsetNode(CUgraphNode* out, CUgraph to, const CUgraphNode* dependencies, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS* params, CUcontext ctx) {
  return AddNode({out, to, dependencies, nullptr, count}, [&](Context& context, Graphs& graphs, Work* work) {
    return ReadFillNode(context, params, ctx, work);
  });
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* out) {
  return GetFrom<graph::FillWork>(node, out, [&](graph::FillWork& work) { *out = work.fill; });
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params) {
  return SetNode(node, CU_GRAPH_NODE_TYPE_MEMSET, [&](Context& context, Graphs& graphs, Work* work) {
    return ReadFillNode(context, params, nullptr, work);
  });
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS* params, CUcontext ctx) {
  return SetExecNode(
      exec, node, CU_GRAPH_NODE_TYPE_MEMSET,
      [&](Context& context, Graphs& graphs, Work* work) { return ReadFillNode(context, params, ctx, work); });
}

CUresult cuGraphAddHostNode(CUgraphNode* out, CUgraph to, const CUgraphNode* dependencies, size_t count,
                            const CUDA_HOST_NODE_PARAMS* params) {
  return AddNode({out, to, dependencies, nullptr, count},
                 [&](Context&, Graphs&, Work* work) { return ReadHostNode(params, work); });
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* out) {
  return GetFrom<graph::HostWork>(node, out, [&](graph::HostWork& work) { *out = {work.fn, work.data}; });
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
  return SetNode(node, CU_GRAPH_NODE_TYPE_HOST,
                 [&](Context&, Graphs&, Work* work) { return ReadHostNode(params, work); });
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS* params) {
  return SetExecNode(exec, node, CU_GRAPH_NODE_TYPE_HOST,
                     [&](Context&, Graphs&, Work* work) { return ReadHostNode(params, work); });
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* out, CUgraph to, const CUgraphNode* dependencies, size_t count,
                                  CUgraph child) {
  return AddNode({out, to, dependencies, nullptr, count}, [&](Context& context, Graphs& graphs, Work* work) {
    return ReadChildNode(graphs, child, work);
  });
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* out) {
  return GetFrom<graph::ChildWork>(node, out, [&](graph::ChildWork& work) { *out = work.graph->handle(); });
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec hExec, CUgraphNode hNode, CUgraph child) {
  return InGraphContext([&](Context& context, Graphs& graphs) -> CUresult {
    GraphExec* exec = graphs.Find(hExec);
    GraphNode* node = graphs.Find(hNode);
    Graph* graph = graphs.Find(child);
    if (!exec || !node || !graph) return CUDA_ERROR_INVALID_VALUE;
    GraphNode* copy = exec->source->CopyOf(*node);
    auto* part = copy ? std::get_if<graph::ChildWork>(&copy->work) : nullptr;
    if (!part) return CUDA_ERROR_INVALID_VALUE;
    CUgraphExecUpdateResultInfo info;
    return UpdateExec(context, *exec, *part->graph, *graph, &info);
  });
}

CUresult cuGraphAddEmptyNode(CUgraphNode* out, CUgraph to, const CUgraphNode* dependencies, size_t count) {
  return AddNode({out, to, dependencies, nullptr, count},
                 [](Context&, Graphs&, Work*) { return CUDA_SUCCESS; });
}

CUresult cuGraphAddEventRecordNode(CUgraphNode* out, CUgraph to, const CUgraphNode* dependencies,
                                   size_t count, CUevent event) {
  return AddNode({out, to, dependencies, nullptr, count}, [&](Context& context, Graphs& graphs, Work* work) {
    return ReadEventNode(context, event, true, work);
  });
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* out) {
  return GetFrom<graph::RecordWork>(node, out, [&](graph::RecordWork& work) { *out = work.event; });
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  return SetNode(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, [&](Context& context, Graphs& graphs, Work* work) {
    return ReadEventNode(context, event, true, work);
  });
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return SetExecNode(exec, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                     [&](Context& context, Graphs& graphs, Work* work) {
                       return ReadEventNode(context, event, true, work);
                     });
}

CUresult cuGraphAddEventWaitNode(CUgraphNode* out, CUgraph to, const CUgraphNode* dependencies, size_t count,
                                 CUevent event) {
  return AddNode({out, to, dependencies, nullptr, count}, [&](Context& context, Graphs& graphs, Work* work) {
    return ReadEventNode(context, event, false, work);
  });
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* out) {
  return GetFrom<graph::WaitWork>(node, out, [&](graph::WaitWork& work) { *out = work.event; });
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  return SetNode(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, [&](Context& context, Graphs& graphs, Work* work) {
    return ReadEventNode(context, event, false, work);
  });
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return SetExecNode(exec, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT,
                     [&](Context& context, Graphs& graphs, Work* work) {
                       return ReadEventNode(context, event, false, work);
                     });
}

CUresult cuGraphAddMemAllocNode(CUgraphNode* out, CUgraph to, const CUgraphNode* dependencies, size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return AddAlloc({out, to, dependencies, nullptr, count}, params);
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* out) {
  return GetFrom<graph::AllocWork>(node, out, [&](graph::AllocWork& work) {
    *out = work.params;
    out->accessDescs = work.access.empty() ? nullptr : work.access.data();
  });
}

CUresult cuGraphAddMemFreeNode(CUgraphNode* out, CUgraph to, const CUgraphNode* dependencies, size_t count,
                               CUdeviceptr address) {
  return AddNode({out, to, dependencies, nullptr, count}, [&](Context& context, Graphs& graphs, Work* work) {
    return ReadFreeNode(graphs, address, work);
  });
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* out) {
  return GetFrom<graph::FreeWork>(node, out, [&](graph::FreeWork& work) { *out = work.memory->address; });
}

CUresult cuGraphAddNode_v2(CUgraphNode* out, CUgraph to, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* edges, size_t count, CUgraphNodeParams* params) {
  if (params && params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
    return AddAlloc({out, to, dependencies, edges, count}, &params->alloc);
  return AddNode({out, to, dependencies, edges, count}, [&](Context& context, Graphs& graphs, Work* work) {
    return ReadNode(context, graphs, params, work);
  });
}

CUresult cuGraphAddNode(CUgraphNode* out, CUgraph to, const CUgraphNode* dependencies, size_t count,
                        CUgraphNodeParams* params) {
  return cuGraphAddNode_v2(out, to, dependencies, nullptr, count, params);
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
  if (!params || params->type == CU_GRAPH_NODE_TYPE_GRAPH) return CUDA_ERROR_INVALID_VALUE;
  return SetNode(node, params->type, [&](Context& context, Graphs& graphs, Work* work) {
    return ReadNode(context, graphs, params, work);
  });
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  if (params->type == CU_GRAPH_NODE_TYPE_GRAPH)
    return cuGraphExecChildGraphNodeSetParams(exec, node, params->graph.graph);
  return SetExecNode(exec, node, params->type, [&](Context& context, Graphs& graphs, Work* work) {
    return ReadNode(context, graphs, params, work);
  });
}
