#include "cuda/array_layout.h"

#include <algorithm>
#include <bit>

namespace cuplex {
namespace {

using Kind = TexelFormat::Kind;

constexpr uint64_t RoundUp(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

/// The largest extents of CUDA's arrays, compute capability 9.0 and above.
struct Limits {
  size_t width, height, depth, layers;
};
Limits LimitsOf(const CUDA_ARRAY3D_DESCRIPTOR& a, unsigned levels) {
  const bool layered = a.Flags & kArrayLayered, cube = a.Flags & kArrayCubemap;
  if (cube) return {32768, 32768, 0, layered ? size_t{2046} : 6};
  if (layered) return {32768, 32768, 0, 2048};
  if (a.Depth) return {16384, 16384, 16384, 1};
  if (!a.Height) return {levels > 1 || a.Flags & kArraySurface ? size_t{32768} : 131072, 0, 0, 1};
  if (levels > 1 || a.Flags & kArrayGather) return {32768, 32768, 0, 1};
  return {131072, 65536, 0, 1};
}

}  // namespace

std::optional<TexelFormat> TexelFormatOf(CUarray_format format, unsigned channels) {
  if (channels != 1 && channels != 2 && channels != 4) return std::nullopt;
  auto plain = [&](Kind kind, uint8_t bytes) {
    return TexelFormat{kind, bytes, static_cast<uint8_t>(channels), false};
  };
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
      return plain(Kind::kUnsigned, 1);
    case CU_AD_FORMAT_UNSIGNED_INT16:
      return plain(Kind::kUnsigned, 2);
    case CU_AD_FORMAT_UNSIGNED_INT32:
      return plain(Kind::kUnsigned, 4);
    case CU_AD_FORMAT_SIGNED_INT8:
      return plain(Kind::kSigned, 1);
    case CU_AD_FORMAT_SIGNED_INT16:
      return plain(Kind::kSigned, 2);
    case CU_AD_FORMAT_SIGNED_INT32:
      return plain(Kind::kSigned, 4);
    case CU_AD_FORMAT_HALF:
      return plain(Kind::kFloat, 2);
    case CU_AD_FORMAT_FLOAT:
      return plain(Kind::kFloat, 4);
    default:
      break;
  }
  // Four runs of three, for 1, 2 and 4 channels.
  const int at = format - CU_AD_FORMAT_UNORM_INT8X1;
  if (at < 0 || format > CU_AD_FORMAT_SNORM_INT16X4 || channels != 1u << at % 3) return std::nullopt;
  return TexelFormat{at < 6 ? Kind::kUnsigned : Kind::kSigned, static_cast<uint8_t>(at / 3 % 2 ? 2 : 1),
                     static_cast<uint8_t>(channels), true};
}

std::optional<TexelFormat> TexelFormatOf(CUresourceViewFormat format) {
  constexpr struct {
    Kind kind;
    uint8_t bytes;
  } kRuns[] = {{Kind::kUnsigned, 1}, {Kind::kSigned, 1}, {Kind::kUnsigned, 2}, {Kind::kSigned, 2},
               {Kind::kUnsigned, 4}, {Kind::kSigned, 4}, {Kind::kFloat, 2},    {Kind::kFloat, 4}};
  const int at = format - CU_RES_VIEW_FORMAT_UINT_1X8;
  if (at < 0 || format > CU_RES_VIEW_FORMAT_FLOAT_4X32) return std::nullopt;
  return TexelFormat{kRuns[at / 3].kind, kRuns[at / 3].bytes, static_cast<uint8_t>(1u << at % 3), false};
}

ArrayLevel ArrayLayout::Level(unsigned level) const {
  ArrayLevel out;
  for (unsigned i = 0;; ++i) {
    out.width = std::max(width >> i, 1u);
    out.height = std::max(height >> i, 1u);
    out.depth = std::max(depth >> i, 1u);
    out.row_pitch = RoundUp(uint64_t{out.width} * format.bytes(), kArrayPitch);
    out.plane_pitch = out.row_pitch * (out.height > 1 ? RoundUp(out.height, kArrayRows) : 1);
    if (i == level) return out;
    out.offset += RoundUp(out.plane_pitch * out.depth * layers, kArrayAlignment);
  }
}

uint64_t ArrayLayout::Bytes() const {
  const ArrayLevel last = Level(levels - 1);
  return last.offset + RoundUp(last.plane_pitch * last.depth * layers, kArrayAlignment);
}

CUresult LayOutArray(const CUDA_ARRAY3D_DESCRIPTOR& a, unsigned levels, ArrayLayout* layout) {
  constexpr unsigned kKnown = kArrayLayered | kArraySurface | kArrayCubemap | kArrayGather | kArrayDepth |
                              kArrayColorAttachment | kArraySparse | kArrayDeferred;
  if (a.Flags & ~kKnown) return CUDA_ERROR_INVALID_VALUE;
  if (a.Flags & (kArrayDepth | kArraySparse | kArrayDeferred)) return CUDA_ERROR_NOT_SUPPORTED;
  auto format = TexelFormatOf(a.Format, a.NumChannels);
  if (!format) {
    const bool plain = a.Format <= CU_AD_FORMAT_FLOAT ||
                       (a.Format >= CU_AD_FORMAT_UNORM_INT8X1 && a.Format <= CU_AD_FORMAT_SNORM_INT16X4);
    return plain ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
  }
  const bool layered = a.Flags & kArrayLayered, cube = a.Flags & kArrayCubemap;
  const Limits most = LimitsOf(a, levels);
  if (!a.Width || a.Width > most.width || a.Height > most.height) return CUDA_ERROR_INVALID_VALUE;
  if (cube) {
    if (a.Width != a.Height || a.Depth % 6 || !a.Depth || a.Depth > most.layers)
      return CUDA_ERROR_INVALID_VALUE;
  } else if (layered) {
    if (!a.Depth || a.Depth > most.layers) return CUDA_ERROR_INVALID_VALUE;
  } else if (a.Depth > most.depth || (a.Depth && !a.Height)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (a.Flags & kArrayGather && (cube || layered || a.Depth || !a.Height)) return CUDA_ERROR_INVALID_VALUE;
  ArrayLayout out;
  out.format = *format;
  out.width = static_cast<uint32_t>(a.Width);
  out.height = static_cast<uint32_t>(a.Height);
  if (cube || layered) {
    out.layers = static_cast<uint32_t>(a.Depth);
  } else {
    out.depth = static_cast<uint32_t>(a.Depth);
  }
  out.flags = a.Flags;
  const uint32_t longest = std::max({out.width, out.height, out.depth});
  if (!levels) return CUDA_ERROR_INVALID_VALUE;
  out.levels = std::min<unsigned>(levels, static_cast<unsigned>(std::bit_width(longest)));
  *layout = out;
  return CUDA_SUCCESS;
}

CUresult CheckArrayBox(const ArrayLayout& layout, unsigned level, uint64_t x, uint64_t y, uint64_t z,
                       uint64_t width, uint64_t height, uint64_t depth) {
  const ArrayLevel at = layout.Level(level);
  const uint64_t texel = layout.format.bytes(), row = at.width * texel;
  const uint64_t planes = layout.depth ? at.depth : layout.layers;
  const bool inside = x <= row && width <= row - x && y <= at.height && height <= at.height - y &&
                      z <= planes && depth <= planes - z;
  return inside && x % texel == 0 && width % texel == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUDA_ARRAY3D_DESCRIPTOR InThreeDimensions(const CUDA_ARRAY_DESCRIPTOR& descriptor) {
  CUDA_ARRAY3D_DESCRIPTOR out = {};
  out.Width = descriptor.Width;
  out.Height = descriptor.Height;
  out.Format = descriptor.Format;
  out.NumChannels = descriptor.NumChannels;
  return out;
}

CUDA_ARRAY3D_DESCRIPTOR AtLevel(const CUDA_ARRAY3D_DESCRIPTOR& whole, const ArrayLayout& layout,
                                unsigned level) {
  CUDA_ARRAY3D_DESCRIPTOR out = whole;
  const ArrayLevel at = layout.Level(level);
  out.Width = at.width;
  if (layout.height) out.Height = at.height;
  if (layout.depth) out.Depth = at.depth;
  return out;
}

}  // namespace cuplex
