// Captures: streams whose work becomes nodes of a graph instead of being run. A state machine over numbers:
// whoever uses it says which stream, event, thread and context is meant, and does what follows. One thread at
// a time.
//
// A capture begins at one stream; a stream that waits for an event of the capture joins it; it ends at the
// stream where it began, and all that has joined must have been waited for there. What is forbidden makes it
// invalid, and then nothing comes out of it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "cuda/graph/graph.h"

namespace cuplex::graph {

using StreamId = uint64_t;
using EventId = uint64_t;

struct Capture {
  uint64_t id = 0;
  CUstreamCaptureMode mode{};
  uint64_t thread = 0;   // that began it
  uint64_t context = 0;  // of the stream at which it began
  StreamId origin = 0;
  Graph* graph = nullptr;
  std::unique_ptr<Graph> own;  // the same, where the program did not give it
  bool invalid = false;
  std::map<StreamId, std::vector<GraphNode*>> tips;  // by stream: what its next node comes after
  std::vector<CUgraphNode> shown;                    // what the last query has answered
  std::vector<CUgraphEdgeData> shown_edges;
};

class Captures {
 public:
  /// `captured(stream, is)` is called where a stream enters or leaves a capture.
  explicit Captures(std::function<void(StreamId, bool)> captured) : captured_(std::move(captured)) {}

  bool any() const { return !captures_.empty(); }
  /// The capture that a stream is in, or nullptr.
  Capture* Of(StreamId stream) const;
  bool Into(const Graph* graph) const;

  /// `given`: a graph of the program's to capture into, after `tips`; nullptr: a new one.
  CUresult Begin(StreamId stream, CUstreamCaptureMode mode, uint64_t thread, uint64_t context, Graph* given,
                 std::vector<GraphNode*> tips, Capture** begun);
  /// On CUDA_SUCCESS the graph; `own` has it too where the program has not had it before. The capture is over
  /// in any case but CUDA_ERROR_ILLEGAL_STATE, _UNMATCHED and _WRONG_THREAD.
  CUresult End(StreamId stream, uint64_t thread, Graph** graph, std::unique_ptr<Graph>* own);
  /// A node that comes after all that the stream has had; nullptr where the capture is invalid.
  GraphNode* Append(Capture& capture, StreamId stream, Work work);
  CUresult SetDependencies(StreamId stream, const std::vector<GraphNode*>& nodes, unsigned flags);

  /// The event stands for what the stream has had so far.
  void Record(Capture& capture, StreamId stream, EventId event);
  /// It was recorded elsewhere, or is gone.
  void Forget(EventId event) { events_.erase(event); }
  /// `stream` waits for the event; `*taken` is whether that belongs to a capture, and so needs no doing.
  CUresult Wait(StreamId stream, EventId event, bool legacy, bool* taken);

  // What is not allowed, and what to answer; CUDA_SUCCESS where nothing is in the way.
  /// A call for a captured stream that cannot be a node: waiting, asking.
  CUresult Refuse(StreamId stream);
  CUresult RefuseEvent(EventId event);
  CUresult RefuseContext(uint64_t context);
  /// The legacy stream would wait for these.
  CUresult RefuseLegacy(const std::vector<StreamId>& blocking);
  /// For calls that may wait for the device, from a thread in `mode`.
  CUresult RefuseUnsafe(uint64_t thread, CUstreamCaptureMode mode);
  /// The stream is destroyed. What it has had must still be joined; without its origin a capture is over.
  void Leave(StreamId stream);

 private:
  void Drop(Capture& capture);
  void Enter(StreamId stream, Capture& capture);

  struct CapturedEvent {
    Capture* capture;
    std::vector<GraphNode*> nodes;
  };
  std::function<void(StreamId, bool)> captured_;
  std::unordered_map<StreamId, Capture*> streams_;
  std::unordered_map<EventId, CapturedEvent> events_;
  std::vector<std::unique_ptr<Capture>> captures_;
  uint64_t last_ = 0;
};

}  // namespace cuplex::graph
