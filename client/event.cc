#include "client/event.h"

#include "client/exports.h"
#include "client/graph/capture.h"

namespace cuplex::client {

CUresult EventTable::Create(Session& session, uint32_t context, unsigned flags, Handle* out) {
  const Handle h = table_.Insert({context, flags});
  if (!h) return CUDA_ERROR_OUT_OF_MEMORY;
  if (CUresult r =
          session.submission().Post(Op::wireEventCreate, context, wire::wireEventCreateArgs(h, flags))) {
    table_.Erase(h);
    return r;
  }
  *out = h;
  return CUDA_SUCCESS;
}

CUresult EventTable::Destroy(Session& session, Handle event) {
  Event* e = table_.Find(event);
  if (!e) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult r =
      session.submission().Post(Op::cuEventDestroy_v2, e->context,
                                wire::cuEventDestroy_v2Args(event));  // see StreamTable::Destroy
  return table_.Erase(event) ? r : CUDA_ERROR_INVALID_HANDLE;
}

void EventTable::Forget(uint32_t context) {
  table_.ForEach([&](Handle h, Event& e) {
    if (e.context == context) table_.Erase(h);
  });
}

}  // namespace cuplex::client

using namespace cuplex::client;
using cuplex::Handle;
using cuplex::Op;
namespace wire = cuplex::wire;

extern "C" {

CUresult cuEventCreate(CUevent* phEvent, unsigned int flags) {
  constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (!phEvent || (flags & ~kKnown)) return CUDA_ERROR_INVALID_VALUE;
  if (flags & CU_EVENT_INTERPROCESS)
    return flags & CU_EVENT_DISABLE_TIMING ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  Handle h;
  if (CUresult r = caller.session->events.Create(*caller.session, caller.number, flags, &h)) return r;
  *phEvent = reinterpret_cast<CUevent>(h);
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent hEvent) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  return session->events.Destroy(*session, reinterpret_cast<Handle>(hEvent));
}

CUresult cuEventDestroy(CUevent hEvent) { return cuEventDestroy_v2(hEvent); }

CUresult cuEventRecord(CUevent hEvent, CUstream hStream) {
  return cuEventRecordWithFlags(hEvent, hStream, 0);
}

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags) {
  if (flags & ~static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL)) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  const Handle event = reinterpret_cast<Handle>(hEvent);
  const Event* e = caller.session->events.Find(event);
  if (!e || e->context != caller.number) return CUDA_ERROR_INVALID_HANDLE;
  if (Capturing(caller)) [[unlikely]] {
    CUresult captured;
    if (CaptureRecord(caller, hStream, hEvent, flags, &captured)) return captured;
  }
  if (flags) return CUDA_ERROR_INVALID_VALUE;  // "external" belongs to capture
  Handle stream;
  if (CUresult r = ResolveStream(caller, hStream, &stream)) return r;
  return caller.session->submission().Post(Op::cuEventRecord, caller.number,
                                           wire::cuEventRecordArgs(event, stream));
}

CUresult cuEventElapsedTime(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}

}  // extern "C"
