// Arrays and mipmapped arrays of this process, and the texture and surface objects over them. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "cuda/array_layout.h"
#include "cuda/driver_types.h"
#include "protocol/handle.h"

namespace cuplex::client {

class Session;

/// What the client knows of an array, so that it can be asked about, and copies to it be checked, here.
struct Array {
  uint32_t context = 0;
  bool mipmapped = false;
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {};  // of a level its own
  ArrayLayout layout;                       // of the whole
  unsigned level = 0;
  Handle level_of = 0;
  std::vector<Handle> levels;  // by number; 0 where nobody asked for it yet
};

class ArrayTable {
 public:
  /// `levels` 0: a plain array.
  CUresult Create(Session& session, uint32_t context, const CUDA_ARRAY3D_DESCRIPTOR& wanted, unsigned levels,
                  Handle* out);
  CUresult Destroy(Session& session, Handle array, bool mipmapped);
  CUresult Level(Session& session, Handle mipmapped, unsigned level, Handle* out);
  /// A copy; nullopt where there is no such array of that kind.
  std::optional<Array> Find(Handle array, bool mipmapped);
  /// Forgets what belonged to a context that ended.
  void Forget(uint32_t context);

 private:
  std::mutex mutex_;
  std::map<Handle, Array> arrays_;
  HandleSource source_;
};

/// What a texture or surface object was made of.
struct Texture {
  CUDA_RESOURCE_DESC resource = {};
  CUDA_TEXTURE_DESC texture = {};
  std::optional<CUDA_RESOURCE_VIEW_DESC> view;
};

/// By the driver's own handles, which kernels need.
class TextureTable {
 public:
  void Insert(uint32_t context, bool surface, uint64_t handle, const Texture& texture);
  std::optional<Texture> Find(uint32_t context, bool surface, uint64_t handle);
  bool Erase(uint32_t context, bool surface, uint64_t handle);
  void Forget(uint32_t context);

 private:
  struct Key {
    uint32_t context;
    bool surface;
    uint64_t handle;
    auto operator<=>(const Key&) const = default;
  };
  std::mutex mutex_;
  std::map<Key, Texture> textures_;
};

}  // namespace cuplex::client
