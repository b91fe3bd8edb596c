// Events.
#include "softcuda/exports.h"
#include "softcuda/graph/recorder.h"
#include "softcuda/pause.h"

using namespace cuplex;
using namespace cuplex::softcuda;

namespace {

CUresult Record(CUevent hEvent, CUstream hStream, unsigned flags) {
  return InContext([&](Context& current) -> CUresult {
    Ref<Event> event = current.driver.events.Find(hEvent);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    Submission submission(current, hStream, Submission::Captured::kTake);
    if (submission.result) return submission.result;
    if (&event->context != &submission.context()) return CUDA_ERROR_INVALID_HANDLE;
    if (submission.captured()) [[unlikely]] {
      CapturedStream to(submission);
      return CaptureRecord(to, *event, flags);
    }
    submission.PushRecord(event);
    return CUDA_SUCCESS;
  });
}

// The error of the context that the event is of.
CUresult FaultOf(Driver& driver, Event& event) {
  Ref<Context> context = driver.contexts.Find(&event.context);
  return context ? context->fault() : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult Elapsed(float* milliseconds, CUevent start, CUevent end) {
  return InContext([&](Context& current) -> CUresult {
    if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
    Ref<Event> first = current.driver.events.Find(start), last = current.driver.events.Find(end);
    if (!first || !last || !first->timed() || !last->timed()) return CUDA_ERROR_INVALID_HANDLE;
    for (Event* event : {first.get(), last.get()}) {
      if (CUresult refused = current.driver.graphs.Refuse(*event)) return refused;
    }
    Event::Mark from = first->mark(), to = last->mark();
    if (!from.stream || !to.stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!from.Done() || !to.Done()) return CUDA_ERROR_NOT_READY;
    *milliseconds = static_cast<float>(static_cast<double>(last->time_ns() - first->time_ns()) * 1e-6);
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuEventCreate(CUevent* phEvent, unsigned int Flags) {
  return InContext([&](Context& context) -> CUresult {
    constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if (!phEvent || Flags & ~kKnown) return CUDA_ERROR_INVALID_VALUE;
    if (Flags & CU_EVENT_INTERPROCESS) {
      return Flags & CU_EVENT_DISABLE_TIMING ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    }
    Ref<Event> event = context.MakeEvent(Flags);
    if (!event) return CUDA_ERROR_OUT_OF_MEMORY;
    *phEvent = reinterpret_cast<CUevent>(event.get());
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy_v2(CUevent hEvent) {
  return InDriver([&](Driver& driver) -> CUresult {
    Ref<Event> event = driver.events.Find(hEvent);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    Ref<Context> context = driver.contexts.Find(&event->context);
    return context && context->RetireEvent(event.get()) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}
CUresult cuEventDestroy(CUevent hEvent) { return cuEventDestroy_v2(hEvent); }

CUresult cuEventRecord(CUevent hEvent, CUstream hStream) { return Record(hEvent, hStream, 0); }

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags) {
  if (flags & ~unsigned{CU_EVENT_RECORD_EXTERNAL}) return CUDA_ERROR_INVALID_VALUE;
  return Record(hEvent, hStream, flags);
}

CUresult cuEventQuery(CUevent hEvent) {
  return InDriver([&](Driver& driver) -> CUresult {
    Ref<Event> event = driver.events.Find(hEvent);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    if (CUresult refused = driver.graphs.Refuse(*event)) return refused;
    if (!event->mark().Done()) return CUDA_ERROR_NOT_READY;
    return FaultOf(driver, *event);
  });
}

CUresult cuEventSynchronize(CUevent hEvent) {
  return InDriver([&](Driver& driver) -> CUresult {
    Ref<Event> event = driver.events.Find(hEvent);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    if (CUresult refused = driver.graphs.Refuse(*event)) return refused;
    Event::Mark mark = event->mark();
    if (mark.stream) mark.stream->Wait(mark.number);
    if (Ref<Context> context = driver.contexts.Find(&event->context)) context->GiveText();
    return FaultOf(driver, *event);
  });
}

CUresult cuEventElapsedTime(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return Elapsed(pMilliseconds, hStart, hEnd);
}
CUresult cuEventElapsedTime_v2(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return Elapsed(pMilliseconds, hStart, hEnd);
}
