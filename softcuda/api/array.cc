// Arrays and mipmapped arrays.
#include "softcuda/array.h"
#include "softcuda/exports.h"

using namespace cuplex;
using namespace cuplex::softcuda;

namespace {

/// f(Array&), where the handle names one.
template <typename F>
CUresult WithArray(CUarray handle, F&& f) {
  return InContext([&](Context& context) -> CUresult {
    Ref<Array> array = context.driver.arrays.Find(handle);
    return array ? f(*array) : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult RequirementsOf(const ArrayLayout& layout, CUDA_ARRAY_MEMORY_REQUIREMENTS* out) {
  *out = {};
  out->size = layout.Bytes();
  out->alignment = kArrayAlignment;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuArray3DCreate_v2(CUarray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR* pAllocateArray) {
  return InContext([&](Context& context) -> CUresult {
    if (!pHandle || !pAllocateArray) return CUDA_ERROR_INVALID_VALUE;
    Ref<Array> array;
    if (CUresult failed = MakeArray(context, *pAllocateArray, &array)) return failed;
    *pHandle = reinterpret_cast<CUarray>(array.get());
    return CUDA_SUCCESS;
  });
}

CUresult cuArrayCreate_v2(CUarray* pHandle, const CUDA_ARRAY_DESCRIPTOR* pAllocateArray) {
  if (!pAllocateArray) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR wanted = InThreeDimensions(*pAllocateArray);
  return cuArray3DCreate_v2(pHandle, &wanted);
}

CUresult cuArrayDestroy(CUarray hArray) {
  return InContext([&](Context& context) { return DestroyArray(context, hArray); });
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* pArrayDescriptor, CUarray hArray) {
  return WithArray(hArray, [&](const Array& array) -> CUresult {
    if (!pArrayDescriptor) return CUDA_ERROR_INVALID_VALUE;
    *pArrayDescriptor = array.descriptor;
    return CUDA_SUCCESS;
  });
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* pArrayDescriptor, CUarray hArray) {
  return WithArray(hArray, [&](const Array& array) -> CUresult {
    if (!pArrayDescriptor) return CUDA_ERROR_INVALID_VALUE;
    *pArrayDescriptor = {array.descriptor.Width, array.descriptor.Height, array.descriptor.Format,
                         array.descriptor.NumChannels};
    return CUDA_SUCCESS;
  });
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* memoryRequirements, CUarray array,
                                      CUdevice device) {
  return WithArray(array, [&](const Array& found) -> CUresult {
    if (!memoryRequirements || device != found.context.device.ordinal) return CUDA_ERROR_INVALID_VALUE;
    return RequirementsOf(found.layout, memoryRequirements);
  });
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR* pMipmappedArrayDesc,
                                unsigned int numMipmapLevels) {
  return InContext([&](Context& context) -> CUresult {
    if (!pHandle || !pMipmappedArrayDesc) return CUDA_ERROR_INVALID_VALUE;
    Ref<MipmappedArray> array;
    if (CUresult failed = MakeMipmappedArray(context, *pMipmappedArrayDesc, numMipmapLevels, &array))
      return failed;
    *pHandle = reinterpret_cast<CUmipmappedArray>(array.get());
    return CUDA_SUCCESS;
  });
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray) {
  return InContext([&](Context& context) { return DestroyMipmappedArray(context, hMipmappedArray); });
}

CUresult cuMipmappedArrayGetLevel(CUarray* pLevelArray, CUmipmappedArray hMipmappedArray,
                                  unsigned int level) {
  return InContext([&](Context& context) -> CUresult {
    Ref<MipmappedArray> array = context.driver.mipmapped_arrays.Find(hMipmappedArray);
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    if (!pLevelArray || level >= array->levels.size()) return CUDA_ERROR_INVALID_VALUE;
    *pLevelArray = reinterpret_cast<CUarray>(array->levels[level].get());
    return CUDA_SUCCESS;
  });
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* memoryRequirements,
                                               CUmipmappedArray mipmap, CUdevice device) {
  return InContext([&](Context& context) -> CUresult {
    Ref<MipmappedArray> array = context.driver.mipmapped_arrays.Find(mipmap);
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    if (!memoryRequirements || device != array->context.device.ordinal) return CUDA_ERROR_INVALID_VALUE;
    return RequirementsOf(array->layout, memoryRequirements);
  });
}
