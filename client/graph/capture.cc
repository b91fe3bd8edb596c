#include "client/graph/capture.h"

#include <utility>

#include "client/copy.h"
#include "client/exports.h"
#include "client/graph/locked.h"

namespace cuplex::client {
namespace {

using graph::Capture;

uint64_t ThreadId() { return reinterpret_cast<uint64_t>(&ThisThread()); }

/// CUDA_ERROR_STREAM_CAPTURE_IMPLICIT where the legacy stream of a context would wait for streams that do not
/// run.
CUresult RefuseLegacy(Session& session, Graphs& graphs, uint32_t context) {
  std::vector<graph::StreamId> blocking;
  for (Handle captured : graphs.captured_streams) {
    const Stream* found = session.streams.Find(captured);
    if (found && found->context == context && !(found->flags & CU_STREAM_NON_BLOCKING))
      blocking.push_back(captured);
  }
  return graphs.captures.RefuseLegacy(blocking);
}

/// The capture that a stream is in; nullptr where it is in none. `out` is set where the call is at its end
/// already.
Capture* CaptureOf(const Caller& caller, Graphs& graphs, CUstream stream, Handle* handle, CUresult* out) {
  *out = ResolveStream(caller, stream, handle);
  if (*out) return nullptr;
  Capture* capture = graphs.captures.Of(*handle);
  if (capture && capture->invalid) *out = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (*handle == kLegacyStream) *out = RefuseLegacy(*caller.session, graphs, caller.number);
  return capture;
}

void Append(Graphs& graphs, Capture& capture, Handle stream, Work work) {
  graphs.Learn(*graphs.captures.Append(capture, stream, std::move(work)));
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

}  // namespace

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
      graphs.captures.Record(capture, handle, recorded);
    }
    return CUDA_SUCCESS;
  });
  if (captured) return true;
  std::lock_guard lock(caller.session->graphs.mutex);
  caller.session->graphs.captures.Forget(recorded);
  return false;
}

bool CaptureWait(const Caller& caller, CUstream stream, CUevent event, unsigned flags, CUresult* out) {
  Graphs& graphs = caller.session->graphs;
  std::lock_guard lock(graphs.mutex);
  Handle handle = 0;
  Capture* capture = CaptureOf(caller, graphs, stream, &handle, out);
  if (*out) return true;
  if (flags & CU_EVENT_WAIT_EXTERNAL) {
    if (capture) Append(graphs, *capture, handle, WaitWork{event});
    return capture != nullptr;
  }
  bool taken = false;
  *out = graphs.captures.Wait(handle, reinterpret_cast<Handle>(event), handle == kLegacyStream, &taken);
  return taken;
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
  auto memory = std::make_shared<graph::Memory>();
  memory->address = address;
  memory->bytes = params->bytesize;
  memory->device = caller.context->device;
  memory->release = [held = memory.get(), context = caller.number] {
    Session* session = Attached();
    if (!session) return;
    session->graphs.Held(*held, false);
    // Where its context has ended it is gone already.
    if (!session->gone() && session->allocations.Take(held->address, {Allocation::kGraph}))
      (void)session->submission().Post(Op::cuMemFree_v2, context, wire::cuMemFree_v2Args(held->address));
  };
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
  if (handle == kLegacyStream) return RefuseLegacy(*caller.session, graphs, caller.number);
  return graphs.captures.Refuse(handle);
}

CUresult RefuseCapturedEvent(const Caller& caller, Handle event) {
  Graphs& graphs = caller.session->graphs;
  std::lock_guard lock(graphs.mutex);
  return graphs.captures.RefuseEvent(event);
}

CUresult RefuseCapturedContext(const Caller& caller) {
  Graphs& graphs = caller.session->graphs;
  std::lock_guard lock(graphs.mutex);
  return graphs.captures.RefuseContext(caller.number);
}

CUresult RefuseUnsafe(Session& session) {
  Graphs& graphs = session.graphs;
  if (!graphs.capturing()) return CUDA_SUCCESS;
  std::lock_guard lock(graphs.mutex);
  return graphs.captures.RefuseUnsafe(ThreadId(), ThisThread().capture_mode);
}

void LeaveCapture(Session& session, Handle stream) {
  Graphs& graphs = session.graphs;
  if (!graphs.capturing()) return;
  std::lock_guard lock(graphs.mutex);
  Capture* capture = graphs.captures.Of(stream);
  if (capture && capture->origin == stream && capture->own) graphs.Forget(*capture->own);  // it ends with it
  graphs.captures.Leave(stream);
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
  }
  Capture* capture;
  if (CUresult r =
          in.graphs->captures.Begin(handle, mode, ThreadId(), in.number, graph, std::move(tips), &capture))
    return r;
  if (capture->own) in.graphs->Learn(*capture->own);
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
using cuplex::graph::Capture;

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
  Graph* graph = nullptr;
  std::unique_ptr<Graph> own;
  const CUresult result = in.graphs->captures.End(handle, ThreadId(), &graph, &own);
  if (!result) {
    *out = graph->handle();
    (void)own.release();  // the program's from here on
  } else if (own) {
    in.graphs->Forget(*own);
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
    if (handle == cuplex::kLegacyStream)
      if (CUresult r = RefuseLegacy(*in.session, *in.graphs, caller.number)) return r;
  }
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  Capture* captured = in.graphs->captures.Of(handle);
  if (!captured) return CUDA_SUCCESS;
  Capture& capture = *captured;
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
  std::vector<GraphNode*> nodes;
  for (size_t i = 0; i < count; ++i) {
    GraphNode* node = in.graphs->Find(dependencies[i]);
    if (!node) return CUDA_ERROR_INVALID_VALUE;
    nodes.push_back(node);
  }
  return in.graphs->captures.SetDependencies(handle, nodes, flags);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode* dependencies, size_t count,
                                           unsigned int flags) {
  return cuStreamUpdateCaptureDependencies_v2(hStream, dependencies, nullptr, count, flags);
}

}  // extern "C"
