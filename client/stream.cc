#include "client/stream.h"

#include <algorithm>
#include <cstring>

#include "client/exports.h"
#include "client/graph/capture.h"

namespace cuplex::client {

CUresult StreamTable::Create(Session& session, uint32_t context, unsigned flags, int priority, Handle* out,
                             Context* green) {
  const Handle h = table_.Insert({context, flags, priority, green});
  if (!h) return CUDA_ERROR_OUT_OF_MEMORY;
  const wire::wireStreamCreateArgs args(h, flags, priority);
  if (CUresult r = session.submission().Post(Op::wireStreamCreate, context, args)) {
    table_.Erase(h);
    return r;
  }
  *out = h;
  return CUDA_SUCCESS;
}

CUresult StreamTable::Destroy(Session& session, Handle stream) {
  Stream* s = table_.Find(stream);
  if (!s) return CUDA_ERROR_INVALID_HANDLE;
  const uint32_t context = s->context;
  // Before the handle can be given out again: its next creation must come behind this in the ring.
  const CUresult r =
      session.submission().Post(Op::cuStreamDestroy_v2, context, wire::cuStreamDestroy_v2Args(stream));
  return table_.Erase(stream) ? r : CUDA_ERROR_INVALID_HANDLE;
}

void StreamTable::Forget(uint32_t context) {
  table_.ForEach([&](Handle h, Stream& s) {
    if (s.context == context) table_.Erase(h);
  });
}

CUresult PerThreadStream(const Caller& caller, Handle* out) {
  auto& mine = ThisThread().default_streams;
  for (auto [context, stream] : mine)
    if (context == caller.number) {
      *out = stream;
      return CUDA_SUCCESS;
    }
  if (CUresult r = caller.session->streams.Create(*caller.session, caller.number, CU_STREAM_DEFAULT, 0, out))
    return r;
  mine.emplace_back(caller.number, *out);
  return CUDA_SUCCESS;
}

CUresult ResolveStream(const Caller& caller, CUstream stream, Handle* out) {
  if (!stream && ThisThread().per_thread_default == 0) stream = CU_STREAM_LEGACY;
  if (stream == CU_STREAM_LEGACY) {
    *out = kLegacyStream;
    return CUDA_SUCCESS;
  }
  if (!stream || stream == CU_STREAM_PER_THREAD) return PerThreadStream(caller, out);
  const Handle h = reinterpret_cast<Handle>(stream);
  const Stream* s = caller.session->streams.Find(h);
  if (!s || s->context != caller.number) return CUDA_ERROR_INVALID_HANDLE;
  *out = h;
  return CUDA_SUCCESS;
}

uint64_t WireStream(CUstream stream) {
  if (!stream) stream = ThisThread().per_thread_default ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  if (stream != CU_STREAM_PER_THREAD) return reinterpret_cast<uint64_t>(stream);
  Caller caller;
  Handle h = 0;
  // Where this fails, so does the call that the number is for.
  if (EnterContext(&caller) == CUDA_SUCCESS && PerThreadStream(caller, &h) == CUDA_SUCCESS) return h;
  return 0;
}

namespace {

/// What the queries below say of a stream.
struct StreamFacts {
  Handle handle = 0;
  Stream stream;
};

CUresult FactsOf(CUstream stream, Caller* caller, StreamFacts* out) {
  if (CUresult r = Enter(&caller->session)) return r;
  const Handle h = reinterpret_cast<Handle>(stream);
  if (const Stream* s = caller->session->streams.Find(h)) {
    *out = {h, *s};
    return CUDA_SUCCESS;
  }
  if (CUresult r = EnterContext(caller)) return r;
  if (CUresult r = ResolveStream(*caller, stream, &out->handle)) return r;
  out->stream = {caller->number, CU_STREAM_DEFAULT, 0, caller->context->green() ? caller->context : nullptr};
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace cuplex::client

using namespace cuplex::client;
using cuplex::Handle;
using cuplex::Op;
namespace wire = cuplex::wire;

extern "C" {

CUresult cuStreamCreateWithPriority(CUstream* phStream, unsigned int flags, int priority) {
  if (!phStream || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING))) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  const DeviceSnapshot& device = caller.session->device(caller.context->device);
  priority = std::clamp(priority, device.priority_greatest, device.priority_least);  // lower is more urgent
  Handle h;
  Context* green = caller.context->green() ? caller.context : nullptr;
  if (CUresult r = caller.session->streams.Create(*caller.session, caller.number, flags, priority, &h, green))
    return r;
  *phStream = reinterpret_cast<CUstream>(h);
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* phStream, unsigned int flags) {
  return cuStreamCreateWithPriority(phStream, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream hStream) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  LeaveCapture(*session, reinterpret_cast<Handle>(hStream));
  return session->streams.Destroy(*session, reinterpret_cast<Handle>(hStream));
}

CUresult cuStreamDestroy(CUstream hStream) { return cuStreamDestroy_v2(hStream); }

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int flags) {
  if (flags & ~static_cast<unsigned>(CU_EVENT_WAIT_EXTERNAL)) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  const Handle event = reinterpret_cast<Handle>(hEvent);
  if (!caller.session->events.Find(event)) return CUDA_ERROR_INVALID_HANDLE;
  if (Capturing(caller)) [[unlikely]] {
    CUresult captured;
    if (CaptureWait(caller, hStream, hEvent, flags, &captured)) return captured;
  }
  if (flags) return CUDA_ERROR_INVALID_VALUE;  // "external" belongs to capture
  Handle stream;
  if (CUresult r = ResolveStream(caller, hStream, &stream)) return r;
  const wire::cuStreamWaitEventArgs args(stream, event, flags);
  return caller.session->submission().Post(Op::cuStreamWaitEvent, caller.number, args);
}

CUresult cuStreamGetPriority(CUstream hStream, int* priority) {
  if (!priority) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  StreamFacts facts;
  if (CUresult r = FactsOf(hStream, &caller, &facts)) return r;
  *priority = facts.stream.priority;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned int* flags) {
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  StreamFacts facts;
  if (CUresult r = FactsOf(hStream, &caller, &facts)) return r;
  *flags = facts.stream.flags;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream hStream, unsigned long long* streamId) {
  if (!streamId) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  StreamFacts facts;
  if (CUresult r = FactsOf(hStream, &caller, &facts)) return r;
  // Every context has a legacy stream, all with the same handle.
  const bool legacy = facts.handle == cuplex::kLegacyStream;
  *streamId = legacy ? uint64_t{facts.stream.context} << 32 | facts.handle : facts.handle;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream hStream, CUcontext* pctx) {
  if (!pctx) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  StreamFacts facts;
  if (CUresult r = FactsOf(hStream, &caller, &facts)) return r;
  Context* context = caller.session->contexts.FindNumber(facts.stream.context);
  if (!context) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *pctx = context->handle();
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx) {
  if (!pGreenCtx) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult r = cuStreamGetGreenCtx(hStream, pGreenCtx)) return r;
  return cuStreamGetCtx(hStream, pCtx);
}

CUresult cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx* phCtx) {
  if (!phCtx) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  StreamFacts facts;
  if (CUresult r = FactsOf(hStream, &caller, &facts)) return r;
  *phCtx = reinterpret_cast<CUgreenCtx>(facts.stream.green);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream hStream, CUdevice* device) {
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  CUcontext context;
  if (CUresult r = cuStreamGetCtx(hStream, &context)) return r;
  *device = reinterpret_cast<Context*>(context)->device;
  return CUDA_SUCCESS;
}

CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t, unsigned int) {
  Caller caller;
  StreamFacts facts;
  if (CUresult r = FactsOf(hStream, &caller, &facts)) return r;
  const auto allocation = caller.session->allocations.Find(dptr);
  if (!allocation || allocation->kind != Allocation::kManaged) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;  // managed memory is coherent here whoever it is attached to
}

CUresult cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue* value) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  StreamFacts facts;
  if (CUresult r = FactsOf(hStream, &caller, &facts)) return r;
  std::memset(value, 0, sizeof(*value));
  switch (attr) {
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      value->priority = facts.stream.priority;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      value->syncPolicy = CU_SYNC_POLICY_AUTO;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue* value) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  StreamFacts facts;
  if (CUresult r = FactsOf(hStream, &caller, &facts)) return r;
  switch (attr) {
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      return value->priority == facts.stream.priority ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:  // these are hints
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuStreamCopyAttributes(CUstream dst, CUstream src) {
  Caller caller;
  StreamFacts facts;
  if (CUresult r = FactsOf(dst, &caller, &facts)) return r;
  return FactsOf(src, &caller, &facts);  // nothing but hints can be set
}

}  // extern "C"
