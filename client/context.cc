#include "client/context.h"

#include "client/exports.h"

namespace cuplex::client {
namespace {

constexpr unsigned kApiVersion = 3020;  // of contexts made since cuCtxCreate_v2

CUresult Create(CUcontext* out, unsigned flags, CUdevice device, unsigned api_version) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = EnterDevice(&session, device)) return r;
  if (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) return CUDA_ERROR_INVALID_VALUE;
  Context* context;
  if (CUresult r = session->contexts.Create(*session, device, flags, api_version, &context)) return r;
  ThisThread().contexts.push_back(context);
  *out = context->handle();
  return CUDA_SUCCESS;
}

/// The calling thread's current context, for what the client answers by itself.
CUresult Current(Context** out) {
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  *out = caller.context;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace cuplex::client

using namespace cuplex::client;

extern "C" {

CUresult cuCtxCreate(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return Create(pctx, flags, dev, 3010);
}

CUresult cuCtxCreate_v2(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return Create(pctx, flags, dev, kApiVersion);
}

CUresult cuCtxCreate_v3(CUcontext* pctx, CUexecAffinityParam* params, int count, unsigned int flags,
                        CUdevice dev) {
  if (count < 0 || (count > 0 && !params)) return CUDA_ERROR_INVALID_VALUE;
  if (count > 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return Create(pctx, flags, dev, kApiVersion);
}

CUresult cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams* params, unsigned int flags, CUdevice dev) {
  if (params && params->numExecAffinityParams > 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  if (params && params->cigParams) return CUDA_ERROR_NOT_SUPPORTED;
  return Create(pctx, flags, dev, kApiVersion);
}

CUresult cuCtxDestroy_v2(CUcontext ctx) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  Context* context = session->contexts.Find(ctx);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (CUresult r = session->contexts.Destroy(*session, context)) return r;
  Thread& thread = ThisThread();
  if (thread.current() == context) thread.contexts.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext ctx) { return cuCtxDestroy_v2(ctx); }

CUresult cuCtxAttach(CUcontext* pctx, unsigned int flags) {
  if (!pctx || flags) return CUDA_ERROR_INVALID_VALUE;
  Context* context;
  if (CUresult r = Current(&context)) return r;
  *pctx = context->handle();
  return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext ctx) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  Context* context = session->contexts.Find(ctx);
  return context && context == ThisThread().current() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  Context* context = session->contexts.Find(ctx);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->number.load()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  ThisThread().contexts.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext ctx) { return cuCtxPushCurrent_v2(ctx); }

CUresult cuCtxPopCurrent_v2(CUcontext* pctx) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  Thread& thread = ThisThread();
  if (thread.contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (pctx) *pctx = thread.contexts.back()->handle();
  thread.contexts.pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* pctx) { return cuCtxPopCurrent_v2(pctx); }

CUresult cuCtxSetCurrent(CUcontext ctx) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  Context* context = nullptr;
  if (ctx) {
    context = session->contexts.Find(ctx);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (!context->number.load()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  ThisThread().SetCurrent(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* pctx) {
  if (!pctx) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  Context* context = ThisThread().current();
  *pctx = context ? context->handle() : nullptr;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  Context* context;
  if (CUresult r = Current(&context)) return r;
  *device = context->device;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int* flags) {
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  Context* context;
  if (CUresult r = Current(&context)) return r;
  *flags = context->flags.load();
  return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags) {
  if (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) return CUDA_ERROR_INVALID_VALUE;
  Context* context;
  if (CUresult r = Current(&context)) return r;
  context->flags.store(flags);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long* id) {
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  Context* context = ctx ? session->contexts.Find(ctx) : ThisThread().current();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  const uint32_t number = context->number.load();
  if (!number) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *id = number;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int* version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  Context* context = ctx ? session->contexts.Find(ctx) : ThisThread().current();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  *version = context->api_version ? context->api_version : kApiVersion;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  Context* context;
  if (CUresult r = Current(&context)) return r;
  *config = static_cast<CUfunc_cache>(context->cache_config.load());
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  Context* context;
  if (CUresult r = Current(&context)) return r;
  context->cache_config.store(config);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  Context* context;
  if (CUresult r = Current(&context)) return r;
  *config = static_cast<CUsharedconfig>(context->shared_config.load());
  return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  Context* context;
  if (CUresult r = Current(&context)) return r;
  context->shared_config.store(config);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  const DeviceSnapshot& device = caller.session->device(caller.context->device);
  if (least) *least = device.priority_least;
  if (greatest) *greatest = device.priority_greatest;
  return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache() {
  Context* context;
  return Current(&context);  // nothing persists: access policies are hints that are not carried
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (!mode || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  std::swap(*mode, ThisThread().capture_mode);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
  if (!pctx) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = EnterDevice(&session, dev)) return r;
  Context* context;
  if (CUresult r = session->contexts.RetainPrimary(*session, dev, &context)) return r;
  *pctx = context->handle();
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  Session* session;
  if (CUresult r = EnterDevice(&session, dev)) return r;
  return session->contexts.ReleasePrimary(*session, dev);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev) { return cuDevicePrimaryCtxRelease_v2(dev); }

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  Session* session;
  if (CUresult r = EnterDevice(&session, dev)) return r;
  return session->contexts.ResetPrimary(*session, dev);
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev) { return cuDevicePrimaryCtxReset_v2(dev); }

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
  Session* session;
  if (CUresult r = EnterDevice(&session, dev)) return r;
  if (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) return CUDA_ERROR_INVALID_VALUE;
  return session->contexts.SetPrimaryFlags(dev, flags);
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) {
  return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int* flags, int* active) {
  Session* session;
  if (CUresult r = EnterDevice(&session, dev)) return r;
  if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
  bool is_active;
  session->contexts.PrimaryState(dev, flags, &is_active);
  *active = is_active;
  return CUDA_SUCCESS;
}

}  // extern "C"
