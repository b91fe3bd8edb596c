// Modules of this process. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "client/image.h"
#include "cuda/driver_types.h"
#include "protocol/handle.h"

namespace cuplex::client {

class Session;

class ModuleTable {
 public:
  /// `log` takes the compiler's sentence where loading fails.
  CUresult Load(Session& session, uint32_t context, const Image& image, std::string* log, Handle* out);
  /// Upload, whole also where two threads send the same.
  CUresult Send(Session& session, uint32_t context, const Image& image);
  CUresult Unload(Session& session, Handle module);
  /// The same handle for the same name. CUDA_ERROR_NOT_FOUND.
  CUresult GetFunction(Session& session, Handle module, std::string_view name, Handle* out);
  CUresult GetGlobal(Session& session, Handle module, std::string_view name, CUdeviceptr* address,
                     size_t* bytes);
  CUresult FunctionCount(Handle module, uint32_t* out);
  CUresult FunctionName(Session& session, Handle module, uint32_t index, std::string* out);
  /// Drops the modules of an ended context.
  void Forget(uint32_t context);

 private:
  struct Module {
    uint32_t context = 0;  // number
    uint32_t function_count = 0;
    std::map<std::string, Handle, std::less<>> functions;
  };
  /// The context of a module; 0 where there is none.
  uint32_t ContextOf(Handle module);

  std::mutex upload_;  // the pieces of one image come in order, also where two threads load it
  std::mutex mutex_;
  HandleSource source_;
  std::map<Handle, Module> modules_;
};

}  // namespace cuplex::client
