// What a program can ask of an address.
#include "client/exports.h"

namespace cuplex::client {
namespace {

template <typename T>
CUresult Put(void* data, T value) {
  *static_cast<T*>(data) = value;
  return CUDA_SUCCESS;
}

CUresult Answer(Session& session, const Allocation& a, CUdeviceptr ptr, CUpointer_attribute attribute,
                void* data) {
  const bool host = a.kind == Allocation::kPinned || a.kind == Allocation::kRegistered;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: {
      Context* context = session.contexts.FindNumber(a.context);
      return Put<CUcontext>(data, context ? context->handle() : nullptr);
    }
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Put<unsigned>(data, host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      if (a.kind == Allocation::kRegistered) return CUDA_ERROR_INVALID_VALUE;
      return Put<CUdeviceptr>(data, ptr);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (a.on_device()) return CUDA_ERROR_INVALID_VALUE;
      return Put<void*>(data, reinterpret_cast<void*>(ptr));
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return Put<unsigned long long>(data, a.id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return Put<unsigned>(data, a.kind == Allocation::kManaged);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return Put<int>(data, a.device);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return Put<CUdeviceptr>(data, a.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return Put<size_t>(data, a.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return Put<unsigned>(data, 1);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return Put<unsigned>(data, 0);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return Put<uint64_t>(data, CU_MEM_HANDLE_TYPE_NONE);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return Put<int>(data, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return Put<CUmemoryPool>(data,
                               a.kind == Allocation::kPool ? session.pools.DefaultOf(a.device) : nullptr);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return Put<size_t>(data, a.in_host_window() ? a.mapped_bytes : a.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return Put<CUdeviceptr>(data, a.base);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return Put<unsigned long long>(data, a.id);
    default:
      return attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS ? CUDA_ERROR_NOT_SUPPORTED
                                                          : CUDA_ERROR_INVALID_VALUE;
  }
}

/// cuPointerGetAttributes says this of an address that CUDA does not know.
void AnswerUnknown(CUpointer_attribute attribute, void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(data) = CU_DEVICE_INVALID;
      break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      *static_cast<unsigned*>(data) = 0;
      break;
    default:
      *static_cast<uint64_t*>(data) = 0;
      break;
  }
}

}  // namespace
}  // namespace cuplex::client

using namespace cuplex::client;

extern "C" {

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  if (!data) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  const auto a = session->allocations.Find(ptr);
  return a ? Answer(*session, *a, ptr, attribute, data) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr ptr) {
  if (count && (!attributes || !data)) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  const auto a = session->allocations.Find(ptr);
  for (unsigned i = 0; i < count; ++i) {
    if (!data[i]) return CUDA_ERROR_INVALID_VALUE;
    // An attribute that this kind of memory lacks is answered with zero here, not with an error.
    if (!a || Answer(*session, *a, ptr, attributes[i], data[i]) != CUDA_SUCCESS)
      AnswerUnknown(attributes[i], data[i]);
  }
  return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  if (!session->allocations.Find(ptr)) return CUDA_ERROR_INVALID_VALUE;
  return *static_cast<const unsigned*>(value) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

}  // extern "C"
