// Copies of rows and slices, cuMemcpy2D and cuMemcpy3D, and of all that has an array at one end.
#include <algorithm>
#include <cstring>

#include "client/copy.h"
#include "client/exports.h"
#include "client/frame.h"
#include "client/graph/capture.h"
#include "client/staging.h"

namespace cuplex::client {
namespace {

constexpr uint32_t kSourceStaged = 1;  // bits of wireCopyBox's `staged`
constexpr uint32_t kTargetStaged = 2;

constexpr uint32_t kFromArray = 1;  // bits of wireCopyArray's `arrays`
constexpr uint32_t kToArray = 2;

uint64_t Reach(const BoxSide& side, const Box& box) {
  return (box.depth - 1) * side.slice + (box.height - 1) * side.pitch + box.width;
}

bool Dense(const BoxSide& side, const Box& box) {
  return !side.in_array && (box.height == 1 || side.pitch == box.width) &&
         (box.depth == 1 || side.slice == box.width * box.height);
}

/// `send(op, args)` of the frame that a box travels in.
template <typename Send>
auto WithFrame(const Box& box, Handle stream, uint32_t staged, Send send) {
  if (box.dst.in_array || box.src.in_array) {
    const wire::wireCopyArrayArgs args(
        box.dst.address, box.dst.pitch, box.dst.slice, box.dst.x, box.dst.y, box.dst.z, box.src.address,
        box.src.pitch, box.src.slice, box.src.x, box.src.y, box.src.z, box.width, box.height, box.depth,
        stream, staged, (box.src.in_array ? kFromArray : 0) | (box.dst.in_array ? kToArray : 0));
    return send(Op::wireCopyArray, args);
  }
  const wire::wireCopyBoxArgs args(box.dst.address, box.dst.pitch, box.dst.slice, box.src.address,
                                   box.src.pitch, box.src.slice, box.width, box.height, box.depth, stream,
                                   staged);
  return send(Op::wireCopyBox, args);
}

CUresult PostBox(const Caller& caller, const Box& box, Handle stream, uint32_t staged) {
  return WithFrame(box, stream, staged, [&](Op op, const auto& args) {
    return caller.session->submission().Post(op, caller.number, args);
  });
}

uint64_t RowAt(const BoxSide& side, uint64_t y, uint64_t z) {
  return side.address + z * side.slice + y * side.pitch;
}

/// The side of the part of a box that begins `x` bytes into row y of slice z.
BoxSide Beyond(BoxSide side, uint64_t x, uint64_t y, uint64_t z) {
  if (side.in_array) {
    side.x += x;
    side.y += y;
    side.z += z;
  } else {
    side.address = RowAt(side, y, z) + x;
  }
  return side;
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
    BoxSide block;
    block.address = offset;
    block.pitch = box.width;
    Box part{box.dst, box.src, box.width, p.rows, 1};
    (in ? part.src : part.dst) = block;
    BoxSide& device = in ? part.dst : part.src;
    device = Beyond(device, 0, p.y, p.z);
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

/// A row that no block can hold goes by itself, and one of an array in pieces.
CUresult CopyRows(const Caller& caller, const Box& box, CopyOrder order) {
  if (box.dst.in_array || box.src.in_array) {
    constexpr uint64_t kTexels = 16;  // a multiple of every texel's bytes
    const uint64_t most = caller.session->staging().block_bytes() / kTexels * kTexels;
    for (uint64_t z = 0; z < box.depth; ++z)
      for (uint64_t y = 0; y < box.height; ++y)
        for (uint64_t x = 0; x < box.width; x += most) {
          const Box piece{Beyond(box.dst, x, y, z), Beyond(box.src, x, y, z), std::min(most, box.width - x),
                          1, 1};
          if (CUresult r = CopyBox(caller, piece, order)) return r;
        }
    return CUDA_SUCCESS;
  }
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
  auto place = [&](const BoxSide& side) {
    return side.in_array ? Place::kDevice : PlaceOf(session, side.address, Reach(side, box));
  };
  const Place to = place(box.dst);
  const Place from = place(box.src);
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
    return place != Place::kDevice || side.in_array ||
           session.allocations.Holds(side.address, Reach(side, box));
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
  CUarray array;
  uint64_t pitch;
  uint64_t rows_of_slice;  // 0 in two dimensions
  uint64_t x, y, z;
};

CUresult ReadArray(const Caller& caller, const Given& given, const Box& box, BoxSide* out) {
  const Handle h = reinterpret_cast<Handle>(given.array);
  const auto array = caller.session->arrays.Find(h, false);
  if (!array) return CUDA_ERROR_INVALID_HANDLE;
  out->address = h;
  out->in_array = true;
  out->says = Says::kDevice;
  out->x = given.x;
  out->y = given.y;
  out->z = given.z;
  return CheckArrayBox(array->layout, array->level, given.x, given.y, given.z, box.width, box.height,
                       box.depth);
}

CUresult ReadSide(const Caller& caller, const Given& given, const Box& box, BoxSide* out) {
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
      return ReadArray(caller, given, box, out);
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

}  // namespace

CUresult ReadBox(const Caller& caller, const CUDA_MEMCPY3D& c, Box* box) {
  box->width = c.WidthInBytes;
  box->height = c.Height;
  box->depth = c.Depth;
  const Given dst{c.dstMemoryType, c.dstHost,     c.dstDevice, c.dstArray, c.dstPitch,
                  c.dstHeight,     c.dstXInBytes, c.dstY,      c.dstZ};
  const Given src{c.srcMemoryType, c.srcHost,     c.srcDevice, c.srcArray, c.srcPitch,
                  c.srcHeight,     c.srcXInBytes, c.srcY,      c.srcZ};
  if (CUresult r = ReadSide(caller, dst, *box, &box->dst)) return r;
  return ReadSide(caller, src, *box, &box->src);
}

std::string BoxFrame(const Box& box) {
  if (Dense(box.src, box) && Dense(box.dst, box))
    return FrameOf(Op::wireCopy, wire::wireCopyArgs(box.dst.address, box.src.address,
                                                    box.width * box.height * box.depth, 0, 0));
  return WithFrame(box, 0, 0, [](Op op, const auto& args) { return FrameOf(op, args); });
}

namespace {

CUresult Copy(const CUDA_MEMCPY3D& c, CUstream stream, bool waits) {
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  if (Capturing(caller)) [[unlikely]] {
    CUresult captured;
    if (CaptureCopy(caller, stream, c, waits, &captured)) return captured;
  }
  Handle h;
  if (CUresult r = ResolveStream(caller, stream, &h)) return r;
  if (c.WidthInBytes == 0 || c.Height == 0 || c.Depth == 0) return CUDA_SUCCESS;
  Box box;
  if (CUresult r = ReadBox(caller, c, &box)) return r;
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

/// One end of a copy of a run of bytes: linear memory, or an array, whose bytes count row after row.
struct RunEnd {
  CUarray array;
  uint64_t at;  // address, or bytes from the array's beginning
  Says says;
};

/// One row, as a program would describe it.
CUDA_MEMCPY3D InStruct(const Box& box) {
  CUDA_MEMCPY3D out{};
  auto side = [](const BoxSide& from, auto& type, auto& host, auto& device, auto& array, auto& x, auto& y) {
    type = from.in_array              ? CU_MEMORYTYPE_ARRAY
           : from.says == Says::kHost ? CU_MEMORYTYPE_HOST
                                      : CU_MEMORYTYPE_DEVICE;
    if (from.in_array) {
      array = reinterpret_cast<CUarray>(from.address);
      x = from.x;
      y = from.y;
    } else if (from.says == Says::kHost) {
      host = reinterpret_cast<void*>(from.address);
    } else {
      device = from.address;
    }
  };
  side(box.dst, out.dstMemoryType, out.dstHost, out.dstDevice, out.dstArray, out.dstXInBytes, out.dstY);
  side(box.src, out.srcMemoryType, out.srcHost, out.srcDevice, out.srcArray, out.srcXInBytes, out.srcY);
  out.WidthInBytes = box.width;
  out.Height = out.Depth = 1;
  return out;
}

CUresult CopyRun(RunEnd to, RunEnd from, uint64_t bytes, CUstream stream, bool waits) {
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  Handle h;
  if (CUresult r = ResolveStream(caller, stream, &h)) return r;
  /// The bytes of a row, where the end is an array; 0 where it is none.
  auto row_of = [&](const RunEnd& end, uint64_t* row) -> CUresult {
    *row = 0;
    if (end.says != Says::kNothing) return CUDA_SUCCESS;
    const auto array = caller.session->arrays.Find(reinterpret_cast<Handle>(end.array), false);
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    const ArrayLevel level = array->layout.Level(array->level);
    *row = uint64_t{level.width} * array->layout.format.bytes();
    const uint64_t room = *row * level.height;
    const bool flat = array->layout.layers == 1 && !array->layout.depth;
    const uint64_t texel = array->layout.format.bytes();
    return flat && end.at <= room && bytes <= room - end.at && end.at % texel == 0 && bytes % texel == 0
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
  };
  uint64_t to_row, from_row;
  if (CUresult r = row_of(to, &to_row)) return r;
  if (CUresult r = row_of(from, &from_row)) return r;
  for (uint64_t done = 0; done < bytes;) {
    Box box;
    box.width = bytes - done;
    box.height = box.depth = 1;
    auto side = [&](const RunEnd& end, uint64_t row) {
      BoxSide out;
      out.says = row ? Says::kDevice : end.says;
      out.in_array = row != 0;
      out.address = row ? reinterpret_cast<Handle>(end.array) : end.at + done;
      if (row) {
        out.x = (end.at + done) % row;
        out.y = (end.at + done) / row;
        box.width = std::min(box.width, row - out.x);
      }
      return out;
    };
    box.dst = side(to, to_row);
    box.src = side(from, from_row);
    done += box.width;
    if (Capturing(caller)) [[unlikely]] {
      CUresult captured;
      if (CaptureCopy(caller, stream, InStruct(box), waits, &captured)) {
        if (captured) return captured;
        continue;
      }
    }
    if (CUresult r = CopyBox(caller, box, {h, waits})) return r;
  }
  return CUDA_SUCCESS;
}

RunEnd InArray(CUarray array, size_t offset) { return {array, offset, Says::kNothing}; }
RunEnd OnHost(const void* p) { return {nullptr, reinterpret_cast<uint64_t>(p), Says::kHost}; }
RunEnd OnDevice(CUdeviceptr p) { return {nullptr, p, Says::kDevice}; }

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

CUresult cuMemcpyAtoH_v2(void* dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
  return CopyRun(OnHost(dstHost), InArray(srcArray, srcOffset), ByteCount, nullptr, true);
}
CUresult cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void* srcHost, size_t ByteCount) {
  return CopyRun(InArray(dstArray, dstOffset), OnHost(srcHost), ByteCount, nullptr, true);
}
CUresult cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
  return CopyRun(OnDevice(dstDevice), InArray(srcArray, srcOffset), ByteCount, nullptr, true);
}
CUresult cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount) {
  return CopyRun(InArray(dstArray, dstOffset), OnDevice(srcDevice), ByteCount, nullptr, true);
}
CUresult cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset,
                         size_t ByteCount) {
  return CopyRun(InArray(dstArray, dstOffset), InArray(srcArray, srcOffset), ByteCount, nullptr, true);
}
CUresult cuMemcpyAtoHAsync_v2(void* dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount,
                              CUstream hStream) {
  return CopyRun(OnHost(dstHost), InArray(srcArray, srcOffset), ByteCount, hStream, false);
}
CUresult cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void* srcHost, size_t ByteCount,
                              CUstream hStream) {
  return CopyRun(InArray(dstArray, dstOffset), OnHost(srcHost), ByteCount, hStream, false);
}

}  // extern "C"
