// Graphs: all graphs of this process, what was instantiated from them, and the captures that are going on.
// Any thread, under its lock, which is taken before a context's and never after; that nothing is captured is
// known without it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "cuda/graph/capture.h"
#include "softcuda/stream.h"

namespace cuplex::softcuda {

struct GraphExec;
class Event;

class Graphs {
 public:
  Graphs();

  std::mutex lock;
  graph::Captures captures;

  graph::Graph* Find(CUgraph graph) const { return Known<graph::Graph>(graph, Kind::kGraph); }
  graph::GraphNode* Find(CUgraphNode node) const { return Known<graph::GraphNode>(node, Kind::kNode); }
  GraphExec* Find(CUgraphExec exec) const { return Known<GraphExec>(exec, Kind::kExec); }
  /// Takes it in, with its nodes and child graphs, so that programs can name them; or forgets them.
  void Learn(const graph::Graph& graph);
  void Learn(const graph::GraphNode& node);
  void Learn(const GraphExec& exec) { known_[&exec] = Kind::kExec; }
  void Forget(const graph::Graph& graph);
  void Forget(const graph::GraphNode& node);
  void Forget(const GraphExec& exec) { known_.erase(&exec); }

  /// Memory of allocation nodes, by its address; null where that is none.
  void Learn(const std::shared_ptr<graph::Memory>& memory);
  std::shared_ptr<graph::Memory> MemoryAt(uint64_t address);

  /// Bytes of a device's allocation nodes: what launches have allocated and nothing has freed, what all nodes
  /// hold, and the most of each since it was reset.
  struct Use {
    uint64_t used = 0, most_used = 0, held = 0, most_held = 0;
  };
  // These need no lock.
  Use UseOf(int device);
  void ResetMost(int device, bool used);
  void SetAllocated(graph::Memory& memory, bool allocated);
  /// The memory comes to be there, or goes.
  void Hold(const graph::Memory& memory);
  void Release(int device, uint64_t bytes, bool allocated);

  /// Whether any stream is being captured; without the lock.
  bool capturing() const { return captured_.load(std::memory_order_relaxed) != 0; }
  /// Whether there has ever been memory of allocation nodes; without the lock.
  bool has_memory() const { return has_memory_.load(std::memory_order_relaxed); }

  /// The stream may be named to `captures` from here on.
  void Introduce(Stream* stream);
  /// It has not entered a capture after all.
  void Dismiss(Stream* stream) { streams_.erase(stream->id); }

  // These take the lock, where anything is captured at all.
  /// For calls that may wait for the device.
  CUresult RefuseUnsafe();
  CUresult Refuse(Stream& stream);
  CUresult Refuse(Event& event);
  CUresult Refuse(Context& context);
  /// It is destroyed, or dies.
  void Forget(Stream& stream);
  void Forget(Context& context);

 private:
  enum class Kind : uint8_t { kGraph, kNode, kExec };
  template <typename T, typename H>
  T* Known(H handle, Kind kind) const {
    auto at = known_.find(handle);
    return at != known_.end() && at->second == kind ? reinterpret_cast<T*>(handle) : nullptr;
  }

  std::unordered_map<const void*, Kind> known_;
  std::map<uint64_t, std::weak_ptr<graph::Memory>> memory_;
  std::unordered_map<graph::StreamId, Ref<Stream>> streams_;
  std::atomic<int> captured_{0};  // streams
  std::atomic<bool> has_memory_{false};
  std::mutex use_lock_;  // taken last
  std::map<int, Use> use_;
};

inline graph::EventId IdOf(const Event* event) { return reinterpret_cast<graph::EventId>(event); }

}  // namespace cuplex::softcuda
