// Modules: loading PTX into the current context, and what is in them.
#include "softcuda/exports.h"

using namespace cuplex;
using namespace cuplex::softcuda;

namespace {

CUresult Load(CUmodule* out, const void* image, unsigned count, const CUjit_option* names, void** values) {
  return InContext([&](Context& context) -> CUresult {
    if (!out || !image) return CUDA_ERROR_INVALID_VALUE;
    JitOptions options;
    options.compile.cache = context.driver.cache.get();
    if (CUresult wrong = options.Read(count, names, values)) return wrong;
    JitOptions::Timed timed(options);
    const Device& device = context.device;
    auto tree = ReadImage(image, device.capability_major * 10 + device.capability_minor);
    if (!tree.ok()) return RefuseImage(tree.error(), options);
    auto program = CompileImage(*std::move(tree), *context.driver.window, options.compile);
    if (!program.ok()) return RefuseImage(program.error(), options);
    auto module = LoadInto(context, *std::move(program), /*of_library=*/false);
    if (!module.ok()) return RefuseImage(module.error(), options);
    options.WriteInfo(ReportRefusals(*(*module)->program));
    *out = reinterpret_cast<CUmodule>(module->get());
    return CUDA_SUCCESS;
  });
}

template <typename F>
CUresult WithModule(CUmodule handle, F&& f) {
  return InContext([&](Context& context) -> CUresult {
    Ref<LoadedModule> module = context.driver.modules.Find(handle);
    if (!module) return CUDA_ERROR_INVALID_HANDLE;
    return f(context, module);
  });
}

}  // namespace

CUresult cuModuleLoad(CUmodule* module, const char* fname) {
  return InContext([&](Context&) -> CUresult {
    if (!module || !fname) return CUDA_ERROR_INVALID_VALUE;
    auto bytes = ReadImageFile(fname);
    if (!bytes.ok()) {
      JitOptions none;
      return RefuseImage(bytes.error(), none);
    }
    return Load(module, bytes->data(), 0, nullptr, nullptr);
  });
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return Load(module, image, 0, nullptr, nullptr);
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fatCubin) {
  return Load(module, fatCubin, 0, nullptr, nullptr);
}
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int numOptions,
                            CUjit_option* options, void** optionValues) {
  return Load(module, image, numOptions, options, optionValues);
}

CUresult cuModuleUnload(CUmodule hmod) {
  return WithModule(hmod, [](Context& current, const Ref<LoadedModule>& module) -> CUresult {
    if (module->of_library) return CUDA_ERROR_NOT_PERMITTED;
    Ref<Context> owner = current.driver.contexts.Find(&module->context);
    return owner && Unload(*owner, module) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult cuModuleGetFunction(CUfunction* hfunc, CUmodule hmod, const char* name) {
  return WithModule(hmod, [&](Context&, const Ref<LoadedModule>& module) -> CUresult {
    if (!hfunc || !name || !*name) return CUDA_ERROR_INVALID_VALUE;
    Function* function = module->Find(name);
    if (!function) return CUDA_ERROR_NOT_FOUND;
    if (CUresult refused = function->Refused()) return refused;
    *hfunc = reinterpret_cast<CUfunction>(function);
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule mod) {
  return WithModule(mod, [&](Context&, const Ref<LoadedModule>& module) -> CUresult {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<unsigned>(module->functions.size());
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int numFunctions, CUmodule mod) {
  return WithModule(mod, [&](Context&, const Ref<LoadedModule>& module) -> CUresult {
    if (!functions) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < numFunctions && i < module->functions.size(); ++i) {
      functions[i] = reinterpret_cast<CUfunction>(module->functions[i].get());
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* dptr, size_t* bytes, CUmodule hmod, const char* name) {
  return WithModule(hmod, [&](Context&, const Ref<LoadedModule>& module) -> CUresult {
    if (!name || (!dptr && !bytes)) return CUDA_ERROR_INVALID_VALUE;
    auto it = module->variables.find(name);
    if (it == module->variables.end()) return CUDA_ERROR_NOT_FOUND;
    if (dptr) *dptr = it->second.address;
    if (bytes) *bytes = it->second.size;
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return InDriver([&](Driver&) -> CUresult {
    if (!mode) return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
  });
}
