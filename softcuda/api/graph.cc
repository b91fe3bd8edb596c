// Graphs: their shape, and what they hold.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "softcuda/exports.h"
#include "softcuda/graph/locked.h"

using namespace cuplex;
using namespace cuplex::softcuda;
using cuplex::graph::Graph;
using cuplex::graph::GraphNode;
using cuplex::graph::UserObject;

namespace {

// What a query answers: how many there are where there is nowhere to put them; else as many as there is room
// for, and null for the rest.
template <typename Put>
CUresult Answer(size_t have, size_t* count, bool wanted, Put put) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  if (!wanted) {
    *count = have;
    return CUDA_SUCCESS;
  }
  for (size_t i = 0; i < *count; ++i) put(i, i < have);
  *count = std::min(have, *count);
  return CUDA_SUCCESS;
}

CUresult AnswerNodes(const std::vector<GraphNode*>& nodes, CUgraphNode* out, CUgraphEdgeData* edges,
                     size_t* count) {
  return Answer(nodes.size(), count, out != nullptr, [&](size_t i, bool have) {
    out[i] = have ? nodes[i]->handle() : nullptr;
    if (edges) edges[i] = {};
  });
}

// change(graph, from, to) for every pair. Where one is refused, those before it are taken back by `undo`.
template <typename Change, typename Undo>
CUresult ForPairs(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                  const CUgraphEdgeData* edges, size_t count, Change change, Undo undo) {
  return InGraphs([&](Graphs& graphs) -> CUresult {
    Graph* graph = graphs.Find(handle);
    if (!graph || (count && (!from || !to))) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult wrong = CheckEdges(edges, count)) return wrong;
    for (size_t i = 0; i < count; ++i) {
      const CUresult result = change(*graph, graphs.Find(from[i]), graphs.Find(to[i]));
      if (!result) continue;
      while (i-- > 0) (void)undo(*graph, graphs.Find(from[i]), graphs.Find(to[i]));
      return result;
    }
    return CUDA_SUCCESS;
  });
}

CUresult Connect(Graph& graph, GraphNode* from, GraphNode* to) { return graph.Connect(from, to); }
CUresult Disconnect(Graph& graph, GraphNode* from, GraphNode* to) { return graph.Disconnect(from, to); }

}  // namespace

CUresult cuGraphCreate(CUgraph* phGraph, unsigned int flags) {
  return InGraphs([&](Graphs& graphs) -> CUresult {
    if (!phGraph || flags) return CUDA_ERROR_INVALID_VALUE;
    auto graph = std::make_unique<Graph>();
    graphs.Learn(*graph);
    *phGraph = graph.release()->handle();
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphDestroy(CUgraph hGraph) {
  std::unique_ptr<Graph> gone;  // outside of the lock: what it holds may call the program
  return InGraphs([&](Graphs& graphs) -> CUresult {
    Graph* graph = graphs.Find(hGraph);
    if (!graph || graph->owner) return CUDA_ERROR_INVALID_VALUE;
    if (graphs.captures.Into(graph)) return CUDA_ERROR_ILLEGAL_STATE;
    graphs.Forget(*graph);
    gone.reset(graph);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphClone(CUgraph* phGraphClone, CUgraph originalGraph) {
  return InGraphs([&](Graphs& graphs) -> CUresult {
    Graph* graph = graphs.Find(originalGraph);
    if (!phGraphClone || !graph) return CUDA_ERROR_INVALID_VALUE;
    if (graph->HasMemory()) return CUDA_ERROR_NOT_SUPPORTED;
    auto clone = graph->Clone();
    graphs.Learn(*clone);
    *phGraphClone = clone.release()->handle();
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphNodeFindInClone(CUgraphNode* phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph) {
  return InGraphs([&](Graphs& graphs) -> CUresult {
    GraphNode* node = graphs.Find(hOriginalNode);
    Graph* clone = graphs.Find(hClonedGraph);
    if (!phNode || !node || !clone) return CUDA_ERROR_INVALID_VALUE;
    GraphNode* copy = clone->CopyOf(*node);
    if (!copy) return CUDA_ERROR_INVALID_VALUE;
    *phNode = copy->handle();
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode* nodes, size_t* numNodes) {
  return InGraphs([&](Graphs& graphs) -> CUresult {
    Graph* graph = graphs.Find(hGraph);
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    return Answer(graph->nodes.size(), numNodes, nodes != nullptr,
                  [&](size_t i, bool have) { nodes[i] = have ? graph->nodes[i]->handle() : nullptr; });
  });
}

CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode* rootNodes, size_t* numRootNodes) {
  return InGraphs([&](Graphs& graphs) -> CUresult {
    Graph* graph = graphs.Find(hGraph);
    return graph ? AnswerNodes(graph->Roots(), rootNodes, nullptr, numRootNodes) : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edgeData,
                            size_t* numEdges) {
  return InGraphs([&](Graphs& graphs) -> CUresult {
    Graph* graph = graphs.Find(hGraph);
    if (!graph || !from != !to) return CUDA_ERROR_INVALID_VALUE;
    const auto edges = graph->Edges();
    return Answer(edges.size(), numEdges, from != nullptr, [&](size_t i, bool have) {
      from[i] = have ? edges[i].first->handle() : nullptr;
      to[i] = have ? edges[i].second->handle() : nullptr;
      if (edgeData) edgeData[i] = {};
    });
  });
}

CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, size_t* numEdges) {
  return cuGraphGetEdges_v2(hGraph, from, to, nullptr, numEdges);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode* dependencies,
                                       CUgraphEdgeData* edgeData, size_t* numDependencies) {
  return InGraphs([&](Graphs& graphs) -> CUresult {
    GraphNode* node = graphs.Find(hNode);
    return node ? AnswerNodes(node->dependencies, dependencies, edgeData, numDependencies)
                : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode* dependencies, size_t* numDependencies) {
  return cuGraphNodeGetDependencies_v2(hNode, dependencies, nullptr, numDependencies);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode* dependentNodes,
                                         CUgraphEdgeData* edgeData, size_t* numDependentNodes) {
  return InGraphs([&](Graphs& graphs) -> CUresult {
    GraphNode* node = graphs.Find(hNode);
    return node ? AnswerNodes(node->dependents, dependentNodes, edgeData, numDependentNodes)
                : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode* dependentNodes,
                                      size_t* numDependentNodes) {
  return cuGraphNodeGetDependentNodes_v2(hNode, dependentNodes, nullptr, numDependentNodes);
}

CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* edgeData, size_t numDependencies) {
  return ForPairs(hGraph, from, to, edgeData, numDependencies, Connect, Disconnect);
}

CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                size_t numDependencies) {
  return cuGraphAddDependencies_v2(hGraph, from, to, nullptr, numDependencies);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData* edgeData, size_t numDependencies) {
  return ForPairs(hGraph, from, to, edgeData, numDependencies, Disconnect, Connect);
}

CUresult cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t numDependencies) {
  return cuGraphRemoveDependencies_v2(hGraph, from, to, nullptr, numDependencies);
}

CUresult cuGraphDestroyNode(CUgraphNode hNode) {
  graph::Work gone;  // outside of the lock
  return InGraphs([&](Graphs& graphs) -> CUresult {
    GraphNode* node = graphs.Find(hNode);
    if (!node) return CUDA_ERROR_INVALID_VALUE;
    if (graphs.captures.Into(node->graph)) return CUDA_ERROR_ILLEGAL_STATE;
    if (std::holds_alternative<graph::AllocWork>(node->work) ||
        std::holds_alternative<graph::FreeWork>(node->work)) {
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    graphs.Forget(*node);
    gone = std::move(node->work);
    node->graph->Remove(node);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType* type) {
  return InGraphs([&](Graphs& graphs) -> CUresult {
    GraphNode* node = graphs.Find(hNode);
    if (!type || !node) return CUDA_ERROR_INVALID_VALUE;
    *type = TypeOf(node->work);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void* value) {
  return OnDevice(device, [&](Device&) -> CUresult {
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    const Graphs::Use use = RunningDriver()->graphs.UseOf(device);
    auto* bytes = static_cast<cuuint64_t*>(value);
    switch (attribute) {
      case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
        *bytes = use.used;
        return CUDA_SUCCESS;
      case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        *bytes = use.most_used;
        return CUDA_SUCCESS;
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
        *bytes = use.held;
        return CUDA_SUCCESS;
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        *bytes = use.most_held;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void* value) {
  return OnDevice(device, [&](Device&) -> CUresult {
    const bool used = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH;
    if (!used && attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) return CUDA_ERROR_INVALID_VALUE;
    // The most of anything can be reset, and nothing else.
    if (!value || *static_cast<cuuint64_t*>(value)) return CUDA_ERROR_INVALID_VALUE;
    RunningDriver()->graphs.ResetMost(device, used);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
  // Nothing is kept beyond the nodes that hold it.
  return OnDevice(device, [](Device&) { return CUDA_SUCCESS; });
}

CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char* path, unsigned int flags) {
  return InGraphs([&](Graphs& graphs) -> CUresult {
    Graph* graph = graphs.Find(hGraph);
    if (!graph || !path) return CUDA_ERROR_INVALID_VALUE;
    const std::string text = graph->Dot(flags != 0);
    FILE* file = std::fopen(path, "w");
    if (!file) return CUDA_ERROR_OPERATING_SYSTEM;
    const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    return std::fclose(file) == 0 && written ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
  });
}

CUresult cuUserObjectCreate(CUuserObject* object_out, void* ptr, CUhostFn destroy,
                            unsigned int initialRefcount, unsigned int flags) {
  return InDriver([&](Driver&) -> CUresult {
    if (!object_out || !destroy || !initialRefcount || initialRefcount > INT32_MAX ||
        flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *object_out = UserObject::Make(destroy, ptr, initialRefcount)->handle();
    return CUDA_SUCCESS;
  });
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count) {
  return InDriver([&](Driver&) -> CUresult {
    UserObject* found = UserObject::Find(object);
    if (!found || !count || count > INT32_MAX) return CUDA_ERROR_INVALID_VALUE;
    found->Retain(count);
    return CUDA_SUCCESS;
  });
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count) {
  return InDriver([&](Driver&) -> CUresult {
    UserObject* found = UserObject::Find(object);
    if (!found || !count || count > INT32_MAX) return CUDA_ERROR_INVALID_VALUE;
    return found->Release(count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags) {
  return InGraphs([&](Graphs& graphs) -> CUresult {
    Graph* found = graphs.Find(graph);
    UserObject* held = UserObject::Find(object);
    if (!found || !held || !count || count > INT32_MAX || flags > CU_GRAPH_USER_OBJECT_MOVE)
      return CUDA_ERROR_INVALID_VALUE;
    if (flags != CU_GRAPH_USER_OBJECT_MOVE) held->Retain(count);
    found->objects[held] += count;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count) {
  UserObject* held = UserObject::Find(object);
  const CUresult result = InGraphs([&](Graphs& graphs) -> CUresult {
    Graph* found = graphs.Find(graph);
    if (!found || !held || !count) return CUDA_ERROR_INVALID_VALUE;
    auto at = found->objects.find(held);
    if (at == found->objects.end() || at->second < count) return CUDA_ERROR_INVALID_VALUE;
    if ((at->second -= count) == 0) found->objects.erase(at);
    return CUDA_SUCCESS;
  });
  if (!result) held->Release(count);
  return result;
}
