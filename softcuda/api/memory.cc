// Memory of the device: allocations, managed memory, stream-ordered allocation and its pools.
#include <algorithm>

#include "softcuda/exports.h"
#include "softcuda/graph/recorder.h"

using namespace cuplex;
using namespace cuplex::softcuda;

namespace {

constexpr unsigned Bit(Block::Kind kind) { return 1u << static_cast<unsigned>(kind); }

constexpr size_t kPitch = 512;

CUresult Allocate(Context& context, Block::Kind kind, size_t size, unsigned flags, CUdeviceptr* out) {
  if (!out || !size) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult refused = context.driver.graphs.RefuseUnsafe()) return refused;
  Block want;
  want.kind = kind;
  want.size = size;
  want.flags = flags;
  want.device = &context.device;
  want.context = &context;
  uintptr_t base;
  if (CUresult failed = context.driver.memory.Allocate(std::move(want), &base)) return failed;
  *out = base;
  return CUDA_SUCCESS;
}

// Memory of a graph's allocation node, where that is one.
std::shared_ptr<graph::Memory> GraphMemory(Driver& driver, CUdeviceptr address) {
  if (!driver.graphs.has_memory()) return nullptr;
  std::lock_guard guard(driver.graphs.lock);
  return driver.graphs.MemoryAt(address);
}

// It may be allocated again by the next launch; the memory stays the graph's.
CUresult FreeGraphMemory(Driver& driver, graph::Memory& memory) {
  std::lock_guard guard(driver.graphs.lock);
  if (!memory.allocated) return CUDA_ERROR_INVALID_VALUE;
  driver.graphs.SetAllocated(memory, false);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  return InContext([&](Context& context) -> CUresult {
    if (free) *free = context.device.memory_bytes - context.device.used_bytes();
    if (total) *total = context.device.memory_bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize) {
  return InContext(
      [&](Context& context) { return Allocate(context, Block::Kind::kDevice, bytesize, 0, dptr); });
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes) {
  return InContext([&](Context& context) -> CUresult {
    bool element = ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16;
    if (!pPitch || !element || !WidthInBytes || !Height || WidthInBytes > INT32_MAX)
      return CUDA_ERROR_INVALID_VALUE;
    size_t pitch = (WidthInBytes + kPitch - 1) / kPitch * kPitch, size;
    if (__builtin_mul_overflow(pitch, Height, &size)) return CUDA_ERROR_OUT_OF_MEMORY;
    if (CUresult failed = Allocate(context, Block::Kind::kDevice, size, 0, dptr)) return failed;
    *pPitch = pitch;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAllocManaged(CUdeviceptr* dptr, size_t bytesize, unsigned int flags) {
  return InContext([&](Context& context) -> CUresult {
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
    return Allocate(context, Block::Kind::kManaged, bytesize, flags, dptr);
  });
}

CUresult cuMemFree_v2(CUdeviceptr dptr) {
  return InContext([&](Context& current) -> CUresult {
    if (!dptr) return CUDA_SUCCESS;
    if (CUresult refused = current.driver.graphs.RefuseUnsafe()) return refused;
    if (auto memory = GraphMemory(current.driver, dptr)) {
      if (CUresult wrong = FreeGraphMemory(current.driver, *memory)) return wrong;
      current.Synchronize();
      return current.fault();
    }
    auto block = current.driver.memory.BlockAt(dptr);
    constexpr unsigned kKinds =
        Bit(Block::Kind::kDevice) | Bit(Block::Kind::kManaged) | Bit(Block::Kind::kPool);
    if (!block || !(Bit(block->kind) & kKinds)) return CUDA_ERROR_INVALID_VALUE;
    // Kernels that were submitted before may still use it.
    if (Ref<Context> owner = current.driver.contexts.Find(block->context)) owner->Synchronize();
    CUresult freed = current.driver.memory.Free(dptr, kKinds);
    return freed ? freed : current.fault();
  });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
  return InContext([&](Context& context) -> CUresult {
    Located located = context.driver.memory.Find(dptr);
    uintptr_t base = located.block ? located.block->base : located.mapping_base;
    size_t size = located.block ? located.block->size : located.mapping_size;
    if (!size) return CUDA_ERROR_NOT_FOUND;
    if (pbase) *pbase = base;
    if (psize) *psize = size;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation) {
  return InContext([&](Context& context) -> CUresult {
    auto block = context.driver.memory.Find(devPtr).block;
    if (!count || !block || block->kind != Block::Kind::kManaged ||
        count > block->base + block->size - devPtr || advice < CU_MEM_ADVISE_SET_READ_MOSTLY ||
        advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags,
                               CUstream hStream) {
  return InContext([&](Context& context) -> CUresult {
    auto block = context.driver.memory.Find(devPtr).block;
    if (!count || flags || !block || block->kind != Block::Kind::kManaged ||
        count > block->base + block->size - devPtr) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE && !context.driver.DeviceAt(location.id)) {
      return CUDA_ERROR_INVALID_DEVICE;
    }
    Submission submission(context, hStream);
    return submission.result;  // it is everywhere already
  });
}

// ------------------------------------------------------------------------------- stream-ordered allocation

namespace {

CUresult AllocateFrom(Context& current, Ref<Pool> pool, CUdeviceptr* out, size_t size, CUstream handle) {
  if (!out || !size) return CUDA_ERROR_INVALID_VALUE;
  Ref<Stream> stream;
  Context* context;
  {
    Submission submission(current, handle, Submission::Captured::kTake);
    if (submission.result) return submission.result;
    if (submission.captured()) [[unlikely]] {
      CapturedStream to(submission);
      return CaptureAlloc(to, size, out);
    }
    stream = HandleTable<Stream>::Share(&submission.stream());
    context = &submission.context();
  }
  if (&pool->device != &context->device) return CUDA_ERROR_INVALID_VALUE;
  Block want;
  want.kind = Block::Kind::kPool;
  want.size = size;
  want.device = &context->device;
  want.context = context;
  want.pool = std::move(pool);
  uintptr_t base;
  CUresult result = current.driver.memory.Allocate(want, &base);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && !stream->Idle()) {
    // What the stream frees before this point is this allocation's to take.
    stream->Wait(stream->submitted());
    result = current.driver.memory.Allocate(want, &base);
  }
  if (result) return result;
  *out = base;
  return CUDA_SUCCESS;
}

Ref<Pool> CurrentPool(Device& device) {
  std::lock_guard guard(device.lock);
  return device.current_pool;
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  return InContext([&](Context& context) {
    return AllocateFrom(context, CurrentPool(context.device), dptr, bytesize, hStream);
  });
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream) {
  return InContext([&](Context& context) -> CUresult {
    Ref<Pool> found = context.driver.pools.Find(pool);
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    return AllocateFrom(context, std::move(found), dptr, bytesize, hStream);
  });
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  return InContext([&](Context& current) -> CUresult {
    if (!dptr) return CUDA_SUCCESS;
    auto memory = GraphMemory(current.driver, dptr);
    if (memory || current.driver.graphs.capturing()) [[unlikely]] {
      Submission submission(current, hStream, Submission::Captured::kTake);
      if (submission.result) return submission.result;
      if (submission.captured()) {
        CapturedStream to(submission);
        return memory ? to.Append(graph::FreeWork{std::move(memory)}) : CUDA_ERROR_INVALID_VALUE;
      }
      submission.Release();
      if (memory) return FreeGraphMemory(current.driver, *memory);
    }
    constexpr unsigned kKinds = Bit(Block::Kind::kPool) | Bit(Block::Kind::kDevice);
    auto block = current.driver.memory.BlockAt(dptr);
    if (!block || !(Bit(block->kind) & kKinds)) return CUDA_ERROR_INVALID_VALUE;
    Submission submission(current, hStream);
    if (submission.result) return submission.result;
    submission.Push(
        [&memory = current.driver.memory, base = block->base, id = block->id](Stream&) {
          // Freed twice, the address may be another block's by now.
          if (auto now = memory.BlockAt(base); now && now->id == id) (void)memory.Free(base, kKinds);
          return Progress::kDone;
        },
        /*always=*/true);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool_out, CUdevice dev) {
  return OnDevice(dev, [&](Device& device) -> CUresult {
    if (!pool_out) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard guard(device.lock);
    *pool_out = reinterpret_cast<CUmemoryPool>(device.default_pool.get());
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) {
  return OnDevice(dev, [&](Device& device) -> CUresult {
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard guard(device.lock);
    *pool = reinterpret_cast<CUmemoryPool>(device.current_pool.get());
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  return OnDevice(dev, [&](Device& device) -> CUresult {
    Ref<Pool> found = RunningDriver()->pools.Find(pool);
    if (!found || &found->device != &device) return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard guard(device.lock);
    device.current_pool = std::move(found);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t) {
  return InDriver([&](Driver& driver) -> CUresult {
    // Nothing is kept that could be trimmed.
    return driver.pools.Find(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  return InDriver([&](Driver& driver) -> CUresult {
    Ref<Pool> found = driver.pools.Find(pool);
    if (!found || !value) return CUDA_ERROR_INVALID_VALUE;
    auto flag = [&](std::atomic<int>& from) { *static_cast<int*>(value) = from.load(); };
    auto bytes = [&](std::atomic<uint64_t>& from) { *static_cast<cuuint64_t*>(value) = from.load(); };
    switch (attr) {
      case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        flag(found->reuse_follow);
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        flag(found->reuse_opportunistic);
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        flag(found->reuse_internal);
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        bytes(found->release_threshold);
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        bytes(found->used);
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        bytes(found->used_high);
        return CUDA_SUCCESS;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  return InDriver([&](Driver& driver) -> CUresult {
    Ref<Pool> found = driver.pools.Find(pool);
    if (!found || !value) return CUDA_ERROR_INVALID_VALUE;
    switch (attr) {
      case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        found->reuse_follow = *static_cast<int*>(value);
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        found->reuse_opportunistic = *static_cast<int*>(value);
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        found->reuse_internal = *static_cast<int*>(value);
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        found->release_threshold = *static_cast<cuuint64_t*>(value);
        return CUDA_SUCCESS;
      case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        // A high-water mark can only be set back.
        if (*static_cast<cuuint64_t*>(value)) return CUDA_ERROR_INVALID_VALUE;
        found->used_high = found->used.load();
        return CUDA_SUCCESS;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  });
}
