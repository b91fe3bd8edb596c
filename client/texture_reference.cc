#include "client/texture_reference.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "client/exports.h"
#include "client/texture.h"
#include "cuda/array_layout.h"

namespace cuplex::client {

CUresult ReferenceTable::Get(Session& session, Handle module, std::string_view name, bool surface,
                             Handle* out) {
  TextureReference reference;
  reference.module = module;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  reference.context = caller.number;
  reference.name = name;
  reference.request.surface = surface;
  for (uint32_t& mode : reference.request.address_mode) mode = CU_TR_ADDRESS_MODE_CLAMP;
  reference.request.flags = kTextureReadAsInteger;
  std::lock_guard lock(mutex_);
  for (const auto& [h, known] : references_) {
    if (known.module != module || known.name != name || known.surface() != surface) continue;
    *out = h;
    return CUDA_SUCCESS;
  }
  if (CUresult r = Bind(session, reference)) return r;  // of no resource: asks whether it is there
  const Handle h = source_.Take();
  if (!h) return CUDA_ERROR_OUT_OF_MEMORY;
  references_.emplace(h, std::move(reference));
  *out = h;
  return CUDA_SUCCESS;
}

CUresult ReferenceTable::Bind(Session& session, const TextureReference& reference) {
  constexpr size_t kLongestName = 32 * 1024;  // that fits a frame
  if (reference.name.size() > kLongestName) return CUDA_ERROR_NOT_FOUND;
  std::vector<std::byte> bytes(sizeof(TextureRequest) + reference.name.size());
  std::memcpy(bytes.data(), &reference.request, sizeof(TextureRequest));
  std::memcpy(bytes.data() + sizeof(TextureRequest), reference.name.data(), reference.name.size());
  wire::wireReferenceBindReply reply;
  const wire::wireReferenceBindArgs args(reference.module, static_cast<uint32_t>(bytes.size()));
  return session.submission().Ask(Op::wireReferenceBind, reference.context, args, &reply, bytes);
}

void ReferenceTable::ForgetModule(Handle module) {
  EraseIf([&](const TextureReference& reference) { return reference.module == module; });
}

void ReferenceTable::Forget(uint32_t context) {
  EraseIf([&](const TextureReference& reference) { return reference.context == context; });
}

namespace {

constexpr unsigned kOverrideFormat = 1;

Handle HandleOf(const void* reference) { return reinterpret_cast<Handle>(reference); }

CUresult Get(void** out, CUmodule module, const char* name, bool surface) {
  if (!out || !name) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  Handle h;
  if (CUresult r = session->references.Get(*session, reinterpret_cast<Handle>(module), name, surface, &h))
    return r;
  *out = reinterpret_cast<void*>(h);
  return CUDA_SUCCESS;
}

template <typename F>
CUresult Change(const void* reference, bool surface, F&& f) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  return session->references.Change(*session, HandleOf(reference), surface, f);
}
/// f(TextureRequest&) on a texture reference.
template <typename F>
CUresult Say(CUtexref reference, F&& f) {
  return Change(reference, false, [&](TextureReference& r) -> CUresult { return f(r.request); });
}
template <typename F>
CUresult Look(const void* reference, bool surface, F&& f) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  return session->references.Look(HandleOf(reference), surface, f);
}
template <typename F>
CUresult Hear(CUtexref reference, F&& f) {
  return Look(reference, false, [&](const TextureReference& r) -> CUresult { return f(r.request); });
}

/// Makes an array what the reference reads.
CUresult SetArray(TextureReference& reference, Handle array, bool mipmapped) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  if (!session->arrays.Find(array, mipmapped)) return CUDA_ERROR_INVALID_HANDLE;
  reference.request.resource = mipmapped ? CU_RESOURCE_TYPE_MIPMAPPED_ARRAY : CU_RESOURCE_TYPE_ARRAY;
  reference.request.array = array;
  return CUDA_SUCCESS;
}

bool IsFilter(CUfilter_mode mode) {
  return mode == CU_TR_FILTER_MODE_POINT || mode == CU_TR_FILTER_MODE_LINEAR;
}

}  // namespace
}  // namespace cuplex::client

using namespace cuplex;
using namespace cuplex::client;

extern "C" {

CUresult cuModuleGetTexRef(CUtexref* pTexRef, CUmodule hmod, const char* name) {
  return Get(reinterpret_cast<void**>(pTexRef), hmod, name, false);
}

CUresult cuModuleGetSurfRef(CUsurfref* pSurfRef, CUmodule hmod, const char* name) {
  return Get(reinterpret_cast<void**>(pSurfRef), hmod, name, true);
}

CUresult cuTexRefSetArray(CUtexref hTexRef, CUarray hArray, unsigned int Flags) {
  if (Flags != kOverrideFormat) return CUDA_ERROR_INVALID_VALUE;
  return Change(hTexRef, false,
                [&](client::TextureReference& r) { return SetArray(r, HandleOf(hArray), false); });
}

CUresult cuTexRefSetMipmappedArray(CUtexref hTexRef, CUmipmappedArray hMipmappedArray, unsigned int Flags) {
  if (Flags != kOverrideFormat) return CUDA_ERROR_INVALID_VALUE;
  return Change(hTexRef, false,
                [&](client::TextureReference& r) { return SetArray(r, HandleOf(hMipmappedArray), true); });
}

CUresult cuSurfRefSetArray(CUsurfref hSurfRef, CUarray hArray, unsigned int Flags) {
  if (Flags) return CUDA_ERROR_INVALID_VALUE;
  return Change(hSurfRef, true,
                [&](client::TextureReference& r) { return SetArray(r, HandleOf(hArray), false); });
}

CUresult cuTexRefSetFormat(CUtexref hTexRef, CUarray_format fmt, int NumPackedComponents) {
  return Change(hTexRef, false, [&](client::TextureReference& r) -> CUresult {
    if (NumPackedComponents < 1 || !TexelFormatOf(fmt, static_cast<unsigned>(NumPackedComponents)))
      return CUDA_ERROR_INVALID_VALUE;
    r.format = fmt;
    r.channels = static_cast<unsigned>(NumPackedComponents);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetAddress_v2(size_t* ByteOffset, CUtexref hTexRef, CUdeviceptr dptr, size_t bytes) {
  return Change(hTexRef, false, [&](client::TextureReference& r) -> CUresult {
    if (ByteOffset) *ByteOffset = 0;
    r.request.resource = CU_RESOURCE_TYPE_LINEAR;
    r.request.address = dptr;
    r.request.bytes = bytes;
    r.request.format = r.format;
    r.request.channels = r.channels;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetAddress2D_v3(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR* desc, CUdeviceptr dptr,
                                 size_t Pitch) {
  if (!desc) return CUDA_ERROR_INVALID_VALUE;
  return Say(hTexRef, [&](TextureRequest& request) -> CUresult {
    request.resource = CU_RESOURCE_TYPE_PITCH2D;
    request.address = dptr;
    request.format = desc->Format;
    request.channels = desc->NumChannels;
    request.width = desc->Width;
    request.height = desc->Height;
    request.pitch = Pitch;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetAddressMode(CUtexref hTexRef, int dim, CUaddress_mode am) {
  return Say(hTexRef, [&](TextureRequest& request) -> CUresult {
    if (dim < 0 || dim > 2 || am < CU_TR_ADDRESS_MODE_WRAP || am > CU_TR_ADDRESS_MODE_BORDER)
      return CUDA_ERROR_INVALID_VALUE;
    request.address_mode[dim] = am;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetFilterMode(CUtexref hTexRef, CUfilter_mode fm) {
  return Say(hTexRef, [&](TextureRequest& request) -> CUresult {
    if (!IsFilter(fm)) return CUDA_ERROR_INVALID_VALUE;
    request.filter = fm;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetFlags(CUtexref hTexRef, unsigned int Flags) {
  return Say(hTexRef, [&](TextureRequest& request) -> CUresult {
    request.flags = Flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetMaxAnisotropy(CUtexref hTexRef, unsigned int maxAniso) {
  return Say(hTexRef, [&](TextureRequest& request) -> CUresult {
    request.anisotropy = maxAniso;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetMipmapFilterMode(CUtexref hTexRef, CUfilter_mode fm) {
  return Say(hTexRef, [&](TextureRequest& request) -> CUresult {
    if (!IsFilter(fm)) return CUDA_ERROR_INVALID_VALUE;
    request.level_filter = fm;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetMipmapLevelBias(CUtexref hTexRef, float bias) {
  return Say(hTexRef, [&](TextureRequest& request) -> CUresult {
    request.level_bias = bias;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetMipmapLevelClamp(CUtexref hTexRef, float minMipmapLevelClamp, float maxMipmapLevelClamp) {
  return Say(hTexRef, [&](TextureRequest& request) -> CUresult {
    request.least_level = minMipmapLevelClamp;
    request.most_level = maxMipmapLevelClamp;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetBorderColor(CUtexref hTexRef, float* pBorderColor) {
  return Say(hTexRef, [&](TextureRequest& request) -> CUresult {
    if (!pBorderColor) return CUDA_ERROR_INVALID_VALUE;
    std::copy_n(pBorderColor, 4, request.border);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetArray(CUarray* phArray, CUtexref hTexRef) {
  return Hear(hTexRef, [&](const TextureRequest& request) -> CUresult {
    if (!phArray || request.resource != CU_RESOURCE_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
    *phArray = reinterpret_cast<CUarray>(request.array);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetMipmappedArray(CUmipmappedArray* phMipmappedArray, CUtexref hTexRef) {
  return Hear(hTexRef, [&](const TextureRequest& request) -> CUresult {
    if (!phMipmappedArray || request.resource != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
      return CUDA_ERROR_INVALID_VALUE;
    *phMipmappedArray = reinterpret_cast<CUmipmappedArray>(request.array);
    return CUDA_SUCCESS;
  });
}

CUresult cuSurfRefGetArray(CUarray* phArray, CUsurfref hSurfRef) {
  return Look(hSurfRef, true, [&](const client::TextureReference& r) -> CUresult {
    if (!phArray || r.request.resource != CU_RESOURCE_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
    *phArray = reinterpret_cast<CUarray>(r.request.array);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetAddress_v2(CUdeviceptr* pdptr, CUtexref hTexRef) {
  return Hear(hTexRef, [&](const TextureRequest& request) -> CUresult {
    if (!pdptr ||
        (request.resource != CU_RESOURCE_TYPE_LINEAR && request.resource != CU_RESOURCE_TYPE_PITCH2D))
      return CUDA_ERROR_INVALID_VALUE;
    *pdptr = request.address;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetFormat(CUarray_format* pFormat, int* pNumChannels, CUtexref hTexRef) {
  return Look(hTexRef, false, [&](const client::TextureReference& r) -> CUresult {
    if (pFormat) *pFormat = r.format;
    if (pNumChannels) *pNumChannels = static_cast<int>(r.channels);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetAddressMode(CUaddress_mode* pam, CUtexref hTexRef, int dim) {
  return Hear(hTexRef, [&](const TextureRequest& request) -> CUresult {
    if (!pam || dim < 0 || dim > 2) return CUDA_ERROR_INVALID_VALUE;
    *pam = static_cast<CUaddress_mode>(request.address_mode[dim]);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetFilterMode(CUfilter_mode* pfm, CUtexref hTexRef) {
  return Hear(hTexRef, [&](const TextureRequest& request) -> CUresult {
    if (!pfm) return CUDA_ERROR_INVALID_VALUE;
    *pfm = static_cast<CUfilter_mode>(request.filter);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetFlags(unsigned int* pFlags, CUtexref hTexRef) {
  return Hear(hTexRef, [&](const TextureRequest& request) -> CUresult {
    if (!pFlags) return CUDA_ERROR_INVALID_VALUE;
    *pFlags = request.flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetMaxAnisotropy(int* pmaxAniso, CUtexref hTexRef) {
  return Hear(hTexRef, [&](const TextureRequest& request) -> CUresult {
    if (!pmaxAniso) return CUDA_ERROR_INVALID_VALUE;
    *pmaxAniso = static_cast<int>(request.anisotropy);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetMipmapFilterMode(CUfilter_mode* pfm, CUtexref hTexRef) {
  return Hear(hTexRef, [&](const TextureRequest& request) -> CUresult {
    if (!pfm) return CUDA_ERROR_INVALID_VALUE;
    *pfm = static_cast<CUfilter_mode>(request.level_filter);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetMipmapLevelBias(float* pbias, CUtexref hTexRef) {
  return Hear(hTexRef, [&](const TextureRequest& request) -> CUresult {
    if (!pbias) return CUDA_ERROR_INVALID_VALUE;
    *pbias = request.level_bias;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetMipmapLevelClamp(float* pminMipmapLevelClamp, float* pmaxMipmapLevelClamp,
                                     CUtexref hTexRef) {
  return Hear(hTexRef, [&](const TextureRequest& request) -> CUresult {
    if (!pminMipmapLevelClamp || !pmaxMipmapLevelClamp) return CUDA_ERROR_INVALID_VALUE;
    *pminMipmapLevelClamp = request.least_level;
    *pmaxMipmapLevelClamp = request.most_level;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetBorderColor(float* pBorderColor, CUtexref hTexRef) {
  return Hear(hTexRef, [&](const TextureRequest& request) -> CUresult {
    if (!pBorderColor) return CUDA_ERROR_INVALID_VALUE;
    std::copy_n(request.border, 4, pBorderColor);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
