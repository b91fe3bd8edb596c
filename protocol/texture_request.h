// What a client asks for when it makes a texture or surface object, or binds a reference: the three
// descriptors of cuTexObjectCreate without their pointers. Data.
#pragma once

#include <cstdint>

namespace cuplex {

/// Instead of a CUresourcetype: none.
inline constexpr uint32_t kNoResource = 0xffffffff;

struct TextureRequest {
  uint32_t surface = 0;             // 1: a surface
  uint32_t resource = kNoResource;  // CUresourcetype
  uint64_t array = 0;               // the client's handle of an array or mipmapped array
  uint64_t address = 0;             // of linear memory
  uint64_t bytes = 0;
  uint64_t width = 0, height = 0, pitch = 0;
  uint32_t format = 0, channels = 0;

  uint32_t address_mode[3] = {};
  uint32_t filter = 0;
  uint32_t flags = 0;
  uint32_t anisotropy = 0;
  uint32_t level_filter = 0;
  float level_bias = 0, least_level = 0, most_level = 0;
  float border[4] = {};

  uint32_t has_view = 0;
  uint32_t view_format = 0;
  uint64_t view_width = 0, view_height = 0, view_depth = 0;
  uint32_t first_level = 0, last_level = 0, first_layer = 0, last_layer = 0;
};
static_assert(sizeof(TextureRequest) == 168);

}  // namespace cuplex
