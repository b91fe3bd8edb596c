// Copies of graphs: between memories that the server has too they are one frame; where the program's side is
// pageable, pinned memory stands in between, and a host function moves the bytes between the two.
#include <cstring>
#include <memory>

#include "client/copy.h"
#include "client/exports.h"
#include "client/frame.h"
#include "client/graph/exec.h"

namespace cuplex::client {
namespace {

void MoveRows(const BoxSide& to, const BoxSide& from, uint64_t width, uint64_t height, uint64_t depth) {
  auto row = [](const BoxSide& side, uint64_t y, uint64_t z) {
    return reinterpret_cast<std::byte*>(side.address + z * side.slice + y * side.pitch);
  };
  for (uint64_t z = 0; z < depth; ++z)
    for (uint64_t y = 0; y < height; ++y) std::memmove(row(to, y, z), row(from, y, z), width);
}

/// A host function as a frame.
void AddMove(const Caller& caller, const Box& box, std::shared_ptr<Shadows::Shadow> shadow, Encoded* out) {
  Session& session = *caller.session;
  const uint64_t cookie = session.host_functions.Keep(
      session, caller.number,
      [box, shadow = std::move(shadow)] { MoveRows(box.dst, box.src, box.width, box.height, box.depth); });
  out->cookies.push_back(cookie);
  out->frames.push_back(FrameOf(Op::wireHostFunc, wire::wireHostFuncArgs(0, cookie)));
}

}  // namespace

CUresult EncodeCopy(const Caller& caller, const CUDA_MEMCPY3D& copy, Encoded* out) {
  if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return CUDA_SUCCESS;
  Box box;
  if (CUresult r = ReadBox(caller, copy, &box)) return r;
  Session& session = *caller.session;
  uint64_t bytes, reach;
  if (__builtin_mul_overflow(box.width, box.height, &bytes) ||
      __builtin_mul_overflow(bytes, box.depth, &bytes))
    return CUDA_ERROR_INVALID_VALUE;
  auto place = [&](const BoxSide& side, Place* where) {
    *where = Place::kDevice;
    if (side.in_array) return CUDA_SUCCESS;
    reach = (box.depth - 1) * side.slice + (box.height - 1) * side.pitch + box.width;
    *where = PlaceOf(session, side.address, reach);
    return CheckPlace(*where, side.says);
  };
  Place to, from;
  if (CUresult r = place(box.dst, &to)) return r;
  if (CUresult r = place(box.src, &from)) return r;
  if (to != Place::kPageable && from != Place::kPageable) {
    out->frames.push_back(BoxFrame(box));
    return CUDA_SUCCESS;
  }
  if (to != Place::kDevice && from != Place::kDevice) {
    AddMove(caller, box, nullptr, out);
    return CUDA_SUCCESS;
  }
  std::shared_ptr<Shadows::Shadow> shadow;
  if (CUresult r = session.shadows.Take(caller, bytes, &shadow)) return r;
  BoxSide dense;
  dense.address = shadow->address;
  dense.pitch = box.width;
  dense.slice = box.width * box.height;
  dense.says = Says::kHost;
  Box outer = box, inner = box;  // between shadow and device, between shadow and program
  if (from == Place::kPageable) {
    outer.src = inner.dst = dense;
    AddMove(caller, inner, std::move(shadow), out);
    out->frames.push_back(BoxFrame(outer));
  } else {
    outer.dst = inner.src = dense;
    out->frames.push_back(BoxFrame(outer));
    AddMove(caller, inner, std::move(shadow), out);
  }
  return CUDA_SUCCESS;
}

}  // namespace cuplex::client
