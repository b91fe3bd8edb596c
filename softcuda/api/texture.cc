// Texture and surface objects.
#include "softcuda/texture.h"

#include "softcuda/exports.h"

using namespace cuplex;
using namespace cuplex::softcuda;

namespace {

CUresult Create(uint64_t* out, const TextureObject& object) {
  return InContext([&](Context& context) -> CUresult {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    TextureHeader header;
    if (CUresult wrong = MakeHeader(context, object, &header)) return wrong;
    const uint64_t handle = context.textures.Add(object, header);
    if (!handle) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = handle;
    return CUDA_SUCCESS;
  });
}

CUresult Destroy(uint64_t handle, bool surface) {
  return InContext([&](Context& context) -> CUresult {
    if (!context.textures.Find(handle, surface)) return CUDA_ERROR_INVALID_VALUE;
    // Kernels that were submitted before may still use it.
    context.Synchronize();
    if (!context.textures.Remove(handle, surface)) return CUDA_ERROR_INVALID_VALUE;
    return context.fault();
  });
}

/// f(TextureObject), where the handle names one.
template <typename F>
CUresult WithObject(uint64_t handle, bool surface, F&& f) {
  return InContext([&](Context& context) -> CUresult {
    auto object = context.textures.Find(handle, surface);
    return object ? f(*object) : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace

CUresult cuTexObjectCreate(CUtexObject* pTexObject, const CUDA_RESOURCE_DESC* pResDesc,
                           const CUDA_TEXTURE_DESC* pTexDesc, const CUDA_RESOURCE_VIEW_DESC* pResViewDesc) {
  if (!pResDesc || !pTexDesc) return CUDA_ERROR_INVALID_VALUE;
  TextureObject object{*pResDesc, *pTexDesc, {}};
  if (pResViewDesc) object.view = *pResViewDesc;
  uint64_t handle;
  if (CUresult failed = Create(pTexObject ? &handle : nullptr, object)) return failed;
  *pTexObject = handle;
  return CUDA_SUCCESS;
}

CUresult cuTexObjectDestroy(CUtexObject texObject) { return Destroy(texObject, false); }

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* pResDesc, CUtexObject texObject) {
  return WithObject(texObject, false, [&](const TextureObject& object) -> CUresult {
    if (!pResDesc) return CUDA_ERROR_INVALID_VALUE;
    *pResDesc = object.resource;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* pTexDesc, CUtexObject texObject) {
  return WithObject(texObject, false, [&](const TextureObject& object) -> CUresult {
    if (!pTexDesc) return CUDA_ERROR_INVALID_VALUE;
    *pTexDesc = object.texture;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* pResViewDesc, CUtexObject texObject) {
  return WithObject(texObject, false, [&](const TextureObject& object) -> CUresult {
    // One without a view has none to give.
    if (!pResViewDesc || !object.view) return CUDA_ERROR_INVALID_VALUE;
    *pResViewDesc = *object.view;
    return CUDA_SUCCESS;
  });
}

CUresult cuSurfObjectCreate(CUsurfObject* pSurfObject, const CUDA_RESOURCE_DESC* pResDesc) {
  if (!pResDesc) return CUDA_ERROR_INVALID_VALUE;
  uint64_t handle;
  if (CUresult failed = Create(pSurfObject ? &handle : nullptr, {*pResDesc, {}, {}, true, false}))
    return failed;
  *pSurfObject = handle;
  return CUDA_SUCCESS;
}

CUresult cuSurfObjectDestroy(CUsurfObject surfObject) { return Destroy(surfObject, true); }

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* pResDesc, CUsurfObject surfObject) {
  return WithObject(surfObject, true, [&](const TextureObject& object) -> CUresult {
    if (!pResDesc) return CUDA_ERROR_INVALID_VALUE;
    *pResDesc = object.resource;
    return CUDA_SUCCESS;
  });
}
