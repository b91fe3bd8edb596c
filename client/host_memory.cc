#include "client/host_memory.h"

#include <sys/mman.h>

#include "base/log.h"
#include "client/exports.h"
#include "client/graph/capture.h"
#include "protocol/host_flags.h"

namespace cuplex::client {

CUresult FreeHostMemory(Session& session, const Allocation& a) {
  // First here: once the server has it back, another thread may get the same address.
  UnmapHostMemory(a.base, a.mapped_bytes);
  wire::wireHostFreeReply reply;
  return session.submission().Ask(Op::wireHostFree, a.context, wire::wireHostFreeArgs(a.base), &reply);
}

CUresult AllocateHostMemory(const Caller& caller, uint64_t bytes, Allocation::Kind kind, unsigned wire_flags,
                            uint64_t* address) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  Session& session = *caller.session;
  if (CUresult r = session.submission().TakeDeferred()) return r;
  wire::wireHostAllocReply reply;
  const wire::wireHostAllocArgs args(bytes, wire_flags);
  if (CUresult r = session.submission().Ask(Op::wireHostAlloc, caller.number, args, &reply)) return r;
  auto fd = session.TakeHostMemory(reply.address());
  if (!fd.ok()) return session.SayGone();

  Allocation a;
  a.base = reply.address();
  a.bytes = bytes;
  a.kind = kind;
  a.context = caller.number;
  a.device = caller.context->device;
  a.flags = wire_flags;
  a.mapped_bytes = reply.mapped_bytes();
  if (a.mapped_bytes < bytes || !session.snapshot().host_window.Contains(a.base, a.mapped_bytes)) {
    Log().error(
        "the server gave pinned memory at {:#x}+{:#x}, outside this process's part of the host window.",
        a.base, a.mapped_bytes);
    return CUDA_ERROR_UNKNOWN;
  }
  void* at = reinterpret_cast<void*>(a.base);
  if (mmap(at, a.mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd->get(), 0) == MAP_FAILED) {
    (void)FreeHostMemory(session, a);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  session.allocations.Insert(a);
  *address = a.base;
  return CUDA_SUCCESS;
}

}  // namespace cuplex::client

using namespace cuplex::client;

extern "C" {

CUresult cuMemHostAlloc(void** pp, size_t bytesize, unsigned int flags) {
  constexpr unsigned kKnown =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (!pp || (flags & ~kKnown)) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  if (CUresult r = RefuseUnsafe(*caller.session)) return r;
  uint64_t address;
  if (CUresult r = AllocateHostMemory(caller, bytesize, Allocation::kPinned, flags, &address)) return r;
  *pp = reinterpret_cast<void*>(address);
  return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void** pp, size_t bytesize) { return cuMemHostAlloc(pp, bytesize, 0); }

CUresult cuMemAllocHost(void** pp, unsigned int bytesize) { return cuMemHostAlloc(pp, bytesize, 0); }

CUresult cuMemAllocManaged(CUdeviceptr* dptr, size_t bytesize, unsigned int flags) {
  if (!dptr || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
    return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  uint64_t address;
  if (CUresult r = AllocateHostMemory(caller, bytesize, Allocation::kManaged, cuplex::kHostManaged, &address))
    return r;
  *dptr = address;
  return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void* p) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  if (!p) return CUDA_SUCCESS;
  const auto a = session->allocations.Take(reinterpret_cast<uint64_t>(p), {Allocation::kPinned});
  return a ? FreeHostMemory(*session, *a) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p, unsigned int flags) {
  if (!pdptr || flags) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  const auto a = session->allocations.Find(reinterpret_cast<uint64_t>(p));
  if (!a || a->on_device()) return CUDA_ERROR_INVALID_VALUE;
  // The program's own pages are not shared with the server, so no kernel can reach them.
  if (a->kind == Allocation::kRegistered) return CUDA_ERROR_NOT_SUPPORTED;
  *pdptr = reinterpret_cast<CUdeviceptr>(p);
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int* pFlags, void* p) {
  if (!pFlags) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  const auto a = session->allocations.Find(reinterpret_cast<uint64_t>(p));
  if (!a || a->kind != Allocation::kPinned) return CUDA_ERROR_INVALID_VALUE;
  *pFlags = a->flags;
  return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void* p, size_t bytesize, unsigned int flags) {
  constexpr unsigned kKnown = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                              CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
  if (!p || bytesize == 0 || (flags & ~kKnown)) return CUDA_ERROR_INVALID_VALUE;
  if (flags & CU_MEMHOSTREGISTER_IOMEMORY) return CUDA_ERROR_NOT_SUPPORTED;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  AllocationTable& table = caller.session->allocations;
  const uint64_t base = reinterpret_cast<uint64_t>(p);
  if (table.Find(base) || table.Find(base + bytesize - 1)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  Allocation a;
  a.base = base;
  a.bytes = bytesize;
  a.kind = Allocation::kRegistered;
  a.context = caller.number;
  a.device = caller.context->device;
  a.flags = flags;
  table.Insert(a);
  return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void* p) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  const auto a = session->allocations.Take(reinterpret_cast<uint64_t>(p), {Allocation::kRegistered});
  return a ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

}  // extern "C"
