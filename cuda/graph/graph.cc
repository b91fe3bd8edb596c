#include "cuda/graph/graph.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

namespace cuplex::graph {
namespace {

std::atomic<uint64_t> last_id{0};

bool Erase(std::vector<GraphNode*>& list, const GraphNode* node) {
  auto at = std::find(list.begin(), list.end(), node);
  if (at == list.end()) return false;
  list.erase(at);
  return true;
}

void Link(GraphNode* from, GraphNode* to) {
  if (std::find(to->dependencies.begin(), to->dependencies.end(), from) != to->dependencies.end()) return;
  to->dependencies.push_back(from);
  from->dependents.push_back(to);
}

const char* NameOf(CUgraphNodeType type) {
  constexpr const char* kNames[] = {"KERNEL",    "MEMCPY",    "MEMSET",     "HOST",
                                    "GRAPH",     "EMPTY",     "WAIT_EVENT", "EVENT_RECORD",
                                    "SEMAPHORE", "SEMAPHORE", "MEM_ALLOC",  "MEM_FREE"};
  return kNames[type];
}

void PrintLabel(const Work& work, bool verbose, std::ostream& out) {
  out << NameOf(TypeOf(work));
  if (!verbose) return;
  if (auto* kernel = std::get_if<KernelWork>(&work)) {
    auto triple = [&](const std::array<uint32_t, 3>& t) {
      out << '(' << t[0] << ", " << t[1] << ", " << t[2] << ')';
    };
    out << "\\ngrid ";
    triple(kernel->grid);
    out << ", block ";
    triple(kernel->block);
    out << ", " << kernel->shared_bytes << " bytes shared";
  } else if (auto* copy = std::get_if<CopyWork>(&work)) {
    out << "\\n" << copy->copy.WidthInBytes << " x " << copy->copy.Height << " x " << copy->copy.Depth;
  } else if (auto* fill = std::get_if<FillWork>(&work)) {
    out << "\\n" << fill->fill.width << " x " << fill->fill.height << " of " << fill->fill.value;
  }
}

void PrintInto(const Graph& graph, bool verbose, const std::string& prefix, std::ostream& out) {
  std::unordered_map<const GraphNode*, size_t> number;
  for (const auto& node : graph.nodes) number.emplace(node.get(), number.size());
  for (const auto& node : graph.nodes) {
    const size_t i = number[node.get()];
    out << "  \"" << prefix << i << "\" [shape=box, label=\"" << i << ": ";
    PrintLabel(node->work, verbose, out);
    out << "\"];\n";
    for (const GraphNode* from : node->dependencies)
      out << "  \"" << prefix << number[from] << "\" -> \"" << prefix << i << "\";\n";
    if (auto* child = std::get_if<ChildWork>(&node->work)) {
      const std::string inner = prefix + std::to_string(i);
      out << "  subgraph \"cluster_" << inner << "\" {\n";
      PrintInto(*child->graph, verbose, inner + ".", out);
      out << "  }\n";
    }
  }
}

}  // namespace

CUgraphNodeType TypeOf(const Work& work) {
  constexpr CUgraphNodeType kTypes[] = {CU_GRAPH_NODE_TYPE_EMPTY,      CU_GRAPH_NODE_TYPE_KERNEL,
                                        CU_GRAPH_NODE_TYPE_MEMCPY,     CU_GRAPH_NODE_TYPE_MEMSET,
                                        CU_GRAPH_NODE_TYPE_HOST,       CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                                        CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_GRAPH,
                                        CU_GRAPH_NODE_TYPE_MEM_ALLOC,  CU_GRAPH_NODE_TYPE_MEM_FREE};
  static_assert(std::size(kTypes) == std::variant_size_v<Work>);
  return kTypes[work.index()];
}

CUresult CheckAttribute(CUkernelNodeAttrID attribute, const CUkernelNodeAttrValue& value) {
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      return value.clusterDim.x > 1 || value.clusterDim.y > 1 || value.clusterDim.z > 1
                 ? CUDA_ERROR_NOT_SUPPORTED
                 : CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
      return value.deviceUpdatableKernelNode.deviceUpdatable ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:  // these are hints
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

namespace {

struct Objects {
  std::mutex mutex;
  std::unordered_set<const void*> alive;
};

// Never destroyed, since graphs may go while the process exits.
Objects& AllObjects() {
  static Objects* objects = new Objects;
  return *objects;
}

}  // namespace

UserObject* UserObject::Make(CUhostFn destroy, void* data, unsigned references) {
  auto* object = new UserObject;
  object->destroy = destroy;
  object->data = data;
  object->references = references;
  Objects& all = AllObjects();
  std::lock_guard guard(all.mutex);
  all.alive.insert(object);
  return object;
}

UserObject* UserObject::Find(CUuserObject handle) {
  Objects& all = AllObjects();
  std::lock_guard guard(all.mutex);
  return all.alive.contains(handle) ? reinterpret_cast<UserObject*>(handle) : nullptr;
}

bool UserObject::Release(unsigned count) {
  int64_t now = references.load();
  do {
    if (now < int64_t{count}) return false;
  } while (!references.compare_exchange_weak(now, now - int64_t{count}));
  if (now != int64_t{count}) return true;
  {
    Objects& all = AllObjects();
    std::lock_guard guard(all.mutex);
    all.alive.erase(this);
  }
  destroy(data);
  delete this;
  return true;
}

Graph::~Graph() {
  for (auto [object, count] : objects) object->Release(count);
}

GraphNode* Graph::Add(Work work, const std::vector<GraphNode*>& dependencies) {
  nodes.push_back(std::make_unique<GraphNode>());
  GraphNode* node = nodes.back().get();
  node->graph = this;
  node->id = ++last_id;
  node->work = std::move(work);
  if (auto* child = std::get_if<ChildWork>(&node->work)) child->graph->owner = node;
  for (GraphNode* from : dependencies) Link(from, node);
  return node;
}

void Graph::Remove(GraphNode* node) {
  for (GraphNode* each : node->dependencies) Erase(each->dependents, node);
  for (GraphNode* each : node->dependents) Erase(each->dependencies, node);
  std::erase_if(nodes, [&](const auto& each) { return each.get() == node; });
}

bool Graph::Reaches(const GraphNode* from, const GraphNode* to) {
  std::unordered_set<const GraphNode*> seen;
  std::vector<const GraphNode*> left{from};
  while (!left.empty()) {
    const GraphNode* node = left.back();
    left.pop_back();
    if (node == to) return true;
    if (seen.insert(node).second) left.insert(left.end(), node->dependents.begin(), node->dependents.end());
  }
  return false;
}

CUresult Graph::Connect(GraphNode* from, GraphNode* to) {
  if (!from || !to || from->graph != this || to->graph != this) return CUDA_ERROR_INVALID_VALUE;
  const bool there =
      std::find(to->dependencies.begin(), to->dependencies.end(), from) != to->dependencies.end();
  if (there || Reaches(to, from)) return CUDA_ERROR_INVALID_VALUE;
  Link(from, to);
  return CUDA_SUCCESS;
}

CUresult Graph::Disconnect(GraphNode* from, GraphNode* to) {
  if (!from || !to || from->graph != this || to->graph != this) return CUDA_ERROR_INVALID_VALUE;
  if (!Erase(to->dependencies, from)) return CUDA_ERROR_INVALID_VALUE;
  Erase(from->dependents, to);
  return CUDA_SUCCESS;
}

std::vector<GraphNode*> Graph::Roots() const {
  std::vector<GraphNode*> roots;
  for (const auto& node : nodes)
    if (node->dependencies.empty()) roots.push_back(node.get());
  return roots;
}

std::vector<std::pair<GraphNode*, GraphNode*>> Graph::Edges() const {
  std::vector<std::pair<GraphNode*, GraphNode*>> edges;
  for (const auto& node : nodes)
    for (GraphNode* next : node->dependents) edges.emplace_back(node.get(), next);
  return edges;
}

std::vector<GraphNode*> Graph::InOrder() const {
  std::unordered_map<const GraphNode*, size_t> left;
  std::vector<GraphNode*> order = Roots();
  order.reserve(nodes.size());
  for (const auto& node : nodes) left[node.get()] = node->dependencies.size();
  for (size_t i = 0; i < order.size(); ++i)
    for (GraphNode* next : order[i]->dependents)
      if (--left[next] == 0) order.push_back(next);
  return order;
}

std::unique_ptr<Graph> Graph::Clone() const {
  auto clone = std::make_unique<Graph>();
  std::unordered_map<const GraphNode*, GraphNode*> copies;
  for (const auto& node : nodes) {
    Work work = node->work;
    if (auto* child = std::get_if<ChildWork>(&work)) child->graph = child->graph->Clone();
    GraphNode* copy = clone->Add(std::move(work), {});
    copy->origin = node->id;
    copies[node.get()] = copy;
  }
  for (const auto& node : nodes)
    for (const GraphNode* from : node->dependencies) Link(copies[from], copies[node.get()]);
  clone->objects = objects;
  for (auto [object, count] : objects) object->Retain(count);
  return clone;
}

GraphNode* Graph::CopyOf(const GraphNode& original) {
  GraphNode* found = nullptr;
  ForEachNode([&](GraphNode& node) {
    if (node.origin == original.id) found = &node;
  });
  return found;
}

bool Graph::HasMemory() const {
  bool found = false;
  ForEachNode([&](const GraphNode& node) {
    found |= std::holds_alternative<AllocWork>(node.work) || std::holds_alternative<FreeWork>(node.work);
  });
  return found;
}

std::string Graph::Dot(bool verbose) const {
  std::ostringstream out;
  out << "digraph dot {\n";
  PrintInto(*this, verbose, "graph_", out);
  out << "}\n";
  return out.str();
}

std::optional<Difference> Compare(const Graph& old, const Graph& now,
                                  std::vector<std::pair<GraphNode*, GraphNode*>>* pairs) {
  std::unordered_map<const GraphNode*, size_t> in_old, in_now;
  for (const auto& node : old.nodes) in_old.emplace(node.get(), in_old.size());
  for (const auto& node : now.nodes) in_now.emplace(node.get(), in_now.size());
  for (size_t i = 0; i < now.nodes.size(); ++i) {
    GraphNode* node = now.nodes[i].get();
    if (i >= old.nodes.size()) return Difference{CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node};
    GraphNode* was = old.nodes[i].get();
    if (node->work.index() != was->work.index())
      return Difference{CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, node};
    std::set<size_t> before;
    for (GraphNode* from : was->dependencies) before.insert(in_old[from]);
    for (GraphNode* from : node->dependencies)
      if (!before.erase(in_now[from]))
        return Difference{CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node, from};
    if (!before.empty()) return Difference{CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node};
    if (auto* child = std::get_if<ChildWork>(&node->work)) {
      if (auto different = Compare(*std::get<ChildWork>(was->work).graph, *child->graph, pairs))
        return different;
    } else {
      pairs->emplace_back(was, node);
    }
  }
  if (old.nodes.size() > now.nodes.size()) return Difference{CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED};
  return std::nullopt;
}

}  // namespace cuplex::graph
