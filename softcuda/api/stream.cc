// Streams: making them, asking them, waiting for them, and functions of the program in them.
#include <cstring>

#include "softcuda/exports.h"
#include "softcuda/graph/recorder.h"

using namespace cuplex;
using namespace cuplex::softcuda;

namespace {

// A function of the program in a stream.
template <typename F>
auto HostCall(F call) {
  return [call = std::move(call)](Stream& stream) {
    stream.pool().BeginHostCall();
    call();
    stream.pool().EndHostCall();
    return Progress::kDone;
  };
}

// Whether all is done that a synchronisation with `stream` waits for.
bool AllDone(Context& context, Stream& stream) {
  return stream.kind == Stream::Kind::kLegacy ? context.LegacyIdle(stream) : stream.Idle();
}

// The stream a handle means, without submitting: f(Context&, Ref<Stream>).
template <typename F>
CUresult WithStream(CUstream handle, F&& f) {
  return InContext([&](Context& current) -> CUresult {
    Ref<Stream> stream;
    Context* context;
    {
      Submission submission(current, handle, Submission::Captured::kIgnore);
      if (submission.result) return submission.result;
      stream = HandleTable<Stream>::Share(&submission.stream());
      context = &submission.context();
    }
    Ref<Context> owner = current.driver.contexts.Find(context);
    if (!owner) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return f(*owner, stream);
  });
}

CUresult Create(CUstream* out, unsigned flags, int priority) {
  return InContext([&](Context& context) -> CUresult {
    if (!out || flags & ~unsigned{CU_STREAM_NON_BLOCKING}) return CUDA_ERROR_INVALID_VALUE;
    auto kind = flags & CU_STREAM_NON_BLOCKING ? Stream::Kind::kNonBlocking : Stream::Kind::kBlocking;
    Ref<Stream> stream = context.MakeStream(kind, std::clamp(priority, 1 - StreamPool::kPriorities, 0),
                                            Thread::Here().green());
    if (!stream) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = reinterpret_cast<CUstream>(stream.get());
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuStreamCreate(CUstream* phStream, unsigned int Flags) { return Create(phStream, Flags, 0); }
CUresult cuStreamCreateWithPriority(CUstream* phStream, unsigned int flags, int priority) {
  return Create(phStream, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream hStream) {
  return InDriver([&](Driver& driver) -> CUresult {
    Ref<Stream> stream = driver.streams.Find(hStream);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    Ref<Context> context = driver.contexts.Find(&stream->context);
    driver.graphs.Forget(*stream);
    if (!context || stream->kind == Stream::Kind::kLegacy || !context->RetireStream(stream.get())) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    return context->fault();
  });
}
CUresult cuStreamDestroy(CUstream hStream) { return cuStreamDestroy_v2(hStream); }

CUresult cuStreamQuery(CUstream hStream) {
  return WithStream(hStream, [](Context& context, const Ref<Stream>& stream) -> CUresult {
    if (CUresult refused = context.driver.graphs.Refuse(*stream)) return refused;
    if (!AllDone(context, *stream)) return CUDA_ERROR_NOT_READY;
    return context.fault();
  });
}

CUresult cuStreamSynchronize(CUstream hStream) {
  return WithStream(hStream, [](Context& context, const Ref<Stream>& stream) -> CUresult {
    if (CUresult refused = context.driver.graphs.Refuse(*stream)) return refused;
    if (stream->kind == Stream::Kind::kLegacy) {
      context.SynchronizeLegacy(*stream);
    } else {
      stream->Wait(stream->submitted());
    }
    context.GiveText();
    return context.fault();
  });
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags) {
  return InContext([&](Context& current) -> CUresult {
    if (Flags & ~unsigned{CU_EVENT_WAIT_EXTERNAL}) return CUDA_ERROR_INVALID_VALUE;
    Ref<Event> event = current.driver.events.Find(hEvent);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    Event::Mark mark = event->mark();
    Submission submission(current, hStream, Submission::Captured::kTake);
    if (submission.result) return submission.result;
    if (submission.captured() || event->captured.load(std::memory_order_relaxed)) [[unlikely]] {
      CapturedStream to(submission);
      bool taken;
      CUresult result = CaptureWait(to, *event, Flags, &taken);
      return taken ? result : cuStreamWaitEvent(hStream, hEvent, Flags);
    }
    if (!mark.Done() && mark.stream.get() != &submission.stream())
      submission.PushWait(*mark.stream, mark.number);
    return CUDA_SUCCESS;
  });
}

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void* userData) {
  return InContext([&](Context& current) -> CUresult {
    if (!fn) return CUDA_ERROR_INVALID_VALUE;
    Submission submission(current, hStream, Submission::Captured::kTake);
    if (submission.result) return submission.result;
    if (submission.captured()) [[unlikely]] {
      CapturedStream to(submission);
      return to.Append(graph::HostWork{fn, userData});
    }
    submission.Push(HostCall([fn, userData] { fn(userData); }));
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void* userData,
                             unsigned int flags) {
  return InContext([&](Context& current) -> CUresult {
    if (!callback || flags) return CUDA_ERROR_INVALID_VALUE;
    Submission submission(current, hStream);
    if (submission.result) return submission.result;
    Context* context = &submission.context();
    submission.Push(HostCall([=] { callback(hStream, context->fault(), userData); }),
                    /*always=*/true);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags) {
  return InContext([&](Context& current) -> CUresult {
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    auto block = current.driver.memory.Find(dptr).block;
    if (!block || block->kind != Block::Kind::kManaged) return CUDA_ERROR_INVALID_VALUE;
    // Managed memory is one memory for both sides here, so there is nothing to move.
    Submission submission(current, hStream);
    return submission.result;
  });
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned int* flags) {
  return WithStream(hStream, [&](Context&, const Ref<Stream>& stream) -> CUresult {
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    *flags = stream->kind == Stream::Kind::kNonBlocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetPriority(CUstream hStream, int* priority) {
  return WithStream(hStream, [&](Context&, const Ref<Stream>& stream) -> CUresult {
    if (!priority) return CUDA_ERROR_INVALID_VALUE;
    *priority = stream->priority;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetId(CUstream hStream, unsigned long long* streamId) {
  return WithStream(hStream, [&](Context&, const Ref<Stream>& stream) -> CUresult {
    if (!streamId) return CUDA_ERROR_INVALID_VALUE;
    *streamId = stream->id;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetDevice(CUstream hStream, CUdevice* device) {
  return WithStream(hStream, [&](Context& context, const Ref<Stream>&) -> CUresult {
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    *device = context.device.ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCtx(CUstream hStream, CUcontext* pctx) {
  return WithStream(hStream, [&](Context& context, const Ref<Stream>&) -> CUresult {
    if (!pctx) return CUDA_ERROR_INVALID_VALUE;
    *pctx = reinterpret_cast<CUcontext>(&context);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx) {
  if (!pCtx || !pGreenCtx) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult failed = cuStreamGetGreenCtx(hStream, pGreenCtx)) return failed;
  return cuStreamGetCtx(hStream, pCtx);
}

CUresult cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx* phCtx) {
  return WithStream(hStream, [&](Context&, const Ref<Stream>& stream) -> CUresult {
    if (!phCtx) return CUDA_ERROR_INVALID_VALUE;
    *phCtx = reinterpret_cast<CUgreenCtx>(stream->green);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamCopyAttributes(CUstream dstStream, CUstream srcStream) {
  return WithStream(srcStream, [&](Context&, const Ref<Stream>&) {
    return WithStream(dstStream, [](Context&, const Ref<Stream>&) { return CUDA_SUCCESS; });
  });
}

CUresult cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue* value) {
  return WithStream(hStream, [&](Context&, const Ref<Stream>& stream) -> CUresult {
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    std::memset(value, 0, sizeof(*value));
    switch (attr) {
      case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return CUDA_SUCCESS;
      case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        value->syncPolicy = CU_SYNC_POLICY_AUTO;
        return CUDA_SUCCESS;
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        value->priority = stream->priority;
        return CUDA_SUCCESS;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

CUresult cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue* param) {
  return WithStream(hStream, [&](Context&, const Ref<Stream>&) -> CUresult {
    if (!param) return CUDA_ERROR_INVALID_VALUE;
    // Hints about caches and waiting; there is nothing here that would follow them.
    return attr == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
                   attr == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
  });
}
