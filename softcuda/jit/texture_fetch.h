// What a texture instruction reads: addressing, filtering and conversion as the CUDA C++ Programming Guide
// has them in "Texture Fetching"; and where in memory a surface instruction goes. Called by the runtime's
// functions (runtime_texture.cc) on a thread that is Running, since the memory read may fault; owns nothing.
//
// Linear filtering weighs texels by 9-bit numbers with 8 bits of fraction. The sum of the weighted texels is
// rounded to float once.
#pragma once

#include <cstdint>

#include "softcuda/jit/texture_table.h"

namespace cuplex::softcuda {

/// Four results of 32 bits, floats or integers as the texture has them.
using Texel = uint32_t __attribute__((vector_size(16)));

/// `.1d .2d .3d .a1d .a2d .cube .acube`
enum class TextureGeometry : uint8_t { k1D, k2D, k3D, kLayered1D, kLayered2D, kCube, kLayeredCube };

/// An instruction in one number, as emitted.
struct TextureMode {
  uint32_t bits = 0;

  TextureGeometry geometry() const { return static_cast<TextureGeometry>(bits & 7); }
  bool integers() const { return bits & 8; }            // coordinates are s32, else f32
  unsigned component() const { return bits >> 4 & 3; }  // of a gather
  int offset(unsigned axis) const {                     // in texels, -8 .. 7
    return static_cast<int32_t>(bits << (20 - 4 * axis)) >> 28;
  }
  static TextureMode Make(TextureGeometry geometry, bool integers, unsigned component = 0) {
    return {static_cast<uint32_t>(geometry) | (integers ? 8u : 0u) | component << 4};
  }
  void SetOffset(unsigned axis, int offset) {
    bits |= (static_cast<uint32_t>(offset) & 15) << (8 + 4 * axis);
  }
};

/// Where to fetch: coordinates are floats or integers, as the mode says.
struct TexturePlace {
  TextureMode mode;
  uint32_t layer = 0;
  std::array<uint32_t, 3> at = {};
};

/// From the first level, as instructions without a level do.
Texel Fetch(const TextureHeader& texture, const TexturePlace& place);
/// From the level, or between the two, that the bias and bounds of the texture make of `level`.
Texel FetchLevel(const TextureHeader& texture, const TexturePlace& place, float level);
/// From the level at which a step of this size on the screen is about a texel; gradients in the
/// coordinates' own units.
Texel FetchGradient(const TextureHeader& texture, const TexturePlace& place, const std::array<float, 3>& dx,
                    const std::array<float, 3>& dy);
/// One component of the four texels that linear filtering would weigh: (0,1) (1,1) (1,0) (0,0).
Texel Gather(const TextureHeader& texture, const TexturePlace& place);

/// `txq` and `suq`.
enum class TextureQuery : uint8_t {
  kWidth,
  kHeight,
  kDepth,
  kChannelDataType,
  kChannelOrder,
  kNormalizedCoords,
  kArraySize,
  kLevels,
  kSamples,
  kFilterMode,
  kAddressMode0,
  kAddressMode1,
  kAddressMode2,
  kMemoryLayout,
};
uint32_t Query(const TextureHeader& texture, TextureQuery query, uint32_t level);

/// What a surface instruction does outside of its surface.
enum class SurfaceBounds : uint8_t { kTrap, kClamp, kZero };
struct SurfaceMode {
  uint32_t bits = 0;

  TextureGeometry geometry() const { return static_cast<TextureGeometry>(bits & 7); }
  SurfaceBounds bounds() const { return static_cast<SurfaceBounds>(bits >> 3 & 3); }
  bool texels() const { return bits & 32; }            // x counts texels, else bytes
  unsigned bytes() const { return bits >> 8 & 0x1f; }  // of the access, 1 .. 16
  static SurfaceMode Make(TextureGeometry geometry, SurfaceBounds bounds, bool texels, unsigned bytes) {
    return {static_cast<uint32_t>(geometry) | static_cast<uint32_t>(bounds) << 3 | (texels ? 32u : 0u) |
            bytes << 8};
  }
};
/// The address of the access; 0 where it lies outside of the surface and is not clamped.
uint64_t SurfaceAddress(const TextureHeader& surface, SurfaceMode mode, uint32_t layer,
                        const std::array<int32_t, 3>& at);

/// The texel as its format stores it, from four values of 32 bits (`sust.p`); returns its bytes.
unsigned EncodeTexel(const TextureHeader& surface, Texel values, std::byte* out);

}  // namespace cuplex::softcuda
