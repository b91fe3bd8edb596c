// Texture and surface objects: what the program's descriptors say goes to the server, and what the server's
// driver answers is the handle that kernels are given.
#include "client/texture.h"
#include "client/array.h"
#include "client/exports.h"
#include "protocol/texture_request.h"

namespace cuplex::client {

void TextureTable::Insert(uint32_t context, bool surface, uint64_t handle, const Texture& texture) {
  std::lock_guard lock(mutex_);
  textures_.insert_or_assign(Key{context, surface, handle}, texture);
}

std::optional<Texture> TextureTable::Find(uint32_t context, bool surface, uint64_t handle) {
  std::lock_guard lock(mutex_);
  auto at = textures_.find({context, surface, handle});
  return at == textures_.end() ? std::nullopt : std::optional<Texture>(at->second);
}

bool TextureTable::Erase(uint32_t context, bool surface, uint64_t handle) {
  std::lock_guard lock(mutex_);
  return textures_.erase({context, surface, handle}) != 0;
}

void TextureTable::Forget(uint32_t context) {
  std::lock_guard lock(mutex_);
  std::erase_if(textures_, [&](const auto& entry) { return entry.first.context == context; });
}

CUresult RequestOf(Session& session, const CUDA_RESOURCE_DESC& resource, TextureRequest* out) {
  if (resource.flags) return CUDA_ERROR_INVALID_VALUE;
  out->resource = resource.resType;
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      out->array = reinterpret_cast<Handle>(resource.res.array.hArray);
      return session.arrays.Find(out->array, false) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      out->array = reinterpret_cast<Handle>(resource.res.mipmap.hMipmappedArray);
      return session.arrays.Find(out->array, true) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    case CU_RESOURCE_TYPE_LINEAR:
      out->address = resource.res.linear.devPtr;
      out->format = resource.res.linear.format;
      out->channels = resource.res.linear.numChannels;
      out->bytes = resource.res.linear.sizeInBytes;
      return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_PITCH2D:
      out->address = resource.res.pitch2D.devPtr;
      out->format = resource.res.pitch2D.format;
      out->channels = resource.res.pitch2D.numChannels;
      out->width = resource.res.pitch2D.width;
      out->height = resource.res.pitch2D.height;
      out->pitch = resource.res.pitch2D.pitchInBytes;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

void AddTexture(const CUDA_TEXTURE_DESC& texture, TextureRequest* out) {
  for (int i = 0; i < 3; ++i) out->address_mode[i] = texture.addressMode[i];
  out->filter = texture.filterMode;
  out->flags = texture.flags;
  out->anisotropy = texture.maxAnisotropy;
  out->level_filter = texture.mipmapFilterMode;
  out->level_bias = texture.mipmapLevelBias;
  out->least_level = texture.minMipmapLevelClamp;
  out->most_level = texture.maxMipmapLevelClamp;
  for (int i = 0; i < 4; ++i) out->border[i] = texture.borderColor[i];
}

namespace {

void AddView(const CUDA_RESOURCE_VIEW_DESC& view, TextureRequest* out) {
  out->has_view = 1;
  out->view_format = view.format;
  out->view_width = view.width;
  out->view_height = view.height;
  out->view_depth = view.depth;
  out->first_level = view.firstMipmapLevel;
  out->last_level = view.lastMipmapLevel;
  out->first_layer = view.firstLayer;
  out->last_layer = view.lastLayer;
}

CUresult Create(uint64_t* out, bool surface, const Texture& texture) {
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  TextureRequest request;
  request.surface = surface;
  if (CUresult r = RequestOf(*caller.session, texture.resource, &request)) return r;
  AddTexture(texture.texture, &request);
  if (texture.view) {
    if (texture.view->format > CU_RES_VIEW_FORMAT_FLOAT_4X32) return CUDA_ERROR_NOT_SUPPORTED;
    AddView(*texture.view, &request);
  }
  wire::wireTextureCreateReply reply;
  const wire::wireTextureCreateArgs args(sizeof(request));
  if (CUresult r = caller.session->submission().Ask(Op::wireTextureCreate, caller.number, args, &reply,
                                                    std::as_bytes(std::span(&request, 1))))
    return r;
  *out = reply.texture();
  caller.session->textures.Insert(caller.number, surface, *out, texture);
  return CUDA_SUCCESS;
}

CUresult Destroy(uint64_t handle, bool surface) {
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  if (!caller.session->textures.Erase(caller.number, surface, handle)) return CUDA_ERROR_INVALID_VALUE;
  return caller.session->submission().Post(Op::wireTextureDestroy, caller.number,
                                           wire::wireTextureDestroyArgs(handle, surface));
}

CUresult Find(uint64_t handle, bool surface, Texture* out) {
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  auto found = caller.session->textures.Find(caller.number, surface, handle);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  *out = *found;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace cuplex::client

using namespace cuplex::client;

extern "C" {

CUresult cuTexObjectCreate(CUtexObject* pTexObject, const CUDA_RESOURCE_DESC* pResDesc,
                           const CUDA_TEXTURE_DESC* pTexDesc, const CUDA_RESOURCE_VIEW_DESC* pResViewDesc) {
  if (!pTexObject || !pResDesc || !pTexDesc) return CUDA_ERROR_INVALID_VALUE;
  Texture texture{*pResDesc, *pTexDesc, {}};
  if (pResViewDesc) texture.view = *pResViewDesc;
  uint64_t handle;
  if (CUresult r = Create(&handle, false, texture)) return r;
  *pTexObject = handle;
  return CUDA_SUCCESS;
}

CUresult cuTexObjectDestroy(CUtexObject texObject) { return Destroy(texObject, false); }

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* pResDesc, CUtexObject texObject) {
  if (!pResDesc) return CUDA_ERROR_INVALID_VALUE;
  Texture texture;
  if (CUresult r = Find(texObject, false, &texture)) return r;
  *pResDesc = texture.resource;
  return CUDA_SUCCESS;
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* pTexDesc, CUtexObject texObject) {
  if (!pTexDesc) return CUDA_ERROR_INVALID_VALUE;
  Texture texture;
  if (CUresult r = Find(texObject, false, &texture)) return r;
  *pTexDesc = texture.texture;
  return CUDA_SUCCESS;
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* pResViewDesc, CUtexObject texObject) {
  if (!pResViewDesc) return CUDA_ERROR_INVALID_VALUE;
  Texture texture;
  if (CUresult r = Find(texObject, false, &texture)) return r;
  if (!texture.view) return CUDA_ERROR_INVALID_VALUE;
  *pResViewDesc = *texture.view;
  return CUDA_SUCCESS;
}

CUresult cuSurfObjectCreate(CUsurfObject* pSurfObject, const CUDA_RESOURCE_DESC* pResDesc) {
  if (!pSurfObject || !pResDesc) return CUDA_ERROR_INVALID_VALUE;
  uint64_t handle;
  if (CUresult r = Create(&handle, true, {*pResDesc, {}, {}})) return r;
  *pSurfObject = handle;
  return CUDA_SUCCESS;
}

CUresult cuSurfObjectDestroy(CUsurfObject surfObject) { return Destroy(surfObject, true); }

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* pResDesc, CUsurfObject surfObject) {
  if (!pResDesc) return CUDA_ERROR_INVALID_VALUE;
  Texture texture;
  if (CUresult r = Find(surfObject, true, &texture)) return r;
  *pResDesc = texture.resource;
  return CUDA_SUCCESS;
}

}  // extern "C"
