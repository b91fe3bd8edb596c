#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "softcuda/api/testing.h"

namespace cuplex::softcuda {
namespace {

using Bytes = std::vector<unsigned char>;

class Copies : public ContextTest {
 protected:
  CUdeviceptr Alloc(size_t size) {
    CUdeviceptr pointer = 0;
    EXPECT_CU(cuMemAlloc_v2(&pointer, size));
    return pointer;
  }
  Bytes Random(size_t size) {
    Bytes bytes(size);
    for (auto& byte : bytes) byte = static_cast<unsigned char>(random_());
    return bytes;
  }
  Bytes Read(CUdeviceptr from, size_t size) {
    Bytes bytes(size);
    EXPECT_CU(cuMemcpyDtoH_v2(bytes.data(), from, size));
    return bytes;
  }

 private:
  std::mt19937 random_{7};
};

TEST_F(Copies, ThereAndBack) {
  Bytes sent = Random(9'000'001);  // more than one piece
  CUdeviceptr a = Alloc(sent.size()), b = Alloc(sent.size());
  EXPECT_CU(cuMemcpyHtoD_v2(a, sent.data(), sent.size()));
  EXPECT_CU(cuMemcpyDtoD_v2(b, a, sent.size()));
  EXPECT_EQ(Read(b, sent.size()), sent);
  Bytes unified(sent.size());
  EXPECT_CU(cuMemcpy(reinterpret_cast<CUdeviceptr>(unified.data()), b, sent.size()));
  EXPECT_EQ(unified, sent);
}

TEST_F(Copies, AsyncOnesKeepTheOrderOfTheirStream) {
  CUstream stream;
  EXPECT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr device = Alloc(4096);
  Gate gate;
  gate.Hold(stream);
  Bytes first(4096, 1);
  EXPECT_CU(cuMemcpyHtoDAsync_v2(device, first.data(), 4096, stream));
  std::fill(first.begin(), first.end(), 9);  // not pinned: it was taken already
  EXPECT_CU(cuMemsetD8Async(device, 2, 1024, stream));
  EXPECT_EQ(Read(device, 4096), Bytes(4096));  // the default stream does not wait for this one
  gate.Open();
  EXPECT_CU(cuStreamSynchronize(stream));
  Bytes want(4096, 1);
  std::fill_n(want.begin(), 1024, 2);
  EXPECT_EQ(Read(device, 4096), want);
}

TEST_F(Copies, PinnedMemoryIsReadWhenItsTurnComes) {
  CUstream stream;
  EXPECT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr device = Alloc(64);
  void* pinned;
  EXPECT_CU(cuMemAllocHost_v2(&pinned, 64));
  Gate gate;
  gate.Hold(stream);
  std::memset(pinned, 1, 64);
  EXPECT_CU(cuMemcpyHtoDAsync_v2(device, pinned, 64, stream));
  std::memset(pinned, 2, 64);
  gate.Open();
  EXPECT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(Read(device, 64), Bytes(64, 2));
}

TEST_F(Copies, PastTheEndIsRefused) {
  CUdeviceptr device = Alloc(100);
  Bytes host(200);
  EXPECT_CU(cuMemcpyHtoD_v2(device, host.data(), 100));
  EXPECT_CODE(cuMemcpyHtoD_v2(device, host.data(), 101), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemcpyHtoD_v2(device + 50, host.data(), 51), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemcpyDtoH_v2(host.data(), device, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemcpyDtoH_v2(host.data(), 0, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemcpyDtoH_v2(nullptr, device, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemcpyHtoD_v2(reinterpret_cast<CUdeviceptr>(host.data()), host.data() + 100, 10),
              CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemcpyDtoH_v2(nullptr, 0, 0));
}

TEST_F(Copies, ARangeThatGoesAwayWhileTheCopyWaitsFailsItsContext) {
  CUcontext other;
  EXPECT_CU(cuCtxCreate_v2(&other, 0, 0));
  CUstream stream;
  EXPECT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr address;
  CUmemGenericAllocationHandle memory;
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemAccessDesc access{prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  constexpr size_t kSize = 2 << 20;
  EXPECT_CU(cuMemAddressReserve(&address, kSize, 0, 0, 0));
  EXPECT_CU(cuMemCreate(&memory, kSize, &prop, 0));
  EXPECT_CU(cuMemMap(address, kSize, 0, memory, 0));
  EXPECT_CU(cuMemSetAccess(address, kSize, &access, 1));
  Gate gate;
  gate.Hold(stream);
  EXPECT_CU(cuMemsetD8Async(address, 1, kSize, stream));
  EXPECT_CU(cuMemUnmap(address, kSize));
  gate.Open();
  EXPECT_CODE(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_CODE(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);  // for good
  EXPECT_CU(cuCtxDestroy_v2(other));
  EXPECT_CU(cuCtxSynchronize());  // the fixture's context is none the worse
  EXPECT_CU(cuMemRelease(memory));
  EXPECT_CU(cuMemAddressFree(address, kSize));
}

TEST_F(Copies, TwoDimensions) {
  constexpr size_t kPitch = 64, kHostPitch = 50;
  Bytes sent = Random(kHostPitch * 20);
  CUdeviceptr device = Alloc(kPitch * 30);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = sent.data();
  copy.srcPitch = kHostPitch;
  copy.srcXInBytes = 3;
  copy.srcY = 2;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = device;
  copy.dstPitch = kPitch;
  copy.dstXInBytes = 5;
  copy.dstY = 7;
  copy.WidthInBytes = 31;
  copy.Height = 11;
  EXPECT_CU(cuMemcpy2D_v2(&copy));
  Bytes want(kPitch * 30);
  for (size_t y = 0; y < 11; ++y) {
    for (size_t x = 0; x < 31; ++x) want[(y + 7) * kPitch + x + 5] = sent[(y + 2) * kHostPitch + x + 3];
  }
  EXPECT_EQ(Read(device, want.size()), want);
  copy.dstY = 20;  // the last row would end behind the allocation
  EXPECT_CODE(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
  copy.dstY = 7;
  copy.dstPitch = 30;
  EXPECT_CODE(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  EXPECT_CODE(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(cuMemcpy2D_v2(nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Copies, ThreeDimensions) {
  constexpr size_t kPitch = 16, kRows = 9, kPlanes = 6;
  Bytes sent = Random(kPitch * kRows * kPlanes), got(sent.size());
  CUdeviceptr device = Alloc(sent.size());
  EXPECT_CU(cuMemcpyHtoD_v2(device, sent.data(), sent.size()));
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = device;
  copy.srcPitch = kPitch;
  copy.srcHeight = kRows;
  copy.srcXInBytes = 1;
  copy.srcY = 2;
  copy.srcZ = 3;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = got.data();
  copy.dstPitch = kPitch;
  copy.dstHeight = kRows;
  copy.WidthInBytes = 10;
  copy.Height = 5;
  copy.Depth = 3;
  EXPECT_CU(cuMemcpy3DAsync_v2(&copy, nullptr));
  Bytes want(sent.size());
  for (size_t z = 0; z < 3; ++z) {
    for (size_t y = 0; y < 5; ++y) {
      for (size_t x = 0; x < 10; ++x) {
        want[(z * kRows + y) * kPitch + x] = sent[((z + 3) * kRows + y + 2) * kPitch + x + 1];
      }
    }
  }
  EXPECT_EQ(got, want);  // a target that is not pinned is complete on return
}

TEST_F(Copies, Memsets) {
  CUdeviceptr device = Alloc(4096);
  EXPECT_CU(cuMemsetD8_v2(device + 1, 0x11, 3));
  EXPECT_CU(cuMemsetD16_v2(device + 8, 0x2233, 3));
  EXPECT_CU(cuMemsetD32_v2(device + 16, 0x44556677, 2));
  EXPECT_CU(cuMemsetD2D16_v2(device + 64, 32, 0x8899, 2, 3));
  Bytes want(256);
  std::fill_n(want.begin() + 1, 3, 0x11);
  for (int i = 0; i < 3; ++i) {
    want[8 + 2 * i] = 0x33;
    want[9 + 2 * i] = 0x22;
  }
  for (int i = 0; i < 2; ++i) {
    const unsigned char word[] = {0x77, 0x66, 0x55, 0x44};
    std::copy_n(word, 4, want.begin() + 16 + 4 * i);
  }
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 2; ++x) {
      want[64 + 32 * y + 2 * x] = 0x99;
      want[65 + 32 * y + 2 * x] = 0x88;
    }
  }
  EXPECT_EQ(Read(device, 256), want);
  EXPECT_CODE(cuMemsetD16_v2(device + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemsetD32_v2(device + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemsetD8_v2(device, 0, 4097), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemsetD32_v2(device, 0, SIZE_MAX / 4 + 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemsetD2D8_v2(device, 4, 0, 8, 2), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace cuplex::softcuda
