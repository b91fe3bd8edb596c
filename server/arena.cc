#include "server/arena.h"

#include <algorithm>
#include <bit>

#include "server/driver_call.h"

namespace cuplex::server {

Result<std::unique_ptr<Arena>> Arena::Reserve(const DriverTable& cu, const Device& device,
                                              uint64_t limit_bytes) {
  const uint64_t bytes =
      std::bit_ceil(std::max(kLeastArena, std::min(limit_bytes, uint64_t{1} << 50) * kArenaOverLimit));
  CUdeviceptr base = 0;
  CUPLEX_TRY_DRIVER(cu, cuMemAddressReserve, &base, bytes, bytes, 0, 0);
  if (base % bytes != 0) {
    cu.cuMemAddressFree(base, bytes);
    return Fail(Blame::kSystem, "the driver reserved {:#x} for an arena, a multiple of {:#x} was expected.",
                base, bytes);
  }
  return std::unique_ptr<Arena>(new Arena(cu, AddressSpace(base, bytes)));
}

Arena::~Arena() {
  if (space_.Empty()) cu_.cuMemAddressFree(space_.base(), space_.bytes());
}

namespace {

CUresult Zero(const DriverTable& cu, CUcontext context, uint64_t base, uint64_t bytes) {
  CUresult code = cu.cuCtxSetCurrent(context);
  CUstream stream = nullptr;
  if (!code) code = cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (!code) {
    code = cu.cuMemsetD8Async(base, 0, bytes, stream);
    if (!code) code = cu.cuStreamSynchronize(stream);
    const CUresult destroyed = cu.cuStreamDestroy_v2(stream);
    if (!code) code = destroyed;
  }
  const CUresult unset = cu.cuCtxSetCurrent(nullptr);
  return code ? code : unset;
}

}  // namespace

Result<Piece> MapPiece(const DriverTable& cu, const Device& device, uint64_t base, uint64_t bytes,
                       CUcontext zero_in, bool* kept) {
  *kept = false;
  Piece piece{base, bytes, 0};
  const CUmemAllocationProp prop = PhysicalOn(device);
  CUPLEX_TRY_DRIVER(cu, cuMemCreate, &piece.handle, bytes, &prop, 0);
  if (CUresult code = cu.cuMemMap(base, bytes, 0, piece.handle, 0)) {
    *kept = cu.cuMemRelease(piece.handle) != CUDA_SUCCESS;
    return DriverError("cuMemMap", code);
  }
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, device.handle}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const char* step = "cuMemSetAccess";
  CUresult code = cu.cuMemSetAccess(base, bytes, &access, 1);
  if (!code && zero_in) {
    step = "cuMemsetD8Async";
    code = Zero(cu, zero_in, base, bytes);
  }
  if (code) {
    *kept = !UnmapPiece(cu, piece).ok();
    return DriverError(step, code);
  }
  return piece;
}

Status UnmapPiece(const DriverTable& cu, const Piece& piece) {
  CUPLEX_TRY_DRIVER(cu, cuMemUnmap, piece.base, piece.bytes);
  CUPLEX_TRY_DRIVER(cu, cuMemRelease, piece.handle);
  return {};
}

}  // namespace cuplex::server
