// Arrays, mipmapped arrays, and copies to and from them.
#include "client/runtime/array.h"

#include <algorithm>

#include "client/runtime/calls.h"
#include "client/runtime/runtime.h"
#include "cuda/array_layout.h"

namespace cuplex::runtime {
namespace {

cudaError_t DescribeArray(const cudaChannelFormatDesc* desc, cudaExtent extent, unsigned flags,
                          CUDA_ARRAY3D_DESCRIPTOR* out) {
  if (!desc) return cudaErrorInvalidValue;
  *out = {};
  RUNTIME_TRY(FormatOf(*desc, &out->Format, &out->NumChannels));
  out->Width = extent.width;
  out->Height = extent.height;
  out->Depth = extent.depth;
  out->Flags = flags;  // numbered alike
  return cudaSuccess;
}

/// A copy of rows with an array at one end or both; the other end is memory of one kind or the other.
struct ArrayCopy {
  cudaArray_const_t to_array = nullptr, from_array = nullptr;
  size_t to_x = 0, to_y = 0, from_x = 0, from_y = 0;  // bytes, rows
  void* to = nullptr;
  const void* from = nullptr;
  size_t to_pitch = 0, from_pitch = 0;
  size_t width = 0, height = 0;
};

cudaError_t Describe(const DriverTable& cu, const ArrayCopy& given, cudaMemcpyKind kind,
                     CUDA_MEMCPY2D* copy) {
  Direction direction;
  const void* memory = given.to_array ? given.from : given.to;
  if (!given.to_array || !given.from_array) {
    if (!memory) return cudaErrorInvalidValue;
    if (given.height > 1 && given.width > (given.to_array ? given.from_pitch : given.to_pitch))
      return cudaErrorInvalidPitchValue;
  }
  RUNTIME_TRY(BesideArray(cu, memory, kind, given.to_array != nullptr, &direction));
  *copy = {};
  copy->srcXInBytes = given.from_x;
  copy->srcY = given.from_y;
  if (given.from_array) {
    copy->srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy->srcArray = DriverArray(given.from_array);
  } else {
    copy->srcMemoryType = direction.from_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    copy->srcHost = given.from;
    copy->srcDevice = Device(given.from);
    copy->srcPitch = given.from_pitch;
  }
  copy->dstXInBytes = given.to_x;
  copy->dstY = given.to_y;
  if (given.to_array) {
    copy->dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy->dstArray = DriverArray(given.to_array);
  } else {
    copy->dstMemoryType = direction.to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    copy->dstHost = given.to;
    copy->dstDevice = Device(given.to);
    copy->dstPitch = given.to_pitch;
  }
  copy->WidthInBytes = given.width;
  copy->Height = given.height;
  return cudaSuccess;
}

/// `wait`: returns when it is done; in the default stream `stream`.
cudaError_t Copy(const ArrayCopy& given, cudaMemcpyKind kind, cudaStream_t stream, bool wait) {
  return InContext([&](const DriverTable& cu) -> cudaError_t {
    if (given.width == 0 || given.height == 0) return cudaSuccess;
    CUDA_MEMCPY2D copy;
    RUNTIME_TRY(Describe(cu, given, kind, &copy));
    if (wait && !stream) return FromDriver(cu.cuMemcpy2DUnaligned_v2(&copy));
    RUNTIME_TRY(FromDriver(cu.cuMemcpy2DAsync_v2(&copy, stream)));
    return wait ? FromDriver(cu.cuStreamSynchronize(stream)) : cudaSuccess;
  });
}

/// A copy of `count` bytes that goes on from row to row of an array, `x` bytes into row `y` at first.
cudaError_t CopyRun(ArrayCopy given, size_t count, cudaMemcpyKind kind, cudaStream_t stream, bool wait) {
  const cudaArray_const_t array = given.to_array ? given.to_array : given.from_array;
  size_t row = 0;
  RUNTIME_TRY(InContext([&](const DriverTable& cu) -> cudaError_t {
    CUDA_ARRAY3D_DESCRIPTOR d{};
    RUNTIME_TRY(FromDriver(cu.cuArray3DGetDescriptor_v2(&d, DriverArray(array))));
    size_t texel;
    RUNTIME_TRY(TexelBytesOf(cu, array, &texel));
    row = d.Width * texel;
    return cudaSuccess;
  }));
  if (!row) return cudaErrorInvalidValue;
  for (size_t done = 0; done < count;) {
    size_t piece = count - done;
    if (given.to_array) piece = std::min(piece, row - std::min(row, given.to_x));
    if (given.from_array) piece = std::min(piece, row - std::min(row, given.from_x));
    if (!piece) return cudaErrorInvalidValue;
    given.width = piece;
    given.height = 1;
    RUNTIME_TRY(Copy(given, kind, stream, wait));
    done += piece;
    auto go_on = [&](bool in_array, size_t& x, size_t& y) {
      x = in_array ? (x + piece) % row : x;
      y += in_array && x == 0;
    };
    go_on(given.to_array, given.to_x, given.to_y);
    go_on(given.from_array, given.from_x, given.from_y);
    if (given.to) given.to = static_cast<char*>(given.to) + piece;
    if (given.from) given.from = static_cast<const char*>(given.from) + piece;
  }
  return cudaSuccess;
}

ArrayCopy ToArray(cudaArray_t dst, size_t x, size_t y, const void* src, size_t pitch, size_t width,
                  size_t height) {
  ArrayCopy copy;
  copy.to_array = dst;
  copy.to_x = x;
  copy.to_y = y;
  copy.from = src;
  copy.from_pitch = pitch;
  copy.width = width;
  copy.height = height;
  return copy;
}

ArrayCopy FromArray(void* dst, size_t pitch, cudaArray_const_t src, size_t x, size_t y, size_t width,
                    size_t height) {
  ArrayCopy copy;
  copy.to = dst;
  copy.to_pitch = pitch;
  copy.from_array = src;
  copy.from_x = x;
  copy.from_y = y;
  copy.width = width;
  copy.height = height;
  return copy;
}

}  // namespace

cudaError_t FormatOf(const cudaChannelFormatDesc& desc, CUarray_format* format, unsigned* channels) {
  const int bits[] = {desc.x, desc.y, desc.z, desc.w};
  unsigned count = 0;
  while (count < 4 && bits[count] > 0) {
    if (bits[count] != bits[0]) return cudaErrorInvalidChannelDescriptor;
    ++count;
  }
  for (unsigned i = count; i < 4; ++i)
    if (bits[i]) return cudaErrorInvalidChannelDescriptor;
  *channels = count;
  const int of_kind = bits[0] == 8 ? 0 : bits[0] == 16 ? 1 : bits[0] == 32 ? 2 : -1;
  if (of_kind < 0) return cudaErrorInvalidChannelDescriptor;
  switch (desc.f) {
    case cudaChannelFormatKindSigned:
      *format = static_cast<CUarray_format>(CU_AD_FORMAT_SIGNED_INT8 + of_kind);
      break;
    case cudaChannelFormatKindUnsigned:
      *format = static_cast<CUarray_format>(CU_AD_FORMAT_UNSIGNED_INT8 + of_kind);
      break;
    case cudaChannelFormatKindFloat:
      if (of_kind == 0) return cudaErrorInvalidChannelDescriptor;
      *format = of_kind == 1 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
      break;
    default:
      if (desc.f < cudaChannelFormatKindUnsignedNormalized8X1 ||
          desc.f > cudaChannelFormatKindSignedNormalized16X4) {
        return cudaErrorInvalidChannelDescriptor;
      }
      *format = static_cast<CUarray_format>(CU_AD_FORMAT_UNORM_INT8X1 +
                                            (desc.f - cudaChannelFormatKindUnsignedNormalized8X1));
  }
  return TexelFormatOf(*format, count) ? cudaSuccess : cudaErrorInvalidChannelDescriptor;
}

cudaChannelFormatDesc ChannelsOf(CUarray_format format, unsigned channels) {
  cudaChannelFormatDesc out{0, 0, 0, 0, cudaChannelFormatKindNone};
  const auto texel = TexelFormatOf(format, channels);
  if (!texel) return out;
  int* bits[] = {&out.x, &out.y, &out.z, &out.w};
  for (unsigned i = 0; i < channels; ++i) *bits[i] = texel->channel_bytes * 8;
  if (texel->normalized) {
    out.f = static_cast<cudaChannelFormatKind>(cudaChannelFormatKindUnsignedNormalized8X1 +
                                               (format - CU_AD_FORMAT_UNORM_INT8X1));
  } else {
    out.f = texel->kind == TexelFormat::Kind::kFloat    ? cudaChannelFormatKindFloat
            : texel->kind == TexelFormat::Kind::kSigned ? cudaChannelFormatKindSigned
                                                        : cudaChannelFormatKindUnsigned;
  }
  return out;
}

cudaError_t TexelBytesOf(const DriverTable& cu, cudaArray_const_t array, size_t* bytes) {
  CUDA_ARRAY3D_DESCRIPTOR d{};
  RUNTIME_TRY(FromDriver(cu.cuArray3DGetDescriptor_v2(&d, DriverArray(array))));
  const auto format = TexelFormatOf(d.Format, d.NumChannels);
  if (!format) return cudaErrorNotSupported;
  *bytes = format->bytes();
  return cudaSuccess;
}

cudaError_t BesideArray(const DriverTable& cu, const void* memory, cudaMemcpyKind kind, bool to_array,
                        Direction* direction) {
  if (!memory) {
    *direction = {true, true};
    return kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault ? cudaSuccess
                                                                         : cudaErrorInvalidMemcpyDirection;
  }
  // Asked about a copy between the memory and itself, what holds for one side holds for the memory.
  RUNTIME_TRY(DirectionOf(cu, memory, memory, kind, direction));
  const bool array_on_device =
      kind == cudaMemcpyDefault || (to_array ? direction->to_device : direction->from_device);
  if (!array_on_device) return cudaErrorInvalidMemcpyDirection;
  (to_array ? direction->to_device : direction->from_device) = true;
  return cudaSuccess;
}

cudaError_t MallocArray(cudaArray_t* array, const cudaChannelFormatDesc* desc, size_t width, size_t height,
                        unsigned int flags) {
  return Malloc3DArray(array, desc, {width, height, 0}, flags);
}

cudaError_t Malloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* desc, cudaExtent extent,
                          unsigned int flags) {
  return InContext([&](const DriverTable& cu) -> cudaError_t {
    if (!array) return cudaErrorInvalidValue;
    CUDA_ARRAY3D_DESCRIPTOR wanted;
    RUNTIME_TRY(DescribeArray(desc, extent, flags, &wanted));
    return FromDriver(cu.cuArray3DCreate_v2(reinterpret_cast<CUarray*>(array), &wanted));
  });
}

cudaError_t MallocMipmappedArray(cudaMipmappedArray_t* array, const cudaChannelFormatDesc* desc,
                                 cudaExtent extent, unsigned int levels, unsigned int flags) {
  return InContext([&](const DriverTable& cu) -> cudaError_t {
    if (!array) return cudaErrorInvalidValue;
    CUDA_ARRAY3D_DESCRIPTOR wanted;
    RUNTIME_TRY(DescribeArray(desc, extent, flags, &wanted));
    return FromDriver(cu.cuMipmappedArrayCreate(reinterpret_cast<CUmipmappedArray*>(array), &wanted, levels));
  });
}

cudaError_t FreeArray(cudaArray_t array) {
  return InContext(
      [&](const DriverTable& cu) { return array ? cu.cuArrayDestroy(DriverArray(array)) : CUDA_SUCCESS; });
}

cudaError_t FreeMipmappedArray(cudaMipmappedArray_t array) {
  return InContext([&](const DriverTable& cu) {
    return array ? cu.cuMipmappedArrayDestroy(DriverArray(array)) : CUDA_SUCCESS;
  });
}

cudaError_t GetMipmappedArrayLevel(cudaArray_t* level_array, cudaMipmappedArray_const_t array,
                                   unsigned int level) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuMipmappedArrayGetLevel(reinterpret_cast<CUarray*>(level_array), DriverArray(array), level);
  });
}

cudaError_t ArrayGetInfo(cudaChannelFormatDesc* desc, cudaExtent* extent, unsigned int* flags,
                         cudaArray_t array) {
  return InContext([&](const DriverTable& cu) -> cudaError_t {
    CUDA_ARRAY3D_DESCRIPTOR d{};
    RUNTIME_TRY(FromDriver(cu.cuArray3DGetDescriptor_v2(&d, DriverArray(array))));
    if (desc) *desc = ChannelsOf(d.Format, d.NumChannels);
    if (extent) *extent = {d.Width, d.Height, d.Depth};
    if (flags) *flags = d.Flags;
    return cudaSuccess;
  });
}

cudaError_t GetChannelDesc(cudaChannelFormatDesc* desc, cudaArray_const_t array) {
  if (!desc) return cudaErrorInvalidValue;
  return ArrayGetInfo(desc, nullptr, nullptr, const_cast<cudaArray_t>(array));
}

cudaError_t ArrayGetMemoryRequirements(cudaArrayMemoryRequirements* requirements, cudaArray_t array,
                                       int device) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuArrayGetMemoryRequirements(requirements, DriverArray(array), device);
  });
}

cudaError_t MipmappedArrayGetMemoryRequirements(cudaArrayMemoryRequirements* requirements,
                                                cudaMipmappedArray_t array, int device) {
  return InContext([&](const DriverTable& cu) {
    return cu.cuMipmappedArrayGetMemoryRequirements(requirements, DriverArray(array), device);
  });
}

cudaError_t Memcpy2DToArray(cudaArray_t dst, size_t x, size_t y, const void* src, size_t pitch, size_t width,
                            size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return Copy(ToArray(dst, x, y, src, pitch, width, height), kind, stream, true);
}

cudaError_t Memcpy2DToArrayAsync(cudaArray_t dst, size_t x, size_t y, const void* src, size_t pitch,
                                 size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return Copy(ToArray(dst, x, y, src, pitch, width, height), kind, stream, false);
}

cudaError_t Memcpy2DFromArray(void* dst, size_t pitch, cudaArray_const_t src, size_t x, size_t y,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return Copy(FromArray(dst, pitch, src, x, y, width, height), kind, stream, true);
}

cudaError_t Memcpy2DFromArrayAsync(void* dst, size_t pitch, cudaArray_const_t src, size_t x, size_t y,
                                   size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return Copy(FromArray(dst, pitch, src, x, y, width, height), kind, stream, false);
}

cudaError_t Memcpy2DArrayToArray(cudaArray_t dst, size_t to_x, size_t to_y, cudaArray_const_t src,
                                 size_t from_x, size_t from_y, size_t width, size_t height,
                                 cudaMemcpyKind kind, cudaStream_t stream) {
  ArrayCopy copy = ToArray(dst, to_x, to_y, nullptr, 0, width, height);
  copy.from_array = src;
  copy.from_x = from_x;
  copy.from_y = from_y;
  return Copy(copy, kind, stream, true);
}

cudaError_t MemcpyToArray(cudaArray_t dst, size_t x, size_t y, const void* src, size_t count,
                          cudaMemcpyKind kind, cudaStream_t stream) {
  return CopyRun(ToArray(dst, x, y, src, 0, 0, 1), count, kind, stream, true);
}

cudaError_t MemcpyToArrayAsync(cudaArray_t dst, size_t x, size_t y, const void* src, size_t count,
                               cudaMemcpyKind kind, cudaStream_t stream) {
  return CopyRun(ToArray(dst, x, y, src, 0, 0, 1), count, kind, stream, false);
}

cudaError_t MemcpyFromArray(void* dst, cudaArray_const_t src, size_t x, size_t y, size_t count,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  return CopyRun(FromArray(dst, 0, src, x, y, 0, 1), count, kind, stream, true);
}

cudaError_t MemcpyFromArrayAsync(void* dst, cudaArray_const_t src, size_t x, size_t y, size_t count,
                                 cudaMemcpyKind kind, cudaStream_t stream) {
  return CopyRun(FromArray(dst, 0, src, x, y, 0, 1), count, kind, stream, false);
}

cudaError_t MemcpyArrayToArray(cudaArray_t dst, size_t to_x, size_t to_y, cudaArray_const_t src,
                               size_t from_x, size_t from_y, size_t count, cudaMemcpyKind kind,
                               cudaStream_t stream) {
  ArrayCopy copy = ToArray(dst, to_x, to_y, nullptr, 0, 0, 1);
  copy.from_array = src;
  copy.from_x = from_x;
  copy.from_y = from_y;
  return CopyRun(copy, count, kind, stream, true);
}

}  // namespace cuplex::runtime
