// Events. A handle is the driver's own.
#include "client/runtime/calls.h"
#include "client/runtime/runtime.h"

namespace cuplex::runtime {

cudaError_t EventCreate(cudaEvent_t* event) { return EventCreateWithFlags(event, 0); }

cudaError_t EventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  if (!event) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) { return cu.cuEventCreate(event, flags); });
}

cudaError_t EventDestroy(cudaEvent_t event) {
  return InContext([&](const DriverTable& cu) { return cu.cuEventDestroy_v2(event); });
}

cudaError_t EventRecord(cudaEvent_t event, cudaStream_t stream) {
  return InContext([&](const DriverTable& cu) { return cu.cuEventRecord(event, stream); });
}

cudaError_t EventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  if (flags == 0) return EventRecord(event, stream);
  return InContext([&](const DriverTable& cu) { return cu.cuEventRecordWithFlags(event, stream, flags); });
}

cudaError_t EventQuery(cudaEvent_t event) {
  return InContext([&](const DriverTable& cu) { return cu.cuEventQuery(event); });
}

cudaError_t EventSynchronize(cudaEvent_t event) {
  return InContext([&](const DriverTable& cu) { return cu.cuEventSynchronize(event); });
}

cudaError_t EventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  if (!ms) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) {
    // The newer form, else the one every driver has.
    CUresult result = cu.cuEventElapsedTime_v2(ms, start, end);
    return result == CUDA_ERROR_NOT_SUPPORTED ? cu.cuEventElapsedTime(ms, start, end) : result;
  });
}

#if CUPLEX_CUDART_MAJOR == 12
cudaError_t EventElapsedTime_v2(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return EventElapsedTime(ms, start, end);
}
#endif

cudaError_t IpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return InContext([&](const DriverTable& cu) { return cu.cuIpcGetEventHandle(handle, event); });
}

cudaError_t IpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return InContext([&](const DriverTable& cu) { return cu.cuIpcOpenEventHandle(event, handle); });
}

}  // namespace cuplex::runtime
