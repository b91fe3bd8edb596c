// Fills: cuMemset in all its widths.
#include "client/copy.h"
#include "client/exports.h"

namespace cuplex::client {
namespace {

struct Area {
  CUdeviceptr dst;
  uint64_t pitch;  // bytes; meaningless for one row
  uint64_t width;  // elements
  uint64_t height;
};

CUresult Fill(Area area, uint32_t value, uint32_t element_bytes, CUstream stream, bool waits) {
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  Handle h;
  if (CUresult r = ResolveStream(caller, stream, &h)) return r;
  if (area.width == 0 || area.height == 0) return CUDA_SUCCESS;
  Session& session = *caller.session;
  if (CUresult r = session.submission().TakeDeferred()) return r;
  uint64_t row, reach;
  if (__builtin_mul_overflow(area.width, uint64_t{element_bytes}, &row)) return CUDA_ERROR_INVALID_VALUE;
  if (area.height == 1) area.pitch = row;
  if (area.pitch < row || area.dst % element_bytes || area.pitch % element_bytes ||
      __builtin_mul_overflow(area.pitch, area.height - 1, &reach) ||
      __builtin_add_overflow(reach, row, &reach))
    return CUDA_ERROR_INVALID_VALUE;
  const Place place = PlaceOf(session, area.dst, reach);
  if (CUresult r = CheckPlace(place, Says::kDevice)) return r;
  const wire::wireFillArgs args(area.dst, area.pitch, area.width, area.height, h, value, element_bytes);
  if (CUresult r = session.submission().Post(Op::wireFill, caller.number, args)) return r;
  // The host may read what it shares; and the server judges addresses that it never gave to this process.
  const bool wait = waits && (place == Place::kShared || !session.allocations.Holds(area.dst, reach));
  return wait ? AwaitStream(caller, h) : CUDA_SUCCESS;
}

}  // namespace
}  // namespace cuplex::client

using namespace cuplex::client;

extern "C" {

CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t n) {
  return Fill({dst, 0, n, 1}, value, 1, nullptr, true);
}
CUresult cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t n) {
  return Fill({dst, 0, n, 1}, value, 2, nullptr, true);
}
CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t n) {
  return Fill({dst, 0, n, 1}, value, 4, nullptr, true);
}
CUresult cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height) {
  return Fill({dst, pitch, width, height}, value, 1, nullptr, true);
}
CUresult cuMemsetD2D16_v2(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height) {
  return Fill({dst, pitch, width, height}, value, 2, nullptr, true);
}
CUresult cuMemsetD2D32_v2(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height) {
  return Fill({dst, pitch, width, height}, value, 4, nullptr, true);
}
CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t n, CUstream hStream) {
  return Fill({dst, 0, n, 1}, value, 1, hStream, false);
}
CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t n, CUstream hStream) {
  return Fill({dst, 0, n, 1}, value, 2, hStream, false);
}
CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t n, CUstream hStream) {
  return Fill({dst, 0, n, 1}, value, 4, hStream, false);
}
CUresult cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height,
                           CUstream hStream) {
  return Fill({dst, pitch, width, height}, value, 1, hStream, false);
}
CUresult cuMemsetD2D16Async(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height,
                            CUstream hStream) {
  return Fill({dst, pitch, width, height}, value, 2, hStream, false);
}
CUresult cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height,
                            CUstream hStream) {
  return Fill({dst, pitch, width, height}, value, 4, hStream, false);
}

}  // extern "C"
