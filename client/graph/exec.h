// GraphExec: a graph that has been instantiated: its nodes as frames, which the server has too. Under the
// lock of Graphs.
//
// Nodes are put in one order, with those of child graphs in the child's place. A node that is changed is
// encoded anew at once, so that what is wrong with it is said at once; the server learns of all changes
// before the next launch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/graph/graphs.h"

namespace cuplex::client {

class Session;
struct Caller;

/// A node's frames, and the cookies of its host functions.
struct Encoded {
  std::vector<std::string> frames;
  std::vector<uint64_t> cookies;
};

struct GraphExec {
  struct Step {
    GraphNode* node = nullptr;  // of `source`
    uint32_t first = 0;         // number of its first frame
    uint32_t room = 0;          // frames that are its own
    Encoded now;
    bool enabled = true;
    bool changed = false;  // since the server heard of it
  };
  Handle handle = 0;
  uint32_t context = 0;
  unsigned long long flags = 0;
  std::unique_ptr<Graph> source;  // a copy; `origin` of its nodes says of what
  std::vector<Step> steps;
  std::unordered_map<uint64_t, size_t> by_origin;
  Handle last_stream = 0;   // of the last launch
  bool changed = false;     // some step is
  bool calls_back = false;  // some step has host functions
  bool has_memory = false;  // some step allocates or frees

  CUgraphExec exec() { return reinterpret_cast<CUgraphExec>(this); }
  Step* StepOf(const GraphNode& node) {
    auto at = by_origin.find(node.id);
    return at == by_origin.end() ? nullptr : &steps[at->second];
  }
};

/// `wrong`: the node at fault, where it is one's.
CUresult InstantiateGraph(const Caller& caller, Graphs& graphs, const Graph& graph, unsigned long long flags,
                          GraphExec** out, GraphNode** wrong);
CUresult LaunchGraph(const Caller& caller, Graphs& graphs, GraphExec& exec, Handle stream);
/// Gives a node other work of the same type.
CUresult ChangeStep(const Caller& caller, GraphExec& exec, GraphExec::Step& step, Work work);
/// Gives all nodes of a part of `exec.source` the work of a graph of the same shape, or leaves all as they
/// are and says which node does not go.
CUresult UpdateExec(const Caller& caller, GraphExec& exec, const Graph& part, const Graph& now,
                    CUgraphExecUpdateResultInfo* info);
void EnableStep(GraphExec& exec, GraphExec::Step& step, bool enabled);
/// Launches that are on their way still end. Returns what is to be let go without the lock.
std::shared_ptr<Graph> DestroyExec(Session& session, Graphs& graphs, GraphExec* exec);

/// A copy as one or two frames; see shadow.h.
CUresult EncodeCopy(const Caller& caller, const CUDA_MEMCPY3D& copy, Encoded* out);

}  // namespace cuplex::client
