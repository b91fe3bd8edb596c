// Libraries and kernels: modules that belong to no context and are loaded into each that uses them.
#include "softcuda/exports.h"

using namespace cuplex;
using namespace cuplex::softcuda;

namespace {

CUresult Load(CUlibrary* out, const void* code, unsigned count, const CUjit_option* names, void** values,
              unsigned library_count, const CUlibraryOption* library_names) {
  return InDriver([&](Driver& driver) -> CUresult {
    if (!out || !code || (library_count && !library_names)) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < library_count; ++i) {
      if (library_names[i] != CU_LIBRARY_BINARY_IS_PRESERVED) return CUDA_ERROR_NOT_SUPPORTED;
    }
    JitOptions options;
    options.compile.cache = driver.cache.get();
    if (CUresult wrong = options.Read(count, names, values)) return wrong;
    JitOptions::Timed timed(options);
    const Settings& settings = driver.settings;
    auto tree = ReadImage(code, settings.capability_major * 10 + settings.capability_minor);
    if (!tree.ok()) return RefuseImage(tree.error(), options);
    auto program = CompileImage(*tree, *driver.window, options.compile);
    if (!program.ok()) return RefuseImage(program.error(), options);
    Ref<LoadedLibrary> library =
        driver.libraries.Make(nullptr, driver, *std::move(tree), options.compile, *std::move(program));
    if (!library) return CUDA_ERROR_OUT_OF_MEMORY;
    for (const auto& info : library->infos->kernels()) {
      Ref<LibraryKernel> kernel = driver.kernels.Make(library.get(), *library, info.name, driver.NextId());
      if (!kernel) {
        library->UnloadAll();
        HandleTable<LoadedLibrary>::Retire(library.get());
        return CUDA_ERROR_OUT_OF_MEMORY;
      }
      library->kernels.push_back(std::move(kernel));
    }
    options.WriteInfo(ReportRefusals(*library->infos));
    *out = reinterpret_cast<CUlibrary>(library.get());
    return CUDA_SUCCESS;
  });
}

template <typename F>
CUresult WithLibrary(CUlibrary handle, F&& f) {
  return InDriver([&](Driver& driver) -> CUresult {
    Ref<LoadedLibrary> library = driver.libraries.Find(handle);
    if (!library) return CUDA_ERROR_INVALID_HANDLE;
    return f(*library);
  });
}

// f(LoadedModule&, Ref): the library in the current context.
template <typename F>
CUresult WithLoaded(CUlibrary handle, F&& f) {
  return InContext([&](Context& context) -> CUresult {
    Ref<LoadedLibrary> library = context.driver.libraries.Find(handle);
    if (!library) return CUDA_ERROR_INVALID_HANDLE;
    auto module = library->In(context);
    if (!module.ok()) {
      JitOptions none;
      return RefuseImage(module.error(), none);
    }
    return f(*module);
  });
}

// f(LibraryKernel&, const KernelInfo&)
template <typename F>
CUresult WithKernel(CUkernel handle, F&& f) {
  return InDriver([&](Driver& driver) -> CUresult {
    Ref<LibraryKernel> kernel = driver.kernels.Find(handle);
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    Ref<LoadedLibrary> library = driver.libraries.Find(&kernel->library);
    if (!library) return CUDA_ERROR_INVALID_HANDLE;
    return f(*kernel, library->infos->Info(library->infos->FindKernel(kernel->name)));
  });
}

}  // namespace

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jitOptions,
                           void** jitOptionsValues, unsigned int numJitOptions,
                           CUlibraryOption* libraryOptions, void**, unsigned int numLibraryOptions) {
  return Load(library, code, numJitOptions, jitOptions, jitOptionsValues, numLibraryOptions, libraryOptions);
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* fileName, CUjit_option* jitOptions,
                               void** jitOptionsValues, unsigned int numJitOptions,
                               CUlibraryOption* libraryOptions, void**, unsigned int numLibraryOptions) {
  return InDriver([&](Driver&) -> CUresult {
    if (!library || !fileName) return CUDA_ERROR_INVALID_VALUE;
    auto bytes = ReadImageFile(fileName);
    if (!bytes.ok()) {
      JitOptions none;
      return RefuseImage(bytes.error(), none);
    }
    return Load(library, bytes->data(), numJitOptions, jitOptions, jitOptionsValues, numLibraryOptions,
                libraryOptions);
  });
}

CUresult cuLibraryUnload(CUlibrary library) {
  return WithLibrary(library, [](LoadedLibrary& found) -> CUresult {
    if (!HandleTable<LoadedLibrary>::Retire(&found)) return CUDA_ERROR_INVALID_HANDLE;
    found.UnloadAll();
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetKernel(CUkernel* pKernel, CUlibrary library, const char* name) {
  return WithLibrary(library, [&](LoadedLibrary& found) -> CUresult {
    if (!pKernel || !name) return CUDA_ERROR_INVALID_VALUE;
    for (auto& kernel : found.kernels) {
      if (kernel->name != name) continue;
      *pKernel = reinterpret_cast<CUkernel>(kernel.get());
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
  });
}

CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary lib) {
  return WithLibrary(lib, [&](LoadedLibrary& found) -> CUresult {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<unsigned>(found.kernels.size());
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int numKernels, CUlibrary lib) {
  return WithLibrary(lib, [&](LoadedLibrary& found) -> CUresult {
    if (!kernels) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < numKernels && i < found.kernels.size(); ++i) {
      kernels[i] = reinterpret_cast<CUkernel>(found.kernels[i].get());
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetModule(CUmodule* pMod, CUlibrary library) {
  return WithLoaded(library, [&](const Ref<LoadedModule>& module) -> CUresult {
    if (!pMod) return CUDA_ERROR_INVALID_VALUE;
    *pMod = reinterpret_cast<CUmodule>(module.get());
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetGlobal(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name) {
  return WithLoaded(library, [&](const Ref<LoadedModule>& module) -> CUresult {
    if (!name || (!dptr && !bytes)) return CUDA_ERROR_INVALID_VALUE;
    auto it = module->variables.find(name);
    if (it == module->variables.end()) return CUDA_ERROR_NOT_FOUND;
    if (dptr) *dptr = it->second.address;
    if (bytes) *bytes = it->second.size;
    return CUDA_SUCCESS;
  });
}

CUresult cuKernelGetFunction(CUfunction* pFunc, CUkernel kernel) {
  return InContext([&](Context& context) -> CUresult {
    if (!pFunc) return CUDA_ERROR_INVALID_VALUE;
    if (!context.driver.kernels.Find(kernel)) return CUDA_ERROR_INVALID_HANDLE;
    Ref<Function> function;
    if (CUresult failed = FindFunction(context, reinterpret_cast<CUfunction>(kernel), &function))
      return failed;
    *pFunc = reinterpret_cast<CUfunction>(function.get());
    return CUDA_SUCCESS;
  });
}

CUresult cuKernelGetLibrary(CUlibrary* pLib, CUkernel kernel) {
  return WithKernel(kernel, [&](LibraryKernel& found, const KernelInfo&) -> CUresult {
    if (!pLib) return CUDA_ERROR_INVALID_VALUE;
    *pLib = reinterpret_cast<CUlibrary>(&found.library);
    return CUDA_SUCCESS;
  });
}

CUresult cuKernelGetName(const char** name, CUkernel hfunc) {
  return WithKernel(hfunc, [&](LibraryKernel& found, const KernelInfo&) -> CUresult {
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    *name = found.name.c_str();
    return CUDA_SUCCESS;
  });
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t* paramOffset, size_t* paramSize) {
  return WithKernel(kernel, [&](LibraryKernel&, const KernelInfo& info) -> CUresult {
    if (!paramOffset || paramIndex >= info.params.size()) return CUDA_ERROR_INVALID_VALUE;
    *paramOffset = info.params[paramIndex].offset;
    if (paramSize) *paramSize = info.params[paramIndex].size;
    return CUDA_SUCCESS;
  });
}

CUresult cuKernelGetAttribute(int* pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev) {
  return OnDevice(dev, [&](Device& device) {
    return WithKernel(kernel, [&](LibraryKernel& found, const KernelInfo& info) -> CUresult {
      if (!pi) return CUDA_ERROR_INVALID_VALUE;
      return found.settings.Get(attrib, info, device, pi);
    });
  });
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev) {
  return OnDevice(dev, [&](Device& device) {
    return WithKernel(kernel, [&](LibraryKernel& found, const KernelInfo& info) {
      CUresult result = found.settings.Set(attrib, info, device, val);
      found.Remember(nullptr);  // the next launch hands the new value on
      return result;
    });
  });
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev) {
  return OnDevice(dev, [&](Device&) {
    return WithKernel(kernel, [&](LibraryKernel& found, const KernelInfo&) -> CUresult {
      if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
      found.settings.cache_config.store(config);
      return CUDA_SUCCESS;
    });
  });
}
