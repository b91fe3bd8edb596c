// Memsets.
#include "softcuda/exports.h"
#include "softcuda/transfer.h"

using namespace cuplex;
using namespace cuplex::softcuda;

namespace {

CUresult Fill(CUstream stream, bool wait, CUdeviceptr to, size_t pitch, Pattern pattern, size_t width,
              size_t height) {
  return InContext([&](Context& context) -> CUresult {
    size_t bytes;
    if (__builtin_mul_overflow(width, size_t{pattern.unit}, &bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (height > 1 && (pitch < bytes || pitch % pattern.unit)) return CUDA_ERROR_INVALID_VALUE;
    return FillBox(context, stream, wait, {to, pitch, 0}, pattern, {bytes, height, 1});
  });
}

}  // namespace

CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
  return Fill(nullptr, true, dstDevice, 0, {uc, 1}, N, 1);
}
CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N) {
  return Fill(nullptr, true, dstDevice, 0, {us, 2}, N, 1);
}
CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
  return Fill(nullptr, true, dstDevice, 0, {ui, 4}, N, 1);
}
CUresult cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                         size_t Height) {
  return Fill(nullptr, true, dstDevice, dstPitch, {uc, 1}, Width, Height);
}
CUresult cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
                          size_t Height) {
  return Fill(nullptr, true, dstDevice, dstPitch, {us, 2}, Width, Height);
}
CUresult cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                          size_t Height) {
  return Fill(nullptr, true, dstDevice, dstPitch, {ui, 4}, Width, Height);
}
CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
  return Fill(hStream, false, dstDevice, 0, {uc, 1}, N, 1);
}
CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream) {
  return Fill(hStream, false, dstDevice, 0, {us, 2}, N, 1);
}
CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream) {
  return Fill(hStream, false, dstDevice, 0, {ui, 4}, N, 1);
}
CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                           size_t Height, CUstream hStream) {
  return Fill(hStream, false, dstDevice, dstPitch, {uc, 1}, Width, Height);
}
CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
                            size_t Height, CUstream hStream) {
  return Fill(hStream, false, dstDevice, dstPitch, {us, 2}, Width, Height);
}
CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                            size_t Height, CUstream hStream) {
  return Fill(hStream, false, dstDevice, dstPitch, {ui, 4}, Width, Height);
}
