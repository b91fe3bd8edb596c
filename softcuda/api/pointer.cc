// What is known about a pointer.
#include <cstring>

#include "softcuda/exports.h"

using namespace cuplex;
using namespace cuplex::softcuda;

namespace {

template <typename T>
CUresult Put(void* data, T value) {
  std::memcpy(data, &value, sizeof(value));
  return CUDA_SUCCESS;
}

CUresult Attribute(Driver& driver, CUpointer_attribute attribute, CUdeviceptr ptr, void* data) {
  Located located = driver.memory.Find(ptr);
  const auto& block = located.block;
  bool reserved = !block && located.size, mapped = located.mapping_size;
  if (!block && !reserved) return CUDA_ERROR_INVALID_VALUE;
  using Kind = Block::Kind;
  bool managed = block && block->kind == Kind::kManaged;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      if (!block) return CUDA_ERROR_INVALID_VALUE;  // mappings are of no context
      return Put(data, reinterpret_cast<CUcontext>(block->context));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      if (!block && !mapped) return CUDA_ERROR_INVALID_VALUE;
      return Put(
          data, static_cast<unsigned>(block && block->on_host() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return Put(data, ptr);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!block || (!block->on_host() && !managed)) return CUDA_ERROR_INVALID_VALUE;
      return Put(data, reinterpret_cast<void*>(ptr));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return Put(data, 0u);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      if (!block) return CUDA_ERROR_INVALID_VALUE;
      return Put(data, static_cast<unsigned long long>(block->id));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return Put(data, managed ? 1u : 0u);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      if (!block && !mapped) return CUDA_ERROR_INVALID_VALUE;
      return Put(data, block ? block->device->ordinal : located.physical->device.ordinal);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return Put(data, 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return Put(data, static_cast<CUdeviceptr>(block ? block->base : located.base));
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return Put(data, block ? block->size : located.size);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return Put(data, block || mapped ? 1u : 0u);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return Put(data, static_cast<unsigned long long>(mapped ? located.physical->prop.requestedHandleTypes
                                                              : CU_MEM_HANDLE_TYPE_NONE));
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return Put(data, static_cast<unsigned>(block ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : located.access));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return Put(data, reinterpret_cast<CUmemoryPool>(block ? block->pool.get() : nullptr));
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return Put(data, block ? block->size : located.mapping_size);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return Put(data, static_cast<CUdeviceptr>(block ? block->base : located.mapping_base));
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return Put(data, static_cast<unsigned long long>(block ? block->id : 0));
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// Bytes of an attribute's value, all zero where a pointer has none.
size_t SizeOf(CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return 4;
    default:
      return 8;
  }
}

}  // namespace

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return InDriver([&](Driver& driver) -> CUresult {
    if (!data) return CUDA_ERROR_INVALID_VALUE;
    return Attribute(driver, attribute, ptr, data);
  });
}

CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr ptr) {
  return InDriver([&](Driver& driver) -> CUresult {
    if (!numAttributes || !attributes || !data) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < numAttributes; ++i) {
      if (!data[i] || attributes[i] < CU_POINTER_ATTRIBUTE_CONTEXT ||
          attributes[i] > CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE ||
          attributes[i] == CU_POINTER_ATTRIBUTE_P2P_TOKENS) {
        return CUDA_ERROR_INVALID_VALUE;
      }
    }
    // What a pointer does not have is zero here, not an error; a device number that is none is -2.
    for (unsigned i = 0; i < numAttributes; ++i) {
      if (!Attribute(driver, attributes[i], ptr, data[i])) continue;
      std::memset(data[i], 0, SizeOf(attributes[i]));
      if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) (void)Put(data[i], int{CU_DEVICE_INVALID});
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return InDriver([&](Driver& driver) -> CUresult {
    auto block = driver.memory.Find(ptr).block;
    if (!value || !block || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
  });
}
