// Copies of rows and slices, cuMemcpy2D and cuMemcpy3D.
#include <algorithm>
#include <cstring>

#include "client/copy.h"
#include "client/exports.h"
#include "client/staging.h"

namespace cuplex::client {
namespace {

constexpr uint32_t kSourceStaged = 1;  // bits of wireCopyBox's `staged`
constexpr uint32_t kTargetStaged = 2;

uint64_t Reach(const BoxSide& side, const Box& box) {
  return (box.depth - 1) * side.slice + (box.height - 1) * side.pitch + box.width;
}

bool Dense(const BoxSide& side, const Box& box) {
  return (box.height == 1 || side.pitch == box.width) &&
         (box.depth == 1 || side.slice == box.width * box.height);
}

CUresult PostBox(const Caller& caller, const Box& box, Handle stream, uint32_t staged) {
  const wire::wireCopyBoxArgs args(box.dst.address, box.dst.pitch, box.dst.slice, box.src.address,
                                   box.src.pitch, box.src.slice, box.width, box.height, box.depth, stream,
                                   staged);
  return caller.session->submission().Post(Op::wireCopyBox, caller.number, args);
}

uint64_t RowAt(const BoxSide& side, uint64_t y, uint64_t z) {
  return side.address + z * side.slice + y * side.pitch;
}

/// How the rows of a box are cut into pieces that fit a staging block: runs of rows of one slice.
struct Cut {
  uint64_t rows;             // of a piece, at most
  uint64_t pieces_of_slice;  // runs in a slice

  struct Piece {
    uint64_t y, z, rows;
  };
  Piece At(uint64_t piece, const Box& box) const {
    const uint64_t y = piece % pieces_of_slice * rows;
    return {y, piece / pieces_of_slice, std::min(rows, box.height - y)};
  }
};

CUresult StageBox(const Caller& caller, const Box& box, bool in, Handle stream) {
  Cut cut;
  cut.rows = std::min(caller.session->staging().block_bytes() / box.width, box.height);
  cut.pieces_of_slice = (box.height + cut.rows - 1) / cut.rows;
  const uint64_t pieces = cut.pieces_of_slice * box.depth;
  // The device's side of a piece, and the rows lying densely in a block on the other.
  auto post = [&](uint64_t piece, uint64_t offset) {
    const Cut::Piece p = cut.At(piece, box);
    const BoxSide block{offset, box.width, 0};
    Box part{box.dst, box.src, box.width, p.rows, 1};
    (in ? part.src : part.dst) = block;
    BoxSide& device = in ? part.dst : part.src;
    device.address = RowAt(device, p.y, p.z);
    device.slice = 0;
    return PostBox(caller, part, stream, in ? kSourceStaged : kTargetStaged);
  };
  if (in)
    return StageIn(
        caller, pieces,
        [&](uint64_t piece, std::byte* block) {
          const Cut::Piece p = cut.At(piece, box);
          for (uint64_t row = 0; row < p.rows; ++row)
            std::memcpy(block + row * box.width,
                        reinterpret_cast<const void*>(RowAt(box.src, p.y + row, p.z)), box.width);
        },
        post);
  return StageOut(caller, pieces, post, [&](uint64_t piece, const std::byte* block) {
    const Cut::Piece p = cut.At(piece, box);
    for (uint64_t row = 0; row < p.rows; ++row)
      std::memcpy(reinterpret_cast<void*>(RowAt(box.dst, p.y + row, p.z)), block + row * box.width,
                  box.width);
  });
}

/// A row that no block can hold goes by itself.
CUresult CopyRows(const Caller& caller, const Box& box, CopyOrder order) {
  for (uint64_t z = 0; z < box.depth; ++z)
    for (uint64_t y = 0; y < box.height; ++y) {
      const CUresult r = CopyBytes(caller, RowAt(box.dst, y, z), box.dst.says, RowAt(box.src, y, z),
                                   box.src.says, box.width, order);
      if (r) return r;
    }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult CopyBox(const Caller& caller, const Box& box, CopyOrder order) {
  if (box.width == 0 || box.height == 0 || box.depth == 0) return CUDA_SUCCESS;
  if (Dense(box.src, box) && Dense(box.dst, box))
    return CopyBytes(caller, box.dst.address, box.dst.says, box.src.address, box.src.says,
                     box.width * box.height * box.depth, order);
  Session& session = *caller.session;
  if (CUresult r = session.submission().TakeDeferred()) return r;
  const Place to = PlaceOf(session, box.dst.address, Reach(box.dst, box));
  const Place from = PlaceOf(session, box.src.address, Reach(box.src, box));
  if (CUresult r = CheckPlace(to, box.dst.says)) return r;
  if (CUresult r = CheckPlace(from, box.src.says)) return r;

  const bool pageable = to == Place::kPageable || from == Place::kPageable;
  if (pageable && to != Place::kDevice && from != Place::kDevice) {
    if (CUresult r = AwaitStream(caller, order.stream)) return r;
    for (uint64_t z = 0; z < box.depth; ++z)
      for (uint64_t y = 0; y < box.height; ++y)
        std::memmove(reinterpret_cast<void*>(RowAt(box.dst, y, z)),
                     reinterpret_cast<const void*>(RowAt(box.src, y, z)), box.width);
    return CUDA_SUCCESS;
  }
  auto known = [&](Place place, const BoxSide& side) {
    return place != Place::kDevice || session.allocations.Holds(side.address, Reach(side, box));
  };
  if (pageable && box.width > session.staging().block_bytes()) return CopyRows(caller, box, order);
  if (pageable) {
    const bool in = from == Place::kPageable;
    const CUresult r = StageBox(caller, box, in, order.stream);
    return r || !in || !order.waits || known(to, box.dst) ? r : AwaitStream(caller, order.stream);
  }
  if (CUresult r = PostBox(caller, box, order.stream, 0)) return r;
  const bool on_device = to == Place::kDevice && from == Place::kDevice;
  const bool wait = order.waits && !(on_device && known(to, box.dst) && known(from, box.src));
  return wait ? AwaitStream(caller, order.stream) : CUDA_SUCCESS;
}

namespace {

/// One side as the program's struct describes it.
struct Given {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  uint64_t pitch;
  uint64_t rows_of_slice;  // 0 in two dimensions
  uint64_t x, y, z;
};

CUresult ReadSide(const Given& given, const Box& box, BoxSide* out) {
  switch (given.type) {
    case CU_MEMORYTYPE_HOST:
      out->address = reinterpret_cast<uint64_t>(given.host);
      out->says = Says::kHost;
      break;
    case CU_MEMORYTYPE_DEVICE:
      out->address = given.device;
      out->says = Says::kDevice;
      break;
    case CU_MEMORYTYPE_UNIFIED:
      out->address = given.device;
      out->says = Says::kNothing;
      break;
    case CU_MEMORYTYPE_ARRAY:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (!out->address) return CUDA_ERROR_INVALID_VALUE;
  const bool one_row = box.height <= 1 && box.depth <= 1;
  const uint64_t pitch = given.pitch ? given.pitch : box.width + given.x;
  uint64_t slice = 0, reach, offset;
  if (!one_row && (given.x > pitch || box.width > pitch - given.x)) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t rows = given.rows_of_slice ? given.rows_of_slice : box.height + given.y;
  if (box.depth > 1 && (given.y > rows || box.height > rows - given.y)) return CUDA_ERROR_INVALID_VALUE;
  // Numbers that wrap would name other addresses than the program means.
  if (__builtin_mul_overflow(pitch, rows, &slice) ||
      __builtin_mul_overflow(slice, given.z + box.depth, &reach) ||
      __builtin_mul_overflow(pitch, given.y, &offset) || __builtin_add_overflow(offset, given.x, &offset) ||
      __builtin_add_overflow(offset, slice * given.z, &offset) ||
      __builtin_add_overflow(out->address, offset, &out->address))
    return CUDA_ERROR_INVALID_VALUE;
  out->pitch = pitch;
  out->slice = slice;
  return CUDA_SUCCESS;
}

CUresult Copy(const CUDA_MEMCPY3D& c, CUstream stream, bool waits) {
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  Handle h;
  if (CUresult r = ResolveStream(caller, stream, &h)) return r;
  Box box;
  box.width = c.WidthInBytes;
  box.height = c.Height;
  box.depth = c.Depth;
  if (box.width == 0 || box.height == 0 || box.depth == 0) return CUDA_SUCCESS;
  const Given dst{c.dstMemoryType, c.dstHost,     c.dstDevice, c.dstPitch,
                  c.dstHeight,     c.dstXInBytes, c.dstY,      c.dstZ};
  const Given src{c.srcMemoryType, c.srcHost,     c.srcDevice, c.srcPitch,
                  c.srcHeight,     c.srcXInBytes, c.srcY,      c.srcZ};
  if (CUresult r = ReadSide(dst, box, &box.dst)) return r;
  if (CUresult r = ReadSide(src, box, &box.src)) return r;
  return CopyBox(caller, box, {h, waits});
}

CUDA_MEMCPY3D InThree(const CUDA_MEMCPY2D& c) {
  CUDA_MEMCPY3D out{};
  out.srcXInBytes = c.srcXInBytes;
  out.srcY = c.srcY;
  out.srcMemoryType = c.srcMemoryType;
  out.srcHost = c.srcHost;
  out.srcDevice = c.srcDevice;
  out.srcArray = c.srcArray;
  out.srcPitch = c.srcPitch;
  out.dstXInBytes = c.dstXInBytes;
  out.dstY = c.dstY;
  out.dstMemoryType = c.dstMemoryType;
  out.dstHost = c.dstHost;
  out.dstDevice = c.dstDevice;
  out.dstArray = c.dstArray;
  out.dstPitch = c.dstPitch;
  out.WidthInBytes = c.WidthInBytes;
  out.Height = c.Height;
  out.Depth = 1;
  return out;
}

}  // namespace
}  // namespace cuplex::client

using namespace cuplex::client;

extern "C" {

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* c) {
  return c ? Copy(*c, nullptr, true) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* c, CUstream hStream) {
  return c ? Copy(*c, hStream, false) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* c) {
  return c ? Copy(InThree(*c), nullptr, true) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* c) { return cuMemcpy2D_v2(c); }

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* c, CUstream hStream) {
  return c ? Copy(InThree(*c), hStream, false) : CUDA_ERROR_INVALID_VALUE;
}

}  // extern "C"
