// Array and MipmappedArray: memory for textures and surfaces that programs reach by handle alone. Any thread.
//
// An array's bytes are a block of the device's memory like any other (memory_map.h), laid out row after row
// (cuda/array_layout.h). A level of a mipmapped array is an Array of its own that lies in the other's memory.
#pragma once

#include <vector>

#include "cuda/array_layout.h"
#include "cuda/driver_types.h"
#include "softcuda/handles.h"
#include "softcuda/jit/texture_table.h"
#include "softcuda/memory_map.h"

namespace cuplex::softcuda {

class Context;

class Array {
 public:
  Array(Context& context, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, const ArrayLayout& layout,
        unsigned level, uintptr_t memory, bool owns)
      : context(context),
        descriptor(descriptor),
        layout(layout),
        level(level),
        at(layout.Level(level)),
        base(memory + at.offset),
        memory(memory),
        owns(owns) {}

  Context& context;                          // as long as the handle lives
  const CUDA_ARRAY3D_DESCRIPTOR descriptor;  // of this level
  const ArrayLayout layout;                  // of the whole
  const unsigned level;
  const ArrayLevel at;
  const uintptr_t base;    // of the level
  const uintptr_t memory;  // the block
  const bool owns;         // else a mipmapped array does

  /// What copies may touch: rows of bytes, rows, planes.
  Box extent() const {
    return {size_t{at.width} * layout.format.bytes(), at.height,
            layout.depth ? size_t{at.depth} : size_t{layout.layers}};
  }
};

class MipmappedArray {
 public:
  MipmappedArray(Context& context, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, const ArrayLayout& layout,
                 uintptr_t memory)
      : context(context), descriptor(descriptor), layout(layout), memory(memory) {}

  Context& context;
  const CUDA_ARRAY3D_DESCRIPTOR descriptor;
  const ArrayLayout layout;
  const uintptr_t memory;
  std::vector<Ref<Array>> levels;
};

CUresult MakeArray(Context& context, const CUDA_ARRAY3D_DESCRIPTOR& wanted, Ref<Array>* made);
CUresult MakeMipmappedArray(Context& context, const CUDA_ARRAY3D_DESCRIPTOR& wanted, unsigned levels,
                            Ref<MipmappedArray>* made);
/// Waits for the work of the array's context, then frees it.
CUresult DestroyArray(Context& current, CUarray handle);
CUresult DestroyMipmappedArray(Context& current, CUmipmappedArray handle);

/// Where a box of `box` bytes at (x, y, z) of an array lies; CUDA_ERROR_INVALID_VALUE where it leaves it.
CUresult PlaceInArray(const Array& array, size_t x_bytes, size_t y, size_t z, Box box, BoxAt* out);

}  // namespace cuplex::softcuda
