// Stream capture: what the driver has of it.
#include "client/runtime/calls.h"
#include "client/runtime/runtime.h"

namespace cuplex::runtime {
namespace {

/// A driver that does not know capture has no stream in capture.
cudaError_t CaptureStatus(const DriverTable& cu, cudaStream_t stream, cudaStreamCaptureStatus* status) {
  CUstreamCaptureStatus answer = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = cu.cuStreamIsCapturing(stream, &answer);
  if (result == CUDA_ERROR_NOT_SUPPORTED)
    answer = CU_STREAM_CAPTURE_STATUS_NONE;
  else
    RUNTIME_TRY(FromDriver(result));
  *status = static_cast<cudaStreamCaptureStatus>(answer);
  return cudaSuccess;
}

/// The status, and where nothing is being captured the rest of the answer: there is no graph.
cudaError_t CaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                        cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                        const cudaGraphEdgeData** edges, size_t* count) {
  if (!status) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) {
    RUNTIME_TRY(CaptureStatus(cu, stream, status));
    if (*status != cudaStreamCaptureStatusNone)
      return FromDriver(cu.cuStreamGetCaptureInfo_v3(stream, reinterpret_cast<CUstreamCaptureStatus*>(status),
                                                     reinterpret_cast<cuuint64_t*>(id), graph, dependencies,
                                                     edges, count));
    if (id) *id = 0;
    if (graph) *graph = nullptr;
    if (dependencies) *dependencies = nullptr;
    if (edges) *edges = nullptr;
    if (count) *count = 0;
    return cudaSuccess;
  });
}

}  // namespace

cudaError_t StreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuStreamBeginCapture_v2(stream, static_cast<CUstreamCaptureMode>(mode));
  });
}

cudaError_t StreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                      const cudaGraphNode_t* dependencies, const cudaGraphEdgeData* edges,
                                      size_t count, cudaStreamCaptureMode mode) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuStreamBeginCaptureToGraph(stream, graph, dependencies, edges, count,
                                          static_cast<CUstreamCaptureMode>(mode));
  });
}

cudaError_t StreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return InContext([&](const DriverTable& cu) { return cu.cuStreamEndCapture(stream, graph); });
}

#if CUPLEX_CUDART_MAJOR == 12
cudaError_t StreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies, size_t count,
                                            unsigned int flags) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuStreamUpdateCaptureDependencies_v2(stream, dependencies, nullptr, count, flags);
  });
}

cudaError_t StreamUpdateCaptureDependencies_v2(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                               const cudaGraphEdgeData* edges, size_t count,
                                               unsigned int flags) {
#else
cudaError_t StreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                            const cudaGraphEdgeData* edges, size_t count,
                                            unsigned int flags) {
#endif
  return InContext([&](const DriverTable& cu) {
    return cu.cuStreamUpdateCaptureDependencies_v2(stream, dependencies, edges, count, flags);
  });
}

cudaError_t StreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  if (!status) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) { return CaptureStatus(cu, stream, status); });
}

#if CUPLEX_CUDART_MAJOR == 12
cudaError_t StreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                 unsigned long long* id) {
  return CaptureInfo(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

cudaError_t StreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                    unsigned long long* id, cudaGraph_t* graph,
                                    const cudaGraphNode_t** dependencies, size_t* count) {
  return CaptureInfo(stream, status, id, graph, dependencies, nullptr, count);
}

cudaError_t StreamGetCaptureInfo_v3(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                    unsigned long long* id, cudaGraph_t* graph,
                                    const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                    size_t* count) {
#else
cudaError_t StreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                 cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                 const cudaGraphEdgeData** edges, size_t* count) {
#endif
  return CaptureInfo(stream, status, id, graph, dependencies, edges, count);
}

cudaError_t ThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuThreadExchangeStreamCaptureMode(reinterpret_cast<CUstreamCaptureMode*>(mode));
  });
}

}  // namespace cuplex::runtime
