// The runtime's functions for textures and surfaces: look the handle up, then do what the instruction says.
#include <algorithm>
#include <cstring>

#include "softcuda/jit/running.h"
#include "softcuda/jit/runtime.h"
#include "softcuda/jit/texture_fetch.h"

namespace cuplex::softcuda {
namespace {

const TextureHeader* Kept(Running& r, uint64_t handle) {
  if (!r.textures) return nullptr;
  const size_t at = handle % Running::kTexturesKept;
  auto* header = reinterpret_cast<TextureHeader*>(r.kept_header[at]);
  if (r.kept_handle[at] == handle && r.textures->Holds(handle)) return header;
  if (!r.textures->Read(handle, header)) {
    r.kept_handle[at] = 0;
    return nullptr;
  }
  r.kept_handle[at] = handle;
  return header;
}

/// What the kernel names: by its handle, or by the address of a variable that holds it (a reference).
const TextureHeader& Named(Lane* lane, uint64_t handle, bool surface) {
  Running& r = *CurrentRunning();
  r.lane = lane;
  const TextureHeader* found = Kept(r, handle);
  if (!found && handle % 8 == 0 && r.window->all().Contains(handle, 8))
    found = Kept(r, *reinterpret_cast<const volatile uint64_t*>(handle));
  if (!found || found->surface != surface)
    RaiseFault(r, Fault::Kind::kIllegalAddress, handle,
               surface ? "a handle that names no surface of this context"
                       : "a handle that names no texture of this context");
  return *found;
}

TexturePlace PlaceOf(uint32_t mode, uint32_t layer, uint32_t x, uint32_t y, uint32_t z) {
  return {{mode}, layer, {x, y, z}};
}

Texel Tex(Lane* lane, uint64_t handle, uint32_t mode, uint32_t layer, uint32_t x, uint32_t y, uint32_t z) {
  return Fetch(Named(lane, handle, false), PlaceOf(mode, layer, x, y, z));
}

Texel TexLevel(Lane* lane, uint64_t handle, uint32_t mode, uint32_t layer, uint32_t x, uint32_t y, uint32_t z,
               float level) {
  return FetchLevel(Named(lane, handle, false), PlaceOf(mode, layer, x, y, z), level);
}

Texel TexGrad(Lane* lane, uint64_t handle, uint32_t mode, uint32_t layer, uint32_t x, uint32_t y, uint32_t z,
              float dx_x, float dx_y, float dx_z, float dy_x, float dy_y, float dy_z) {
  return FetchGradient(Named(lane, handle, false), PlaceOf(mode, layer, x, y, z), {dx_x, dx_y, dx_z},
                       {dy_x, dy_y, dy_z});
}

Texel Tld4(Lane* lane, uint64_t handle, uint32_t mode, uint32_t layer, uint32_t x, uint32_t y, uint32_t z) {
  return Gather(Named(lane, handle, false), PlaceOf(mode, layer, x, y, z));
}

uint32_t Txq(Lane* lane, uint64_t handle, uint32_t query, uint32_t level) {
  return Query(Named(lane, handle, false), static_cast<TextureQuery>(query), level);
}

uint32_t Suq(Lane* lane, uint64_t handle, uint32_t query) {
  return Query(Named(lane, handle, true), static_cast<TextureQuery>(query), 0);
}

/// 0: the access does nothing.
uint64_t Reach(Lane* lane, const TextureHeader& surface, SurfaceMode mode, uint32_t layer, uint32_t x,
               uint32_t y, uint32_t z) {
  const uint64_t at = SurfaceAddress(
      surface, mode, layer, {static_cast<int32_t>(x), static_cast<int32_t>(y), static_cast<int32_t>(z)});
  if (!at && mode.bounds() == SurfaceBounds::kTrap) {
    Running& r = *CurrentRunning();
    r.lane = lane;
    RaiseFault(r, Fault::Kind::kTrap, 0, "outside of a surface");
  }
  return at;
}

Texel Suld(Lane* lane, uint64_t handle, uint32_t bits, uint32_t layer, uint32_t x, uint32_t y, uint32_t z) {
  const SurfaceMode mode{bits};
  Texel out{};
  if (uint64_t at = Reach(lane, Named(lane, handle, true), mode, layer, x, y, z))
    std::memcpy(&out, reinterpret_cast<const void*>(at), std::min(mode.bytes(), 16u));
  return out;
}

void Sust(Lane* lane, uint64_t handle, uint32_t bits, uint32_t layer, uint32_t x, uint32_t y, uint32_t z,
          Texel value) {
  const SurfaceMode mode{bits};
  if (uint64_t at = Reach(lane, Named(lane, handle, true), mode, layer, x, y, z))
    std::memcpy(reinterpret_cast<void*>(at), &value, std::min(mode.bytes(), 16u));
}

/// Of a formatted store the bytes are the texel's.
void SustFormatted(Lane* lane, uint64_t handle, uint32_t bits, uint32_t layer, uint32_t x, uint32_t y,
                   uint32_t z, Texel value) {
  const TextureHeader& surface = Named(lane, handle, true);
  SurfaceMode mode{bits};
  mode = SurfaceMode::Make(mode.geometry(), mode.bounds(), true, surface.format.bytes());
  std::byte texel[16];
  const unsigned bytes = EncodeTexel(surface, value, texel);
  if (uint64_t at = Reach(lane, surface, mode, layer, x, y, z))
    std::memcpy(reinterpret_cast<void*>(at), texel, bytes);
}

/// The address for an atomic of `mode.bytes()`; 0: nothing is done.
uint64_t Sured(Lane* lane, uint64_t handle, uint32_t bits, uint32_t layer, uint32_t x, uint32_t y,
               uint32_t z) {
  const SurfaceMode mode{bits};
  const uint64_t at = Reach(lane, Named(lane, handle, true), mode, layer, x, y, z);
  return at / mode.bytes() * mode.bytes();
}

template <typename F>
void* Of(F* f) {
  return reinterpret_cast<void*>(f);
}

}  // namespace

std::span<const RuntimeSymbol> TextureSymbols() {
  static const RuntimeSymbol symbols[] = {
      {"cuplex_tex", Of(&Tex)},
      {"cuplex_tex_level", Of(&TexLevel)},
      {"cuplex_tex_grad", Of(&TexGrad)},
      {"cuplex_tld4", Of(&Tld4)},
      {"cuplex_txq", Of(&Txq)},
      {"cuplex_suq", Of(&Suq)},
      {"cuplex_suld", Of(&Suld)},
      {"cuplex_sust", Of(&Sust)},
      {"cuplex_sust_formatted", Of(&SustFormatted)},
      {"cuplex_sured", Of(&Sured)},
  };
  return symbols;
}

}  // namespace cuplex::softcuda
