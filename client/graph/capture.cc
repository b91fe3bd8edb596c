#include "client/graph/capture.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "client/copy.h"
#include "client/exports.h"
#include "client/graph/locked.h"

namespace cuplex::client {
namespace {

/// The capture that a stream is in; nullptr where it is in none. `out` is set where the call is at its end
/// already.
Capture* CaptureOf(const Caller& caller, Graphs& graphs, CUstream stream, Handle* handle, CUresult* out) {
  *out = ResolveStream(caller, stream, handle);
  if (*out) return nullptr;
  auto at = graphs.captured_streams.find(*handle);
  if (at != graphs.captured_streams.end()) {
    if (at->second->invalid) *out = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return at->second;
  }
  if (*handle != kLegacyStream) return nullptr;
  // The legacy stream would wait for streams that are not running.
  for (auto& [captured, capture] : graphs.captured_streams) {
    const Stream* found = caller.session->streams.Find(captured);
    if (capture->context != caller.number || !found || (found->flags & CU_STREAM_NON_BLOCKING)) continue;
    capture->invalid = true;
    *out = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return nullptr;
}

GraphNode* Append(Graphs& graphs, Capture& capture, Handle stream, Work work) {
  std::vector<GraphNode*>& tips = capture.tips[stream];
  GraphNode* node = capture.graph->Add(std::move(work), tips);
  graphs.Learn(*node);
  tips = {node};
  return node;
}

/// What all that capture work have in common: `add(graphs, capture, handle)` where there is something to add
/// to.
template <typename Add>
bool InCapture(const Caller& caller, CUstream stream, CUresult* out, Add add) {
  Graphs& graphs = caller.session->graphs;
  std::lock_guard lock(graphs.mutex);
  Handle handle = 0;
  Capture* capture = CaptureOf(caller, graphs, stream, &handle, out);
  if (*out) return true;
  if (!capture) return false;
  *out = add(graphs, *capture, handle);
  return true;
}

void Join(std::vector<GraphNode*>& tips, const std::vector<GraphNode*>& more) {
  for (GraphNode* node : more)
    if (std::find(tips.begin(), tips.end(), node) == tips.end()) tips.push_back(node);
}

/// Whether all that the other streams have done comes before where the first one is.
bool Joined(const Capture& capture) {
  std::unordered_set<const GraphNode*> before;
  std::vector<const GraphNode*> left;
  for (const GraphNode* tip : capture.tips.at(capture.origin)) left.push_back(tip);
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

void EndCapture(Graphs& graphs, Capture& capture) {
  std::erase_if(graphs.captured_streams, [&](const auto& each) { return each.second == &capture; });
  std::erase_if(graphs.captured_events, [&](const auto& each) { return each.second.capture == &capture; });
  std::erase_if(graphs.captures, [&](const auto& each) { return each.get() == &capture; });
  graphs.CountCaptures();
}

bool CaptureWork(const Caller& caller, CUstream stream, Work work, CUresult* out) {
  return InCapture(caller, stream, out, [&](Graphs& graphs, Capture& capture, Handle handle) {
    Append(graphs, capture, handle, std::move(work));
    return CUDA_SUCCESS;
  });
}

bool CaptureLaunch(const Caller& caller, CUstream stream, CUfunction f, const LaunchShape& shape,
                   uint32_t flags, void** params, void** extra, CUresult* out) {
  return InCapture(caller, stream, out, [&](Graphs& graphs, Capture& capture, Handle handle) {
    const CUDA_KERNEL_NODE_PARAMS given{f,
                                        shape.grid[0],
                                        shape.grid[1],
                                        shape.grid[2],
                                        shape.block[0],
                                        shape.block[1],
                                        shape.block[2],
                                        shape.shared_bytes,
                                        params,
                                        extra,
                                        nullptr,
                                        nullptr};
    KernelWork work;
    if (CUresult r = ReadKernel(caller, given, flags, &work)) return r;
    Append(graphs, capture, handle, std::move(work));
    return CUDA_SUCCESS;
  });
}

bool CaptureCopy(const Caller& caller, CUstream stream, const CUDA_MEMCPY3D& copy, bool waits,
                 CUresult* out) {
  if (waits) return (*out = RefuseUnsafe(*caller.session)) || (*out = RefuseCaptured(caller, stream));
  return InCapture(caller, stream, out, [&](Graphs& graphs, Capture& capture, Handle handle) {
    if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return CUDA_SUCCESS;
    Box box;
    if (CUresult r = ReadBox(caller, copy, &box)) return r;
    Append(graphs, capture, handle, CopyWork{copy});
    return CUDA_SUCCESS;
  });
}

bool CaptureFill(const Caller& caller, CUstream stream, const CUDA_MEMSET_NODE_PARAMS& fill, bool waits,
                 CUresult* out) {
  if (waits) return (*out = RefuseUnsafe(*caller.session)) || (*out = RefuseCaptured(caller, stream));
  return InCapture(caller, stream, out, [&](Graphs& graphs, Capture& capture, Handle handle) {
    std::string frame;
    if (CUresult r = FillFrame(*caller.session, fill, &frame)) return r;
    if (!frame.empty()) Append(graphs, capture, handle, FillWork{fill});
    return CUDA_SUCCESS;
  });
}

bool CaptureRecord(const Caller& caller, CUstream stream, CUevent event, unsigned flags, CUresult* out) {
  const Handle recorded = reinterpret_cast<Handle>(event);
  const bool captured = InCapture(caller, stream, out, [&](Graphs& graphs, Capture& capture, Handle handle) {
    if (flags & CU_EVENT_RECORD_EXTERNAL) {
      Append(graphs, capture, handle, RecordWork{event});
    } else {
      graphs.captured_events[recorded] = {&capture, capture.tips[handle]};
    }
    return CUDA_SUCCESS;
  });
  if (captured) return true;
  std::lock_guard lock(caller.session->graphs.mutex);
  caller.session->graphs.captured_events.erase(recorded);
  return false;
}

bool CaptureWait(const Caller& caller, CUstream stream, CUevent event, unsigned flags, CUresult* out) {
  Graphs& graphs = caller.session->graphs;
  std::lock_guard lock(graphs.mutex);
  Handle handle = 0;
  Capture* capture = CaptureOf(caller, graphs, stream, &handle, out);
  if (*out) return true;
  auto at = graphs.captured_events.find(reinterpret_cast<Handle>(event));
  if (flags & CU_EVENT_WAIT_EXTERNAL) {
    if (!capture) return false;
    Append(graphs, *capture, handle, WaitWork{event});
    return true;
  }
  if (at == graphs.captured_events.end()) {
    if (!capture) return false;
    capture->invalid = true;
    *out = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    return true;
  }
  Capture& other = *at->second.capture;
  if (other.invalid) {
    *out = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (capture && capture != &other) {
    capture->invalid = other.invalid = true;
    *out = CUDA_ERROR_STREAM_CAPTURE_MERGE;
  } else if (handle == kLegacyStream) {
    other.invalid = true;
    *out = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  } else {
    graphs.captured_streams[handle] = &other;
    Join(other.tips[handle], at->second.nodes);
  }
  return true;
}

CUresult AddAllocNode(const Caller& caller, Graphs& graphs, Graph& graph,
                      const std::vector<GraphNode*>& dependencies, CUDA_MEM_ALLOC_NODE_PARAMS* params,
                      GraphNode** node) {
  const CUmemPoolProps& props = params->poolProps;
  if (props.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      props.location.type != CU_MEM_LOCATION_TYPE_DEVICE || props.handleTypes != CU_MEM_HANDLE_TYPE_NONE)
    return CUDA_ERROR_INVALID_VALUE;
  if (props.location.id != caller.context->device) return CUDA_ERROR_NOT_SUPPORTED;
  if (params->accessDescCount && !params->accessDescs) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr address;
  if (CUresult r = AllocateDevice(caller, params->bytesize, Allocation::kGraph, &address)) return r;
  auto memory = std::make_shared<GraphMemory>();
  memory->address = address;
  memory->bytes = params->bytesize;
  memory->context = caller.number;
  memory->device = caller.context->device;
  graphs.Learn(memory);
  params->dptr = address;
  AllocWork work;
  work.params = *params;
  work.access.assign(params->accessDescs, params->accessDescs + params->accessDescCount);
  work.memory = std::move(memory);
  *node = graph.Add(std::move(work), dependencies);
  graphs.Learn(**node);
  return CUDA_SUCCESS;
}

bool CaptureAlloc(const Caller& caller, CUstream stream, uint64_t bytes, CUdeviceptr* address,
                  CUresult* out) {
  return InCapture(caller, stream, out, [&](Graphs& graphs, Capture& capture, Handle handle) {
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, caller.context->device};
    params.bytesize = bytes;
    GraphNode* node;
    if (CUresult r = AddAllocNode(caller, graphs, *capture.graph, capture.tips[handle], &params, &node))
      return r;
    capture.tips[handle] = {node};
    *address = params.dptr;
    return CUDA_SUCCESS;
  });
}

bool CaptureFree(const Caller& caller, CUstream stream, CUdeviceptr address, CUresult* out) {
  return InCapture(caller, stream, out, [&](Graphs& graphs, Capture& capture, Handle handle) {
    auto memory = graphs.FindMemory(address);
    if (!memory) return CUDA_ERROR_INVALID_VALUE;
    Append(graphs, capture, handle, FreeWork{std::move(memory)});
    return CUDA_SUCCESS;
  });
}

// ------------------------------------------------------------------------------------------------ what is
// refused

CUresult RefuseCaptured(const Caller& caller, CUstream stream) {
  Handle handle;
  if (CUresult r = ResolveStream(caller, stream, &handle)) return r;
  return RefuseCapturedHandle(caller, handle);
}

CUresult RefuseCapturedHandle(const Caller& caller, Handle handle) {
  Graphs& graphs = caller.session->graphs;
  std::lock_guard lock(graphs.mutex);
  CUresult out;
  Capture* capture = CaptureOf(caller, graphs, reinterpret_cast<CUstream>(handle), &handle, &out);
  if (!capture || out) return out;
  capture->invalid = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult RefuseCapturedEvent(const Caller& caller, Handle event) {
  Graphs& graphs = caller.session->graphs;
  std::lock_guard lock(graphs.mutex);
  auto at = graphs.captured_events.find(event);
  if (at == graphs.captured_events.end()) return CUDA_SUCCESS;
  at->second.capture->invalid = true;
  return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult RefuseCapturedContext(const Caller& caller) {
  Graphs& graphs = caller.session->graphs;
  std::lock_guard lock(graphs.mutex);
  CUresult out = CUDA_SUCCESS;
  for (auto& capture : graphs.captures) {
    if (capture->context != caller.number) continue;
    capture->invalid = true;
    out = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return out;
}

CUresult RefuseUnsafe(Session& session) {
  Graphs& graphs = session.graphs;
  const CUstreamCaptureMode mine = ThisThread().capture_mode;
  if (!graphs.capturing() || mine == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  std::lock_guard lock(graphs.mutex);
  CUresult out = CUDA_SUCCESS;
  for (auto& capture : graphs.captures) {
    if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    const bool own = capture->thread == std::this_thread::get_id();
    const bool all = mine == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!own && !all) continue;
    capture->invalid = true;
    out = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return out;
}

void LeaveCapture(Session& session, Handle stream) {
  Graphs& graphs = session.graphs;
  if (!graphs.capturing()) return;
  std::lock_guard lock(graphs.mutex);
  auto at = graphs.captured_streams.find(stream);
  if (at == graphs.captured_streams.end()) return;
  Capture& capture = *at->second;
  capture.invalid = true;
  capture.tips.erase(stream);
  graphs.captured_streams.erase(at);
  if (capture.origin == stream) EndCapture(graphs, capture);  // nobody can end it any more
}

namespace {

CUresult Begin(CUstream hStream, CUstreamCaptureMode mode, CUgraph given, const CUgraphNode* dependencies,
               size_t count) {
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  LockedCaller in;
  if (CUresult r = in.Enter()) return r;
  Handle handle;
  if (CUresult r = ResolveStream(in, hStream, &handle)) return r;
  if (handle == kLegacyStream) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (in.graphs->captured_streams.contains(handle)) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_unique<Capture>();
  Graph* graph = nullptr;
  std::vector<GraphNode*> tips;
  if (given) {
    graph = in.graphs->Find(given);
    if (!graph || (count && !dependencies)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) {
      GraphNode* node = in.graphs->Find(dependencies[i]);
      if (!node || node->graph != graph) return CUDA_ERROR_INVALID_VALUE;
      tips.push_back(node);
    }
  } else {
    graph = new Graph;
    in.graphs->Learn(*graph);
  }
  capture->id = ++in.graphs->last_capture;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->context = in.number;
  capture->origin = handle;
  capture->graph = graph;
  capture->given = given != nullptr;
  capture->tips[handle] = std::move(tips);
  in.graphs->captured_streams[handle] = capture.get();
  in.graphs->captures.push_back(std::move(capture));
  in.graphs->CountCaptures();
  return CUDA_SUCCESS;
}

bool HasData(const CUgraphEdgeData* edges, size_t count) {
  for (size_t i = 0; edges && i < count; ++i)
    if (edges[i].from_port || edges[i].to_port || edges[i].type) return true;
  return false;
}

}  // namespace
}  // namespace cuplex::client

using namespace cuplex::client;
using cuplex::Handle;

extern "C" {

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
  return Begin(hStream, mode, nullptr, nullptr, 0);
}

CUresult cuStreamBeginCapture(CUstream hStream) {
  return cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph graph, const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* edges, size_t count, CUstreamCaptureMode mode) {
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  if (HasData(edges, count)) return CUDA_ERROR_NOT_SUPPORTED;
  return Begin(hStream, mode, graph, dependencies, count);
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph* out) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  LockedCaller in;
  if (CUresult r = in.Enter()) return r;
  *out = nullptr;
  Handle handle;
  if (CUresult r = ResolveStream(in, hStream, &handle)) return r;
  auto at = in.graphs->captured_streams.find(handle);
  if (at == in.graphs->captured_streams.end()) return CUDA_ERROR_ILLEGAL_STATE;
  Capture& capture = *at->second;
  if (capture.origin != handle) {
    capture.invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  if (capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture.thread != std::this_thread::get_id()) {
    capture.invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  CUresult result = CUDA_SUCCESS;
  if (capture.invalid) {
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (!Joined(capture)) {
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  Graph* graph = capture.graph;
  const bool given = capture.given;
  EndCapture(*in.graphs, capture);
  if (!result) {
    *out = graph->handle();
  } else if (!given) {
    in.graphs->Forget(*graph);
    delete graph;
  }
  return result;
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus* status) {
  return cuStreamGetCaptureInfo_v3(hStream, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   const CUgraphEdgeData** edges, size_t* count) {
  if (!status) return CUDA_ERROR_INVALID_VALUE;
  Locked in;
  if (CUresult r = in.Enter()) return r;
  Handle handle = reinterpret_cast<Handle>(hStream);
  if (!in.session->streams.Find(handle)) {
    Caller caller;
    if (CUresult r = EnterContext(&caller)) return r;
    if (CUresult r = ResolveStream(caller, hStream, &handle)) return r;
    if (handle == cuplex::kLegacyStream) {
      CUstreamCaptureStatus answer = CU_STREAM_CAPTURE_STATUS_NONE;
      for (auto& [captured, capture] : in.graphs->captured_streams)
        if (capture->context == caller.number && in.session->streams.Find(captured) &&
            !(in.session->streams.Find(captured)->flags & CU_STREAM_NON_BLOCKING)) {
          capture->invalid = true;
          return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
      *status = answer;
      return CUDA_SUCCESS;
    }
  }
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  auto at = in.graphs->captured_streams.find(handle);
  if (at == in.graphs->captured_streams.end()) return CUDA_SUCCESS;
  Capture& capture = *at->second;
  *status = capture.invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (capture.invalid) return CUDA_SUCCESS;
  if (id) *id = capture.id;
  if (graph) *graph = capture.graph->handle();
  const std::vector<GraphNode*>& tips = capture.tips[handle];
  capture.shown.clear();
  for (GraphNode* tip : tips) capture.shown.push_back(tip->handle());
  capture.shown_edges.assign(tips.size(), {});
  if (dependencies) *dependencies = capture.shown.data();
  if (edges) *edges = capture.shown_edges.data();
  if (count) *count = tips.size();
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies, size_t* count) {
  return cuStreamGetCaptureInfo_v3(hStream, status, id, graph, dependencies, nullptr, count);
}

CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return cuStreamGetCaptureInfo_v3(hStream, status, id, nullptr, nullptr, nullptr, nullptr);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode* dependencies,
                                              const CUgraphEdgeData* edges, size_t count,
                                              unsigned int flags) {
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count && !dependencies)) return CUDA_ERROR_INVALID_VALUE;
  if (HasData(edges, count)) return CUDA_ERROR_NOT_SUPPORTED;
  LockedCaller in;
  if (CUresult r = in.Enter()) return r;
  Handle handle;
  if (CUresult r = ResolveStream(in, hStream, &handle)) return r;
  auto at = in.graphs->captured_streams.find(handle);
  if (at == in.graphs->captured_streams.end()) return CUDA_ERROR_ILLEGAL_STATE;
  Capture& capture = *at->second;
  if (capture.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::vector<GraphNode*> nodes;
  for (size_t i = 0; i < count; ++i) {
    GraphNode* node = in.graphs->Find(dependencies[i]);
    if (!node || node->graph != capture.graph) return CUDA_ERROR_INVALID_VALUE;
    nodes.push_back(node);
  }
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) capture.tips[handle].clear();
  Join(capture.tips[handle], nodes);
  return CUDA_SUCCESS;
}

CUresult cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode* dependencies, size_t count,
                                           unsigned int flags) {
  return cuStreamUpdateCaptureDependencies_v2(hStream, dependencies, nullptr, count, flags);
}

}  // extern "C"
