#include "softcuda/texture_reference.h"

#include <atomic>

#include "softcuda/context.h"
#include "softcuda/driver.h"

namespace cuplex::softcuda {

TextureReference::TextureReference(Context& context, uintptr_t variable, bool surface)
    : context(context), surface(surface), variable_(variable) {
  object_.surface = surface;
  object_.unbound = true;
  for (auto& mode : object_.texture.addressMode) mode = CU_TR_ADDRESS_MODE_CLAMP;
  object_.texture.flags = kTextureReadAsInteger;
}

TextureObject TextureReference::object() const {
  std::lock_guard guard(lock_);
  return object_;
}

bool TextureReference::bound() const { return !object().unbound; }

void TextureReference::Unbind() {
  std::lock_guard guard(lock_);
  if (handle_) (void)context.textures.Remove(handle_, surface);
  handle_ = 0;
  object_.unbound = true;
}

CUresult TextureReference::Bind(const TextureObject& next) {
  if (next.unbound || !variable_) {
    object_ = next;
    return CUDA_SUCCESS;
  }
  TextureHeader header;
  if (CUresult wrong = MakeHeader(context, next, &header)) return wrong;
  context.Synchronize();
  const uint64_t handle = context.textures.Add(next, header);
  if (!handle) return CUDA_ERROR_OUT_OF_MEMORY;
  std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(variable_)).store(handle);
  if (handle_) (void)context.textures.Remove(handle_, surface);
  handle_ = handle;
  object_ = next;
  return context.fault();
}

}  // namespace cuplex::softcuda
