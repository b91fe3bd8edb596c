// Texture and surface objects: the runtime's descriptors as the driver's, and back.
#include <cstring>

#include "client/runtime/array.h"
#include "client/runtime/calls.h"
#include "client/runtime/runtime.h"
#include "cuda/array_layout.h"

namespace cuplex::runtime {
namespace {

cudaError_t ToDriver(const cudaResourceDesc* given, CUDA_RESOURCE_DESC* out) {
  if (!given) return cudaErrorInvalidValue;
  *out = {};
  out->resType = static_cast<CUresourcetype>(given->resType);
#if CUPLEX_CUDART_MAJOR >= 13
  out->flags = given->flags;
#endif
  switch (given->resType) {
    case cudaResourceTypeArray:
      out->res.array.hArray = DriverArray(given->res.array.array);
      return cudaSuccess;
    case cudaResourceTypeMipmappedArray:
      out->res.mipmap.hMipmappedArray = DriverArray(given->res.mipmap.mipmap);
      return cudaSuccess;
    case cudaResourceTypeLinear: {
      auto& to = out->res.linear;
      to.devPtr = Device(given->res.linear.devPtr);
      to.sizeInBytes = given->res.linear.sizeInBytes;
      return FormatOf(given->res.linear.desc, &to.format, &to.numChannels);
    }
    case cudaResourceTypePitch2D: {
      auto& to = out->res.pitch2D;
      to.devPtr = Device(given->res.pitch2D.devPtr);
      to.width = given->res.pitch2D.width;
      to.height = given->res.pitch2D.height;
      to.pitchInBytes = given->res.pitch2D.pitchInBytes;
      return FormatOf(given->res.pitch2D.desc, &to.format, &to.numChannels);
    }
  }
  return cudaErrorInvalidValue;
}

cudaError_t FromDriver(const CUDA_RESOURCE_DESC& given, cudaResourceDesc* out) {
  *out = {};
  out->resType = static_cast<cudaResourceType>(given.resType);
  switch (given.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      out->res.array.array = reinterpret_cast<cudaArray_t>(given.res.array.hArray);
      break;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      out->res.mipmap.mipmap = reinterpret_cast<cudaMipmappedArray_t>(given.res.mipmap.hMipmappedArray);
      break;
    case CU_RESOURCE_TYPE_LINEAR:
      out->res.linear.devPtr = Pointer(given.res.linear.devPtr);
      out->res.linear.desc = ChannelsOf(given.res.linear.format, given.res.linear.numChannels);
      out->res.linear.sizeInBytes = given.res.linear.sizeInBytes;
      break;
    case CU_RESOURCE_TYPE_PITCH2D:
      out->res.pitch2D.devPtr = Pointer(given.res.pitch2D.devPtr);
      out->res.pitch2D.desc = ChannelsOf(given.res.pitch2D.format, given.res.pitch2D.numChannels);
      out->res.pitch2D.width = given.res.pitch2D.width;
      out->res.pitch2D.height = given.res.pitch2D.height;
      out->res.pitch2D.pitchInBytes = given.res.pitch2D.pitchInBytes;
      break;
  }
  return cudaSuccess;
}

CUDA_TEXTURE_DESC ToDriver(const cudaTextureDesc& given) {
  CUDA_TEXTURE_DESC out = {};
  for (int i = 0; i < 3; ++i) out.addressMode[i] = static_cast<CUaddress_mode>(given.addressMode[i]);
  out.filterMode = static_cast<CUfilter_mode>(given.filterMode);
  out.flags = (given.readMode == cudaReadModeElementType ? kTextureReadAsInteger : 0) |
              (given.normalizedCoords ? kTextureNormalized : 0) | (given.sRGB ? kTextureSrgb : 0) |
              (given.disableTrilinearOptimization ? kTextureDisableTrilinear : 0) |
              (given.seamlessCubemap ? kTextureSeamlessCube : 0);
  out.maxAnisotropy = given.maxAnisotropy;
  out.mipmapFilterMode = static_cast<CUfilter_mode>(given.mipmapFilterMode);
  out.mipmapLevelBias = given.mipmapLevelBias;
  out.minMipmapLevelClamp = given.minMipmapLevelClamp;
  out.maxMipmapLevelClamp = given.maxMipmapLevelClamp;
  memcpy(out.borderColor, given.borderColor, sizeof(out.borderColor));
  return out;
}

cudaTextureDesc FromDriver(const CUDA_TEXTURE_DESC& given) {
  cudaTextureDesc out = {};
  for (int i = 0; i < 3; ++i) out.addressMode[i] = static_cast<cudaTextureAddressMode>(given.addressMode[i]);
  out.filterMode = static_cast<cudaTextureFilterMode>(given.filterMode);
  out.readMode = given.flags & kTextureReadAsInteger ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
  out.normalizedCoords = (given.flags & kTextureNormalized) != 0;
  out.sRGB = (given.flags & kTextureSrgb) != 0;
  out.disableTrilinearOptimization = (given.flags & kTextureDisableTrilinear) != 0;
  out.seamlessCubemap = (given.flags & kTextureSeamlessCube) != 0;
  out.maxAnisotropy = given.maxAnisotropy;
  out.mipmapFilterMode = static_cast<cudaTextureFilterMode>(given.mipmapFilterMode);
  out.mipmapLevelBias = given.mipmapLevelBias;
  out.minMipmapLevelClamp = given.minMipmapLevelClamp;
  out.maxMipmapLevelClamp = given.maxMipmapLevelClamp;
  memcpy(out.borderColor, given.borderColor, sizeof(out.borderColor));
  return out;
}

/// Whether filtering a texture of such elements makes sense: their sums must be floats.
cudaError_t CheckFilter(const DriverTable& cu, const cudaResourceDesc& resource,
                        const cudaTextureDesc& texture) {
  if (static_cast<CUfilter_mode>(texture.filterMode) != CU_TR_FILTER_MODE_LINEAR) return cudaSuccess;
  cudaChannelFormatDesc desc{};
  switch (resource.resType) {
    case cudaResourceTypeArray: {
      CUDA_ARRAY3D_DESCRIPTOR d{};
      RUNTIME_TRY(AsError(cu.cuArray3DGetDescriptor_v2(&d, DriverArray(resource.res.array.array))));
      desc = ChannelsOf(d.Format, d.NumChannels);
      break;
    }
    case cudaResourceTypePitch2D:
      desc = resource.res.pitch2D.desc;
      break;
    default:
      return cudaSuccess;
  }
  const bool integers = desc.f == cudaChannelFormatKindSigned || desc.f == cudaChannelFormatKindUnsigned;
  return integers && texture.readMode == cudaReadModeElementType ? cudaErrorInvalidFilterSetting
                                                                 : cudaSuccess;
}

}  // namespace

cudaError_t CreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                const cudaTextureDesc* texture, const cudaResourceViewDesc* view) {
  return InContext([&](const DriverTable& cu) -> cudaError_t {
    if (!object || !texture) return cudaErrorInvalidValue;
    CUDA_RESOURCE_DESC from;
    RUNTIME_TRY(ToDriver(resource, &from));
    RUNTIME_TRY(CheckFilter(cu, *resource, *texture));
    const CUDA_TEXTURE_DESC how = ToDriver(*texture);
    CUDA_RESOURCE_VIEW_DESC seen = {};
    if (view) {
      seen.format = static_cast<CUresourceViewFormat>(view->format);
      seen.width = view->width;
      seen.height = view->height;
      seen.depth = view->depth;
      seen.firstMipmapLevel = view->firstMipmapLevel;
      seen.lastMipmapLevel = view->lastMipmapLevel;
      seen.firstLayer = view->firstLayer;
      seen.lastLayer = view->lastLayer;
    }
    return AsError(cu.cuTexObjectCreate(object, &from, &how, view ? &seen : nullptr));
  });
}

cudaError_t DestroyTextureObject(cudaTextureObject_t object) {
  return InContext(
      [&](const DriverTable& cu) { return object ? cu.cuTexObjectDestroy(object) : CUDA_SUCCESS; });
}

cudaError_t GetTextureObjectResourceDesc(cudaResourceDesc* resource, cudaTextureObject_t object) {
  return InContext([&](const DriverTable& cu) -> cudaError_t {
    if (!resource) return cudaErrorInvalidValue;
    CUDA_RESOURCE_DESC from;
    RUNTIME_TRY(AsError(cu.cuTexObjectGetResourceDesc(&from, object)));
    return FromDriver(from, resource);
  });
}

cudaError_t GetTextureObjectTextureDesc(cudaTextureDesc* texture, cudaTextureObject_t object) {
  return InContext([&](const DriverTable& cu) -> cudaError_t {
    if (!texture) return cudaErrorInvalidValue;
    CUDA_TEXTURE_DESC how;
    RUNTIME_TRY(AsError(cu.cuTexObjectGetTextureDesc(&how, object)));
    *texture = FromDriver(how);
    return cudaSuccess;
  });
}

cudaError_t GetTextureObjectResourceViewDesc(cudaResourceViewDesc* view, cudaTextureObject_t object) {
  return InContext([&](const DriverTable& cu) -> cudaError_t {
    if (!view) return cudaErrorInvalidValue;
    CUDA_RESOURCE_VIEW_DESC seen;
    RUNTIME_TRY(AsError(cu.cuTexObjectGetResourceViewDesc(&seen, object)));
    *view = {};
    view->format = static_cast<cudaResourceViewFormat>(seen.format);
    view->width = seen.width;
    view->height = seen.height;
    view->depth = seen.depth;
    view->firstMipmapLevel = seen.firstMipmapLevel;
    view->lastMipmapLevel = seen.lastMipmapLevel;
    view->firstLayer = seen.firstLayer;
    view->lastLayer = seen.lastLayer;
    return cudaSuccess;
  });
}

cudaError_t CreateSurfaceObject(cudaSurfaceObject_t* object, const cudaResourceDesc* resource) {
  return InContext([&](const DriverTable& cu) -> cudaError_t {
    if (!object) return cudaErrorInvalidValue;
    CUDA_RESOURCE_DESC from;
    RUNTIME_TRY(ToDriver(resource, &from));
    return AsError(cu.cuSurfObjectCreate(object, &from));
  });
}

cudaError_t DestroySurfaceObject(cudaSurfaceObject_t object) {
  return InContext(
      [&](const DriverTable& cu) { return object ? cu.cuSurfObjectDestroy(object) : CUDA_SUCCESS; });
}

cudaError_t GetSurfaceObjectResourceDesc(cudaResourceDesc* resource, cudaSurfaceObject_t object) {
  return InContext([&](const DriverTable& cu) -> cudaError_t {
    if (!resource) return cudaErrorInvalidValue;
    CUDA_RESOURCE_DESC from;
    RUNTIME_TRY(AsError(cu.cuSurfObjectGetResourceDesc(&from, object)));
    return FromDriver(from, resource);
  });
}

cudaError_t DeviceGetTexture1DLinearMaxWidth(size_t* texels, const cudaChannelFormatDesc* desc, int device) {
  return InDriver([&](const DriverTable& cu) -> cudaError_t {
    if (!texels || !desc) return cudaErrorInvalidValue;
    CUarray_format format;
    unsigned channels;
    RUNTIME_TRY(FormatOf(*desc, &format, &channels));
    int most = 0;
    RUNTIME_TRY(
        AsError(cu.cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, device)));
    *texels = static_cast<size_t>(most);
    return cudaSuccess;
  });
}

}  // namespace cuplex::runtime
