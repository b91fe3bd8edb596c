// Libraries and kernels: code that belongs to no context, and becomes a module in each where it is first
// used. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/image.h"
#include "cuda/driver_types.h"
#include "protocol/handle.h"

namespace cuplex::client {

class Session;

class LibraryTable {
 public:
  /// `preserved`: the program keeps the image's bytes until it unloads the library, so they are not copied.
  CUresult Load(Session& session, uint32_t context, const Image& image, bool preserved, std::string* log,
                Handle* out);
  CUresult Unload(Session& session, Handle library);
  bool Has(Handle library);

  /// The same handle for the same name. CUDA_ERROR_NOT_FOUND.
  CUresult GetKernel(Session& session, uint32_t context, Handle library, std::string_view name, Handle* out);
  CUresult Enumerate(Session& session, uint32_t context, Handle library, uint32_t most,
                     std::vector<Handle>* out);
  CUresult KernelCount(Session& session, uint32_t context, Handle library, uint32_t* out);
  /// The library's module in a context.
  CUresult ModuleOf(Session& session, uint32_t context, Handle library, Handle* out);
  /// The kernel's function in a context.
  CUresult FunctionOf(Session& session, uint32_t context, Handle kernel, Handle* out);

  /// Drops what was made in an ended context.
  void Forget(uint32_t context);

 private:
  struct Library {
    std::string copy;  // empty where the program preserves the bytes
    Image image;
    std::map<std::string, Handle, std::less<>> kernels;
    std::vector<std::pair<uint32_t, Handle>> modules;  // by context number
  };
  Library* Find(Handle library);
  CUresult ModuleIn(Session& session, uint32_t context, Library& library, std::string* log, Handle* out);
  CUresult KernelIn(Session& session, uint32_t context, Handle handle, Library& library,
                    std::string_view name, Handle* out);

  std::mutex mutex_;  // also held while a module loads, so that it loads once
  HandleSource source_;
  std::map<Handle, Library> libraries_;
  Session* session_ = nullptr;
};

}  // namespace cuplex::client
