// Graphs: all graphs of this process, what was instantiated from them, and the captures that are going on.
// Any thread, under its lock; that nothing is captured is known without it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "client/graph/work.h"
#include "cuda/graph/capture.h"
#include "protocol/handle.h"

namespace cuplex::client {

struct GraphExec;

class Graphs {
 public:
  Graphs();
  ~Graphs();
  Graphs(const Graphs&) = delete;

  std::mutex mutex;

  // ------------------------------------------------------------------------------------- finding things
  Graph* Find(CUgraph graph) { return Known<Graph>(graph, Kind::kGraph); }
  GraphNode* Find(CUgraphNode node) { return Known<GraphNode>(node, Kind::kNode); }
  GraphExec* Find(CUgraphExec exec) { return Known<GraphExec>(exec, Kind::kExec); }
  std::shared_ptr<graph::Memory> FindMemory(uint64_t address);

  /// Takes it in, with its nodes and child graphs, so that programs can name them.
  void Learn(Graph& graph);
  void Learn(GraphNode& node);
  void Learn(GraphExec& exec) { known_[&exec] = Kind::kExec; }
  void Learn(const std::shared_ptr<graph::Memory>& memory);
  void Forget(Graph& graph);
  void Forget(GraphNode& node);
  void Forget(GraphExec& exec) { known_.erase(&exec); }

  // ------------------------------------------------------------------------------------------ captures
  /// Whether any stream of the process is being captured; a hint for those who hold no lock.
  bool capturing() const { return captures_.load(std::memory_order_relaxed) != 0; }
  graph::Captures captures;
  std::unordered_set<Handle> captured_streams;

  // ------------------------------------------------------------------------------------- device memory
  /// Bytes of allocation nodes by device: in use, the most, held, the most.
  struct Use {
    uint64_t used = 0, most_used = 0, held = 0, most_held = 0;
  };
  Use UseOf(int device);
  void ResetMost(int device, bool used);
  void Allocated(graph::Memory& memory, bool allocated);
  /// Is there, or goes: on any thread, without the lock.
  void Held(const graph::Memory& memory, bool held);

  HandleSource handles;

 private:
  enum class Kind : uint8_t { kGraph, kNode, kExec };
  template <typename T, typename H>
  T* Known(H handle, Kind kind) {
    auto at = known_.find(handle);
    return at != known_.end() && at->second == kind ? reinterpret_cast<T*>(handle) : nullptr;
  }
  std::unordered_map<const void*, Kind> known_;
  std::map<uint64_t, std::weak_ptr<graph::Memory>> memory_;
  std::mutex use_mutex_;
  std::map<int, Use> use_;
  std::atomic<int> captures_{0};
};

}  // namespace cuplex::client
