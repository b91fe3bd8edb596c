#include "cuda/graph/capture.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace cuplex::graph {
namespace {

void Join(std::vector<GraphNode*>& tips, const std::vector<GraphNode*>& more) {
  for (GraphNode* node : more)
    if (std::find(tips.begin(), tips.end(), node) == tips.end()) tips.push_back(node);
}

// Whether all that the other streams have had comes before where the first one is.
bool Joined(const Capture& capture) {
  std::unordered_set<const GraphNode*> before;
  const auto& origin = capture.tips.at(capture.origin);
  std::vector<const GraphNode*> left(origin.begin(), origin.end());
  while (!left.empty()) {
    const GraphNode* node = left.back();
    left.pop_back();
    if (!before.insert(node).second) continue;
    left.insert(left.end(), node->dependencies.begin(), node->dependencies.end());
  }
  for (const auto& [stream, tips] : capture.tips)
    for (const GraphNode* tip : tips)
      if (!before.contains(tip)) return false;
  return true;
}

}  // namespace

Capture* Captures::Of(StreamId stream) const {
  auto at = streams_.find(stream);
  return at == streams_.end() ? nullptr : at->second;
}

bool Captures::Into(const Graph* graph) const {
  return std::any_of(captures_.begin(), captures_.end(),
                     [&](const auto& capture) { return capture->graph == graph; });
}

void Captures::Enter(StreamId stream, Capture& capture) {
  if (streams_.emplace(stream, &capture).second) captured_(stream, true);
}

CUresult Captures::Begin(StreamId stream, CUstreamCaptureMode mode, uint64_t thread, uint64_t context,
                         Graph* given, std::vector<GraphNode*> tips, Capture** begun) {
  if (Of(stream)) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_unique<Capture>();
  capture->id = ++last_;
  capture->mode = mode;
  capture->thread = thread;
  capture->context = context;
  capture->origin = stream;
  if (!given) capture->own = std::make_unique<Graph>();
  capture->graph = given ? given : capture->own.get();
  capture->tips[stream] = std::move(tips);
  *begun = capture.get();
  captures_.push_back(std::move(capture));
  Enter(stream, **begun);
  return CUDA_SUCCESS;
}

CUresult Captures::End(StreamId stream, uint64_t thread, Graph** graph, std::unique_ptr<Graph>* own) {
  Capture* capture = Of(stream);
  if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream) {
    capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != thread) {
    capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  const CUresult result = capture->invalid   ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                          : Joined(*capture) ? CUDA_SUCCESS
                                             : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  *own = std::move(capture->own);
  if (!result) *graph = capture->graph;
  Drop(*capture);
  return result;
}

void Captures::Drop(Capture& capture) {
  for (auto at = streams_.begin(); at != streams_.end();) {
    if (at->second != &capture) {
      ++at;
      continue;
    }
    const StreamId stream = at->first;
    at = streams_.erase(at);
    captured_(stream, false);
  }
  std::erase_if(events_, [&](const auto& each) { return each.second.capture == &capture; });
  std::erase_if(captures_, [&](const auto& each) { return each.get() == &capture; });
}

GraphNode* Captures::Append(Capture& capture, StreamId stream, Work work) {
  if (capture.invalid) return nullptr;
  std::vector<GraphNode*>& tips = capture.tips[stream];
  GraphNode* node = capture.graph->Add(std::move(work), tips);
  tips = {node};
  return node;
}

CUresult Captures::SetDependencies(StreamId stream, const std::vector<GraphNode*>& nodes, unsigned flags) {
  Capture* capture = Of(stream);
  if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  for (GraphNode* node : nodes)
    if (node->graph != capture->graph) return CUDA_ERROR_INVALID_VALUE;
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) capture->tips[stream].clear();
  Join(capture->tips[stream], nodes);
  return CUDA_SUCCESS;
}

void Captures::Record(Capture& capture, StreamId stream, EventId event) {
  events_[event] = {&capture, capture.tips[stream]};
}

CUresult Captures::Wait(StreamId stream, EventId event, bool legacy, bool* taken) {
  Capture* capture = Of(stream);
  auto at = events_.find(event);
  *taken = capture || at != events_.end();
  if (!*taken) return CUDA_SUCCESS;
  if (capture && capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (at == events_.end()) {
    capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  Capture& other = *at->second.capture;
  if (other.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (capture && capture != &other) {
    capture->invalid = other.invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (legacy) {
    other.invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  Enter(stream, other);
  Join(other.tips[stream], at->second.nodes);
  return CUDA_SUCCESS;
}

CUresult Captures::Refuse(StreamId stream) {
  Capture* capture = Of(stream);
  if (!capture) return CUDA_SUCCESS;
  if (std::exchange(capture->invalid, true)) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult Captures::RefuseEvent(EventId event) {
  auto at = events_.find(event);
  if (at == events_.end()) return CUDA_SUCCESS;
  at->second.capture->invalid = true;
  return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult Captures::RefuseContext(uint64_t context) {
  CUresult result = CUDA_SUCCESS;
  for (auto& capture : captures_) {
    if (capture->context != context) continue;
    capture->invalid = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult Captures::RefuseLegacy(const std::vector<StreamId>& blocking) {
  CUresult result = CUDA_SUCCESS;
  for (StreamId stream : blocking) {
    Capture* capture = Of(stream);
    if (!capture) continue;
    capture->invalid = true;
    result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return result;
}

CUresult Captures::RefuseUnsafe(uint64_t thread, CUstreamCaptureMode mode) {
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (auto& capture : captures_) {
    if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    const bool all = mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (capture->thread != thread && !all) continue;
    capture->invalid = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

void Captures::Leave(StreamId stream) {
  Capture* capture = Of(stream);
  if (!capture) return;
  if (capture->origin == stream) return Drop(*capture);  // nobody can end it any more
  streams_.erase(stream);
  captured_(stream, false);
}

}  // namespace cuplex::graph
