// Texture and surface references of this process's modules: what the program says of each, which goes to the
// server whole whenever it changes something that is bound. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "cuda/driver_types.h"
#include "protocol/handle.h"
#include "protocol/texture_request.h"

namespace cuplex::client {

class Session;

struct TextureReference {
  Handle module = 0;
  uint32_t context = 0;
  std::string name;
  TextureRequest request;  // no resource: not bound
  // Of linear memory; cuTexRefSetFormat comes before cuTexRefSetAddress.
  CUarray_format format = CU_AD_FORMAT_UNSIGNED_INT8;
  unsigned channels = 1;

  bool surface() const { return request.surface != 0; }
};

class ReferenceTable {
 public:
  /// The same handle for the same name. CUDA_ERROR_NOT_FOUND.
  CUresult Get(Session& session, Handle module, std::string_view name, bool surface, Handle* out);
  /// f(const TextureReference&)
  template <typename F>
  CUresult Look(Handle h, bool surface, F&& f) {
    std::lock_guard lock(mutex_);
    auto at = references_.find(h);
    if (at == references_.end() || at->second.surface() != surface) return CUDA_ERROR_INVALID_HANDLE;
    return f(std::as_const(at->second));
  }
  /// f(TextureReference&), and what it has become is bound.
  template <typename F>
  CUresult Change(Session& session, Handle h, bool surface, F&& f) {
    std::lock_guard lock(mutex_);
    auto at = references_.find(h);
    if (at == references_.end() || at->second.surface() != surface) return CUDA_ERROR_INVALID_HANDLE;
    TextureReference next = at->second;
    if (CUresult r = f(next)) return r;
    if (next.request.resource != kNoResource)
      if (CUresult r = Bind(session, next)) return r;
    at->second = std::move(next);
    return CUDA_SUCCESS;
  }
  void ForgetModule(Handle module);
  void Forget(uint32_t context);

 private:
  CUresult Bind(Session& session, const TextureReference& reference);
  template <typename F>
  void EraseIf(F&& goes) {
    std::lock_guard lock(mutex_);
    std::erase_if(references_, [&](const auto& entry) {
      if (!goes(entry.second)) return false;
      source_.Return(entry.first);
      return true;
    });
  }

  std::mutex mutex_;  // also held while one is bound, so that the last word is the last bound
  std::map<Handle, TextureReference> references_;
  HandleSource source_;
};

}  // namespace cuplex::client
