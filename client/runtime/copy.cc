// Copies and fills: which driver call a copy's kind asks for.
#include "client/runtime/copy.h"

#include <cstring>
#include <memory>

#include "client/runtime/array.h"
#include "client/runtime/calls.h"
#include "client/runtime/runtime.h"

namespace cuplex::runtime {
namespace {

cudaError_t IsDevice(const DriverTable& cu, const void* pointer, bool* device) {
  CUmemorytype type{};
  CUresult result = cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, Device(pointer));
  if (result == CUDA_ERROR_INVALID_VALUE) {
    *device = false;
    return cudaSuccess;
  }
  RUNTIME_TRY(FromDriver(result));
  unsigned int managed = 0;
  if (cu.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, Device(pointer)) != CUDA_SUCCESS)
    managed = 0;
  *device = managed || type != CU_MEMORYTYPE_HOST;
  return cudaSuccess;
}

struct HostCopy {
  void* dst;
  const void* src;
  size_t bytes;
};

void RunHostCopy(void* data) {
  std::unique_ptr<HostCopy> copy(static_cast<HostCopy*>(data));
  memcpy(copy->dst, copy->src, copy->bytes);
}

void RunCapturedCopy(void* data) {
  auto* copy = static_cast<HostCopy*>(data);
  memcpy(copy->dst, copy->src, copy->bytes);
}

void DropCapturedCopy(void* data) { delete static_cast<HostCopy*>(data); }

/// A captured copy runs as often as its graph is launched, so the graph keeps what it is about.
cudaError_t HostCopyCaptured(const DriverTable& cu, const HostCopy& given, cudaStream_t stream) {
  CUstreamCaptureStatus status;
  CUgraph graph = nullptr;
  RUNTIME_TRY(
      FromDriver(cu.cuStreamGetCaptureInfo_v3(stream, &status, nullptr, &graph, nullptr, nullptr, nullptr)));
  auto copy = std::make_unique<HostCopy>(given);
  CUuserObject object;
  RUNTIME_TRY(FromDriver(
      cu.cuUserObjectCreate(&object, copy.get(), DropCapturedCopy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)));
  HostCopy* data = copy.release();  // the object has it now
  if (cudaError_t error = FromDriver(cu.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
      error != cudaSuccess) {
    (void)cu.cuUserObjectRelease(object, 1);
    return error;
  }
  return FromDriver(cu.cuLaunchHostFunc(stream, RunCapturedCopy, data));
}

// The driver's copies move device memory; between two places of the host the stream's own order does it.
cudaError_t HostCopyQueued(const DriverTable& cu, void* dst, const void* src, size_t bytes,
                           cudaStream_t stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (cu.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
    return HostCopyCaptured(cu, {dst, src, bytes}, stream);
  auto copy = std::make_unique<HostCopy>(HostCopy{dst, src, bytes});
  RUNTIME_TRY(FromDriver(cu.cuLaunchHostFunc(stream, RunHostCopy, copy.get())));
  (void)copy.release();  // the driver has it now
  return cudaSuccess;
}

/// Runs `sync(cu)` in the legacy default stream; otherwise `async(cu)` and waits for `stream`.
template <typename Sync, typename Async>
cudaError_t Wait(const DriverTable& cu, cudaStream_t stream, Sync&& sync, Async&& async) {
  if (!stream) return FromDriver(sync());
  RUNTIME_TRY(FromDriver(async()));
  return FromDriver(cu.cuStreamSynchronize(stream));
}

void SetSource(CUDA_MEMCPY2D& copy, bool device, const void* address, size_t pitch) {
  copy.srcMemoryType = device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  (device ? copy.srcDevice = Device(address) : (copy.srcHost = address, 0));
  copy.srcPitch = pitch;
}

void SetDestination(CUDA_MEMCPY2D& copy, bool device, void* address, size_t pitch) {
  copy.dstMemoryType = device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  (device ? copy.dstDevice = Device(address) : (copy.dstHost = address, 0));
  copy.dstPitch = pitch;
}

cudaError_t Describe2D(const DriverTable& cu, void* dst, size_t dst_pitch, const void* src, size_t src_pitch,
                       size_t width, size_t height, cudaMemcpyKind kind, CUDA_MEMCPY2D* copy) {
  if (width > dst_pitch || width > src_pitch) return cudaErrorInvalidPitchValue;
  Direction direction;
  RUNTIME_TRY(DirectionOf(cu, dst, src, kind, &direction));
  *copy = {};
  SetSource(*copy, direction.from_device, src, src_pitch);
  SetDestination(*copy, direction.to_device, dst, dst_pitch);
  copy->WidthInBytes = width;
  copy->Height = height;
  return cudaSuccess;
}

/// The bytes of an array's texel; 0 for no array.
cudaError_t TexelBytes(const DriverTable& cu, cudaArray_t array, size_t* bytes) {
  *bytes = 0;
  if (!array) return cudaSuccess;
  RUNTIME_TRY(TexelBytesOf(cu, array, bytes));
  return cudaSuccess;
}

/// Fills a box row by row at most: whole where it is contiguous, else one layer a call.
cudaError_t FillBox(const DriverTable& cu, cudaPitchedPtr box, unsigned char value, cudaExtent extent,
                    cudaStream_t stream) {
  if (extent.width > box.pitch) return cudaErrorInvalidPitchValue;
  CUdeviceptr address = Device(box.ptr);
  if (extent.height == box.ysize || extent.depth == 1)
    return FromDriver(
        cu.cuMemsetD2D8Async(address, box.pitch, value, extent.width, extent.height * extent.depth, stream));
  for (size_t z = 0; z < extent.depth; ++z)
    RUNTIME_TRY(FromDriver(cu.cuMemsetD2D8Async(address + z * box.pitch * box.ysize, box.pitch, value,
                                                extent.width, extent.height, stream)));
  return cudaSuccess;
}

}  // namespace

cudaError_t Describe3D(const DriverTable& cu, const cudaMemcpy3DParms* given, CUDA_MEMCPY3D* copy) {
  if (!given) return cudaErrorInvalidValue;
  const cudaExtent& extent = given->extent;
  // Each end is either an array or memory.
  if (!given->srcArray == !given->srcPtr.ptr || !given->dstArray == !given->dstPtr.ptr)
    return cudaErrorInvalidValue;
  size_t src_texel, dst_texel;
  RUNTIME_TRY(TexelBytes(cu, given->srcArray, &src_texel));
  RUNTIME_TRY(TexelBytes(cu, given->dstArray, &dst_texel));
  if (src_texel && dst_texel && src_texel != dst_texel) return cudaErrorInvalidValue;
  // With an array on either side the extent counts its texels.
  const size_t unit = src_texel ? src_texel : dst_texel ? dst_texel : 1;
  *copy = {};
  if (__builtin_mul_overflow(extent.width, unit, &copy->WidthInBytes)) return cudaErrorInvalidValue;
  copy->Height = extent.height;
  copy->Depth = extent.depth;
  if ((given->srcPtr.ptr && copy->WidthInBytes > given->srcPtr.pitch) ||
      (given->dstPtr.ptr && copy->WidthInBytes > given->dstPtr.pitch)) {
    return cudaErrorInvalidPitchValue;
  }
  // An array is device memory, whatever the kind says of the other side.
  Direction direction;
  if (given->srcArray || given->dstArray) {
    void* memory = given->srcArray ? given->dstPtr.ptr : given->srcPtr.ptr;
    RUNTIME_TRY(BesideArray(cu, memory, given->kind, given->dstArray != nullptr, &direction));
  } else {
    RUNTIME_TRY(DirectionOf(cu, given->dstPtr.ptr, given->srcPtr.ptr, given->kind, &direction));
  }
  copy->srcXInBytes = given->srcPos.x * (src_texel ? src_texel : 1);
  copy->srcY = given->srcPos.y;
  copy->srcZ = given->srcPos.z;
  if (given->srcArray) {
    copy->srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy->srcArray = DriverArray(given->srcArray);
  } else {
    copy->srcPitch = given->srcPtr.pitch;
    copy->srcHeight = given->srcPtr.ysize;
    copy->srcMemoryType = direction.from_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    copy->srcHost = direction.from_device ? nullptr : given->srcPtr.ptr;
    copy->srcDevice = direction.from_device ? Device(given->srcPtr.ptr) : 0;
  }
  copy->dstXInBytes = given->dstPos.x * (dst_texel ? dst_texel : 1);
  copy->dstY = given->dstPos.y;
  copy->dstZ = given->dstPos.z;
  if (given->dstArray) {
    copy->dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy->dstArray = DriverArray(given->dstArray);
  } else {
    copy->dstPitch = given->dstPtr.pitch;
    copy->dstHeight = given->dstPtr.ysize;
    copy->dstMemoryType = direction.to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    copy->dstHost = direction.to_device ? nullptr : given->dstPtr.ptr;
    copy->dstDevice = direction.to_device ? Device(given->dstPtr.ptr) : 0;
  }
  return cudaSuccess;
}

cudaError_t DirectionOf(const DriverTable& cu, const void* dst, const void* src, cudaMemcpyKind kind,
                        Direction* direction) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      *direction = {false, false};
      return cudaSuccess;
    case cudaMemcpyHostToDevice:
      *direction = {true, false};
      return cudaSuccess;
    case cudaMemcpyDeviceToHost:
      *direction = {false, true};
      return cudaSuccess;
    case cudaMemcpyDeviceToDevice:
      *direction = {true, true};
      return cudaSuccess;
    case cudaMemcpyDefault:
      RUNTIME_TRY(IsDevice(cu, dst, &direction->to_device));
      return IsDevice(cu, src, &direction->from_device);
  }
  return cudaErrorInvalidMemcpyDirection;
}

cudaError_t CopyQueued(const DriverTable& cu, void* dst, const void* src, size_t bytes, cudaMemcpyKind kind,
                       cudaStream_t stream) {
  Direction direction;
  RUNTIME_TRY(DirectionOf(cu, dst, src, kind, &direction));
  if (bytes == 0) return cudaSuccess;
  if (!dst || !src) return cudaErrorInvalidValue;
  if (direction.to_device && direction.from_device)
    return FromDriver(cu.cuMemcpyDtoDAsync_v2(Device(dst), Device(src), bytes, stream));
  if (direction.to_device) return FromDriver(cu.cuMemcpyHtoDAsync_v2(Device(dst), src, bytes, stream));
  if (direction.from_device) return FromDriver(cu.cuMemcpyDtoHAsync_v2(dst, Device(src), bytes, stream));
  return HostCopyQueued(cu, dst, src, bytes, stream);
}

cudaError_t CopyNow(const DriverTable& cu, void* dst, const void* src, size_t bytes, cudaMemcpyKind kind,
                    cudaStream_t stream) {
  Direction direction;
  RUNTIME_TRY(DirectionOf(cu, dst, src, kind, &direction));
  if (bytes == 0) return cudaSuccess;
  if (!dst || !src) return cudaErrorInvalidValue;
  if (!direction.to_device && !direction.from_device) {
    RUNTIME_TRY(FromDriver(cu.cuStreamSynchronize(stream)));
    memcpy(dst, src, bytes);
    return cudaSuccess;
  }
  if (stream) {
    RUNTIME_TRY(CopyQueued(cu, dst, src, bytes, kind, stream));
    return FromDriver(cu.cuStreamSynchronize(stream));
  }
  if (direction.to_device && direction.from_device)
    return FromDriver(cu.cuMemcpyDtoD_v2(Device(dst), Device(src), bytes));
  if (direction.to_device) return FromDriver(cu.cuMemcpyHtoD_v2(Device(dst), src, bytes));
  return FromDriver(cu.cuMemcpyDtoH_v2(dst, Device(src), bytes));
}

cudaError_t Memcpy(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return InContext([&](const DriverTable& cu) { return CopyNow(cu, dst, src, bytes, kind, stream); });
}

cudaError_t MemcpyAsync(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return InContext([&](const DriverTable& cu) { return CopyQueued(cu, dst, src, bytes, kind, stream); });
}

cudaError_t Memcpy2D(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width,
                     size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return InContext([&](const DriverTable& cu) {
    if (width == 0 || height == 0) return cudaSuccess;
    CUDA_MEMCPY2D copy;
    RUNTIME_TRY(Describe2D(cu, dst, dst_pitch, src, src_pitch, width, height, kind, &copy));
    return Wait(
        cu, stream, [&] { return cu.cuMemcpy2DUnaligned_v2(&copy); },
        [&] { return cu.cuMemcpy2DAsync_v2(&copy, stream); });
  });
}

cudaError_t Memcpy2DAsync(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width,
                          size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return InContext([&](const DriverTable& cu) {
    if (width == 0 || height == 0) return cudaSuccess;
    CUDA_MEMCPY2D copy;
    RUNTIME_TRY(Describe2D(cu, dst, dst_pitch, src, src_pitch, width, height, kind, &copy));
    return FromDriver(cu.cuMemcpy2DAsync_v2(&copy, stream));
  });
}

cudaError_t Memcpy3D(const cudaMemcpy3DParms* given, cudaStream_t stream) {
  return InContext([&](const DriverTable& cu) {
    CUDA_MEMCPY3D copy;
    RUNTIME_TRY(Describe3D(cu, given, &copy));
    if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return cudaSuccess;
    return Wait(
        cu, stream, [&] { return cu.cuMemcpy3D_v2(&copy); },
        [&] { return cu.cuMemcpy3DAsync_v2(&copy, stream); });
  });
}

cudaError_t Memcpy3DAsync(const cudaMemcpy3DParms* given, cudaStream_t stream) {
  return InContext([&](const DriverTable& cu) {
    CUDA_MEMCPY3D copy;
    RUNTIME_TRY(Describe3D(cu, given, &copy));
    if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return cudaSuccess;
    return FromDriver(cu.cuMemcpy3DAsync_v2(&copy, stream));
  });
}

cudaError_t MemcpyPeer(void* dst, int dst_device, const void* src, int src_device, size_t bytes) {
  return InContext([&](const DriverTable& cu) {
    CUcontext to, from;
    RUNTIME_TRY(Root().PrimaryContext(cu, dst_device, &to));
    RUNTIME_TRY(Root().PrimaryContext(cu, src_device, &from));
    return FromDriver(cu.cuMemcpyPeer(Device(dst), to, Device(src), from, bytes));
  });
}

cudaError_t MemcpyPeerAsync(void* dst, int dst_device, const void* src, int src_device, size_t bytes,
                            cudaStream_t stream) {
  return InContext([&](const DriverTable& cu) {
    CUcontext to, from;
    RUNTIME_TRY(Root().PrimaryContext(cu, dst_device, &to));
    RUNTIME_TRY(Root().PrimaryContext(cu, src_device, &from));
    return FromDriver(cu.cuMemcpyPeerAsync(Device(dst), to, Device(src), from, bytes, stream));
  });
}

cudaError_t Memset(void* address, int value, size_t bytes, cudaStream_t stream) {
  return InContext([&](const DriverTable& cu) {
    if (bytes == 0) return cudaSuccess;
    auto byte = static_cast<unsigned char>(value);
    if (!stream) return FromDriver(cu.cuMemsetD8_v2(Device(address), byte, bytes));
    return FromDriver(cu.cuMemsetD8Async(Device(address), byte, bytes, stream));
  });
}

cudaError_t MemsetAsync(void* address, int value, size_t bytes, cudaStream_t stream) {
  return InContext([&](const DriverTable& cu) {
    if (bytes == 0) return CUDA_SUCCESS;
    return cu.cuMemsetD8Async(Device(address), static_cast<unsigned char>(value), bytes, stream);
  });
}

// Fills of device memory are asynchronous to the host in CUDA, whichever call starts them.
cudaError_t Memset2D(void* address, size_t pitch, int value, size_t width, size_t height,
                     cudaStream_t stream) {
  return Memset2DAsync(address, pitch, value, width, height, stream);
}

cudaError_t Memset2DAsync(void* address, size_t pitch, int value, size_t width, size_t height,
                          cudaStream_t stream) {
  return Memset3DAsync({address, pitch, width, height}, value, {width, height, 1}, stream);
}

cudaError_t Memset3D(cudaPitchedPtr box, int value, cudaExtent extent, cudaStream_t stream) {
  return Memset3DAsync(box, value, extent, stream);
}

cudaError_t Memset3DAsync(cudaPitchedPtr box, int value, cudaExtent extent, cudaStream_t stream) {
  return InContext([&](const DriverTable& cu) {
    if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return cudaSuccess;
    return FillBox(cu, box, static_cast<unsigned char>(value), extent, stream);
  });
}

}  // namespace cuplex::runtime
