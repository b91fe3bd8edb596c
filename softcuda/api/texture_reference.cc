// Texture and surface references: what kernels that were compiled without texture objects name.
#include "softcuda/texture_reference.h"

#include <algorithm>

#include "softcuda/exports.h"

using namespace cuplex;
using namespace cuplex::softcuda;

namespace {

/// f(TextureReference&), where the handle names one of that sort.
template <typename F>
CUresult With(const void* handle, bool surface, F&& f) {
  return InContext([&](Context& context) -> CUresult {
    Ref<TextureReference> reference = context.driver.texture_references.Find(handle);
    if (!reference || reference->surface != surface) return CUDA_ERROR_INVALID_HANDLE;
    return f(*reference);
  });
}

/// f(CUDA_TEXTURE_DESC&) on what a texture reference says.
template <typename F>
CUresult Change(CUtexref handle, F&& f) {
  return With(handle, false, [&](TextureReference& reference) {
    return reference.Change([&](TextureObject& object) -> CUresult { return f(object.texture); });
  });
}

/// f(TextureObject) of a texture reference, copied.
template <typename F>
CUresult Look(CUtexref handle, F&& f) {
  return With(handle, false, [&](TextureReference& reference) -> CUresult { return f(reference.object()); });
}

CUresult Find(CUmodule module, const char* name, VariableInfo::Reference sort, Ref<TextureReference>* found) {
  return InContext([&](Context& context) -> CUresult {
    Ref<LoadedModule> loaded = context.driver.modules.Find(module);
    if (!loaded) return CUDA_ERROR_INVALID_HANDLE;
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    const auto& infos = loaded->program->variables();
    const bool there = std::ranges::any_of(
        infos, [&](const VariableInfo& info) { return info.name == name && info.reference == sort; });
    if (!there) return CUDA_ERROR_NOT_FOUND;
    return loaded->ReferenceTo(name, sort == VariableInfo::Reference::kSurface, found);
  });
}

}  // namespace

CUresult cuModuleGetTexRef(CUtexref* pTexRef, CUmodule hmod, const char* name) {
  if (!pTexRef) return CUDA_ERROR_INVALID_VALUE;
  Ref<TextureReference> found;
  if (CUresult wrong = Find(hmod, name, VariableInfo::Reference::kTexture, &found)) return wrong;
  *pTexRef = reinterpret_cast<CUtexref>(found.get());
  return CUDA_SUCCESS;
}

CUresult cuModuleGetSurfRef(CUsurfref* pSurfRef, CUmodule hmod, const char* name) {
  if (!pSurfRef) return CUDA_ERROR_INVALID_VALUE;
  Ref<TextureReference> found;
  if (CUresult wrong = Find(hmod, name, VariableInfo::Reference::kSurface, &found)) return wrong;
  *pSurfRef = reinterpret_cast<CUsurfref>(found.get());
  return CUDA_SUCCESS;
}

// --------------------------------------------------------------------------------------------- what it reads

CUresult cuTexRefSetArray(CUtexref hTexRef, CUarray hArray, unsigned int Flags) {
  constexpr unsigned kOverrideFormat = 1;
  if (Flags != kOverrideFormat) return CUDA_ERROR_INVALID_VALUE;
  return With(hTexRef, false, [&](TextureReference& reference) {
    return reference.Change([&](TextureObject& object) -> CUresult {
      object.resource = {};
      object.unbound = false;
      object.resource.resType = CU_RESOURCE_TYPE_ARRAY;
      object.resource.res.array.hArray = hArray;
      return CUDA_SUCCESS;
    });
  });
}

CUresult cuTexRefSetMipmappedArray(CUtexref hTexRef, CUmipmappedArray hMipmappedArray, unsigned int Flags) {
  constexpr unsigned kOverrideFormat = 1;
  if (Flags != kOverrideFormat) return CUDA_ERROR_INVALID_VALUE;
  return With(hTexRef, false, [&](TextureReference& reference) {
    return reference.Change([&](TextureObject& object) -> CUresult {
      object.resource = {};
      object.unbound = false;
      object.resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
      object.resource.res.mipmap.hMipmappedArray = hMipmappedArray;
      return CUDA_SUCCESS;
    });
  });
}

CUresult cuTexRefSetFormat(CUtexref hTexRef, CUarray_format fmt, int NumPackedComponents) {
  return With(hTexRef, false, [&](TextureReference& reference) {
    return reference.Change([&](TextureObject&) -> CUresult {
      if (NumPackedComponents < 1 || !TexelFormatOf(fmt, static_cast<unsigned>(NumPackedComponents)))
        return CUDA_ERROR_INVALID_VALUE;
      reference.format = fmt;
      reference.channels = static_cast<unsigned>(NumPackedComponents);
      return CUDA_SUCCESS;
    });
  });
}

CUresult cuTexRefSetAddress_v2(size_t* ByteOffset, CUtexref hTexRef, CUdeviceptr dptr, size_t bytes) {
  return With(hTexRef, false, [&](TextureReference& reference) {
    return reference.Change([&](TextureObject& object) -> CUresult {
      // Memory must begin where textures can; nothing is left over to tell the kernel about.
      if (ByteOffset) *ByteOffset = 0;
      object.resource = {};
      object.unbound = false;
      object.resource.resType = CU_RESOURCE_TYPE_LINEAR;
      object.resource.res.linear = {dptr, reference.format, reference.channels, bytes};
      return CUDA_SUCCESS;
    });
  });
}

CUresult cuTexRefSetAddress2D_v3(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR* desc, CUdeviceptr dptr,
                                 size_t Pitch) {
  if (!desc) return CUDA_ERROR_INVALID_VALUE;
  return With(hTexRef, false, [&](TextureReference& reference) {
    return reference.Change([&](TextureObject& object) -> CUresult {
      object.resource = {};
      object.unbound = false;
      object.resource.resType = CU_RESOURCE_TYPE_PITCH2D;
      object.resource.res.pitch2D = {dptr, desc->Format, desc->NumChannels, desc->Width, desc->Height, Pitch};
      return CUDA_SUCCESS;
    });
  });
}

CUresult cuSurfRefSetArray(CUsurfref hSurfRef, CUarray hArray, unsigned int Flags) {
  if (Flags) return CUDA_ERROR_INVALID_VALUE;
  return With(hSurfRef, true, [&](TextureReference& reference) {
    return reference.Change([&](TextureObject& object) -> CUresult {
      object.resource = {};
      object.unbound = false;
      object.resource.resType = CU_RESOURCE_TYPE_ARRAY;
      object.resource.res.array.hArray = hArray;
      return CUDA_SUCCESS;
    });
  });
}

CUresult cuSurfRefGetArray(CUarray* phArray, CUsurfref hSurfRef) {
  return With(hSurfRef, true, [&](TextureReference& reference) -> CUresult {
    if (!phArray || !reference.bound()) return CUDA_ERROR_INVALID_VALUE;
    *phArray = reference.object().resource.res.array.hArray;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetArray(CUarray* phArray, CUtexref hTexRef) {
  return Look(hTexRef, [&](const TextureObject& object) -> CUresult {
    if (!phArray || object.unbound || object.resource.resType != CU_RESOURCE_TYPE_ARRAY)
      return CUDA_ERROR_INVALID_VALUE;
    *phArray = object.resource.res.array.hArray;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetMipmappedArray(CUmipmappedArray* phMipmappedArray, CUtexref hTexRef) {
  return Look(hTexRef, [&](const TextureObject& object) -> CUresult {
    if (!phMipmappedArray || object.resource.resType != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
      return CUDA_ERROR_INVALID_VALUE;
    *phMipmappedArray = object.resource.res.mipmap.hMipmappedArray;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetAddress_v2(CUdeviceptr* pdptr, CUtexref hTexRef) {
  return Look(hTexRef, [&](const TextureObject& object) -> CUresult {
    if (!pdptr || object.unbound) return CUDA_ERROR_INVALID_VALUE;
    if (object.resource.resType == CU_RESOURCE_TYPE_LINEAR) {
      *pdptr = object.resource.res.linear.devPtr;
    } else if (object.resource.resType == CU_RESOURCE_TYPE_PITCH2D) {
      *pdptr = object.resource.res.pitch2D.devPtr;
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetFormat(CUarray_format* pFormat, int* pNumChannels, CUtexref hTexRef) {
  return With(hTexRef, false, [&](TextureReference& reference) -> CUresult {
    if (pFormat) *pFormat = reference.format;
    if (pNumChannels) *pNumChannels = static_cast<int>(reference.channels);
    return CUDA_SUCCESS;
  });
}

// ------------------------------------------------------------------------------------------------ how it
// reads

CUresult cuTexRefSetAddressMode(CUtexref hTexRef, int dim, CUaddress_mode am) {
  return Change(hTexRef, [&](CUDA_TEXTURE_DESC& texture) -> CUresult {
    if (dim < 0 || dim > 2 || am < CU_TR_ADDRESS_MODE_WRAP || am > CU_TR_ADDRESS_MODE_BORDER)
      return CUDA_ERROR_INVALID_VALUE;
    texture.addressMode[dim] = am;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetFilterMode(CUtexref hTexRef, CUfilter_mode fm) {
  return Change(hTexRef, [&](CUDA_TEXTURE_DESC& texture) -> CUresult {
    if (fm != CU_TR_FILTER_MODE_POINT && fm != CU_TR_FILTER_MODE_LINEAR) return CUDA_ERROR_INVALID_VALUE;
    texture.filterMode = fm;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetFlags(CUtexref hTexRef, unsigned int Flags) {
  return Change(hTexRef, [&](CUDA_TEXTURE_DESC& texture) -> CUresult {
    texture.flags = Flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetMaxAnisotropy(CUtexref hTexRef, unsigned int maxAniso) {
  return Change(hTexRef, [&](CUDA_TEXTURE_DESC& texture) -> CUresult {
    texture.maxAnisotropy = maxAniso;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetMipmapFilterMode(CUtexref hTexRef, CUfilter_mode fm) {
  return Change(hTexRef, [&](CUDA_TEXTURE_DESC& texture) -> CUresult {
    if (fm != CU_TR_FILTER_MODE_POINT && fm != CU_TR_FILTER_MODE_LINEAR) return CUDA_ERROR_INVALID_VALUE;
    texture.mipmapFilterMode = fm;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetMipmapLevelBias(CUtexref hTexRef, float bias) {
  return Change(hTexRef, [&](CUDA_TEXTURE_DESC& texture) -> CUresult {
    texture.mipmapLevelBias = bias;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetMipmapLevelClamp(CUtexref hTexRef, float minMipmapLevelClamp, float maxMipmapLevelClamp) {
  return Change(hTexRef, [&](CUDA_TEXTURE_DESC& texture) -> CUresult {
    texture.minMipmapLevelClamp = minMipmapLevelClamp;
    texture.maxMipmapLevelClamp = maxMipmapLevelClamp;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetBorderColor(CUtexref hTexRef, float* pBorderColor) {
  return Change(hTexRef, [&](CUDA_TEXTURE_DESC& texture) -> CUresult {
    if (!pBorderColor) return CUDA_ERROR_INVALID_VALUE;
    std::copy_n(pBorderColor, 4, texture.borderColor);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetAddressMode(CUaddress_mode* pam, CUtexref hTexRef, int dim) {
  return Look(hTexRef, [&](const TextureObject& object) -> CUresult {
    if (!pam || dim < 0 || dim > 2) return CUDA_ERROR_INVALID_VALUE;
    *pam = object.texture.addressMode[dim];
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetFilterMode(CUfilter_mode* pfm, CUtexref hTexRef) {
  return Look(hTexRef, [&](const TextureObject& object) -> CUresult {
    if (!pfm) return CUDA_ERROR_INVALID_VALUE;
    *pfm = object.texture.filterMode;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetFlags(unsigned int* pFlags, CUtexref hTexRef) {
  return Look(hTexRef, [&](const TextureObject& object) -> CUresult {
    if (!pFlags) return CUDA_ERROR_INVALID_VALUE;
    *pFlags = object.texture.flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetMaxAnisotropy(int* pmaxAniso, CUtexref hTexRef) {
  return Look(hTexRef, [&](const TextureObject& object) -> CUresult {
    if (!pmaxAniso) return CUDA_ERROR_INVALID_VALUE;
    *pmaxAniso = static_cast<int>(object.texture.maxAnisotropy);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetMipmapFilterMode(CUfilter_mode* pfm, CUtexref hTexRef) {
  return Look(hTexRef, [&](const TextureObject& object) -> CUresult {
    if (!pfm) return CUDA_ERROR_INVALID_VALUE;
    *pfm = object.texture.mipmapFilterMode;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetMipmapLevelBias(float* pbias, CUtexref hTexRef) {
  return Look(hTexRef, [&](const TextureObject& object) -> CUresult {
    if (!pbias) return CUDA_ERROR_INVALID_VALUE;
    *pbias = object.texture.mipmapLevelBias;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetMipmapLevelClamp(float* pminMipmapLevelClamp, float* pmaxMipmapLevelClamp,
                                     CUtexref hTexRef) {
  return Look(hTexRef, [&](const TextureObject& object) -> CUresult {
    if (!pminMipmapLevelClamp || !pmaxMipmapLevelClamp) return CUDA_ERROR_INVALID_VALUE;
    *pminMipmapLevelClamp = object.texture.minMipmapLevelClamp;
    *pmaxMipmapLevelClamp = object.texture.maxMipmapLevelClamp;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetBorderColor(float* pBorderColor, CUtexref hTexRef) {
  return Look(hTexRef, [&](const TextureObject& object) -> CUresult {
    if (!pBorderColor) return CUDA_ERROR_INVALID_VALUE;
    std::copy_n(object.texture.borderColor, 4, pBorderColor);
    return CUDA_SUCCESS;
  });
}
