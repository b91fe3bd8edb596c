#include "softcuda/texture.h"

#include <algorithm>

#include "softcuda/array.h"
#include "softcuda/context.h"
#include "softcuda/driver.h"

namespace cuplex::softcuda {
namespace {

constexpr size_t kAlignment = 512, kPitchAlignment = 32;  // as the device's attributes say
constexpr size_t kMostLinear = size_t{1} << 28, kMostPitchWidth = 131072, kMostPitchHeight = 65000;

/// Linear memory, as one row of texels or as rows of a pitch.
struct Rows {
  CUdeviceptr at;
  CUarray_format format;
  unsigned channels;
  size_t width, height, pitch;
};

CUresult TakeMemory(Context& context, const Rows& rows, TextureHeader* h) {
  auto format = TexelFormatOf(rows.format, rows.channels);
  if (!format) return CUDA_ERROR_INVALID_VALUE;
  h->format = *format;
  h->array_format = rows.format;
  const size_t row = rows.width * format->bytes();
  size_t bytes;
  if (!rows.at || rows.at % kAlignment || !rows.width || !rows.height || rows.pitch < row ||
      __builtin_mul_overflow(rows.pitch, rows.height - 1, &bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  bytes += row;
  const MemoryMap& memory = context.driver.memory;
  const auto side = memory.SideOf(rows.at, bytes, false);
  const bool there =
      side == MemoryMap::Side::kDevice || (side == MemoryMap::Side::kHost && memory.IsPinned(rows.at, bytes));
  if (!there) return CUDA_ERROR_INVALID_VALUE;
  h->level[0].base = rows.at;
  h->level[0].row_pitch = h->level[0].plane_pitch = rows.pitch;
  h->level[0].width = static_cast<uint32_t>(rows.width);
  h->level[0].height = static_cast<uint32_t>(rows.height);
  return CUDA_SUCCESS;
}

void TakeArray(const ArrayLayout& layout, uintptr_t memory, unsigned first, unsigned levels,
               TextureHeader* h) {
  h->format = layout.format;
  h->layers = layout.layers;
  h->levels = levels;
  h->cubemap = layout.cubemap();
  for (unsigned i = 0; i < levels; ++i) {
    const ArrayLevel at = layout.Level(first + i);
    h->level[i] = {memory + at.offset, at.row_pitch, at.plane_pitch, at.width, at.height, at.depth, 0};
  }
}

CUresult TakeView(const CUDA_RESOURCE_VIEW_DESC& view, const ArrayLayout& layout, bool mipmapped,
                  TextureHeader* h) {
  if (view.format != CU_RES_VIEW_FORMAT_NONE) {
    auto format = TexelFormatOf(view.format);
    if (!format)
      return view.format > CU_RES_VIEW_FORMAT_FLOAT_4X32 ? CUDA_ERROR_NOT_SUPPORTED
                                                         : CUDA_ERROR_INVALID_VALUE;
    if (format->bytes() != layout.format.bytes()) return CUDA_ERROR_INVALID_VALUE;
    h->format = *format;
  }
  if ((view.width && view.width != layout.width) || (view.height && view.height != layout.height) ||
      (view.depth && layout.depth && view.depth != layout.depth)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (mipmapped) {
    if (view.firstMipmapLevel > view.lastMipmapLevel || view.lastMipmapLevel >= layout.levels)
      return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i <= view.lastMipmapLevel - view.firstMipmapLevel; ++i)
      h->level[i] = h->level[i + view.firstMipmapLevel];
    h->levels = view.lastMipmapLevel - view.firstMipmapLevel + 1;
  } else if (view.firstMipmapLevel || view.lastMipmapLevel) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (layout.layered()) {
    if (view.firstLayer > view.lastLayer || view.lastLayer >= layout.layers) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < h->levels; ++i) h->level[i].base += view.firstLayer * h->level[i].plane_pitch;
    h->layers = view.lastLayer - view.firstLayer + 1;
  } else if (view.firstLayer || view.lastLayer) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult TakeResource(Context& context, const TextureObject& wanted, TextureHeader* h) {
  const CUDA_RESOURCE_DESC& r = wanted.resource;
  const Driver& driver = context.driver;
  if (r.flags) return CUDA_ERROR_INVALID_VALUE;
  switch (r.resType) {
    case CU_RESOURCE_TYPE_ARRAY: {
      Ref<Array> array = driver.arrays.Find(r.res.array.hArray);
      if (!array) return CUDA_ERROR_INVALID_HANDLE;
      if (&array->context != &context) return CUDA_ERROR_INVALID_CONTEXT;
      if (wanted.surface && !(array->layout.flags & kArraySurface)) return CUDA_ERROR_INVALID_VALUE;
      TakeArray(array->layout, array->memory, array->level, 1, h);
      h->array_format = array->descriptor.Format;
      return wanted.view ? TakeView(*wanted.view, array->layout, false, h) : CUDA_SUCCESS;
    }
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: {
      Ref<MipmappedArray> array = driver.mipmapped_arrays.Find(r.res.mipmap.hMipmappedArray);
      if (!array) return CUDA_ERROR_INVALID_HANDLE;
      if (&array->context != &context) return CUDA_ERROR_INVALID_CONTEXT;
      if (wanted.surface || !(wanted.texture.flags & kTextureNormalized)) return CUDA_ERROR_INVALID_VALUE;
      TakeArray(array->layout, array->memory, 0, array->layout.levels, h);
      h->array_format = array->descriptor.Format;
      return wanted.view ? TakeView(*wanted.view, array->layout, true, h) : CUDA_SUCCESS;
    }
    case CU_RESOURCE_TYPE_LINEAR: {
      const auto& l = r.res.linear;
      auto format = TexelFormatOf(l.format, l.numChannels);
      if (wanted.surface || wanted.view || !format) return CUDA_ERROR_INVALID_VALUE;
      const size_t texels = l.sizeInBytes / format->bytes();
      if (texels > kMostLinear) return CUDA_ERROR_INVALID_VALUE;
      h->buffer = true;
      return TakeMemory(context, {l.devPtr, l.format, l.numChannels, texels, 1, texels * format->bytes()}, h);
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
      const auto& p = r.res.pitch2D;
      if (wanted.surface || wanted.view || p.width > kMostPitchWidth || p.height > kMostPitchHeight ||
          p.pitchInBytes % kPitchAlignment) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      return TakeMemory(context, {p.devPtr, p.format, p.numChannels, p.width, p.height, p.pitchInBytes}, h);
    }
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult TakeSampler(const CUDA_TEXTURE_DESC& t, TextureHeader* h) {
  constexpr unsigned kKnown = kTextureReadAsInteger | kTextureNormalized | kTextureSrgb |
                              kTextureDisableTrilinear | kTextureSeamlessCube;
  if (t.flags & ~kKnown) return CUDA_ERROR_INVALID_VALUE;
  auto filter = [](CUfilter_mode mode) {
    return mode == CU_TR_FILTER_MODE_POINT || mode == CU_TR_FILTER_MODE_LINEAR;
  };
  if (!filter(t.filterMode) || !filter(t.mipmapFilterMode)) return CUDA_ERROR_INVALID_VALUE;
  Sampler& s = h->sampler;
  for (int i = 0; i < 3; ++i) {
    if (t.addressMode[i] < CU_TR_ADDRESS_MODE_WRAP || t.addressMode[i] > CU_TR_ADDRESS_MODE_BORDER)
      return CUDA_ERROR_INVALID_VALUE;
    s.address[i] = static_cast<AddressMode>(t.addressMode[i]);
  }
  const TexelFormat& f = h->format;
  h->as_float = f.kind != TexelFormat::Kind::kFloat && f.channel_bytes < 4 &&
                (f.normalized || !(t.flags & kTextureReadAsInteger));
  const bool floats = f.kind == TexelFormat::Kind::kFloat || h->as_float;
  if (t.filterMode == CU_TR_FILTER_MODE_LINEAR && !floats && !h->buffer) return CUDA_ERROR_INVALID_VALUE;
  h->srgb = t.flags & kTextureSrgb;
  h->seamless = t.flags & kTextureSeamlessCube;
  s.normalized = (t.flags & kTextureNormalized) && !h->buffer;
  s.linear = t.filterMode == CU_TR_FILTER_MODE_LINEAR && !h->buffer;
  s.linear_levels = t.mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
  s.level_bias = t.mipmapLevelBias;
  s.least_level = t.minMipmapLevelClamp;
  s.most_level = t.maxMipmapLevelClamp;
  std::copy_n(t.borderColor, 4, s.border.begin());
  return CUDA_SUCCESS;
}

}  // namespace

uint64_t Textures::Add(const TextureObject& object, const TextureHeader& header) {
  std::lock_guard guard(lock_);
  const uint64_t handle = table_.Add(header);
  if (handle) objects_.emplace(handle, object);
  return handle;
}

bool Textures::Remove(uint64_t handle, bool surface) {
  std::lock_guard guard(lock_);
  auto at = objects_.find(handle);
  if (at == objects_.end() || at->second.surface != surface) return false;
  objects_.erase(at);
  return table_.Remove(handle);
}

std::optional<TextureObject> Textures::Find(uint64_t handle, bool surface) const {
  std::lock_guard guard(lock_);
  auto at = objects_.find(handle);
  if (at == objects_.end() || at->second.surface != surface) return std::nullopt;
  return at->second;
}

CUresult MakeHeader(Context& context, const TextureObject& wanted, TextureHeader* header) {
  *header = {};
  if (CUresult wrong = TakeResource(context, wanted, header)) return wrong;
  header->surface = wanted.surface;
  return wanted.surface ? CUDA_SUCCESS : TakeSampler(wanted.texture, header);
}

}  // namespace cuplex::softcuda
