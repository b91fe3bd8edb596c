// cuGraph* that concern a graph's shape.
#include <algorithm>
#include <cstdio>

#include "client/exports.h"
#include "client/graph/capture.h"
#include "client/graph/locked.h"

namespace cuplex::client {
namespace {

/// What a query answers: how many there are where `out` is null; else as many as there is room for.
template <typename Get>
CUresult Answer(size_t have, size_t* count, bool wanted, Get get) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  if (!wanted) {
    *count = have;
    return CUDA_SUCCESS;
  }
  const size_t given = std::min(have, *count);
  for (size_t i = 0; i < *count; ++i) get(i, i < have);
  *count = given;
  return CUDA_SUCCESS;
}

CUresult AnswerNodes(const std::vector<GraphNode*>& nodes, CUgraphNode* out, CUgraphEdgeData* edges,
                     size_t* count) {
  return Answer(nodes.size(), count, out != nullptr, [&](size_t i, bool have) {
    out[i] = have ? nodes[i]->handle() : nullptr;
    if (edges) edges[i] = {};
  });
}

CUresult CheckEdges(const CUgraphEdgeData* edges, size_t count) {
  for (size_t i = 0; edges && i < count; ++i) {
    if (edges[i].to_port) return CUDA_ERROR_INVALID_VALUE;
    if (edges[i].from_port || edges[i].type) return CUDA_ERROR_NOT_SUPPORTED;  // programmatic launches
  }
  return CUDA_SUCCESS;
}

/// Calls `change(graph, from, to)` for each pair, and `back` for those that went where one does not.
template <typename Change, typename Back>
CUresult ForPairs(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData* edges,
                  size_t count, Change change, Back back) {
  Locked in;
  if (CUresult r = in.Enter()) return r;
  Graph* found = in.graphs->Find(graph);
  if (!found || (count && (!from || !to))) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult r = CheckEdges(edges, count)) return r;
  std::vector<std::pair<GraphNode*, GraphNode*>> done;
  for (size_t i = 0; i < count; ++i) {
    GraphNode* a = in.graphs->Find(from[i]);
    GraphNode* b = in.graphs->Find(to[i]);
    CUresult r = a && b ? change(*found, a, b) : CUDA_ERROR_INVALID_VALUE;
    if (r) {
      for (auto [x, y] : done) (void)back(*found, x, y);
      return r;
    }
    done.emplace_back(a, b);
  }
  return CUDA_SUCCESS;
}

CUresult Connect(Graph& graph, GraphNode* from, GraphNode* to) { return graph.Connect(from, to); }
CUresult Disconnect(Graph& graph, GraphNode* from, GraphNode* to) { return graph.Disconnect(from, to); }

}  // namespace
}  // namespace cuplex::client

using namespace cuplex::client;

extern "C" {

CUresult cuGraphCreate(CUgraph* out, unsigned int flags) {
  if (!out || flags) return CUDA_ERROR_INVALID_VALUE;
  Locked in;
  if (CUresult r = in.Enter()) return r;
  auto* graph = new Graph;
  in.graphs->Learn(*graph);
  *out = graph->handle();
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph hGraph) {
  std::unique_ptr<Graph> gone;  // outside of the lock: what it holds may call the program
  Locked in;
  if (CUresult r = in.Enter()) return r;
  Graph* graph = in.graphs->Find(hGraph);
  if (!graph || graph->owner) return CUDA_ERROR_INVALID_VALUE;
  if (in.graphs->captures.Into(graph)) return CUDA_ERROR_ILLEGAL_STATE;
  in.graphs->Forget(*graph);
  gone.reset(graph);
  return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph* out, CUgraph hGraph) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  Locked in;
  if (CUresult r = in.Enter()) return r;
  Graph* graph = in.graphs->Find(hGraph);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  if (graph->HasMemory()) return CUDA_ERROR_NOT_SUPPORTED;
  Graph* clone = graph->Clone().release();
  in.graphs->Learn(*clone);
  *out = clone->handle();
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode* out, CUgraphNode original, CUgraph clone) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  Locked in;
  if (CUresult r = in.Enter()) return r;
  GraphNode* node = in.graphs->Find(original);
  Graph* graph = in.graphs->Find(clone);
  if (!node || !graph) return CUDA_ERROR_INVALID_VALUE;
  GraphNode* found = graph->CopyOf(*node);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  *out = found->handle();
  return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode* nodes, size_t* count) {
  Locked in;
  if (CUresult r = in.Enter()) return r;
  Graph* graph = in.graphs->Find(hGraph);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  return Answer(graph->nodes.size(), count, nodes != nullptr,
                [&](size_t i, bool have) { nodes[i] = have ? graph->nodes[i]->handle() : nullptr; });
}

CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode* nodes, size_t* count) {
  Locked in;
  if (CUresult r = in.Enter()) return r;
  Graph* graph = in.graphs->Find(hGraph);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  return AnswerNodes(graph->Roots(), nodes, nullptr, count);
}

CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edges,
                            size_t* count) {
  Locked in;
  if (CUresult r = in.Enter()) return r;
  Graph* graph = in.graphs->Find(hGraph);
  if (!graph || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const auto all = graph->Edges();
  return Answer(all.size(), count, from != nullptr, [&](size_t i, bool have) {
    from[i] = have ? all[i].first->handle() : nullptr;
    to[i] = have ? all[i].second->handle() : nullptr;
    if (edges) edges[i] = {};
  });
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return cuGraphGetEdges_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode* out, CUgraphEdgeData* edges,
                                       size_t* count) {
  Locked in;
  if (CUresult r = in.Enter()) return r;
  GraphNode* node = in.graphs->Find(hNode);
  return node ? AnswerNodes(node->dependencies, out, edges, count) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* out, size_t* count) {
  return cuGraphNodeGetDependencies_v2(node, out, nullptr, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode* out, CUgraphEdgeData* edges,
                                         size_t* count) {
  Locked in;
  if (CUresult r = in.Enter()) return r;
  GraphNode* node = in.graphs->Find(hNode);
  return node ? AnswerNodes(node->dependents, out, edges, count) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* out, size_t* count) {
  return cuGraphNodeGetDependentNodes_v2(node, out, nullptr, count);
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* edges, size_t count) {
  return ForPairs(graph, from, to, edges, count, Connect, Disconnect);
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData* edges, size_t count) {
  return ForPairs(graph, from, to, edges, count, Disconnect, Connect);
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t count) {
  return cuGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphDestroyNode(CUgraphNode hNode) {
  Work gone;  // outside of the lock
  Locked in;
  if (CUresult r = in.Enter()) return r;
  GraphNode* node = in.graphs->Find(hNode);
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  if (in.graphs->captures.Into(node->graph)) return CUDA_ERROR_ILLEGAL_STATE;
  if (std::holds_alternative<AllocWork>(node->work) || std::holds_alternative<FreeWork>(node->work))
    return CUDA_ERROR_NOT_SUPPORTED;
  in.graphs->Forget(*node);
  gone = std::move(node->work);
  node->graph->Remove(node);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType* type) {
  if (!type) return CUDA_ERROR_INVALID_VALUE;
  Locked in;
  if (CUresult r = in.Enter()) return r;
  GraphNode* node = in.graphs->Find(hNode);
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  *type = TypeOf(node->work);
  return CUDA_SUCCESS;
}

CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char* path, unsigned int flags) {
  if (!path) return CUDA_ERROR_INVALID_VALUE;
  Locked in;
  if (CUresult r = in.Enter()) return r;
  Graph* graph = in.graphs->Find(hGraph);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  const std::string text = graph->Dot(flags != 0);
  FILE* file = std::fopen(path, "w");
  if (!file) return CUDA_ERROR_OPERATING_SYSTEM;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && written ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = EnterDevice(&session, device)) return r;
  const Graphs::Use use = session->graphs.UseOf(device);
  switch (attr) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
      return *static_cast<cuuint64_t*>(value) = use.used, CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
      return *static_cast<cuuint64_t*>(value) = use.most_used, CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
      return *static_cast<cuuint64_t*>(value) = use.held, CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      return *static_cast<cuuint64_t*>(value) = use.most_held, CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void* value) {
  const bool used = attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH;
  if (!value || (!used && attr != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) ||
      *static_cast<cuuint64_t*>(value) != 0)
    return CUDA_ERROR_INVALID_VALUE;  // it can be reset only
  Session* session;
  if (CUresult r = EnterDevice(&session, device)) return r;
  session->graphs.ResetMost(device, used);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
  Session* session;
  return EnterDevice(&session, device);  // nothing is kept beyond the graphs that have it
}

}  // extern "C"
