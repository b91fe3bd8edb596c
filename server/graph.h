// Graph: operations that a client has described once and launches as one, and GraphRun, one such launch in
// its stream's queue. Reactor's thread.
//
// A launch is one entry of a virtual stream's queue. While it is the head, its nodes go to the driver one by
// one, in their order and as the tenant's turn allows, as if they had been called one after the other; so
// shares, limits and priorities hold inside of a graph. A graph does not change once it is made: what a
// client changes later is another graph, and launches that are queued keep theirs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/lane.h"
#include "server/operation.h"

namespace cuplex::server {

struct Graph {
  explicit Graph(std::shared_ptr<size_t> alive) : alive(std::move(alive)) {}
  ~Graph() { *alive -= operations.size(); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void Add(std::unique_ptr<Operation> operation) {
    operations.push_back(std::move(operation));
    ++*alive;
  }

  /// A record or a wait among the nodes; its mark is found when the graph is launched.
  struct EventUse {
    uint64_t event;  // the client's handle
    bool record;
  };
  std::vector<std::unique_ptr<Operation>> operations;  // kRecord and kWait without a mark
  std::vector<EventUse> events;                        // of these, in their order
  std::shared_ptr<size_t> alive;                       // nodes of all graphs of a session
};

struct GraphRun {
  /// `marks`: one with a reference for each event that the graph uses. The graph has at least one node.
  GraphRun(std::shared_ptr<const Graph> graph, std::vector<Mark*> marks)
      : graph(std::move(graph)), marks(std::move(marks)) {
    Begin();
  }

  /// Goes on to the next node; false where that was the last.
  bool Advance() {
    if (++next == graph->operations.size()) return false;
    Begin();
    return true;
  }

  std::shared_ptr<const Graph> graph;
  std::vector<Mark*> marks;
  size_t next = 0;
  size_t next_mark = 0;
  Operation current;  // the node at hand; marks of earlier nodes are used up

 private:
  void Begin() {
    current.Repeat(*graph->operations[next]);
    if (current.kind == OperationKind::kRecord || current.kind == OperationKind::kWait)
      current.mark = marks[next_mark++];
  }
};

}  // namespace cuplex::server
