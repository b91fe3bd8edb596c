// Memory of the device, pinned and managed memory, and what the driver knows about an address.
#include "client/runtime/calls.h"
#include "client/runtime/runtime.h"

namespace cuplex::runtime {
namespace {

constexpr unsigned kPitchElementBytes = 4;  // the least that the driver aligns rows for

cudaError_t AllocatePitched(void** pointer, size_t* pitch, size_t width, size_t rows) {
  return InContext([&](const DriverTable& cu) {
    *pointer = nullptr;
    *pitch = 0;
    if (width == 0 || rows == 0) return cudaSuccess;
    CUdeviceptr address = 0;
    RUNTIME_TRY(FromDriver(cu.cuMemAllocPitch_v2(&address, pitch, width, rows, kPitchElementBytes)));
    *pointer = Pointer(address);
    return cudaSuccess;
  });
}

}  // namespace

cudaError_t Malloc(void** pointer, size_t size) {
  if (!pointer) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) {
    *pointer = nullptr;
    if (size == 0) return cudaSuccess;
    CUdeviceptr address = 0;
    RUNTIME_TRY(FromDriver(cu.cuMemAlloc_v2(&address, size)));
    *pointer = Pointer(address);
    return cudaSuccess;
  });
}

cudaError_t MallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  if (!pointer || !pitch) return cudaErrorInvalidValue;
  return AllocatePitched(pointer, pitch, width, height);
}

cudaError_t Malloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
  if (!pitched) return cudaErrorInvalidValue;
  size_t rows;
  if (__builtin_mul_overflow(extent.height, extent.depth, &rows)) return cudaErrorMemoryAllocation;
  cudaPitchedPtr made{nullptr, 0, extent.width, extent.height};
  RUNTIME_TRY(AllocatePitched(&made.ptr, &made.pitch, extent.width, rows));
  *pitched = made;
  return cudaSuccess;
}

cudaError_t MallocManaged(void** pointer, size_t size, unsigned int flags) {
  if (!pointer || size == 0) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) {
    CUdeviceptr address = 0;
    RUNTIME_TRY(FromDriver(cu.cuMemAllocManaged(&address, size, flags)));
    *pointer = Pointer(address);
    return cudaSuccess;
  });
}

cudaError_t Free(void* pointer) {
  // Programs free null to have the context made.
  return InContext(
      [&](const DriverTable& cu) { return pointer ? cu.cuMemFree_v2(Device(pointer)) : CUDA_SUCCESS; });
}

cudaError_t MallocHost(void** pointer, size_t size) { return HostAlloc(pointer, size, 0); }

cudaError_t HostAlloc(void** pointer, size_t size, unsigned int flags) {
  if (!pointer) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) {
    *pointer = nullptr;
    return size ? cu.cuMemHostAlloc(pointer, size, flags) : CUDA_SUCCESS;
  });
}

cudaError_t FreeHost(void* pointer) {
  return InContext([&](const DriverTable& cu) { return pointer ? cu.cuMemFreeHost(pointer) : CUDA_SUCCESS; });
}

cudaError_t HostRegister(void* pointer, size_t size, unsigned int flags) {
  if (!pointer || size == 0) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) { return cu.cuMemHostRegister_v2(pointer, size, flags); });
}

cudaError_t HostUnregister(void* pointer) {
  if (!pointer) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) { return cu.cuMemHostUnregister(pointer); });
}

cudaError_t HostGetDevicePointer(void** device, void* host, unsigned int flags) {
  if (!device || !host) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) {
    CUdeviceptr address = 0;
    RUNTIME_TRY(FromDriver(cu.cuMemHostGetDevicePointer_v2(&address, host, flags)));
    *device = Pointer(address);
    return cudaSuccess;
  });
}

cudaError_t HostGetFlags(unsigned int* flags, void* host) {
  if (!flags || !host) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) { return cu.cuMemHostGetFlags(flags, host); });
}

cudaError_t MemGetInfo(size_t* free_bytes, size_t* total) {
  return InContext([&](const DriverTable& cu) {
    size_t free_now = 0, all = 0;
    RUNTIME_TRY(FromDriver(cu.cuMemGetInfo_v2(&free_now, &all)));
    if (free_bytes) *free_bytes = free_now;
    if (total) *total = all;
    return cudaSuccess;
  });
}

cudaError_t PointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (!attributes) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) {
    *attributes = {};
    CUdeviceptr address = Device(pointer);
    CUmemorytype type{};
    CUresult result = cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    if (result == CUDA_ERROR_INVALID_VALUE) {  // memory that CUDA does not know
      attributes->type = cudaMemoryTypeUnregistered;
      attributes->device = cudaInvalidDeviceId;
      attributes->hostPointer = const_cast<void*>(pointer);
      return cudaSuccess;
    }
    RUNTIME_TRY(FromDriver(result));
    unsigned int managed = 0;
    if (cu.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) != CUDA_SUCCESS)
      managed = 0;
    attributes->type = managed                      ? cudaMemoryTypeManaged
                       : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                                                    : cudaMemoryTypeDevice;
    int device = 0;
    RUNTIME_TRY(FromDriver(cu.cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address)));
    attributes->device = device;
    // An address that one side cannot use has none there.
    CUdeviceptr on_device = 0;
    if (cu.cuPointerGetAttribute(&on_device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address) == CUDA_SUCCESS)
      attributes->devicePointer = Pointer(on_device);
    void* on_host = nullptr;
    if (attributes->type != cudaMemoryTypeDevice &&
        cu.cuPointerGetAttribute(&on_host, CU_POINTER_ATTRIBUTE_HOST_POINTER, address) == CUDA_SUCCESS)
      attributes->hostPointer = on_host;
    return cudaSuccess;
  });
}

#if CUPLEX_CUDART_MAJOR == 12
cudaError_t MemAdvise(const void* pointer, size_t count, cudaMemoryAdvise advice, int device) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuMemAdvise(Device(pointer), count, static_cast<CUmem_advise>(advice), device);
  });
}

cudaError_t MemPrefetchAsync(const void* pointer, size_t count, int device, cudaStream_t stream) {
  return InContext(
      [&](const DriverTable& cu) { return cu.cuMemPrefetchAsync(Device(pointer), count, device, stream); });
}

cudaError_t MemAdvise_v2(const void* pointer, size_t count, cudaMemoryAdvise advice,
                         cudaMemLocation location) {
#else
cudaError_t MemAdvise(const void* pointer, size_t count, cudaMemoryAdvise advice, cudaMemLocation location) {
#endif
  return InContext([&](const DriverTable& cu) {
    return cu.cuMemAdvise_v2(Device(pointer), count, static_cast<CUmem_advise>(advice), location);
  });
}

#if CUPLEX_CUDART_MAJOR == 12
cudaError_t MemPrefetchAsync_v2(const void* pointer, size_t count, cudaMemLocation location,
                                unsigned int flags,
#else
cudaError_t MemPrefetchAsync(const void* pointer, size_t count, cudaMemLocation location, unsigned int flags,
#endif
                                cudaStream_t stream) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuMemPrefetchAsync_v2(Device(pointer), count, location, flags, stream);
  });
}

cudaError_t IpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  return InContext([&](const DriverTable& cu) { return cu.cuIpcGetMemHandle(handle, Device(pointer)); });
}

cudaError_t IpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned int flags) {
  if (!pointer) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) {
    CUdeviceptr address = 0;
    RUNTIME_TRY(FromDriver(cu.cuIpcOpenMemHandle_v2(&address, handle, flags)));
    *pointer = Pointer(address);
    return cudaSuccess;
  });
}

cudaError_t IpcCloseMemHandle(void* pointer) {
  return InContext([&](const DriverTable& cu) { return cu.cuIpcCloseMemHandle(Device(pointer)); });
}

}  // namespace cuplex::runtime
