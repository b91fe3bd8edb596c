// Copies between linear memories and arrays.
#include <algorithm>

#include "softcuda/array.h"
#include "softcuda/exports.h"
#include "softcuda/transfer.h"

using namespace cuplex;
using namespace cuplex::softcuda;

namespace {

CUresult CopyBytes(CUstream stream, bool wait, EndKind to_kind, uintptr_t to, EndKind from_kind,
                   uintptr_t from, size_t bytes) {
  return InContext([&](Context& context) {
    return Transfer(context, stream, wait, {to_kind, {to}}, {from_kind, {from}}, {bytes});
  });
}

uintptr_t At(const void* p) { return reinterpret_cast<uintptr_t>(p); }

CUresult Copy3D(const CUDA_MEMCPY3D* copy, CUstream stream, bool wait) {
  return InContext([&](Context& context) -> CUresult {
    if (!copy) return CUDA_ERROR_INVALID_VALUE;
    TransferEnd target, source;
    Box box;
    if (CUresult wrong = ReadCopy(context, *copy, &target, &source, &box)) return wrong;
    return Transfer(context, stream, wait, target, source, box, copy);
  });
}

CUresult Copy2D(const CUDA_MEMCPY2D* c, CUstream stream, bool wait) {
  if (!c) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D wide{};
  wide.srcXInBytes = c->srcXInBytes;
  wide.srcY = c->srcY;
  wide.srcMemoryType = c->srcMemoryType;
  wide.srcHost = c->srcHost;
  wide.srcDevice = c->srcDevice;
  wide.srcArray = c->srcArray;
  wide.srcPitch = c->srcPitch;
  wide.dstXInBytes = c->dstXInBytes;
  wide.dstY = c->dstY;
  wide.dstMemoryType = c->dstMemoryType;
  wide.dstHost = c->dstHost;
  wide.dstDevice = c->dstDevice;
  wide.dstArray = c->dstArray;
  wide.dstPitch = c->dstPitch;
  wide.WidthInBytes = c->WidthInBytes;
  wide.Height = c->Height;
  wide.Depth = 1;
  return Copy3D(&wide, stream, wait);
}

// One end of a copy of a run of bytes: linear memory, or an array, whose bytes count row after row.
struct RunEnd {
  EndKind kind;
  uintptr_t at;  // address, or bytes from the array's beginning
  bool in_array;
  CUarray handle;

  static RunEnd Linear(EndKind kind, uintptr_t at) { return {kind, at, false, nullptr}; }
  static RunEnd In(CUarray array, size_t offset) { return {EndKind::kDevice, offset, true, array}; }
};

// Finds the array of an end, and checks that the run lies in it.
CUresult Find(Context& context, const RunEnd& end, size_t bytes, Ref<Array>* array) {
  if (!end.in_array) return CUDA_SUCCESS;
  *array = context.driver.arrays.Find(end.handle);
  if (!*array) return CUDA_ERROR_INVALID_HANDLE;
  const Box whole = (*array)->extent();
  const size_t room = whole.width * whole.height, texel = (*array)->layout.format.bytes();
  const bool wrong =
      whole.depth > 1 || end.at > room || bytes > room - end.at || end.at % texel || bytes % texel;
  return wrong ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// Where the run goes on after `done` bytes, and for how many of `*piece` it stays in one row.
void PlaceRun(const RunEnd& end, const Array* array, size_t done, size_t* piece, TransferEnd* out) {
  *out = {end.kind, {end.at + done}};
  if (!array) return;
  const size_t width = array->extent().width, x = (end.at + done) % width, y = (end.at + done) / width;
  *piece = std::min(*piece, width - x);
  out->at = {array->base + y * array->at.row_pitch + x};
}

CUresult CopyRun(CUstream stream, bool wait, RunEnd to, RunEnd from, size_t bytes) {
  return InContext([&](Context& context) -> CUresult {
    Ref<Array> to_array, from_array;
    if (CUresult wrong = Find(context, to, bytes, &to_array)) return wrong;
    if (CUresult wrong = Find(context, from, bytes, &from_array)) return wrong;
    for (size_t done = 0; done < bytes;) {
      size_t piece = bytes - done;
      TransferEnd target, source;
      PlaceRun(to, to_array.get(), done, &piece, &target);
      PlaceRun(from, from_array.get(), done, &piece, &source);
      if (CUresult failed = Transfer(context, stream, wait, target, source, {piece})) return failed;
      done += piece;
    }
    return CUDA_SUCCESS;
  });
}

CUresult CopyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                  size_t bytes, CUstream stream, bool wait) {
  return InContext([&](Context& context) -> CUresult {
    if (!context.driver.contexts.Find(to_context) || !context.driver.contexts.Find(from_context)) {
      return CUDA_ERROR_INVALID_CONTEXT;
    }
    return Transfer(context, stream, wait, {EndKind::kDevice, {to}}, {EndKind::kDevice, {from}}, {bytes});
  });
}

}  // namespace

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
  return CopyBytes(nullptr, true, EndKind::kUnified, dst, EndKind::kUnified, src, ByteCount);
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount) {
  return CopyBytes(nullptr, true, EndKind::kDevice, dstDevice, EndKind::kHost, At(srcHost), ByteCount);
}
CUresult cuMemcpyDtoH_v2(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
  return CopyBytes(nullptr, true, EndKind::kHost, At(dstHost), EndKind::kDevice, srcDevice, ByteCount);
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
  return CopyBytes(nullptr, true, EndKind::kDevice, dstDevice, EndKind::kDevice, srcDevice, ByteCount);
}
CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                      CUcontext srcContext, size_t ByteCount) {
  return CopyPeer(dstDevice, dstContext, srcDevice, srcContext, ByteCount, nullptr, true);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
  return CopyBytes(hStream, false, EndKind::kUnified, dst, EndKind::kUnified, src, ByteCount);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount,
                              CUstream hStream) {
  return CopyBytes(hStream, false, EndKind::kDevice, dstDevice, EndKind::kHost, At(srcHost), ByteCount);
}
CUresult cuMemcpyDtoHAsync_v2(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
  return CopyBytes(hStream, false, EndKind::kHost, At(dstHost), EndKind::kDevice, srcDevice, ByteCount);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                              CUstream hStream) {
  return CopyBytes(hStream, false, EndKind::kDevice, dstDevice, EndKind::kDevice, srcDevice, ByteCount);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                           CUcontext srcContext, size_t ByteCount, CUstream hStream) {
  return CopyPeer(dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream, false);
}

CUresult cuMemcpyAtoH_v2(void* dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
  return CopyRun(nullptr, true, RunEnd::Linear(EndKind::kHost, At(dstHost)), RunEnd::In(srcArray, srcOffset),
                 ByteCount);
}
CUresult cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void* srcHost, size_t ByteCount) {
  return CopyRun(nullptr, true, RunEnd::In(dstArray, dstOffset), RunEnd::Linear(EndKind::kHost, At(srcHost)),
                 ByteCount);
}
CUresult cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
  return CopyRun(nullptr, true, RunEnd::Linear(EndKind::kDevice, dstDevice), RunEnd::In(srcArray, srcOffset),
                 ByteCount);
}
CUresult cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount) {
  return CopyRun(nullptr, true, RunEnd::In(dstArray, dstOffset), RunEnd::Linear(EndKind::kDevice, srcDevice),
                 ByteCount);
}
CUresult cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset,
                         size_t ByteCount) {
  return CopyRun(nullptr, true, RunEnd::In(dstArray, dstOffset), RunEnd::In(srcArray, srcOffset), ByteCount);
}
CUresult cuMemcpyAtoHAsync_v2(void* dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount,
                              CUstream hStream) {
  return CopyRun(hStream, false, RunEnd::Linear(EndKind::kHost, At(dstHost)), RunEnd::In(srcArray, srcOffset),
                 ByteCount);
}
CUresult cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void* srcHost, size_t ByteCount,
                              CUstream hStream) {
  return CopyRun(hStream, false, RunEnd::In(dstArray, dstOffset), RunEnd::Linear(EndKind::kHost, At(srcHost)),
                 ByteCount);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* pCopy) { return Copy2D(pCopy, nullptr, true); }
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* pCopy) { return Copy2D(pCopy, nullptr, true); }
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* pCopy, CUstream hStream) {
  return Copy2D(pCopy, hStream, false);
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* pCopy) { return Copy3D(pCopy, nullptr, true); }
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* pCopy, CUstream hStream) {
  return Copy3D(pCopy, hStream, false);
}
