// Contexts: making them, the stack of current ones, limits, the primary context.
#include <algorithm>

#include "softcuda/exports.h"
#include "softcuda/green_context.h"
#include "softcuda/primary_context.h"

using namespace cuplex;
using namespace cuplex::softcuda;

namespace {

constexpr unsigned kContextFlags = CU_CTX_FLAGS_MASK;

CUresult CheckFlags(unsigned flags) {
  unsigned schedule = flags & CU_CTX_SCHED_MASK;
  bool one = schedule == CU_CTX_SCHED_AUTO || schedule == CU_CTX_SCHED_SPIN ||
             schedule == CU_CTX_SCHED_YIELD || schedule == CU_CTX_SCHED_BLOCKING_SYNC;
  return flags & ~kContextFlags || !one ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult Create(CUcontext* out, unsigned multiprocessors, unsigned flags, CUdevice dev,
                unsigned api_version) {
  return OnDevice(dev, [&](Device& device) -> CUresult {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult wrong = CheckFlags(flags)) return wrong;
    Ref<Context> context;
    if (CUresult failed = MakeContext(device, multiprocessors, flags, false, api_version, &context))
      return failed;
    *out = reinterpret_cast<CUcontext>(context.get());
    Thread::Here().contexts.push_back({std::move(context), {}});
    return CUDA_SUCCESS;
  });
}

// What a handle that can be made current means; null means what is.
CUresult FindCurrent(Driver& driver, CUcontext handle, Thread::Current* found) {
  if (handle) {
    found->context = driver.contexts.Find(handle);
    if (found->context) return CUDA_SUCCESS;
    found->green = driver.green_contexts.Find(handle);
    if (!found->green) return CUDA_ERROR_INVALID_CONTEXT;
    found->context = found->green->primary();
    return CUDA_SUCCESS;
  }
  Context* current = Thread::Here().current();
  if (!current) return CUDA_ERROR_INVALID_CONTEXT;
  if (current->dead()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *found = Thread::Here().contexts.back();
  return CUDA_SUCCESS;
}

CUresult FindContext(Driver& driver, CUcontext handle, Ref<Context>* found) {
  Thread::Current current;
  const CUresult result = FindCurrent(driver, handle, &current);
  *found = std::move(current.context);
  return result;
}

// The handle that a program knows it by.
CUcontext HandleOf(const Thread::Current& current) {
  return current.green ? reinterpret_cast<CUcontext>(current.green.get())
                       : reinterpret_cast<CUcontext>(current.context.get());
}

CUresult Destroy(CUcontext ctx) {
  return InDriver([&](Driver& driver) -> CUresult {
    Ref<Context> context = driver.contexts.Find(ctx);
    if (!context || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
    if (!HandleTable<Context>::Retire(context.get())) return CUDA_ERROR_INVALID_CONTEXT;
    context->Die();
    auto& stack = Thread::Here().contexts;
    if (!stack.empty() && stack.back().context.get() == context.get()) stack.pop_back();
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuCtxCreate_v2(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return Create(pctx, 0, flags, dev, 3020);
}
CUresult cuCtxCreate(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return Create(pctx, 0, flags, dev, 2000);
}

CUresult cuCtxCreate_v3(CUcontext* pctx, CUexecAffinityParam* paramsArray, int numParams, unsigned int flags,
                        CUdevice dev) {
  if (numParams < 0 || (numParams && !paramsArray)) return CUDA_ERROR_INVALID_VALUE;
  if (numParams > 1) return CUDA_ERROR_INVALID_VALUE;
  if (!numParams) return Create(pctx, 0, flags, dev, 3020);
  if (paramsArray->type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  const unsigned multiprocessors = paramsArray->param.smCount.val;
  return OnDevice(dev, [&](Device& device) -> CUresult {
    if (!multiprocessors || multiprocessors > device.multiprocessors) return CUDA_ERROR_INVALID_VALUE;
    return Create(pctx, multiprocessors, flags, dev, 3020);
  });
}

CUresult cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams* ctxCreateParams, unsigned int flags,
                        CUdevice dev) {
  if (ctxCreateParams) {
    if (ctxCreateParams->cigParams) return CUDA_ERROR_NOT_SUPPORTED;
    return cuCtxCreate_v3(pctx, ctxCreateParams->execAffinityParams, ctxCreateParams->numExecAffinityParams,
                          flags, dev);
  }
  return Create(pctx, 0, flags, dev, 3020);
}

CUresult cuCtxDestroy_v2(CUcontext ctx) { return Destroy(ctx); }
CUresult cuCtxDestroy(CUcontext ctx) { return Destroy(ctx); }

CUresult cuCtxAttach(CUcontext* pctx, unsigned int flags) {
  if (!pctx || flags) return CUDA_ERROR_INVALID_VALUE;
  return InContext([&](Context& context) -> CUresult {
    *pctx = reinterpret_cast<CUcontext>(&context);
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxDetach(CUcontext) { return CUDA_ERROR_NOT_SUPPORTED; }

CUresult cuCtxPushCurrent_v2(CUcontext ctx) {
  return InDriver([&](Driver& driver) -> CUresult {
    Thread::Current current;
    if (!ctx || FindCurrent(driver, ctx, &current)) return CUDA_ERROR_INVALID_CONTEXT;
    Thread::Here().contexts.push_back(std::move(current));
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxPushCurrent(CUcontext ctx) { return cuCtxPushCurrent_v2(ctx); }

CUresult cuCtxPopCurrent_v2(CUcontext* pctx) {
  return InDriver([&](Driver&) -> CUresult {
    auto& stack = Thread::Here().contexts;
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (pctx) *pctx = HandleOf(stack.back());
    stack.pop_back();
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxPopCurrent(CUcontext* pctx) { return cuCtxPopCurrent_v2(pctx); }

CUresult cuCtxSetCurrent(CUcontext ctx) {
  return InDriver([&](Driver& driver) -> CUresult {
    Thread& thread = Thread::Here();
    if (ctx && thread.current() == reinterpret_cast<Context*>(ctx) && !thread.green() &&
        !thread.current()->dead())
      return CUDA_SUCCESS;
    Thread::Current current;
    if (ctx && FindCurrent(driver, ctx, &current)) return CUDA_ERROR_INVALID_CONTEXT;
    thread.SetCurrent(std::move(current));
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCurrent(CUcontext* pctx) {
  return InDriver([&](Driver&) -> CUresult {
    if (!pctx) return CUDA_ERROR_INVALID_VALUE;
    const auto& stack = Thread::Here().contexts;
    *pctx = stack.empty() ? nullptr : HandleOf(stack.back());
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetDevice(CUdevice* device) {
  return InDriver([&](Driver& driver) -> CUresult {
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    Ref<Context> context;
    if (CUresult failed = FindContext(driver, nullptr, &context)) return failed;
    *device = context->device.ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetFlags(unsigned int* flags) {
  return InContext([&](Context& context) -> CUresult {
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    *flags = context.flags.load();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetFlags(unsigned int flags) {
  return InContext([&](Context& context) -> CUresult {
    if (CUresult wrong = CheckFlags(flags)) return wrong;
    context.flags.store(flags);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long* ctxId) {
  return InDriver([&](Driver& driver) -> CUresult {
    if (!ctxId) return CUDA_ERROR_INVALID_VALUE;
    Ref<Context> context;
    if (CUresult failed = FindContext(driver, ctx, &context)) return failed;
    *ctxId = context->id;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int* version) {
  return InDriver([&](Driver& driver) -> CUresult {
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    Ref<Context> context;
    if (CUresult failed = FindContext(driver, ctx, &context)) return failed;
    *version = context->api_version;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize() {
  return InContext([](Context& context) -> CUresult {
    if (CUresult refused = context.driver.graphs.Refuse(context)) return refused;
    if (GreenContext* green = Thread::Here().green()) {
      for (auto& stream : context.StreamsOf(green)) stream->Wait(stream->submitted());
      context.GiveText();
    } else {
      context.Synchronize();
    }
    return context.fault();
  });
}

CUresult cuCtxGetExecAffinity(CUexecAffinityParam* pExecAffinity, CUexecAffinityType type) {
  return InContext([&](Context& context) -> CUresult {
    if (!pExecAffinity) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    pExecAffinity->type = type;
    pExecAffinity->param.smCount.val = context.partition.multiprocessors;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetLimit(size_t* pvalue, CUlimit limit) {
  return InContext([&](Context& context) -> CUresult {
    if (!pvalue) return CUDA_ERROR_INVALID_VALUE;
    if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    std::lock_guard guard(context.lock);
    *pvalue = context.limits[limit];
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return InContext([&](Context& context) -> CUresult {
    if (limit < 0 || limit >= CU_LIMIT_MAX || limit == CU_LIMIT_CIG_ENABLED ||
        limit == CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED || limit == CU_LIMIT_SHMEM_SIZE) {
      return CUDA_ERROR_UNSUPPORTED_LIMIT;
    }
    if (limit == CU_LIMIT_STACK_SIZE && value > kMaxLocalBytes) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard guard(context.lock);
    // A heap that kernels have been given stays as it is.
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE && context.heap()) return CUDA_ERROR_INVALID_VALUE;
    if (limit == CU_LIMIT_PRINTF_FIFO_SIZE) context.text.SetMost(value);
    context.limits[limit] = value;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* pconfig) {
  return InContext([&](Context& context) -> CUresult {
    if (!pconfig) return CUDA_ERROR_INVALID_VALUE;
    *pconfig = context.cache_config.load();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  return InContext([&](Context& context) -> CUresult {
    if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL)
      return CUDA_ERROR_INVALID_VALUE;
    context.cache_config.store(config);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* pConfig) {
  return InContext([&](Context&) -> CUresult {
    if (!pConfig) return CUDA_ERROR_INVALID_VALUE;
    *pConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  return InContext([&](Context&) -> CUresult {
    return config < CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE ||
                   config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
  });
}

CUresult cuCtxGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  return InContext([&](Context&) -> CUresult {
    if (leastPriority) *leastPriority = 0;
    if (greatestPriority) *greatestPriority = 1 - StreamPool::kPriorities;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxResetPersistingL2Cache() {
  return InContext([](Context&) { return CUDA_SUCCESS; });
}

// ------------------------------------------------------------------------------------ the primary context

CUresult cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
  return OnDevice(dev, [&](Device& device) -> CUresult {
    if (!pctx) return CUDA_ERROR_INVALID_VALUE;
    Ref<Context> primary;
    if (CUresult failed = RetainPrimary(device, &primary)) return failed;
    *pctx = reinterpret_cast<CUcontext>(primary.get());
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) { return OnDevice(dev, ReleasePrimary); }
CUresult cuDevicePrimaryCtxRelease(CUdevice dev) { return cuDevicePrimaryCtxRelease_v2(dev); }

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  return OnDevice(dev, [](Device& device) -> CUresult {
    ResetPrimary(device);
    return CUDA_SUCCESS;
  });
}
CUresult cuDevicePrimaryCtxReset(CUdevice dev) { return cuDevicePrimaryCtxReset_v2(dev); }

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
  return OnDevice(dev, [&](Device& device) -> CUresult {
    if (CUresult wrong = CheckFlags(flags)) return wrong;
    std::lock_guard guard(device.lock);
    device.primary_flags = flags;
    if (device.primary) device.primary->flags.store(flags);
    return CUDA_SUCCESS;
  });
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) {
  return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int* flags, int* active) {
  return OnDevice(dev, [&](Device& device) -> CUresult {
    if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard guard(device.lock);
    *flags = device.primary_flags;
    *active = device.primary ? 1 : 0;
    return CUDA_SUCCESS;
  });
}
