// Exported calls about libraries and kernels.
#include <algorithm>
#include <string>
#include <vector>

#include "base/log.h"
#include "client/exports.h"

namespace cuplex::client {
namespace {

/// The context in which a library's code is looked at: the current one, else the first device's primary one.
CUresult LibraryContext(Session** session, uint32_t* number) {
  if (CUresult r = Enter(session)) return r;
  if (Context* current = ThisThread().current()) {
    *number = current->number.load();
    if (*number) return (*session)->submission().Sticky();
  }
  Context* primary;
  bool active;
  unsigned flags;
  (*session)->contexts.PrimaryState(0, &flags, &active);
  if (CUresult r = (*session)->contexts.RetainPrimary(**session, 0, &primary)) return r;
  *number = primary->number.load();
  // Where it was active before, somebody else holds it; else the library does from here on.
  return active ? (*session)->contexts.ReleasePrimary(**session, 0) : CUDA_SUCCESS;
}

/// A context on `device`: the current one where it is there, else the device's primary one if that is active.
CUresult ContextOn(CUdevice device, Session** session, uint32_t* number) {
  if (CUresult r = EnterDevice(session, device)) return r;
  Context* current = ThisThread().current();
  if (current && current->device == device && (*number = current->number.load())) return CUDA_SUCCESS;
  return device == 0 ? LibraryContext(session, number) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult LoadLibrary(CUlibrary* library, const Result<Image>& image, bool preserved) {
  Session* session;
  uint32_t context;
  if (CUresult r = LibraryContext(&session, &context)) return r;
  if (!image.ok()) {
    Log().debug("{}", image.error().sentence);
    return CUDA_ERROR_INVALID_IMAGE;
  }
  Handle h;
  std::string text;
  if (CUresult r = session->libraries.Load(*session, context, *image, preserved, &text, &h)) {
    if (!text.empty()) Log().warn("a library does not load: {}", text);
    return r;
  }
  *library = reinterpret_cast<CUlibrary>(h);
  return CUDA_SUCCESS;
}

CUresult FindKernel(CUkernel kernel, Session** session, Function** out) {
  if (CUresult r = Enter(session)) return r;
  *out = (*session)->functions.Find(reinterpret_cast<Handle>(kernel));
  return *out && (*out)->is_kernel() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult FunctionOn(CUdevice device, CUkernel kernel, Session** session, Function** out, Handle* handle) {
  uint32_t context;
  if (CUresult r = ContextOn(device, session, &context)) return r;
  const Handle k = reinterpret_cast<Handle>(kernel);
  if (CUresult r = (*session)->libraries.FunctionOf(**session, context, k, handle)) return r;
  *out = (*session)->functions.Find(*handle);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace
}  // namespace cuplex::client

using namespace cuplex::client;
using cuplex::Handle;

extern "C" {

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned int,
                           CUlibraryOption* options, void** values, unsigned int count) {
  if (!library || !code || (count && !options)) return CUDA_ERROR_INVALID_VALUE;
  bool preserved = false;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] != CU_LIBRARY_BINARY_IS_PRESERVED) continue;
    preserved = !values || values[i];
  }
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  return LoadLibrary(library, ImageFrom(code), preserved);
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* fileName, CUjit_option*, void**, unsigned int,
                               CUlibraryOption*, void**, unsigned int) {
  if (!library || !fileName) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  std::string bytes;
  if (CUresult r = ReadImageFile(fileName, &bytes)) return r;
  return LoadLibrary(library, ImageFrom(std::as_bytes(std::span(bytes))), false);
}

CUresult cuLibraryUnload(CUlibrary library) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  return session->libraries.Unload(*session, reinterpret_cast<Handle>(library));
}

CUresult cuLibraryGetKernel(CUkernel* pKernel, CUlibrary library, const char* name) {
  if (!pKernel || !name) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  uint32_t context;
  if (CUresult r = LibraryContext(&session, &context)) return r;
  Handle h;
  if (CUresult r =
          session->libraries.GetKernel(*session, context, reinterpret_cast<Handle>(library), name, &h))
    return r;
  *pKernel = reinterpret_cast<CUkernel>(h);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary lib) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  uint32_t context;
  if (CUresult r = LibraryContext(&session, &context)) return r;
  return session->libraries.KernelCount(*session, context, reinterpret_cast<Handle>(lib), count);
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int numKernels, CUlibrary lib) {
  if (!kernels || !numKernels) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  uint32_t context;
  if (CUresult r = LibraryContext(&session, &context)) return r;
  std::vector<Handle> found;
  if (CUresult r =
          session->libraries.Enumerate(*session, context, reinterpret_cast<Handle>(lib), numKernels, &found))
    return r;
  std::ranges::transform(found, kernels, [](Handle h) { return reinterpret_cast<CUkernel>(h); });
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule* pMod, CUlibrary library) {
  if (!pMod) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  Handle h;
  if (CUresult r = caller.session->libraries.ModuleOf(*caller.session, caller.number,
                                                      reinterpret_cast<Handle>(library), &h))
    return r;
  *pMod = reinterpret_cast<CUmodule>(h);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name) {
  if (!name || (!dptr && !bytes)) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  Handle h;
  if (CUresult r = caller.session->libraries.ModuleOf(*caller.session, caller.number,
                                                      reinterpret_cast<Handle>(library), &h))
    return r;
  return caller.session->modules.GetGlobal(*caller.session, h, name, dptr, bytes);
}

CUresult cuKernelGetFunction(CUfunction* pFunc, CUkernel kernel) {
  if (!pFunc) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  Handle h;
  if (CUresult r = caller.session->libraries.FunctionOf(*caller.session, caller.number,
                                                        reinterpret_cast<Handle>(kernel), &h))
    return r;
  *pFunc = reinterpret_cast<CUfunction>(h);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary* pLib, CUkernel kernel) {
  if (!pLib) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  Function* k;
  if (CUresult r = FindKernel(kernel, &session, &k)) return r;
  *pLib = reinterpret_cast<CUlibrary>(k->library);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  Function* k;
  if (CUresult r = FindKernel(kernel, &session, &k)) return r;
  *name = k->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t* paramOffset, size_t* paramSize) {
  if (!paramOffset) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  Function* k;
  if (CUresult r = FindKernel(kernel, &session, &k)) return r;
  uint32_t context;
  if (CUresult r = LibraryContext(&session, &context)) return r;
  Handle h;
  if (CUresult r = session->libraries.FunctionOf(*session, context, reinterpret_cast<Handle>(kernel), &h))
    return r;
  const Function* f = session->functions.Find(h);
  return f ? FunctionParamInfo(*f, paramIndex, paramOffset, paramSize) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelGetAttribute(int* pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev) {
  if (!pi) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  Function* f;
  Handle h;
  if (CUresult r = FunctionOn(dev, kernel, &session, &f, &h)) return r;
  return FunctionAttribute(f->facts, attrib, pi);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev) {
  Session* session;
  Function* f;
  Handle h;
  if (CUresult r = FunctionOn(dev, kernel, &session, &f, &h)) return r;
  return SetFunctionAttribute(*session, *f, h, attrib, val);
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache, CUdevice dev) {
  Session* session;
  Function* k;
  if (CUresult r = EnterDevice(&session, dev)) return r;
  return FindKernel(kernel, &session, &k);  // a hint
}

}  // extern "C"
