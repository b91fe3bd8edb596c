// Textures: the texture and surface objects of a context, and making one out of the program's descriptors.
// Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "cuda/driver_types.h"
#include "softcuda/jit/texture_table.h"

namespace cuplex::softcuda {

class Context;

/// What a texture or surface object was made of.
struct TextureObject {
  CUDA_RESOURCE_DESC resource = {};
  CUDA_TEXTURE_DESC texture = {};  // not of a surface
  std::optional<CUDA_RESOURCE_VIEW_DESC> view;
  bool surface = false;
  bool unbound = false;  // a reference's that has no resource yet
};

class Textures {
 public:
  explicit Textures(uint64_t context) : table_(context) {}

  const TextureTable& table() const { return table_; }

  /// A handle for kernels; 0 where there is no room.
  uint64_t Add(const TextureObject& object, const TextureHeader& header);
  bool Remove(uint64_t handle, bool surface);
  std::optional<TextureObject> Find(uint64_t handle, bool surface) const;

 private:
  TextureTable table_;
  mutable std::mutex lock_;
  std::map<uint64_t, TextureObject> objects_;
};

/// The header of what the descriptors ask for, checked as cuTexObjectCreate and cuSurfObjectCreate do.
CUresult MakeHeader(Context& context, const TextureObject& wanted, TextureHeader* header);

}  // namespace cuplex::softcuda
