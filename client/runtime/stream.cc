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

}  // namespace cuplex::runtime
