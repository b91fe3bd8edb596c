// The calls of a session that concern streams and events.
#include <utility>

#include "server/driver_call.h"
#include "server/session.h"

namespace cuplex::server {

Outcome Session::wireStreamCreate(const CallFrame& frame, const wire::wireStreamCreateArgs& args) {
  CUresult why;
  Context* context = Live(frame.context, &why);
  if (!context) return why;
  if (args.flags() > CU_STREAM_NON_BLOCKING)
    return Refuse(metrics::Refusal::kArgument, CUDA_ERROR_INVALID_VALUE);
  if (streams_.size() >= kMostStreams) return Refuse(metrics::Refusal::kLimit, CUDA_ERROR_OUT_OF_MEMORY);
  if (!streams_.Insert(args.stream(), {nullptr, frame.context}))
    return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
  streams_.Find(args.stream())->stream = context->AddStream(args.flags() != CU_STREAM_NON_BLOCKING);
  return CUDA_SUCCESS;
}

Outcome Session::cuStreamDestroy_v2(const CallFrame&, const wire::cuStreamDestroy_v2Args& args) {
  OwnStream* own = streams_.Find(args.h_stream());
  if (!own) return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
  LeaveStream(args.h_stream(), *own->stream);
  own->stream->context->Retire(own->stream);
  streams_.Erase(args.h_stream());
  return CUDA_SUCCESS;
}

Outcome Session::cuStreamSynchronize(const CallFrame& frame, const wire::cuStreamSynchronizeArgs& args,
                                     wire::cuStreamSynchronizeReply*) {
  CUresult why;
  VirtualStream* stream = FindStream(frame, args.h_stream(), &why);
  if (!stream) return why;
  return AnswerWhen(frame.slot, sizeof(wire::cuStreamSynchronizeReply),
                    [&](auto done) { stream->context->WhenDone(*stream, std::move(done)); });
}

Outcome Session::cuStreamQuery(const CallFrame& frame, const wire::cuStreamQueryArgs& args,
                               wire::cuStreamQueryReply*) {
  CUresult why;
  VirtualStream* stream = FindStream(frame, args.h_stream(), &why);
  if (!stream) return why;
  return stream->context->Idle(*stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

Outcome Session::cuStreamWaitEvent(const CallFrame& frame, const wire::cuStreamWaitEventArgs& args) {
  CUresult why;
  VirtualStream* stream = FindStream(frame, args.h_stream(), &why);
  if (!stream) return why;
  OwnEvent* event = events_.Find(args.h_event());
  if (!event) return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
  if (!event->latest || event->latest->state == Mark::State::kDone) return CUDA_SUCCESS;
  if (TooManyQueued()) return Refuse(metrics::Refusal::kLimit, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  stream->context->Push(*stream, OperationKind::kWait).mark = Share(event->latest);
  stream->context->Pushed();
  return CUDA_SUCCESS;
}

Outcome Session::wireHostFunc(const CallFrame& frame, const wire::wireHostFuncArgs& args) {
  CUresult why;
  VirtualStream* stream = FindStream(frame, args.stream(), &why);
  if (!stream) return why;
  if (TooManyQueued()) return Refuse(metrics::Refusal::kLimit, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  stream->context->Push(*stream, OperationKind::kHostFunc).host_func = {args.cookie(), nullptr, false};
  stream->context->Pushed();
  return CUDA_SUCCESS;
}

Outcome Session::wireHostFuncDone(const CallFrame&, const wire::wireHostFuncDoneArgs& args) {
  for (auto& [number, own] : contexts_) {
    if (!own.context || !own.context->HostFuncDone(args.cookie())) continue;
    --host_funcs_out_;
    return CUDA_SUCCESS;
  }
  // Its context has failed or ended meanwhile.
  if (host_funcs_out_ > 0) --host_funcs_out_;
  return CUDA_SUCCESS;
}

Outcome Session::wireEventCreate(const CallFrame& frame, const wire::wireEventCreateArgs& args) {
  CUresult why;
  if (!Live(frame.context, &why)) return why;
  if (events_.size() >= kMostEvents) return Refuse(metrics::Refusal::kLimit, CUDA_ERROR_OUT_OF_MEMORY);
  if (!events_.Insert(args.event(), {frame.context, args.flags(), nullptr}))
    return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
  return CUDA_SUCCESS;
}

Outcome Session::cuEventDestroy_v2(const CallFrame&, const wire::cuEventDestroy_v2Args& args) {
  OwnEvent* event = events_.Find(args.h_event());
  if (!event) return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
  if (event->latest) Drop(event->latest);
  events_.Erase(args.h_event());
  return CUDA_SUCCESS;
}

Outcome Session::cuEventRecord(const CallFrame& frame, const wire::cuEventRecordArgs& args) {
  CUresult why;
  VirtualStream* stream = FindStream(frame, args.h_stream(), &why);
  if (!stream) return why;
  OwnEvent* event = events_.Find(args.h_event());
  if (!event || contexts_.at(event->context).context.get() != stream->context)
    return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
  if (TooManyQueued()) return Refuse(metrics::Refusal::kLimit, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  Mark* mark = stream->context->NewMark();
  if (event->latest) Drop(event->latest);
  event->latest = Share(mark);
  stream->context->Push(*stream, OperationKind::kRecord).mark = mark;
  stream->context->Pushed();
  return CUDA_SUCCESS;
}

Outcome Session::cuEventQuery(const CallFrame&, const wire::cuEventQueryArgs& args,
                              wire::cuEventQueryReply*) {
  OwnEvent* event = events_.Find(args.h_event());
  if (!event) return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
  if (!event->latest) return CUDA_SUCCESS;
  return event->latest->state == Mark::State::kDone ? event->latest->result : CUDA_ERROR_NOT_READY;
}

Outcome Session::cuEventSynchronize(const CallFrame& frame, const wire::cuEventSynchronizeArgs& args,
                                    wire::cuEventSynchronizeReply*) {
  OwnEvent* event = events_.Find(args.h_event());
  if (!event) return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
  if (!event->latest) return CUDA_SUCCESS;
  if (event->latest->state == Mark::State::kDone) return event->latest->result;
  return AnswerWhen(frame.slot, sizeof(wire::cuEventSynchronizeReply),
                    [&](auto done) { event->latest->then.push_back(std::move(done)); });
}

Outcome Session::cuEventElapsedTime_v2(const CallFrame&, const wire::cuEventElapsedTime_v2Args& args,
                                       wire::cuEventElapsedTime_v2Reply* reply) {
  OwnEvent* start = events_.Find(args.h_start());
  OwnEvent* end = events_.Find(args.h_end());
  if (!start || !end || start->context != end->context || !start->latest || !end->latest ||
      ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
    return Refuse(metrics::Refusal::kHandle, CUDA_ERROR_INVALID_HANDLE);
  if (start->latest->state != Mark::State::kDone || end->latest->state != Mark::State::kDone)
    return CUDA_ERROR_NOT_READY;
  CUresult why;
  Context* context = Live(start->context, &why);
  if (!context) return why;
  if (CUresult code = context->Enter()) return code;
  float ms = 0;
  CUresult code = house_.cu.cuEventElapsedTime_v2(&ms, start->latest->event, end->latest->event);
  if (code == CUDA_ERROR_NOT_SUPPORTED)
    code = house_.cu.cuEventElapsedTime(&ms, start->latest->event, end->latest->event);
  reply->mutate_p_milliseconds(ms);
  return code;
}

}  // namespace cuplex::server
