// TextureReference: a variable of type .texref or .surfref in a module, or one of a program's own, and what
// it is bound to. Any thread.
//
// The variable holds the handle of an entry in its context's texture table. Binding makes a new entry and
// puts its handle there, after the context's work is done, so that kernels submitted before see what was
// bound then.
#pragma once

#include <mutex>

#include "cuda/driver_types.h"
#include "softcuda/handles.h"
#include "softcuda/texture.h"

namespace cuplex::softcuda {

class Context;

class TextureReference {
 public:
  /// `variable`: where the handle lies; 0 for a reference that no kernel names.
  TextureReference(Context& context, uintptr_t variable, bool surface);

  Context& context;  // as long as the handle lives
  const bool surface;

  /// What it says, with the resource: a copy.
  TextureObject object() const;
  /// Changes what it says by f(TextureObject&, channels' format and number for linear memory), and binds it
  /// anew where it has a resource.
  template <typename F>
  CUresult Change(F&& f) {
    std::lock_guard guard(lock_);
    TextureObject next = object_;
    if (CUresult wrong = f(next)) return wrong;
    return Bind(next);
  }
  bool bound() const;
  /// For good: what it was bound to is a texture no more.
  void Unbind();

  // Of linear memory; cuTexRefSetFormat comes before cuTexRefSetAddress. Under Change's lock.
  CUarray_format format = CU_AD_FORMAT_UNSIGNED_INT8;
  unsigned channels = 1;

 private:
  CUresult Bind(const TextureObject& next);

  const uintptr_t variable_;
  mutable std::mutex lock_;
  TextureObject object_;
  uint64_t handle_ = 0;
};

}  // namespace cuplex::softcuda
