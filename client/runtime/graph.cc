// Graphs: their shape, and the objects that they keep alive. The handles are the driver's own.
#include "client/runtime/calls.h"
#include "client/runtime/runtime.h"

namespace cuplex::runtime {
namespace {

cudaError_t Edges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* edges,
                  size_t* count) {
  return InContext(
      [&](const DriverTable& cu) { return cu.cuGraphGetEdges_v2(graph, from, to, edges, count); });
}

cudaError_t Dependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                         size_t* count) {
  return InContext(
      [&](const DriverTable& cu) { return cu.cuGraphNodeGetDependencies_v2(node, nodes, edges, count); });
}

cudaError_t Dependents(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                       size_t* count) {
  return InContext(
      [&](const DriverTable& cu) { return cu.cuGraphNodeGetDependentNodes_v2(node, nodes, edges, count); });
}

cudaError_t Add(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                const cudaGraphEdgeData* edges, size_t count) {
  return InContext(
      [&](const DriverTable& cu) { return cu.cuGraphAddDependencies_v2(graph, from, to, edges, count); });
}

cudaError_t Remove(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                   const cudaGraphEdgeData* edges, size_t count) {
  return InContext(
      [&](const DriverTable& cu) { return cu.cuGraphRemoveDependencies_v2(graph, from, to, edges, count); });
}

}  // namespace

cudaError_t GraphCreate(cudaGraph_t* graph, unsigned int flags) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphCreate(graph, flags); });
}

cudaError_t GraphDestroy(cudaGraph_t graph) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphDestroy(graph); });
}

cudaError_t GraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphClone(clone, graph); });
}

cudaError_t GraphNodeFindInClone(cudaGraphNode_t* found, cudaGraphNode_t original, cudaGraph_t clone) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphNodeFindInClone(found, original, clone); });
}

cudaError_t GraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphGetNodes(graph, nodes, count); });
}

cudaError_t GraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphGetRootNodes(graph, nodes, count); });
}

#if CUPLEX_CUDART_MAJOR == 12
cudaError_t GraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* count) {
  return Edges(graph, from, to, nullptr, count);
}
cudaError_t GraphGetEdges_v2(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                             cudaGraphEdgeData* edges, size_t* count) {
  return Edges(graph, from, to, edges, count);
}
cudaError_t GraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count) {
  return Dependencies(node, nodes, nullptr, count);
}
cudaError_t GraphNodeGetDependencies_v2(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                        cudaGraphEdgeData* edges, size_t* count) {
  return Dependencies(node, nodes, edges, count);
}
cudaError_t GraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count) {
  return Dependents(node, nodes, nullptr, count);
}
cudaError_t GraphNodeGetDependentNodes_v2(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                          cudaGraphEdgeData* edges, size_t* count) {
  return Dependents(node, nodes, edges, count);
}
cudaError_t GraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                 size_t count) {
  return Add(graph, from, to, nullptr, count);
}
cudaError_t GraphAddDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                    const cudaGraphEdgeData* edges, size_t count) {
  return Add(graph, from, to, edges, count);
}
cudaError_t GraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                    size_t count) {
  return Remove(graph, from, to, nullptr, count);
}
cudaError_t GraphRemoveDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t* from,
                                       const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                       size_t count) {
  return Remove(graph, from, to, edges, count);
}
#else
cudaError_t GraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                          cudaGraphEdgeData* edges, size_t* count) {
  return Edges(graph, from, to, edges, count);
}
cudaError_t GraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                                     size_t* count) {
  return Dependencies(node, nodes, edges, count);
}
cudaError_t GraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                                       size_t* count) {
  return Dependents(node, nodes, edges, count);
}
cudaError_t GraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                 const cudaGraphEdgeData* edges, size_t count) {
  return Add(graph, from, to, edges, count);
}
cudaError_t GraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                    const cudaGraphEdgeData* edges, size_t count) {
  return Remove(graph, from, to, edges, count);
}
#endif

cudaError_t GraphDestroyNode(cudaGraphNode_t node) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphDestroyNode(node); });
}

cudaError_t GraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphNodeGetType(node, type); });
}

cudaError_t GraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned int flags) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphDebugDotPrint(graph, path, flags); });
}

cudaError_t GraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count,
                                  unsigned int flags) {
  return InContext(
      [&](const DriverTable& cu) { return cu.cuGraphRetainUserObject(graph, object, count, flags); });
}

cudaError_t GraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count) {
  return InContext([&](const DriverTable& cu) { return cu.cuGraphReleaseUserObject(graph, object, count); });
}

cudaError_t UserObjectCreate(cudaUserObject_t* object, void* pointer, cudaHostFn_t destroy,
                             unsigned int references, unsigned int flags) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuUserObjectCreate(object, pointer, destroy, references, flags);
  });
}

cudaError_t UserObjectRetain(cudaUserObject_t object, unsigned int count) {
  return InContext([&](const DriverTable& cu) { return cu.cuUserObjectRetain(object, count); });
}

cudaError_t UserObjectRelease(cudaUserObject_t object, unsigned int count) {
  return InContext([&](const DriverTable& cu) { return cu.cuUserObjectRelease(object, count); });
}

cudaError_t DeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
  return InDriver(
      [&](const DriverTable& cu) { return cu.cuDeviceGetGraphMemAttribute(device, attribute, value); });
}

cudaError_t DeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
  return InDriver(
      [&](const DriverTable& cu) { return cu.cuDeviceSetGraphMemAttribute(device, attribute, value); });
}

cudaError_t DeviceGraphMemTrim(int device) {
  return InDriver([&](const DriverTable& cu) { return cu.cuDeviceGraphMemTrim(device); });
}

}  // namespace cuplex::runtime
