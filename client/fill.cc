// Fills: cuMemset in all its widths.
#include "client/copy.h"
#include "client/exports.h"
#include "client/frame.h"
#include "client/graph/capture.h"

namespace cuplex::client {
namespace {

struct Area {
  CUdeviceptr dst;
  uint64_t pitch;  // bytes; meaningless for one row
  uint64_t width;  // elements
  uint64_t height;
};

/// Brings the pitch of one row in order, and says how many bytes the area reaches over.
CUresult CheckArea(Area& area, uint32_t element_bytes, uint64_t* reach) {
  uint64_t row;
  if (__builtin_mul_overflow(area.width, uint64_t{element_bytes}, &row)) return CUDA_ERROR_INVALID_VALUE;
  if (area.height == 1) area.pitch = row;
  if (area.pitch < row || area.dst % element_bytes || area.pitch % element_bytes ||
      __builtin_mul_overflow(area.pitch, area.height - 1, reach) ||
      __builtin_add_overflow(*reach, row, reach))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult Fill(Area area, uint32_t value, uint32_t element_bytes, CUstream stream, bool waits) {
  Caller caller;
  if (CUresult r = EnterContext(&caller)) return r;
  if (Capturing(caller)) [[unlikely]] {
    CUresult captured;
    if (CaptureFill(caller, stream, {area.dst, area.pitch, value, element_bytes, area.width, area.height},
                    waits, &captured))
      return captured;
  }
  Handle h;
  if (CUresult r = ResolveStream(caller, stream, &h)) return r;
  if (area.width == 0 || area.height == 0) return CUDA_SUCCESS;
  Session& session = *caller.session;
  if (CUresult r = session.submission().TakeDeferred()) return r;
  uint64_t reach;
  if (CUresult r = CheckArea(area, element_bytes, &reach)) return r;
  const Place place = PlaceOf(session, area.dst, reach);
  if (CUresult r = CheckPlace(place, Says::kDevice)) return r;
  const wire::wireFillArgs args(area.dst, area.pitch, area.width, area.height, h, value, element_bytes);
  if (CUresult r = session.submission().Post(Op::wireFill, caller.number, args)) return r;
  // The host may read what it shares; and the server judges addresses that it never gave to this process.
  const bool wait = waits && (place == Place::kShared || !session.allocations.Holds(area.dst, reach));
  return wait ? AwaitStream(caller, h) : CUDA_SUCCESS;
}

}  // namespace

CUresult FillFrame(const Session& session, const CUDA_MEMSET_NODE_PARAMS& fill, std::string* frame) {
  Area area{fill.dst, fill.pitch, fill.width, fill.height};
  const uint32_t element = fill.elementSize;
  if (element != 1 && element != 2 && element != 4) return CUDA_ERROR_INVALID_VALUE;
  frame->clear();
  if (area.width == 0 || area.height == 0) return CUDA_SUCCESS;
  uint64_t reach;
  if (CUresult r = CheckArea(area, element, &reach)) return r;
  if (CUresult r = CheckPlace(PlaceOf(session, area.dst, reach), Says::kDevice)) return r;
  *frame = FrameOf(Op::wireFill,
                   wire::wireFillArgs(area.dst, area.pitch, area.width, area.height, 0, fill.value, element));
  return CUDA_SUCCESS;
}

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
