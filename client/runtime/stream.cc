// Streams. A handle is the driver's own; null is the legacy default stream, 1 and 2 name both default
// streams.
#include <memory>

#include "client/runtime/calls.h"
#include "client/runtime/runtime.h"

namespace cuplex::runtime {
namespace {

struct Callback {
  cudaStreamCallback_t call;
  void* user_data;
};

void RunCallback(CUstream stream, CUresult status, void* data) {
  std::unique_ptr<Callback> callback(static_cast<Callback*>(data));
  callback->call(stream, FromDriver(status), callback->user_data);
}

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
      return FromDriver(cu.cuStreamGetCaptureInfo_v3(
          stream, reinterpret_cast<CUstreamCaptureStatus*>(status), reinterpret_cast<cuuint64_t*>(id), graph,
          dependencies, reinterpret_cast<const CUgraphEdgeData**>(edges), count));
    if (id) *id = 0;
    if (graph) *graph = nullptr;
    if (dependencies) *dependencies = nullptr;
    if (edges) *edges = nullptr;
    if (count) *count = 0;
    return cudaSuccess;
  });
}

}  // namespace

cudaError_t StreamCreate(cudaStream_t* stream) { return StreamCreateWithFlags(stream, 0); }

cudaError_t StreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  if (!stream) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) { return cu.cuStreamCreate(stream, flags); });
}

cudaError_t StreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  if (!stream) return cudaErrorInvalidValue;
  return InContext(
      [&](const DriverTable& cu) { return cu.cuStreamCreateWithPriority(stream, flags, priority); });
}

cudaError_t StreamDestroy(cudaStream_t stream) {
  return InContext([&](const DriverTable& cu) { return cu.cuStreamDestroy_v2(stream); });
}

cudaError_t StreamSynchronize(cudaStream_t stream) {
  return InContext([&](const DriverTable& cu) { return cu.cuStreamSynchronize(stream); });
}

cudaError_t StreamQuery(cudaStream_t stream) {
  return InContext([&](const DriverTable& cu) { return cu.cuStreamQuery(stream); });
}

cudaError_t StreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  return InContext([&](const DriverTable& cu) { return cu.cuStreamWaitEvent(stream, event, flags); });
}

cudaError_t StreamAddCallback(cudaStream_t stream, cudaStreamCallback_t call, void* user_data,
                              unsigned int flags) {
  if (!call) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) {
    auto callback = std::make_unique<Callback>(Callback{call, user_data});
    RUNTIME_TRY(FromDriver(cu.cuStreamAddCallback(stream, RunCallback, callback.get(), flags)));
    (void)callback.release();  // the driver has it now
    return cudaSuccess;
  });
}

cudaError_t StreamGetFlags(cudaStream_t stream, unsigned int* flags) {
  return InContext([&](const DriverTable& cu) { return cu.cuStreamGetFlags(stream, flags); });
}

cudaError_t StreamGetPriority(cudaStream_t stream, int* priority) {
  return InContext([&](const DriverTable& cu) { return cu.cuStreamGetPriority(stream, priority); });
}

cudaError_t StreamGetId(cudaStream_t stream, unsigned long long* id) {
  return InContext([&](const DriverTable& cu) { return cu.cuStreamGetId(stream, id); });
}

cudaError_t StreamGetDevice(cudaStream_t stream, int* device) {
  return InContext([&](const DriverTable& cu) { return cu.cuStreamGetDevice(stream, device); });
}

cudaError_t StreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t length, unsigned int flags) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuStreamAttachMemAsync(stream, Device(pointer), length, flags);
  });
}

cudaError_t StreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                               cudaLaunchAttributeValue* value) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuStreamGetAttribute(stream, static_cast<CUstreamAttrID>(attribute), value);
  });
}

cudaError_t StreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                               const cudaLaunchAttributeValue* value) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuStreamSetAttribute(stream, static_cast<CUstreamAttrID>(attribute), value);
  });
}

cudaError_t StreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  return InContext([&](const DriverTable& cu) { return cu.cuStreamCopyAttributes(to, from); });
}

cudaError_t DeviceGetStreamPriorityRange(int* least, int* greatest) {
  return InContext([&](const DriverTable& cu) { return cu.cuCtxGetStreamPriorityRange(least, greatest); });
}

cudaError_t CtxResetPersistingL2Cache() {
  return InContext([&](const DriverTable& cu) { return cu.cuCtxResetPersistingL2Cache(); });
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
