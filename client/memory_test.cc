#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/fake_server.h"
#include "client/process.h"
#include "cuda/driver_api.h"

namespace cuplex::client {
namespace {

class MemoryTest : public testing::Test {
 protected:
  ~MemoryTest() override { Detach(); }
  FakeServer server_;
  CUcontext context_ = Attach(server_);
};

TEST_F(MemoryTest, OutOfMemoryAndGarbage) {
  CUdeviceptr p = 0, inside;
  EXPECT_EQ(cuMemAlloc_v2(&p, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAlloc_v2(&p, FakeServer::kMemoryBytes), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAlloc_v2(&p, 1000), CUDA_SUCCESS);
  inside = p + 10;
  EXPECT_EQ(cuMemFree_v2(inside), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree_v2(0xdead0000), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(p), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeHost(&p), CUDA_ERROR_INVALID_VALUE);
  (void)cuCtxSynchronize();
  EXPECT_THAT(server_.Seen([&] { return server_.freed; }), testing::ElementsAre(p));
}

TEST_F(MemoryTest, PitchIsAMultipleThatHoldsARow) {
  CUdeviceptr p = 0;
  size_t pitch = 0, size = 0;
  ASSERT_EQ(cuMemAllocPitch_v2(&p, &pitch, 1000, 30, 4), CUDA_SUCCESS);
  EXPECT_GE(pitch, 1000u);
  EXPECT_EQ(pitch % 512, 0u);
  ASSERT_EQ(cuMemGetAddressRange_v2(nullptr, &size, p + 5), CUDA_SUCCESS);
  EXPECT_EQ(size, pitch * 30);
  EXPECT_EQ(cuMemAllocPitch_v2(&p, &pitch, 1000, 30, 5), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocPitch_v2(&p, &pitch, ~size_t{0}, 30, 4), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(MemoryTest, PointersAreKnown) {
  CUdeviceptr device;
  void* pinned;
  ASSERT_EQ(cuMemAlloc_v2(&device, 1000), CUDA_SUCCESS);
  ASSERT_EQ(cuMemHostAlloc(&pinned, 1000, CU_MEMHOSTALLOC_DEVICEMAP), CUDA_SUCCESS);
  const CUdeviceptr host = reinterpret_cast<CUdeviceptr>(pinned);
  unsigned type = 0;
  int ordinal = -1;
  CUdeviceptr start = 0;
  CUcontext context = nullptr;
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device + 999), CUDA_SUCCESS);
  EXPECT_EQ(type, CU_MEMORYTYPE_DEVICE);
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device + 1000),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, host + 7), CUDA_SUCCESS);
  EXPECT_EQ(type, CU_MEMORYTYPE_HOST);
  EXPECT_EQ(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, host + 7), CUDA_SUCCESS);
  EXPECT_EQ(start, host);
  EXPECT_EQ(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, host + 7), CUDA_SUCCESS);
  EXPECT_EQ(start, host + 7);
  EXPECT_EQ(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, device), CUDA_SUCCESS);
  EXPECT_EQ(context, context_);
  CUdeviceptr mapped;
  EXPECT_EQ(cuMemHostGetDevicePointer_v2(&mapped, static_cast<char*>(pinned) + 5, 0), CUDA_SUCCESS);
  EXPECT_EQ(mapped, host + 5);

  CUpointer_attribute ask[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* answers[] = {&type, &ordinal};
  int unknown = 0;
  EXPECT_EQ(cuPointerGetAttributes(2, ask, answers, reinterpret_cast<CUdeviceptr>(&unknown)), CUDA_SUCCESS);
  EXPECT_EQ(type, 0u);
  EXPECT_EQ(ordinal, CU_DEVICE_INVALID);
}

TEST_F(MemoryTest, ManagedMemoryIsOneAddressForBoth) {
  CUdeviceptr managed = 0;
  ASSERT_EQ(cuMemAllocManaged(&managed, 5000, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  std::memset(reinterpret_cast<void*>(managed), 1, 5000);
  unsigned is_managed = 0;
  EXPECT_EQ(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed), CUDA_SUCCESS);
  EXPECT_EQ(is_managed, 1u);
  EXPECT_EQ(cuMemPrefetchAsync(managed, 5000, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPrefetchAsync(managed, 5001, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree_v2(managed), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(managed), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocManaged(&managed, 5000, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemoryTest, RegisteredMemoryCopiesAndHasNoDevicePointer) {
  std::vector<char> mine(10000, 'x');
  CUdeviceptr device, mapped;
  ASSERT_EQ(cuMemAlloc_v2(&device, 10000), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostRegister_v2(mine.data(), mine.size(), 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostRegister_v2(mine.data(), mine.size(), 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_EQ(cuMemcpyHtoDAsync_v2(device, mine.data(), 10000, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostGetDevicePointer_v2(&mapped, mine.data(), 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuMemHostUnregister(mine.data()), CUDA_SUCCESS);
  EXPECT_EQ(cuMemHostUnregister(mine.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_F(MemoryTest, AContextTakesItsMemoryWithIt) {
  CUcontext made;
  CUdeviceptr device;
  void* pinned;
  ASSERT_EQ(cuCtxCreate_v2(&made, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAlloc_v2(&device, 1000), CUDA_SUCCESS);
  ASSERT_EQ(cuMemHostAlloc(&pinned, 1000, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDestroy_v2(made), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(device), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemoryTest, PoolsCountWhatIsUsed) {
  CUmemoryPool pool;
  CUdeviceptr a, b;
  cuuint64_t used = 0, most = 0;
  ASSERT_EQ(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocAsync(&a, 1000, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocFromPoolAsync(&b, 500, pool, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFreeAsync(a, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &most), CUDA_SUCCESS);
  EXPECT_EQ(used, 500u);
  EXPECT_EQ(most, 1500u);
  EXPECT_EQ(cuMemAllocFromPoolAsync(&b, 500, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace cuplex::client
