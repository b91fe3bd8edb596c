// Graph: nodes and what each comes after, with CUDA's rules, and no more than data: whoever has it runs it or
// sends it away. One thread at a time.
//
// A graph owns its nodes, a child graph node owns its graph, and a clone shares nothing with its original but
// user objects and the memory of allocation nodes.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cuda/graph/work.h"

namespace cuplex::graph {

/// Something of the program's that lives as long as anybody holds a reference: the program, graphs, and what
/// was instantiated from them. Any thread.
struct UserObject {
  CUhostFn destroy = nullptr;
  void* data = nullptr;
  std::atomic<int64_t> references{0};

  void Retain(unsigned count) { references.fetch_add(count); }
  static UserObject* Make(CUhostFn destroy, void* data, unsigned references);
  /// The living object of that handle; nullptr: none.
  static UserObject* Find(CUuserObject handle);
  CUuserObject handle() { return reinterpret_cast<CUuserObject>(this); }

  /// The last reference calls `destroy`, on this thread, and deletes it. False where there are not so many.
  bool Release(unsigned count);
};

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
  /// `to` comes after `from`. CUDA_ERROR_INVALID_VALUE where it does already, for nodes of other graphs, and
  /// for what would close a circle.
  CUresult Connect(GraphNode* from, GraphNode* to);
  /// CUDA_ERROR_INVALID_VALUE where there is no such edge.
  CUresult Disconnect(GraphNode* from, GraphNode* to);
  std::vector<GraphNode*> Roots() const;
  std::vector<std::pair<GraphNode*, GraphNode*>> Edges() const;
  /// All nodes, each after those that it depends on; among those that are free to go, in the order of making.
  std::vector<GraphNode*> InOrder() const;
  /// With child graphs, whose nodes are copies too; holds the same user objects.
  std::unique_ptr<Graph> Clone() const;
  /// The copy, here or in a child graph, of a node of what this was cloned from; nullptr: none.
  GraphNode* CopyOf(const GraphNode& original);
  /// Whether it, or a child graph, allocates or frees memory.
  bool HasMemory() const;
  /// In the language of Graphviz. `verbose`: with what nodes do.
  std::string Dot(bool verbose) const;
  /// f(node) for its nodes and those of child graphs.
  template <typename F>
  void ForEachNode(F f) const {
    for (auto& node : nodes) {
      f(*node);
      if (auto* child = std::get_if<ChildWork>(&node->work)) child->graph->ForEachNode(f);
    }
  }

 private:
  static bool Reaches(const GraphNode* from, const GraphNode* to);
};

/// Why a graph cannot take the place of another that was instantiated.
struct Difference {
  CUgraphExecUpdateResult result;
  GraphNode* node = nullptr;  // of the new graph
  GraphNode* from = nullptr;  // where an edge differs: what it comes from
};

/// Pairs the nodes (old, new) of two graphs and their child graphs in the order in which they were made.
/// nullopt where both have one shape; only what nodes do may differ then.
std::optional<Difference> Compare(const Graph& old, const Graph& now,
                                  std::vector<std::pair<GraphNode*, GraphNode*>>* pairs);

}  // namespace cuplex::graph
