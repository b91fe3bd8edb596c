// Functions: what they need, and how many of their blocks fit.
#include <algorithm>

#include "softcuda/exports.h"

using namespace cuplex;
using namespace cuplex::softcuda;

namespace {

// f(Context&, Function&); kernels of libraries pass for functions.
template <typename F>
CUresult WithFunction(CUfunction handle, F&& f) {
  return InContext([&](Context& context) -> CUresult {
    Ref<Function> function;
    if (CUresult failed = FindFunction(context, handle, &function)) return failed;
    return f(context, *function);
  });
}

}  // namespace

CUresult cuFuncGetAttribute(int* pi, CUfunction_attribute attrib, CUfunction hfunc) {
  return WithFunction(hfunc, [&](Context& context, Function& function) -> CUresult {
    if (!pi) return CUDA_ERROR_INVALID_VALUE;
    return function.settings.Get(attrib, function.info, context.device, pi);
  });
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
  return WithFunction(hfunc, [&](Context& context, Function& function) {
    if (Ref<LibraryKernel> kernel = context.driver.kernels.Find(hfunc)) {
      if (CUresult wrong = kernel->settings.Set(attrib, function.info, context.device, value)) return wrong;
    }
    return function.settings.Set(attrib, function.info, context.device, value);
  });
}

CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config) {
  return WithFunction(hfunc, [&](Context&, Function& function) -> CUresult {
    if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL)
      return CUDA_ERROR_INVALID_VALUE;
    function.settings.cache_config.store(config);
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config) {
  return WithFunction(hfunc, [&](Context&, Function&) -> CUresult {
    return config < CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE ||
                   config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
  });
}

CUresult cuFuncGetModule(CUmodule* hmod, CUfunction hfunc) {
  return WithFunction(hfunc, [&](Context&, Function& function) -> CUresult {
    if (!hmod) return CUDA_ERROR_INVALID_VALUE;
    *hmod = reinterpret_cast<CUmodule>(&function.module);
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetName(const char** name, CUfunction hfunc) {
  return WithFunction(hfunc, [&](Context&, Function& function) -> CUresult {
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    *name = function.info.name.c_str();
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t* paramOffset, size_t* paramSize) {
  return WithFunction(func, [&](Context&, Function& function) -> CUresult {
    if (!paramOffset || paramIndex >= function.info.params.size()) return CUDA_ERROR_INVALID_VALUE;
    *paramOffset = function.info.params[paramIndex].offset;
    if (paramSize) *paramSize = function.info.params[paramIndex].size;
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  return WithFunction(function, [&](Context&, Function& found) -> CUresult {
    if (!state) return CUDA_ERROR_INVALID_VALUE;
    *state = found.prepared() ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncLoad(CUfunction function) {
  // The shape of its blocks is not known yet; what this one finds is what others will.
  return WithFunction(function, [](Context&, Function& found) {
    const auto& required = found.info.reqntid;
    return found.Prepare(required[0] ? required : std::array<uint32_t, 3>{kWarpSize, 1, 1});
  });
}
