#include "client/library.h"

#include <algorithm>

#include "base/log.h"
#include "client/exports.h"

namespace cuplex::client {

LibraryTable::Library* LibraryTable::Find(Handle library) {
  auto it = libraries_.find(library);
  return it == libraries_.end() ? nullptr : &it->second;
}

bool LibraryTable::Has(Handle library) {
  std::lock_guard lock(mutex_);
  return Find(library) != nullptr;
}

CUresult LibraryTable::Load(Session& session, uint32_t context, const Image& image, bool preserved,
                            std::string* log, Handle* out) {
  std::lock_guard lock(mutex_);
  session_ = &session;
  const Handle h = source_.Take();
  if (!h) return CUDA_ERROR_OUT_OF_MEMORY;
  Library& library = libraries_[h];
  library.image = image;
  if (!preserved) {
    library.copy.assign(reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size());
    library.image.bytes = std::as_bytes(std::span(library.copy));
  }
  // An image that does not load is said to be so here, where the program expects it.
  Handle module;
  if (CUresult r = ModuleIn(session, context, library, log, &module)) {
    libraries_.erase(h);
    source_.Return(h);
    return r;
  }
  *out = h;
  return CUDA_SUCCESS;
}

CUresult LibraryTable::Unload(Session& session, Handle handle) {
  std::lock_guard lock(mutex_);
  Library* library = Find(handle);
  if (!library) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = CUDA_SUCCESS;
  for (auto [context, module] : library->modules)
    if (CUresult r = session.modules.Unload(session, module)) result = r;
  for (auto& [name, kernel] : library->kernels) session.functions.Erase(kernel);
  libraries_.erase(handle);
  source_.Return(handle);
  return result;
}

CUresult LibraryTable::ModuleIn(Session& session, uint32_t context, Library& library, std::string* log,
                                Handle* out) {
  for (auto [number, module] : library.modules)
    if (number == context) {
      *out = module;
      return CUDA_SUCCESS;
    }
  std::string text;
  if (CUresult r = session.modules.Load(session, context, library.image, log ? log : &text, out)) return r;
  library.modules.emplace_back(context, *out);
  return CUDA_SUCCESS;
}

CUresult LibraryTable::KernelIn(Session& session, uint32_t context, Handle handle, Library& library,
                                std::string_view name, Handle* out) {
  if (auto it = library.kernels.find(name); it != library.kernels.end()) {
    *out = it->second;
    return CUDA_SUCCESS;
  }
  Handle module, function;
  if (CUresult r = ModuleIn(session, context, library, nullptr, &module)) return r;
  if (CUresult r = session.modules.GetFunction(session, module, name, &function)) return r;
  Function kernel;
  kernel.library = handle;
  kernel.name = name;
  kernel.functions.emplace_back(context, function);
  const Handle h = session.functions.Insert(std::move(kernel));
  if (!h) return CUDA_ERROR_OUT_OF_MEMORY;
  library.kernels.emplace(name, h);
  *out = h;
  return CUDA_SUCCESS;
}

CUresult LibraryTable::GetKernel(Session& session, uint32_t context, Handle handle, std::string_view name,
                                 Handle* out) {
  std::lock_guard lock(mutex_);
  Library* library = Find(handle);
  if (!library) return CUDA_ERROR_INVALID_HANDLE;
  return KernelIn(session, context, handle, *library, name, out);
}

CUresult LibraryTable::KernelCount(Session& session, uint32_t context, Handle handle, uint32_t* out) {
  Handle module;
  if (CUresult r = ModuleOf(session, context, handle, &module)) return r;
  return session.modules.FunctionCount(module, out);
}

CUresult LibraryTable::Enumerate(Session& session, uint32_t context, Handle handle, uint32_t most,
                                 std::vector<Handle>* out) {
  std::lock_guard lock(mutex_);
  Library* library = Find(handle);
  if (!library) return CUDA_ERROR_INVALID_HANDLE;
  Handle module;
  if (CUresult r = ModuleIn(session, context, *library, nullptr, &module)) return r;
  uint32_t count;
  if (CUresult r = session.modules.FunctionCount(module, &count)) return r;
  for (uint32_t i = 0; i < std::min(count, most); ++i) {
    std::string name;
    Handle kernel;
    if (CUresult r = session.modules.FunctionName(session, module, i, &name)) return r;
    if (CUresult r = KernelIn(session, context, handle, *library, name, &kernel)) return r;
    out->push_back(kernel);
  }
  return CUDA_SUCCESS;
}

CUresult LibraryTable::ModuleOf(Session& session, uint32_t context, Handle handle, Handle* out) {
  std::lock_guard lock(mutex_);
  Library* library = Find(handle);
  if (!library) return CUDA_ERROR_INVALID_HANDLE;
  return ModuleIn(session, context, *library, nullptr, out);
}

CUresult LibraryTable::FunctionOf(Session& session, uint32_t context, Handle handle, Handle* out) {
  std::lock_guard lock(mutex_);
  Function* kernel = session.functions.Find(handle);
  if (!kernel || !kernel->is_kernel()) return CUDA_ERROR_INVALID_HANDLE;
  for (auto [number, function] : kernel->functions)
    if (number == context) {
      *out = function;
      return CUDA_SUCCESS;
    }
  Library* library = Find(kernel->library);
  if (!library) return CUDA_ERROR_INVALID_HANDLE;
  Handle module;
  if (CUresult r = ModuleIn(session, context, *library, nullptr, &module)) return r;
  if (CUresult r = session.modules.GetFunction(session, module, kernel->name, out)) return r;
  kernel->functions.emplace_back(context, *out);
  return CUDA_SUCCESS;
}

void LibraryTable::Forget(uint32_t context) {
  std::lock_guard lock(mutex_);
  auto gone = [context](const auto& entry) { return entry.first == context; };
  for (auto& [handle, library] : libraries_) {
    std::erase_if(library.modules, gone);
    for (auto& [name, h] : library.kernels)
      if (Function* kernel = session_->functions.Find(h)) std::erase_if(kernel->functions, gone);
  }
}

}  // namespace cuplex::client
