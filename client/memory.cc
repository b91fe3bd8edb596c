// Device memory: allocate, free, and what is known of an address range.
#include <algorithm>

#include "client/exports.h"
#include "client/graph/capture.h"
#include "client/host_memory.h"
#include "client/memory_pool.h"

namespace cuplex::client {

CUresult AllocateDevice(const Caller& caller, uint64_t bytes, Allocation::Kind kind, CUdeviceptr* out) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  Submission& submission = caller.session->submission();
  if (CUresult r = submission.TakeDeferred()) return r;
  wire::cuMemAlloc_v2Reply reply;
  if (CUresult r = submission.Ask(Op::cuMemAlloc_v2, caller.number, wire::cuMemAlloc_v2Args(bytes), &reply))
    return r;
  Allocation a;
  a.base = reply.dptr();
  a.bytes = bytes;
  a.kind = kind;
  a.context = caller.number;
  a.device = caller.context->device;
  caller.session->allocations.Insert(a);
  *out = a.base;
  return CUDA_SUCCESS;
}

namespace {

constexpr uint64_t kPitchAlignment = 512;

CUresult Free(Session& session, const Allocation& a) {
  if (a.kind == Allocation::kManaged) return FreeHostMemory(session, a);
  if (a.kind == Allocation::kPool) session.pools.Gave(a.device, a.bytes);
  return session.submission().Post(Op::cuMemFree_v2, a.context, wire::cuMemFree_v2Args(a.base));
}

/// Memory that a graph has allocated stays where it is, for its next launch. False where it is no such
/// memory, or not allocated at the time.
bool FreeOfGraph(Session& session, CUdeviceptr address) {
  const auto a = session.allocations.Find(address);
  if (!a || a->kind != Allocation::kGraph) return false;
  std::lock_guard lock(session.graphs.mutex);
  auto memory = session.graphs.FindMemory(address);
  if (!memory || !memory->allocated) return false;
  session.graphs.Allocated(*memory, false);
  return true;
}

/// Advice and prefetching ask for managed memory.
CUresult CheckManaged(CUdeviceptr address, size_t bytes) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  const auto a = session->allocations.Find(address);
  if (bytes == 0 || !a || a->kind != Allocation::kManaged || !session->allocations.Holds(address, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult CheckLocation(CUmemLocation location) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE && !session->HasDevice(location.id))
    return CUDA_ERROR_INVALID_DEVICE;
  return CUDA_SUCCESS;
}

CUmemLocation LocationOf(CUdevice device) {
  if (device == CU_DEVICE_CPU) return {CU_MEM_LOCATION_TYPE_HOST, 0};
  return {CU_MEM_LOCATION_TYPE_DEVICE, device};
}

}  // namespace
}  // namespace cuplex::client

using namespace cuplex::client;
using cuplex::Handle;
using cuplex::Op;
namespace wire = cuplex::wire;

extern "C" {

CUresult cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize) {
  if (!dptr) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  if (CUresult r = RefuseUnsafe(*caller.session)) return r;
  return AllocateDevice(caller, bytesize, Allocation::kDevice, dptr);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pPitch, size_t width, size_t height,
                            unsigned int element) {
  if (!dptr || !pPitch || width == 0 || height == 0 || (element != 4 && element != 8 && element != 16))
    return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  uint64_t pitch, bytes;
  if (__builtin_add_overflow(width, kPitchAlignment - 1, &pitch) ||
      __builtin_mul_overflow(pitch &= ~(kPitchAlignment - 1), height, &bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (CUresult r = AllocateDevice(caller, bytes, Allocation::kDevice, dptr)) return r;
  *pPitch = pitch;
  return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr dptr) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  if (!dptr) return CUDA_SUCCESS;
  if (CUresult r = RefuseUnsafe(*session)) return r;
  if (FreeOfGraph(*session, dptr)) return CUDA_SUCCESS;
  const auto a =
      session->allocations.Take(dptr, {Allocation::kDevice, Allocation::kPool, Allocation::kManaged});
  return a ? Free(*session, *a) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  Handle stream;
  if (CUresult r = ResolveStream(caller, hStream, &stream)) return r;
  if (!dptr) return CUDA_SUCCESS;
  if (Capturing(caller)) [[unlikely]] {
    CUresult captured;
    if (CaptureFree(caller, hStream, dptr, &captured)) return captured;
  }
  if (FreeOfGraph(*caller.session, dptr)) return CUDA_SUCCESS;
  const auto a = caller.session->allocations.Take(dptr, {Allocation::kDevice, Allocation::kPool});
  if (!a) return CUDA_ERROR_INVALID_VALUE;
  if (a->kind == Allocation::kPool) caller.session->pools.Gave(a->device, a->bytes);
  return caller.session->submission().Post(Op::wireFreeAsync, caller.number,
                                           wire::wireFreeAsyncArgs(dptr, stream));
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
  Session* session;
  if (CUresult r = Enter(&session)) return r;
  const auto a = session->allocations.Find(dptr);
  if (!a || a->kind == Allocation::kRegistered) return CUDA_ERROR_NOT_FOUND;
  if (pbase) *pbase = a->base;
  if (psize) *psize = a->bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise, CUmemLocation location) {
  if (CUresult r = CheckLocation(location)) return r;
  return CheckManaged(devPtr, count);
}

CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device) {
  return cuMemAdvise_v2(devPtr, count, advice, LocationOf(device));
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags,
                               CUstream hStream) {
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  Handle stream;
  if (CUresult r = ResolveStream(caller, hStream, &stream)) return r;
  if (CUresult r = CheckLocation(location)) return r;
  return CheckManaged(devPtr, count);
}

CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream) {
  return cuMemPrefetchAsync_v2(devPtr, count, LocationOf(dstDevice), 0, hStream);
}

}  // extern "C"
