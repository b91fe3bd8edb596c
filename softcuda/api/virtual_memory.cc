// Virtual memory: addresses without memory, memory without addresses, and mapping the one to the other.
#include <fcntl.h>

#include <algorithm>

#include "base/unique_fd.h"
#include "softcuda/exports.h"

using namespace cuplex;
using namespace cuplex::softcuda;

namespace {

CUmemGenericAllocationHandle HandleOf(const Ref<Physical>& physical) {
  return reinterpret_cast<CUmemGenericAllocationHandle>(physical.get());
}

Ref<Physical> FindPhysical(Driver& driver, CUmemGenericAllocationHandle handle) {
  return driver.physicals.Find(reinterpret_cast<void*>(handle));
}

// The device that a property set asks memory of.
CUresult CheckProperties(Driver& driver, const CUmemAllocationProp* prop, Device** device) {
  if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return prop->location.type == CU_MEM_LOCATION_TYPE_NONE ? CUDA_ERROR_INVALID_VALUE
                                                            : CUDA_ERROR_NOT_SUPPORTED;
  }
  if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  *device = driver.DeviceAt(prop->location.id);
  return *device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace

CUresult cuMemAddressReserve(CUdeviceptr* ptr, size_t size, size_t alignment, CUdeviceptr addr,
                             unsigned long long flags) {
  return InDriver([&](Driver& driver) -> CUresult {
    if (!ptr || flags) return CUDA_ERROR_INVALID_VALUE;
    uintptr_t base;
    if (CUresult failed = driver.memory.Reserve(size, alignment, addr, &base)) return failed;
    *ptr = base;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) {
  return InDriver([&](Driver& driver) { return driver.memory.Unreserve(ptr, size); });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* prop,
                     unsigned long long flags) {
  return InDriver([&](Driver& driver) -> CUresult {
    if (!handle || flags) return CUDA_ERROR_INVALID_VALUE;
    Device* device;
    if (CUresult wrong = CheckProperties(driver, prop, &device)) return wrong;
    Ref<Physical> physical;
    if (CUresult failed = driver.memory.Create(*device, size, *prop, &physical)) return failed;
    *handle = HandleOf(physical);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return InDriver([&](Driver& driver) -> CUresult {
    Ref<Physical> physical = FindPhysical(driver, handle);
    return physical ? driver.memory.Release(physical) : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  return InDriver([&](Driver& driver) -> CUresult {
    Ref<Physical> physical = FindPhysical(driver, handle);
    if (!physical || flags) return CUDA_ERROR_INVALID_VALUE;
    return driver.memory.Map(ptr, size, offset, physical);
  });
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
  return InDriver([&](Driver& driver) { return driver.memory.Unmap(ptr, size); });
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc* desc, size_t count) {
  return InDriver([&](Driver& driver) -> CUresult {
    if (!desc || !count) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) {
      if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
      if (!driver.DeviceAt(desc[i].location.id)) return CUDA_ERROR_INVALID_DEVICE;
      if (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
          desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
        return CUDA_ERROR_INVALID_VALUE;
      }
    }
    // All devices live in this process, where memory has one protection: the widest that was asked for.
    CUmemAccess_flags widest = desc[0].flags;
    for (size_t i = 1; i < count; ++i) widest = std::max(widest, desc[i].flags);
    return driver.memory.SetAccess(ptr, size, widest);
  });
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr ptr) {
  return InDriver([&](Driver& driver) -> CUresult {
    if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (!driver.DeviceAt(location->id)) return CUDA_ERROR_INVALID_DEVICE;
    Located located = driver.memory.Find(ptr);
    if (!located.mapping_size) return CUDA_ERROR_INVALID_VALUE;
    *flags = located.access;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags option) {
  return InDriver([&](Driver& driver) -> CUresult {
    Device* device;
    if (!granularity ||
        (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM && option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (CUresult wrong = CheckProperties(driver, prop, &device)) return wrong;
    *granularity = kMappingUnit;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop,
                                                CUmemGenericAllocationHandle handle) {
  return InDriver([&](Driver& driver) -> CUresult {
    Ref<Physical> physical = FindPhysical(driver, handle);
    if (!prop || !physical) return CUDA_ERROR_INVALID_VALUE;
    *prop = physical->prop;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* addr) {
  return InDriver([&](Driver& driver) -> CUresult {
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    Ref<Physical> physical = driver.memory.Find(reinterpret_cast<uintptr_t>(addr)).physical;
    if (!physical || !driver.memory.Retain(physical)) return CUDA_ERROR_INVALID_VALUE;
    *handle = HandleOf(physical);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemExportToShareableHandle(void* shareableHandle, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType handleType, unsigned long long flags) {
  return InDriver([&](Driver& driver) -> CUresult {
    Ref<Physical> physical = FindPhysical(driver, handle);
    if (!shareableHandle || !physical || flags) return CUDA_ERROR_INVALID_VALUE;
    if (handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    if (!(physical->prop.requestedHandleTypes & handleType)) return CUDA_ERROR_INVALID_VALUE;
    int fd = fcntl(physical->file.get(), F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    *static_cast<int*>(shareableHandle) = fd;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* osHandle,
                                        CUmemAllocationHandleType shHandleType) {
  return InDriver([&](Driver& driver) -> CUresult {
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    if (shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
    Context* current = Thread::Here().current();
    Device& device = current ? current->device : *driver.devices[0];
    Ref<Physical> physical;
    int fd = static_cast<int>(reinterpret_cast<intptr_t>(osHandle));
    if (CUresult failed = driver.memory.Import(device, fd, &physical)) return failed;
    *handle = HandleOf(physical);
    return CUDA_SUCCESS;
  });
}
