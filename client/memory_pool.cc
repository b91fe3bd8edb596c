#include "client/memory_pool.h"

#include <algorithm>

#include "client/exports.h"
#include "client/graph/capture.h"

namespace cuplex::client {

MemoryPools::MemoryPools(int devices) {
  for (int d = 0; d < devices; ++d) pools_.push_back(std::make_unique<Pool>());
}

CUmemoryPool MemoryPools::DefaultOf(int device) const {
  return reinterpret_cast<CUmemoryPool>(pools_[device].get());
}

int MemoryPools::DeviceOf(CUmemoryPool pool) const {
  for (size_t d = 0; d < pools_.size(); ++d)
    if (DefaultOf(static_cast<int>(d)) == pool) return static_cast<int>(d);
  return -1;
}

void MemoryPools::Took(int device, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  Pool& pool = *pools_[device];
  pool.used += bytes;
  pool.most_used = std::max(pool.most_used, pool.used);
}

void MemoryPools::Gave(int device, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  pools_[device]->used -= bytes;
}

CUresult MemoryPools::Get(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  const int device = DeviceOf(handle);
  if (device < 0 || !value) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(mutex_);
  const Pool& pool = *pools_[device];
  auto* bytes = static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *static_cast<int*>(value) = pool.reuse[attribute];
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      *bytes = pool.release_threshold;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      *bytes = pool.used;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      *bytes = pool.most_used;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult MemoryPools::Set(CUmemoryPool handle, CUmemPool_attribute attribute, const void* value) {
  const int device = DeviceOf(handle);
  if (device < 0 || !value) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(mutex_);
  Pool& pool = *pools_[device];
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool.reuse[attribute] = *static_cast<const int*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool.release_threshold = *static_cast<const cuuint64_t*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (*static_cast<const cuuint64_t*>(value) != 0)
        return CUDA_ERROR_INVALID_VALUE;  // it can be reset only
      pool.most_used = pool.used;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace cuplex::client

using namespace cuplex::client;

extern "C" {

CUresult cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  if (!dptr) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  cuplex::Handle stream;
  if (CUresult r = ResolveStream(caller, hStream, &stream)) return r;
  if (Capturing(caller)) [[unlikely]] {
    CUresult captured;
    if (CaptureAlloc(caller, hStream, bytesize, dptr, &captured)) return captured;
  }
  // It is there before the stream gets to it, which is sooner than promised.
  if (CUresult r = AllocateDevice(caller, bytesize, Allocation::kPool, dptr)) return r;
  caller.session->pools.Took(caller.context->device, bytesize);
  return CUDA_SUCCESS;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream) {
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  const int device = caller.session->pools.DeviceOf(pool);
  if (device < 0) return CUDA_ERROR_INVALID_VALUE;
  if (device != caller.context->device) return CUDA_ERROR_NOT_SUPPORTED;
  return cuMemAllocAsync(dptr, bytesize, hStream);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice dev) {
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = EnterDevice(&session, dev)) return r;
  *pool = session->pools.DefaultOf(dev);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) { return cuDeviceGetDefaultMemPool(pool, dev); }

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  Session* session;
  if (CUresult r = EnterDevice(&session, dev)) return r;
  return session->pools.DeviceOf(pool) == dev ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  return session->pools.Get(pool, attr, value);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  return session->pools.Set(pool, attr, value);
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  return session->pools.DeviceOf(pool) < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // extern "C"
