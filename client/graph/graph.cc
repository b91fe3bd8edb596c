#include "client/graph/graph.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <utility>

#include "client/graph/user_object.h"

namespace cuplex::client {
namespace {

std::atomic<uint64_t> last_id{0};

bool Erase(std::vector<GraphNode*>& list, GraphNode* node) {
  auto at = std::find(list.begin(), list.end(), node);
  if (at == list.end()) return false;
  list.erase(at);
  return true;
}

}  // namespace

Graph::~Graph() {
  for (auto [object, count] : objects) ReleaseUserObject(object, count);
}

GraphNode* Graph::Add(Work work, const std::vector<GraphNode*>& dependencies) {
  nodes.push_back(std::make_unique<GraphNode>());
  GraphNode* node = nodes.back().get();
  node->graph = this;
  node->id = ++last_id;
  node->work = std::move(work);
  if (auto* child = std::get_if<ChildWork>(&node->work)) child->graph->owner = node;
  for (GraphNode* from : dependencies) Connect(from, node);
  return node;
}

void Graph::Remove(GraphNode* node) {
  for (GraphNode* each : node->dependencies) Erase(each->dependents, node);
  for (GraphNode* each : node->dependents) Erase(each->dependencies, node);
  std::erase_if(nodes, [&](const auto& each) { return each.get() == node; });
}

bool Graph::Connect(GraphNode* from, GraphNode* to) {
  if (std::find(to->dependencies.begin(), to->dependencies.end(), from) != to->dependencies.end())
    return false;
  to->dependencies.push_back(from);
  from->dependents.push_back(to);
  return true;
}

bool Graph::Disconnect(GraphNode* from, GraphNode* to) {
  return Erase(to->dependencies, from) && Erase(from->dependents, to);
}

std::vector<GraphNode*> Graph::InOrder() const {
  std::unordered_map<GraphNode*, size_t> left;
  std::vector<GraphNode*> order;
  order.reserve(nodes.size());
  for (const auto& node : nodes) {
    if (node->dependencies.empty()) order.push_back(node.get());
    left[node.get()] = node->dependencies.size();
  }
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
    for (const GraphNode* from : node->dependencies) Connect(copies[from], copies[node.get()]);
  clone->objects = objects;
  for (auto [object, count] : objects) RetainUserObject(object, count);
  return clone;
}

}  // namespace cuplex::client
