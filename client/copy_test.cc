#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

#include "client/fake_server.h"
#include "client/process.h"
#include "cuda/driver_api.h"

namespace cuplex::client {
namespace {

/// Bytes that no two nearby blocks share.
std::vector<uint8_t> Pattern(size_t bytes, uint32_t seed) {
  std::vector<uint8_t> out(bytes);
  uint32_t x = seed * 2654435761u + 1;
  for (uint8_t& b : out) {
    x = x * 1664525u + 1013904223u;
    b = static_cast<uint8_t>(x >> 24);
  }
  return out;
}

class CopyTest : public testing::Test {
 protected:
  ~CopyTest() override { Detach(); }
  CUdeviceptr Allocate(size_t bytes) {
    CUdeviceptr p = 0;
    EXPECT_EQ(cuMemAlloc_v2(&p, bytes), CUDA_SUCCESS);
    return p;
  }
  /// The device has these bytes there.
  bool Holds(CUdeviceptr at, const std::vector<uint8_t>& bytes) {
    return server_.Seen([&] { return std::memcmp(server_.Memory(at), bytes.data(), bytes.size()) == 0; });
  }
  std::vector<SeenCopy> Copies() {
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    return server_.Seen([&] { return server_.copies; });
  }

  FakeServer server_;
  CUcontext context_ = Attach(server_);
};

class PageableCopyTest : public CopyTest, public testing::WithParamInterface<size_t> {};

TEST_P(PageableCopyTest, BytesArriveBothWays) {
  const size_t n = GetParam();
  CUdeviceptr device = Allocate(n + 100);
  const std::vector<uint8_t> there = Pattern(n, 1);
  ASSERT_EQ(cuMemcpyHtoD_v2(device + 3, there.data(), n), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_TRUE(Holds(device + 3, there));

  const std::vector<uint8_t> back = Pattern(n, 2);
  server_.Seen([&] { return std::memcpy(server_.Memory(device + 5), back.data(), n); });
  std::vector<uint8_t> got(n + 2, 0xee);
  ASSERT_EQ(cuMemcpyDtoH_v2(got.data() + 1, device + 5, n), CUDA_SUCCESS);
  EXPECT_EQ(std::memcmp(got.data() + 1, back.data(), n), 0);
  EXPECT_EQ(got.front(), 0xee);
  EXPECT_EQ(got.back(), 0xee);
}

constexpr size_t kBlock = 256 << 10;
INSTANTIATE_TEST_SUITE_P(Sizes, PageableCopyTest,
                         testing::Values(1, 3, 4095, kBlock - 1, kBlock, kBlock + 1, 3 * kBlock + 17,
                                         70 * kBlock + 5));  // the last: more than all blocks

TEST_F(CopyTest, AddressesAreHeldAgainstWhatTheCallSays) {
  CUdeviceptr device = Allocate(1000);
  char host[1000] = {};
  const CUdeviceptr elsewhere = reinterpret_cast<CUdeviceptr>(host);
  EXPECT_EQ(cuMemcpyHtoD_v2(elsewhere, host, 10), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH_v2(host, elsewhere, 10), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoD_v2(device, elsewhere, 10), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD_v2(device, nullptr, 10), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD_v2(device, reinterpret_cast<void*>(device), 10), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD_v2(server_.arena_base() + FakeServer::kArenaBytes - 5, host, 10),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD_v2(device, nullptr, 0), CUDA_SUCCESS);
  EXPECT_TRUE(Copies().empty());
}

TEST_F(CopyTest, DirectionIsFoundFromTheAddresses) {
  CUdeviceptr device = Allocate(16);
  char there[16] = "fifteen letters", back[16] = {}, again[16] = {};
  EXPECT_EQ(cuMemcpy(device, reinterpret_cast<CUdeviceptr>(there), 16), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpy(reinterpret_cast<CUdeviceptr>(back), device, 16), CUDA_SUCCESS);
  EXPECT_STREQ(back, there);
  EXPECT_EQ(cuMemcpy(reinterpret_cast<CUdeviceptr>(again), reinterpret_cast<CUdeviceptr>(back), 16),
            CUDA_SUCCESS);
  EXPECT_STREQ(again, there);
}

TEST_F(CopyTest, AFailedCopyFromTheDeviceIsToldByTheCallAndNotAgain) {
  CUdeviceptr device = Allocate(3 * kBlock);
  server_.Seen([&] { return server_.copy_answer = CUDA_ERROR_ILLEGAL_ADDRESS; });
  std::vector<uint8_t> got(3 * kBlock, 9);
  EXPECT_EQ(cuMemcpyDtoH_v2(got.data(), device, got.size()), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(got, std::vector<uint8_t>(3 * kBlock, 9));
  server_.Seen([&] { return server_.copy_answer = CUDA_SUCCESS; });
  (void)cuCtxSynchronize();
  EXPECT_EQ(cuMemcpyDtoH_v2(got.data(), device, got.size()), CUDA_SUCCESS);  // all blocks are free again
}

TEST_F(CopyTest, ADeviceAddressThatIsNotOursIsWaitedFor) {
  char host[10] = {};
  server_.Seen([&] { return server_.copy_answer = CUDA_ERROR_INVALID_VALUE; });
  EXPECT_EQ(cuMemcpyHtoD_v2(server_.arena_base() + 4096, host, 10), CUDA_ERROR_INVALID_VALUE);
  server_.Seen([&] { return server_.copy_answer = CUDA_SUCCESS; });
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(CopyTest, PinnedMemoryGoesAsItIs) {
  CUdeviceptr device = Allocate(10 * kBlock);
  void* pinned = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&pinned, 10 * kBlock, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
  const uint64_t address = reinterpret_cast<uint64_t>(pinned);
  EXPECT_EQ(address, server_.host_window_base());
  const std::vector<uint8_t> bytes = Pattern(10 * kBlock, 3);
  server_.Seen([&] { return std::memcpy(pinned, bytes.data(), bytes.size()); });
  ASSERT_EQ(cuMemcpyHtoD_v2(device, pinned, bytes.size()), CUDA_SUCCESS);
  EXPECT_TRUE(Holds(device, bytes));
  const auto seen = Copies();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].src, address);
  EXPECT_EQ(seen[0].dst, device);
  EXPECT_EQ(seen[0].bytes, bytes.size());
  EXPECT_EQ(seen[0].staged, 0u);
  EXPECT_EQ(cuMemcpyHtoD_v2(device, pinned, bytes.size() + 1), CUDA_ERROR_INVALID_VALUE);  // past its end
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);
}

struct BoxCase {
  size_t width, height, depth, pitch, rows;  // of the host's side
  size_t x, y, z;
};

class BoxCopyTest : public CopyTest, public testing::WithParamInterface<BoxCase> {};

TEST_P(BoxCopyTest, EveryByteOfTheBoxAndNoOther) {
  const BoxCase c = GetParam();
  const size_t device_pitch = c.width + 13, device_rows = c.height + 1;
  const size_t device_bytes = device_pitch * device_rows * (c.depth + 1);
  const size_t host_bytes = c.pitch * c.rows * (c.z + c.depth);
  CUdeviceptr device = Allocate(device_bytes);
  const std::vector<uint8_t> before = Pattern(device_bytes, 4), host = Pattern(host_bytes, 5);
  server_.Seen([&] { return std::memcpy(server_.Memory(device), before.data(), device_bytes); });
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host.data();
  copy.srcPitch = c.pitch;
  copy.srcHeight = c.rows;
  copy.srcXInBytes = c.x;
  copy.srcY = c.y;
  copy.srcZ = c.z;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = device;
  copy.dstPitch = device_pitch;
  copy.dstHeight = device_rows;
  copy.dstXInBytes = 2;
  copy.WidthInBytes = c.width;
  copy.Height = c.height;
  copy.Depth = c.depth;
  ASSERT_EQ(cuMemcpy3D_v2(&copy), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  std::vector<uint8_t> expected = before;
  for (size_t z = 0; z < c.depth; ++z)
    for (size_t y = 0; y < c.height; ++y)
      for (size_t x = 0; x < c.width; ++x)
        expected[(z * device_rows + y) * device_pitch + 2 + x] =
            host[((c.z + z) * c.rows + c.y + y) * c.pitch + c.x + x];
  EXPECT_TRUE(Holds(device, expected));

  std::vector<uint8_t> back(host_bytes, 0x11), expected_back = back;
  std::swap(copy.srcMemoryType, copy.dstMemoryType);
  copy.srcDevice = device;
  copy.dstHost = back.data();
  std::swap(copy.srcPitch, copy.dstPitch);
  std::swap(copy.srcHeight, copy.dstHeight);
  std::swap(copy.srcXInBytes, copy.dstXInBytes);
  std::swap(copy.srcY, copy.dstY);
  std::swap(copy.srcZ, copy.dstZ);
  ASSERT_EQ(cuMemcpy3D_v2(&copy), CUDA_SUCCESS);
  for (size_t z = 0; z < c.depth; ++z)
    for (size_t y = 0; y < c.height; ++y)
      for (size_t x = 0; x < c.width; ++x) {
        const size_t at = ((c.z + z) * c.rows + c.y + y) * c.pitch + c.x + x;
        expected_back[at] = host[at];
      }
  EXPECT_EQ(back, expected_back);
}

INSTANTIATE_TEST_SUITE_P(Shapes, BoxCopyTest,
                         testing::Values(BoxCase{1, 1, 1, 1, 1, 0, 0, 0}, BoxCase{7, 5, 3, 19, 8, 4, 2, 1},
                                         BoxCase{1000, 700, 1, 1024, 700, 3, 0, 0},
                                         BoxCase{64, 3, 100, 64, 3, 0, 0, 0},
                                         BoxCase{kBlock + 3, 2, 2, kBlock + 9, 3, 5, 1, 0}));

TEST_F(CopyTest, BoxesThatCannotBe) {
  CUdeviceptr device = Allocate(1000);
  char host[1000];
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host;
  copy.srcPitch = 9;  // less than a row
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = device;
  copy.dstPitch = 10;
  copy.WidthInBytes = 10;
  copy.Height = 4;
  EXPECT_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
  copy.srcPitch = 10;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;  // and no array given
  EXPECT_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_HANDLE);
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstY = ~size_t{0} / 4;  // wraps
  EXPECT_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
  copy.dstY = 0;
  copy.Height = 0;
  EXPECT_EQ(cuMemcpy2D_v2(&copy), CUDA_SUCCESS);
}

TEST_F(CopyTest, FillsSayWhatIsFilled) {
  CUdeviceptr device = Allocate(4096);
  EXPECT_EQ(cuMemsetD16_v2(device + 2, 0xabcd, 5), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD2D32_v2(device, 64, 7, 3, 9), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD16_v2(device + 1, 0, 5), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD2D8_v2(device, 4, 0, 5, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD8_v2(device, 0, 0), CUDA_SUCCESS);
  (void)cuCtxSynchronize();
  auto seen = server_.Seen([&] { return server_.fills; });
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].dst(), device + 2);
  EXPECT_EQ(seen[0].width(), 5u);
  EXPECT_EQ(seen[0].height(), 1u);
  EXPECT_EQ(seen[0].value(), 0xabcdu);
  EXPECT_EQ(seen[0].element_bytes(), 2u);
  EXPECT_EQ(seen[1].pitch(), 64u);
  EXPECT_EQ(seen[1].width(), 3u);
  EXPECT_EQ(seen[1].height(), 9u);
  EXPECT_EQ(seen[1].element_bytes(), 4u);
}

}  // namespace
}  // namespace cuplex::client
