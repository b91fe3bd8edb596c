#include "softcuda/array.h"

#include <algorithm>

#include "softcuda/context.h"
#include "softcuda/driver.h"

namespace cuplex::softcuda {
namespace {

constexpr unsigned kArrayBlocks = 1u << static_cast<unsigned>(Block::Kind::kArray);

CUresult TakeMemory(Context& context, const ArrayLayout& layout, uintptr_t* memory) {
  Block want;
  want.kind = Block::Kind::kArray;
  want.size = layout.Bytes();
  want.device = &context.device;
  want.context = &context;
  return context.driver.memory.Allocate(std::move(want), memory);
}

CUresult Gone() { return CUDA_ERROR_CONTEXT_IS_DESTROYED; }

}  // namespace

CUresult MakeArray(Context& context, const CUDA_ARRAY3D_DESCRIPTOR& wanted, Ref<Array>* made) {
  ArrayLayout layout;
  if (CUresult wrong = LayOutArray(wanted, 1, &layout)) return wrong;
  uintptr_t memory;
  if (CUresult failed = TakeMemory(context, layout, &memory)) return failed;
  Driver& driver = context.driver;
  Ref<Array> array = driver.arrays.Make(&context, context, wanted, layout, 0u, memory, true);
  std::unique_lock guard(context.lock);
  if (!array || context.dead()) {
    guard.unlock();
    if (array) HandleTable<Array>::Retire(array.get());
    (void)driver.memory.Free(memory, kArrayBlocks);
    return array ? Gone() : CUDA_ERROR_OUT_OF_MEMORY;
  }
  context.arrays.push_back(array);
  *made = std::move(array);
  return CUDA_SUCCESS;
}

CUresult MakeMipmappedArray(Context& context, const CUDA_ARRAY3D_DESCRIPTOR& wanted, unsigned levels,
                            Ref<MipmappedArray>* made) {
  ArrayLayout layout;
  if (CUresult wrong = LayOutArray(wanted, levels, &layout)) return wrong;
  uintptr_t memory;
  if (CUresult failed = TakeMemory(context, layout, &memory)) return failed;
  Driver& driver = context.driver;
  auto fail = [&](const Ref<MipmappedArray>& array, CUresult code) {
    if (array) {
      for (auto& level : array->levels) HandleTable<Array>::Retire(level.get());
      HandleTable<MipmappedArray>::Retire(array.get());
    }
    (void)driver.memory.Free(memory, kArrayBlocks);
    return code;
  };
  Ref<MipmappedArray> array = driver.mipmapped_arrays.Make(&context, context, wanted, layout, memory);
  if (!array) return fail(array, CUDA_ERROR_OUT_OF_MEMORY);
  for (unsigned i = 0; i < layout.levels; ++i) {
    Ref<Array> level =
        driver.arrays.Make(&context, context, AtLevel(wanted, layout, i), layout, i, memory, false);
    if (!level) return fail(array, CUDA_ERROR_OUT_OF_MEMORY);
    array->levels.push_back(std::move(level));
  }
  std::unique_lock guard(context.lock);
  if (context.dead()) {
    guard.unlock();
    return fail(array, Gone());
  }
  context.mipmapped_arrays.push_back(array);
  *made = std::move(array);
  return CUDA_SUCCESS;
}

CUresult DestroyArray(Context& current, CUarray handle) {
  Ref<Array> array = current.driver.arrays.Find(handle);
  if (!array) return CUDA_ERROR_INVALID_HANDLE;
  if (!array->owns) return CUDA_ERROR_INVALID_VALUE;  // goes with the mipmapped array that it is of
  Ref<Context> owner = current.driver.contexts.Find(&array->context);
  if (!owner || !HandleTable<Array>::Retire(array.get())) return CUDA_ERROR_INVALID_HANDLE;
  {
    std::lock_guard guard(owner->lock);
    std::erase_if(owner->arrays, [&](const Ref<Array>& each) { return each.get() == array.get(); });
  }
  owner->Synchronize();
  (void)current.driver.memory.Free(array->memory, kArrayBlocks);
  return current.fault();
}

CUresult DestroyMipmappedArray(Context& current, CUmipmappedArray handle) {
  Ref<MipmappedArray> array = current.driver.mipmapped_arrays.Find(handle);
  if (!array) return CUDA_ERROR_INVALID_HANDLE;
  Ref<Context> owner = current.driver.contexts.Find(&array->context);
  if (!owner || !HandleTable<MipmappedArray>::Retire(array.get())) return CUDA_ERROR_INVALID_HANDLE;
  for (auto& level : array->levels) HandleTable<Array>::Retire(level.get());
  {
    std::lock_guard guard(owner->lock);
    std::erase_if(owner->mipmapped_arrays,
                  [&](const Ref<MipmappedArray>& each) { return each.get() == array.get(); });
  }
  owner->Synchronize();
  (void)current.driver.memory.Free(array->memory, kArrayBlocks);
  return current.fault();
}

CUresult PlaceInArray(const Array& array, size_t x, size_t y, size_t z, Box box, BoxAt* out) {
  if (CUresult wrong = CheckArrayBox(array.layout, array.level, x, y, z, box.width, box.height, box.depth)) {
    return wrong;
  }
  *out = {array.base + z * array.at.plane_pitch + y * array.at.row_pitch + x, array.at.row_pitch,
          array.at.plane_pitch};
  return CUDA_SUCCESS;
}

}  // namespace cuplex::softcuda
