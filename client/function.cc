#include "client/function.h"

#include <atomic>

#include "client/exports.h"

namespace cuplex::client {

void FunctionTable::Forget(uint32_t context) {
  table_.ForEach([&](Handle h, Function& f) {
    if (!f.is_kernel() && f.context == context) table_.Erase(h);
  });
}

void FunctionTable::ForgetModule(Handle module) {
  table_.ForEach([&](Handle h, Function& f) {
    if (!f.is_kernel() && f.module == module) table_.Erase(h);
  });
}

CUresult ResolveFunction(const Caller& caller, CUfunction f, Function** out, Handle* handle) {
  *handle = reinterpret_cast<Handle>(f);
  *out = caller.session->functions.Find(*handle);
  if (!*out) return CUDA_ERROR_INVALID_HANDLE;
  if ((*out)->is_kernel()) {
    if (CUresult r =
            caller.session->libraries.FunctionOf(*caller.session, caller.number, Handle{*handle}, handle))
      return r;
    *out = caller.session->functions.Find(*handle);
    if (!*out) return CUDA_ERROR_INVALID_HANDLE;
  }
  return (*out)->context == caller.number ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

namespace {

/// A function for calls that do not run it; a kernel stands for its function in the current context.
CUresult Resolve(CUfunction f, Function** out) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  *out = session->functions.Find(reinterpret_cast<Handle>(f));
  if (!*out) return CUDA_ERROR_INVALID_HANDLE;
  if (!(*out)->is_kernel()) return CUDA_SUCCESS;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  Handle h;
  return ResolveFunction(caller, f, out, &h);
}

int32_t Load(const int32_t& fact) {
  return std::atomic_ref<int32_t>(const_cast<int32_t&>(fact)).load(std::memory_order_relaxed);
}

}  // namespace

CUresult FunctionAttribute(const FunctionFacts& facts, CUfunction_attribute attribute, int* out) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *out = facts.max_threads_per_block;
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *out = facts.shared_bytes;
      break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      *out = facts.const_bytes;
      break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *out = facts.local_bytes;
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *out = facts.registers;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      *out = facts.ptx_version;
      break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *out = facts.binary_version;
      break;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      *out = facts.cache_mode_ca;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *out = Load(facts.max_dynamic_shared_bytes);
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *out = Load(facts.preferred_carveout);
      break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:  // kernels with clusters are not loaded
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      *out = 0;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult FunctionParamInfo(const Function& f, size_t index, size_t* offset, size_t* size) {
  if (index >= f.parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = f.parameters[index].offset;
  if (size) *size = f.parameters[index].size;
  return CUDA_SUCCESS;
}

CUresult SetFunctionAttribute(Session& session, Function& f, Handle h, CUfunction_attribute attribute,
                              int value) {
  wire::cuFuncSetAttributeReply reply;
  const wire::cuFuncSetAttributeArgs args(h, static_cast<int32_t>(attribute), value);
  if (CUresult r = session.submission().Ask(Op::cuFuncSetAttribute, f.context, args, &reply)) return r;
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    std::atomic_ref<int32_t>(f.facts.max_dynamic_shared_bytes).store(value, std::memory_order_relaxed);
  if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
    std::atomic_ref<int32_t>(f.facts.preferred_carveout).store(value, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

}  // namespace cuplex::client

using namespace cuplex::client;
using cuplex::Handle;

extern "C" {

CUresult cuFuncGetAttribute(int* pi, CUfunction_attribute attrib, CUfunction hfunc) {
  if (!pi) return CUDA_ERROR_INVALID_VALUE;
  Function* f;
  if (CUresult r = Resolve(hfunc, &f)) return r;
  return FunctionAttribute(f->facts, attrib, pi);
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  Function* f;
  Handle h;
  if (CUresult r = ResolveFunction(caller, hfunc, &f, &h)) return r;
  return SetFunctionAttribute(*caller.session, *f, h, attrib, value);
}

CUresult cuFuncGetModule(CUmodule* hmod, CUfunction hfunc) {
  if (!hmod) return CUDA_ERROR_INVALID_VALUE;
  Function* f;
  if (CUresult r = Resolve(hfunc, &f)) return r;
  *hmod = reinterpret_cast<CUmodule>(f->module);
  return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction hfunc) {
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  Function* f;
  if (CUresult r = Resolve(hfunc, &f)) return r;
  *name = f->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t* paramOffset, size_t* paramSize) {
  if (!paramOffset) return CUDA_ERROR_INVALID_VALUE;
  Function* f;
  if (CUresult r = Resolve(func, &f)) return r;
  return FunctionParamInfo(*f, paramIndex, paramOffset, paramSize);
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  if (!state) return CUDA_ERROR_INVALID_VALUE;
  Function* f;
  if (CUresult r = Resolve(function, &f)) return r;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function) {
  Function* f;
  return Resolve(function, &f);
}

CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config) {
  if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL)
    return CUDA_ERROR_INVALID_VALUE;
  Function* f;
  return Resolve(hfunc, &f);  // a hint
}

CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig) {
  Function* f;
  return Resolve(hfunc, &f);  // a hint
}

}  // extern "C"
