// Host memory that the device sees: pinned and registered. A pinned pointer is also its device pointer.
#include "softcuda/exports.h"

using namespace cuplex;
using namespace cuplex::softcuda;

namespace {

CUresult AllocatePinned(void** out, size_t size, unsigned flags) {
  return InContext([&](Context& context) -> CUresult {
    constexpr unsigned kKnown =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (!out || !size || flags & ~kKnown) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult refused = context.driver.graphs.RefuseUnsafe()) return refused;
    Block want;
    want.kind = Block::Kind::kPinned;
    want.size = size;
    want.flags = flags;
    want.device = &context.device;
    want.context = &context;
    uintptr_t base;
    if (CUresult failed = context.driver.memory.Allocate(std::move(want), &base)) return failed;
    *out = reinterpret_cast<void*>(base);
    return CUDA_SUCCESS;
  });
}

// The pinned or registered block around a host pointer.
std::optional<Block> HostBlock(Driver& driver, void* p) {
  auto block = driver.memory.Find(reinterpret_cast<uintptr_t>(p)).block;
  return block && block->on_host() ? block : std::nullopt;
}

}  // namespace

CUresult cuMemHostAlloc(void** pp, size_t bytesize, unsigned int Flags) {
  return AllocatePinned(pp, bytesize, Flags);
}
CUresult cuMemAllocHost_v2(void** pp, size_t bytesize) { return AllocatePinned(pp, bytesize, 0); }
CUresult cuMemAllocHost(void** pp, unsigned int bytesize) { return AllocatePinned(pp, bytesize, 0); }

CUresult cuMemFreeHost(void* p) {
  return InContext([&](Context& current) -> CUresult {
    auto base = reinterpret_cast<uintptr_t>(p);
    auto block = current.driver.memory.BlockAt(base);
    if (!block || block->kind != Block::Kind::kPinned) return CUDA_ERROR_INVALID_VALUE;
    if (Ref<Context> owner = current.driver.contexts.Find(block->context)) owner->Synchronize();
    return current.driver.memory.Free(base, 1u << static_cast<unsigned>(Block::Kind::kPinned));
  });
}

CUresult cuMemHostRegister_v2(void* p, size_t bytesize, unsigned int Flags) {
  return InContext([&](Context& context) -> CUresult {
    constexpr unsigned kKnown = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
    if (!p || !bytesize || Flags & ~kKnown) return CUDA_ERROR_INVALID_VALUE;
    if (Flags & CU_MEMHOSTREGISTER_IOMEMORY) return CUDA_ERROR_NOT_SUPPORTED;
    Block want;
    want.base = reinterpret_cast<uintptr_t>(p);
    want.size = bytesize;
    want.flags = Flags;
    want.device = &context.device;
    want.context = &context;
    return context.driver.memory.Register(std::move(want));
  });
}

CUresult cuMemHostUnregister(void* p) {
  return InContext([&](Context& current) -> CUresult {
    auto base = reinterpret_cast<uintptr_t>(p);
    auto block = current.driver.memory.BlockAt(base);
    if (!p) return CUDA_ERROR_INVALID_VALUE;
    if (block && block->kind == Block::Kind::kRegistered) {
      if (Ref<Context> owner = current.driver.contexts.Find(block->context)) owner->Synchronize();
    }
    return current.driver.memory.Unregister(base);
  });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p, unsigned int Flags) {
  return InContext([&](Context& context) -> CUresult {
    if (!pdptr || Flags || !HostBlock(context.driver, p)) return CUDA_ERROR_INVALID_VALUE;
    *pdptr = reinterpret_cast<uintptr_t>(p);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostGetFlags(unsigned int* pFlags, void* p) {
  return InContext([&](Context& context) -> CUresult {
    auto block = HostBlock(context.driver, p);
    if (!pFlags || !block) return CUDA_ERROR_INVALID_VALUE;
    // With unified addresses all pinned memory is mapped.
    *pFlags = block->flags | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
  });
}
