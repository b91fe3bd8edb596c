// Stream capture: its beginning and end, and what it says of itself.
#include "softcuda/exports.h"
#include "softcuda/graph/locked.h"

using namespace cuplex;
using namespace cuplex::softcuda;
using cuplex::graph::Capture;
using cuplex::graph::Graph;
using cuplex::graph::GraphNode;

namespace {

// The stream that a handle means, whether it is captured or not.
CUresult FindStream(Context& current, CUstream handle, Ref<Stream>* stream) {
  Submission submission(current, handle, Submission::Captured::kIgnore);
  if (submission.result) return submission.result;
  *stream = HandleTable<Stream>::Share(&submission.stream());
  return CUDA_SUCCESS;
}

// f(Graphs&, Stream&) under the lock.
template <typename F>
CUresult WithStream(CUstream handle, F f) {
  return InContext([&](Context& context) -> CUresult {
    Ref<Stream> stream;
    if (CUresult wrong = FindStream(context, handle, &stream)) return wrong;
    Graphs& graphs = context.driver.graphs;
    std::lock_guard guard(graphs.lock);
    return f(graphs, *stream);
  });
}

CUresult FindNodes(Graphs& graphs, const Graph* in, const CUgraphNode* handles, size_t count,
                   std::vector<GraphNode*>* nodes) {
  if (count && !handles) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    GraphNode* node = graphs.Find(handles[i]);
    if (!node || node->graph != in) return CUDA_ERROR_INVALID_VALUE;
    nodes->push_back(node);
  }
  return CUDA_SUCCESS;
}

bool IsMode(CUstreamCaptureMode mode) {
  return mode == CU_STREAM_CAPTURE_MODE_GLOBAL || mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
         mode == CU_STREAM_CAPTURE_MODE_RELAXED;
}

CUresult Begin(CUstream handle, CUstreamCaptureMode mode, CUgraph into, const CUgraphNode* dependencies,
               size_t count) {
  if (!IsMode(mode)) return CUDA_ERROR_INVALID_VALUE;
  return WithStream(handle, [&](Graphs& graphs, Stream& stream) -> CUresult {
    if (stream.kind == Stream::Kind::kLegacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (graphs.captures.Of(stream.id)) return CUDA_ERROR_ILLEGAL_STATE;
    Graph* given = into ? graphs.Find(into) : nullptr;
    std::vector<GraphNode*> tips;
    if (into) {
      if (!given) return CUDA_ERROR_INVALID_VALUE;
      if (CUresult wrong = FindNodes(graphs, given, dependencies, count, &tips)) return wrong;
    }
    graphs.Introduce(&stream);
    Capture* begun = nullptr;
    if (CUresult wrong = graphs.captures.Begin(stream.id, mode, Thread::Here().id, stream.context.id, given,
                                               std::move(tips), &begun)) {
      return wrong;
    }
    if (!given) graphs.Learn(*begun->graph);
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
  return Begin(hStream, mode, nullptr, nullptr, 0);
}
CUresult cuStreamBeginCapture(CUstream hStream) {
  return cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* dependencyData, size_t numDependencies,
                                     CUstreamCaptureMode mode) {
  if (!hGraph) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult wrong = CheckEdges(dependencyData, numDependencies)) return wrong;
  return Begin(hStream, mode, hGraph, dependencies, numDependencies);
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph* phGraph) {
  std::unique_ptr<Graph> own;  // outside of the lock
  return WithStream(hStream, [&](Graphs& graphs, Stream& stream) -> CUresult {
    if (!phGraph) return CUDA_ERROR_INVALID_VALUE;
    *phGraph = nullptr;
    Graph* graph = nullptr;
    const CUresult result = graphs.captures.End(stream.id, Thread::Here().id, &graph, &own);
    if (result && own) graphs.Forget(*own);
    if (result) return result;
    (void)own.release();  // the program's from here on
    *phGraph = graph->handle();
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                   cuuint64_t* id_out, CUgraph* graph_out,
                                   const CUgraphNode** dependencies_out, const CUgraphEdgeData** edgeData_out,
                                   size_t* numDependencies_out) {
  return InContext([&](Context& context) -> CUresult {
    if (!captureStatus_out) return CUDA_ERROR_INVALID_VALUE;
    Ref<Stream> stream;
    if (CUresult wrong = FindStream(context, hStream, &stream)) return wrong;
    Graphs& graphs = context.driver.graphs;
    if (stream->kind == Stream::Kind::kLegacy) {
      if (CUresult refused = graphs.Refuse(*stream)) return refused;
    }
    std::lock_guard guard(graphs.lock);
    *captureStatus_out = CU_STREAM_CAPTURE_STATUS_NONE;
    Capture* capture = graphs.captures.Of(stream->id);
    if (!capture) return CUDA_SUCCESS;
    *captureStatus_out =
        capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (capture->invalid) return CUDA_SUCCESS;
    if (id_out) *id_out = capture->id;
    if (graph_out) *graph_out = capture->graph->handle();
    const auto& tips = capture->tips[stream->id];
    capture->shown.clear();
    for (GraphNode* tip : tips) capture->shown.push_back(tip->handle());
    capture->shown_edges.assign(tips.size(), {});
    if (dependencies_out) *dependencies_out = capture->shown.data();
    if (edgeData_out) *edgeData_out = capture->shown_edges.data();
    if (numDependencies_out) *numDependencies_out = tips.size();
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                   cuuint64_t* id_out, CUgraph* graph_out,
                                   const CUgraphNode** dependencies_out, size_t* numDependencies_out) {
  return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out, dependencies_out, nullptr,
                                   numDependencies_out);
}

CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                cuuint64_t* id_out) {
  return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, nullptr, nullptr, nullptr, nullptr);
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
  return cuStreamGetCaptureInfo_v3(hStream, captureStatus, nullptr, nullptr, nullptr, nullptr, nullptr);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode* dependencies,
                                              const CUgraphEdgeData* dependencyData, size_t numDependencies,
                                              unsigned int flags) {
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult wrong = CheckEdges(dependencyData, numDependencies)) return wrong;
  return WithStream(hStream, [&](Graphs& graphs, Stream& stream) -> CUresult {
    Capture* capture = graphs.captures.Of(stream.id);
    if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
    std::vector<GraphNode*> nodes;
    if (CUresult wrong = FindNodes(graphs, capture->graph, dependencies, numDependencies, &nodes))
      return wrong;
    return graphs.captures.SetDependencies(stream.id, nodes, flags);
  });
}

CUresult cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode* dependencies,
                                           size_t numDependencies, unsigned int flags) {
  return cuStreamUpdateCaptureDependencies_v2(hStream, dependencies, nullptr, numDependencies, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return InDriver([&](Driver&) -> CUresult {
    if (!mode || !IsMode(*mode)) return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, Thread::Here().capture_mode);
    return CUDA_SUCCESS;
  });
}
