// Stream-ordered allocation and memory pools.
#include "client/runtime/calls.h"
#include "client/runtime/runtime.h"

namespace cuplex::runtime {

cudaError_t MallocAsync(void** pointer, size_t size, cudaStream_t stream) {
  if (!pointer) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) {
    *pointer = nullptr;
    if (size == 0) return cudaSuccess;
    CUdeviceptr address = 0;
    RUNTIME_TRY(FromDriver(cu.cuMemAllocAsync(&address, size, stream)));
    *pointer = Pointer(address);
    return cudaSuccess;
  });
}

cudaError_t MallocFromPoolAsync(void** pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  if (!pointer) return cudaErrorInvalidValue;
  return InContext([&](const DriverTable& cu) {
    *pointer = nullptr;
    if (size == 0) return cudaSuccess;
    CUdeviceptr address = 0;
    RUNTIME_TRY(FromDriver(cu.cuMemAllocFromPoolAsync(&address, size, pool, stream)));
    *pointer = Pointer(address);
    return cudaSuccess;
  });
}

cudaError_t FreeAsync(void* pointer, cudaStream_t stream) {
  return InContext([&](const DriverTable& cu) {
    return pointer ? cu.cuMemFreeAsync(Device(pointer), stream) : CUDA_SUCCESS;
  });
}

cudaError_t DeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return InDriver([&](const DriverTable& cu) { return cu.cuDeviceGetDefaultMemPool(pool, device); });
}

cudaError_t DeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return InDriver([&](const DriverTable& cu) { return cu.cuDeviceGetMemPool(pool, device); });
}

cudaError_t DeviceSetMemPool(int device, cudaMemPool_t pool) {
  return InDriver([&](const DriverTable& cu) { return cu.cuDeviceSetMemPool(device, pool); });
}

cudaError_t MemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return InContext([&](const DriverTable& cu) { return cu.cuMemPoolCreate(pool, properties); });
}

cudaError_t MemPoolDestroy(cudaMemPool_t pool) {
  return InContext([&](const DriverTable& cu) { return cu.cuMemPoolDestroy(pool); });
}

cudaError_t MemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  return InContext([&](const DriverTable& cu) { return cu.cuMemPoolTrimTo(pool, keep); });
}

cudaError_t MemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuMemPoolGetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value);
  });
}

cudaError_t MemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuMemPoolSetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value);
  });
}

cudaError_t MemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuMemPoolGetAccess(reinterpret_cast<CUmemAccess_flags*>(flags), pool, location);
  });
}

cudaError_t MemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* descriptions, size_t count) {
  return InContext([&](const DriverTable& cu) { return cu.cuMemPoolSetAccess(pool, descriptions, count); });
}

}  // namespace cuplex::runtime
