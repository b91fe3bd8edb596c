// Graph: nodes and what each comes after; kept by the client alone, which the server learns of when it is
// instantiated. Under the lock of Graphs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "client/graph/work.h"

namespace cuplex::client {

struct UserObject;

struct GraphNode {
  Graph* graph = nullptr;
  uint64_t id = 0;      // never used twice
  uint64_t origin = 0;  // the id of the node that this is a copy of
  Work work;
  std::vector<GraphNode*> dependencies;  // in the order in which they were given
  std::vector<GraphNode*> dependents;

  CUgraphNode handle() { return reinterpret_cast<CUgraphNode>(this); }
};

struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;  // in the order in which they were made
  GraphNode* owner = nullptr;                     // the node whose child graph it is
  std::map<UserObject*, unsigned> objects;        // references that it holds

  Graph() = default;
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  CUgraph handle() { return reinterpret_cast<CUgraph>(this); }

  GraphNode* Add(Work work, const std::vector<GraphNode*>& dependencies);
  void Remove(GraphNode* node);
  /// False where they are so already, or not.
  static bool Connect(GraphNode* from, GraphNode* to);
  static bool Disconnect(GraphNode* from, GraphNode* to);
  /// All nodes, each after those that it depends on; fewer where there is a circle.
  std::vector<GraphNode*> InOrder() const;
  /// With child graphs, whose nodes are copies too; holds the same user objects.
  std::unique_ptr<Graph> Clone() const;
  /// f(node) for its nodes and those of child graphs.
  template <typename F>
  void ForEachNode(F f) {
    for (auto& node : nodes) {
      f(*node);
      if (auto* child = std::get_if<ChildWork>(&node->work)) child->graph->ForEachNode(f);
    }
  }
};

}  // namespace cuplex::client
