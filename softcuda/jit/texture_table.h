// TextureTable: the textures and surfaces that a context's kernels may name, by the numbers that are their
// handles. Any thread; one writer at a time.
//
// Kernels hand in any number. A number is looked up in slots that are never unmapped and it must be the very
// number its slot was given, none of which is given twice; so what it names is live or it names nothing. A
// reader copies a header out and then looks whether it is still there, so it never sees half of one.
//
//     handle = context:15 serial:32 slot:16      (slot in the low bits)
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "cuda/array_layout.h"

namespace cuplex::softcuda {

enum class AddressMode : uint8_t { kWrap, kClamp, kMirror, kBorder };

/// Where one level of an image lies in device memory.
struct TextureLevel {
  uint64_t base = 0;
  uint64_t row_pitch = 0, plane_pitch = 0;  // bytes
  uint32_t width = 1, height = 1, depth = 1;
  uint32_t reserved = 0;
};

/// How texels are found and what becomes of them.
struct Sampler {
  std::array<AddressMode, 3> address = {AddressMode::kClamp, AddressMode::kClamp, AddressMode::kClamp};
  bool normalized = false;     // coordinates count in extents instead of texels
  bool linear = false;         // filter within a level
  bool linear_levels = false;  // and between levels
  float level_bias = 0, least_level = 0, most_level = 0;
  std::array<float, 4> border = {};
};

/// All that a fetch needs to know of a texture or surface. Plain bytes.
struct TextureHeader {
  TexelFormat format;
  bool surface = false;   // for loads and stores, not for fetches
  bool buffer = false;    // linear memory: texels outside of it are zero
  bool as_float = false;  // integers are read as fractions of their largest value
  bool srgb = false;      // bytes of colour channels are decoded
  bool cubemap = false;
  bool seamless = false;  // cube faces are filtered across their edges
  uint32_t layers = 1;    // faces counted
  uint32_t levels = 1;
  uint32_t array_format = 0;  // CUarray_format, for queries
  Sampler sampler;
  std::array<TextureLevel, kMostArrayLevels> level;
};
static_assert(std::is_trivially_copyable_v<TextureHeader> && sizeof(TextureHeader) % 8 == 0);

class TextureTable {
 public:
  /// `context` goes into the handles, so that another context's are strangers here.
  explicit TextureTable(uint64_t context) : context_(context) {}
  ~TextureTable();
  TextureTable(const TextureTable&) = delete;
  TextureTable& operator=(const TextureTable&) = delete;

  /// A handle for it; 0 where no more fit.
  uint64_t Add(const TextureHeader& header);
  /// The handle names nothing from here on; false where it did not before.
  bool Remove(uint64_t handle);

  /// Copies the header out; false where the handle names nothing.
  bool Read(uint64_t handle, TextureHeader* out) const;
  bool Holds(uint64_t handle) const;

 private:
  static constexpr size_t kSlots = size_t{1} << 16;
  static constexpr size_t kWords = sizeof(TextureHeader) / 8;
  struct Slot {
    std::atomic<uint64_t> handle{0};
    std::array<std::atomic<uint64_t>, kWords> words;
  };
  const Slot* SlotOf(uint64_t handle) const;

  const uint64_t context_;
  std::atomic<Slot*> slots_{nullptr};
  std::mutex lock_;  // guards what follows
  uint64_t serial_ = 0;
  size_t used_ = 0;
  std::vector<uint32_t> free_;
};

}  // namespace cuplex::softcuda
