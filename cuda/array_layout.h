// What a CUDA array is made of: its texels' format, its extent, and the bytes it takes. Pure; any thread.
//
// An array here lies row after row, plane after plane (slices of a 3D array, or layers and faces), level
// after level:
//
//     array  = { level }                   each begins at a multiple of kArrayAlignment
//     level  = { plane }                   extent halved per level, at least 1; layers are not halved
//     plane  = { row }                     rows rounded up to kArrayRows where there is more than one
//     row    = texels, rounded up to kArrayPitch
//
// Devices lay their arrays out in tiles; what is computed here is what softcuda takes, and what a server
// charges for an array of any driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "cuda/driver_types.h"

namespace cuplex {

// Bits of CUDA_ARRAY3D_DESCRIPTOR::Flags.
inline constexpr unsigned kArrayLayered = 0x01, kArraySurface = 0x02, kArrayCubemap = 0x04,
                          kArrayGather = 0x08, kArrayDepth = 0x10, kArrayColorAttachment = 0x20,
                          kArraySparse = 0x40, kArrayDeferred = 0x80;
// Bits of CUDA_TEXTURE_DESC::flags and of cuTexRefSetFlags.
inline constexpr unsigned kTextureReadAsInteger = 0x01, kTextureNormalized = 0x02, kTextureSrgb = 0x10,
                          kTextureDisableTrilinear = 0x20, kTextureSeamlessCube = 0x40;

inline constexpr size_t kArrayPitch = 64, kArrayRows = 8, kArrayAlignment = 512;
inline constexpr unsigned kMostArrayLevels = 18;  // of 2^17 texels in a row

/// How a texel's channel is stored and what it stands for.
struct TexelFormat {
  enum class Kind : uint8_t { kUnsigned, kSigned, kFloat };
  Kind kind = Kind::kUnsigned;
  uint8_t channel_bytes = 1;  // 1, 2, 4
  uint8_t channels = 1;       // 1, 2, 4
  bool normalized = false;    // always read as a float in [0, 1] or [-1, 1]

  unsigned bytes() const { return unsigned{channel_bytes} * channels; }
  bool operator==(const TexelFormat&) const = default;
};

/// nullopt for a format that is none of plain channels (compressed blocks, video planes), and for a number of
/// channels that it does not have.
std::optional<TexelFormat> TexelFormatOf(CUarray_format format, unsigned channels);
std::optional<TexelFormat> TexelFormatOf(CUresourceViewFormat format);

struct ArrayLevel {
  uint64_t offset = 0;  // from the array's first byte
  uint64_t row_pitch = 0, plane_pitch = 0;
  uint32_t width = 1, height = 1, depth = 1;  // texels; 1 where the array has no such axis
};

/// Extent of an array in all its levels.
struct ArrayLayout {
  TexelFormat format;
  uint32_t width = 0, height = 0, depth = 0;  // of level 0; height and depth 0 where it has no such axis
  uint32_t layers = 1;                        // faces counted
  unsigned flags = 0;
  unsigned levels = 1;

  bool layered() const { return flags & kArrayLayered; }
  bool cubemap() const { return flags & kArrayCubemap; }
  unsigned dimensions() const { return depth ? 3 : height ? 2 : 1; }
  ArrayLevel Level(unsigned level) const;
  /// Of all levels.
  uint64_t Bytes() const;
};

/// The layout of what a descriptor asks for; CUDA_ERROR_INVALID_VALUE where no array is like that or it is
/// larger than CUDA's arrays are, CUDA_ERROR_NOT_SUPPORTED for a format or kind that is not carried
/// (compressed and video formats, depth, sparse and deferred arrays).
CUresult LayOutArray(const CUDA_ARRAY3D_DESCRIPTOR& wanted, unsigned levels, ArrayLayout* layout);

/// Whether a box of `width` bytes, `height` rows and `depth` planes at (x bytes, y, z) lies in a level, in
/// whole texels; CUDA_ERROR_INVALID_VALUE where it does not.
CUresult CheckArrayBox(const ArrayLayout& layout, unsigned level, uint64_t x, uint64_t y, uint64_t z,
                       uint64_t width, uint64_t height, uint64_t depth);

/// What the calls for arrays of one and two dimensions ask for, as the others have it.
CUDA_ARRAY3D_DESCRIPTOR InThreeDimensions(const CUDA_ARRAY_DESCRIPTOR& descriptor);
/// The descriptor of one level.
CUDA_ARRAY3D_DESCRIPTOR AtLevel(const CUDA_ARRAY3D_DESCRIPTOR& whole, const ArrayLayout& layout,
                                unsigned level);

}  // namespace cuplex
