// Graphs: all graphs of this process, what was instantiated from them, and the captures that are going on.
// Any thread, under its lock; that nothing is captured is known without it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client/graph/graph.h"
#include "protocol/handle.h"

namespace cuplex::client {

struct Capture;
struct GraphExec;

/// Device memory of an allocation node: there from when the node is made until nobody has it any more.
struct GraphMemory {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint32_t context = 0;
  int device = 0;
  bool allocated = false;  // a launch has allocated it, and nothing has freed it

  ~GraphMemory();
};

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
  std::shared_ptr<GraphMemory> FindMemory(uint64_t address);

  /// Takes it in, with its nodes and child graphs, so that programs can name them.
  void Learn(Graph& graph);
  void Learn(GraphNode& node);
  void Learn(GraphExec& exec) { known_[&exec] = Kind::kExec; }
  void Learn(const std::shared_ptr<GraphMemory>& memory);
  void Forget(Graph& graph);
  void Forget(GraphNode& node);
  void Forget(GraphExec& exec) { known_.erase(&exec); }
  /// A context has ended: what is instantiated in it is dropped at the server's side already.
  void ForgetContext(uint32_t context);

  // ------------------------------------------------------------------------------------------ captures
  /// Whether any stream of the process is being captured; a hint for those who hold no lock.
  bool capturing() const { return captures_.load(std::memory_order_relaxed) != 0; }
  /// What a captured event stands for.
  struct CapturedEvent {
    Capture* capture;
    std::vector<GraphNode*> nodes;
  };
  std::unordered_map<Handle, Capture*> captured_streams;
  std::unordered_map<Handle, CapturedEvent> captured_events;
  std::vector<std::unique_ptr<Capture>> captures;
  void CountCaptures();

  // ------------------------------------------------------------------------------------- device memory
  /// Bytes of allocation nodes by device: in use, the most, held, the most.
  struct Use {
    uint64_t used = 0, most_used = 0, held = 0, most_held = 0;
  };
  Use UseOf(int device);
  void ResetMost(int device, bool used);
  void Allocated(GraphMemory& memory, bool allocated);
  /// Is there, or goes: on any thread, without the lock.
  void Held(const GraphMemory& memory, bool held);

  HandleSource handles;
  uint64_t last_capture = 0;

 private:
  enum class Kind : uint8_t { kGraph, kNode, kExec };
  template <typename T, typename H>
  T* Known(H handle, Kind kind) {
    auto at = known_.find(handle);
    return at != known_.end() && at->second == kind ? reinterpret_cast<T*>(handle) : nullptr;
  }
  std::unordered_map<const void*, Kind> known_;
  std::map<uint64_t, std::weak_ptr<GraphMemory>> memory_;
  std::mutex use_mutex_;
  std::map<int, Use> use_;
  std::atomic<int> captures_{0};
};

}  // namespace cuplex::client
