#include <sys/mman.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "softcuda/api/testing.h"

// SOFTCUDA_MEMORY=256MiB
namespace cuplex::softcuda {
namespace {

constexpr size_t kAll = size_t{256} << 20;

class Memory : public ContextTest {};

TEST_F(Memory, TheBudgetIsExact) {
  ASSERT_EQ(FreeBytes(), kAll);
  CUdeviceptr half, other, none;
  EXPECT_CU(cuMemAlloc_v2(&half, kAll / 2));
  EXPECT_EQ(FreeBytes(), kAll / 2);
  EXPECT_CODE(cuMemAlloc_v2(&none, kAll / 2 + 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_CU(cuMemAlloc_v2(&other, kAll / 2));
  EXPECT_EQ(FreeBytes(), 0u);
  EXPECT_CODE(cuMemAlloc_v2(&none, 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_CU(cuMemFree_v2(half));
  EXPECT_CU(cuMemFree_v2(other));
  EXPECT_EQ(FreeBytes(), kAll);
}

TEST_F(Memory, SmallOnesTakeAPage) {
  CUdeviceptr pointer;
  EXPECT_CU(cuMemAlloc_v2(&pointer, 1));
  EXPECT_EQ(FreeBytes(), kAll - 4096);
  EXPECT_CU(cuMemFree_v2(pointer));
}

TEST_F(Memory, TheBudgetHoldsWhenThreadsRace) {
  std::atomic<int> got = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      EXPECT_CU(cuCtxSetCurrent(context));
      CUdeviceptr pointer;
      for (int n = 0; n < 100; ++n) got += cuMemAlloc_v2(&pointer, 1 << 20) == CUDA_SUCCESS;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(got, 256);
}

TEST_F(Memory, FreshMemoryIsZero) {
  std::vector<unsigned char> bytes(1 << 16, 0xab), zero(1 << 16);
  for (int i = 0; i < 3; ++i) {
    CUdeviceptr pointer;
    EXPECT_CU(cuMemAlloc_v2(&pointer, bytes.size()));
    std::vector<unsigned char> found(bytes.size(), 1);
    EXPECT_CU(cuMemcpyDtoH_v2(found.data(), pointer, found.size()));
    EXPECT_EQ(found, zero);
    EXPECT_CU(cuMemcpyHtoD_v2(pointer, bytes.data(), bytes.size()));
    EXPECT_CU(cuMemFree_v2(pointer));
  }
}

TEST_F(Memory, WhatIsNotAnAllocationIsRefused) {
  CUdeviceptr pointer;
  EXPECT_CODE(cuMemAlloc_v2(&pointer, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemAlloc_v2(nullptr, 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemAlloc_v2(&pointer, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_CU(cuMemAlloc_v2(&pointer, 8192));
  EXPECT_CODE(cuMemFree_v2(pointer + 16), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemFree_v2(pointer));
  EXPECT_CODE(cuMemFree_v2(pointer), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemFree_v2(0x1234), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemFree_v2(0));
}

TEST_F(Memory, RangesAndPitches) {
  CUdeviceptr pointer, base;
  size_t size, pitch;
  EXPECT_CU(cuMemAlloc_v2(&pointer, 10000));
  EXPECT_EQ(pointer % 256, 0u);
  EXPECT_CU(cuMemGetAddressRange_v2(&base, &size, pointer + 9999));
  EXPECT_EQ(base, pointer);
  EXPECT_EQ(size, 10000u);
  EXPECT_CODE(cuMemGetAddressRange_v2(&base, &size, pointer + 10000), CUDA_ERROR_NOT_FOUND);
  EXPECT_CU(cuMemFree_v2(pointer));
  EXPECT_CU(cuMemAllocPitch_v2(&pointer, &pitch, 100, 7, 4));
  EXPECT_GE(pitch, 100u);
  EXPECT_EQ(pitch % 256, 0u);
  EXPECT_CU(cuMemGetAddressRange_v2(&base, &size, pointer));
  EXPECT_EQ(size, pitch * 7);
  EXPECT_CODE(cuMemAllocPitch_v2(&pointer, &pitch, 100, 7, 3), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Memory, PinnedMemoryIsOnePointerForBothSides) {
  void* host;
  CUdeviceptr device;
  unsigned flags, type;
  size_t before = FreeBytes();
  EXPECT_CU(cuMemHostAlloc(&host, 5000, CU_MEMHOSTALLOC_DEVICEMAP));
  EXPECT_EQ(FreeBytes(), before);  // it is the host's memory
  std::memset(host, 7, 5000);
  EXPECT_CU(cuMemHostGetDevicePointer_v2(&device, host, 0));
  EXPECT_EQ(device, reinterpret_cast<CUdeviceptr>(host));
  EXPECT_CU(cuMemHostGetFlags(&flags, host));
  EXPECT_EQ(flags, unsigned{CU_MEMHOSTALLOC_DEVICEMAP});
  EXPECT_CU(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
  EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_HOST});
  EXPECT_CODE(cuMemFree_v2(device), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemFreeHost(host));
  EXPECT_CODE(cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
  int local;
  EXPECT_CODE(cuMemHostGetDevicePointer_v2(&device, &local, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Memory, RegisteredMemoryKeepsItsAddress) {
  std::vector<char> memory(100000, 3);
  CUdeviceptr device;
  EXPECT_CU(cuMemHostRegister_v2(memory.data(), memory.size(), 0));
  EXPECT_CODE(cuMemHostRegister_v2(memory.data() + 10, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_CU(cuMemHostGetDevicePointer_v2(&device, memory.data(), 0));
  EXPECT_EQ(device, reinterpret_cast<CUdeviceptr>(memory.data()));
  char found = 0;
  EXPECT_CU(cuMemcpyDtoH_v2(&found, device + 99999, 1));
  EXPECT_EQ(found, 3);
  EXPECT_CU(cuMemHostUnregister(memory.data()));
  EXPECT_CODE(cuMemHostUnregister(memory.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  EXPECT_CODE(cuMemcpyDtoH_v2(&found, device, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Memory, ManagedMemoryIsSeenByBothAndCharged) {
  CUdeviceptr pointer;
  size_t before = FreeBytes();
  EXPECT_CU(cuMemAllocManaged(&pointer, 8192, CU_MEM_ATTACH_GLOBAL));
  EXPECT_EQ(FreeBytes(), before - 8192);
  EXPECT_CU(cuMemsetD32_v2(pointer, 0xdeadbeef, 2048));
  EXPECT_EQ(reinterpret_cast<uint32_t*>(pointer)[2047], 0xdeadbeef);
  unsigned managed = 0;
  EXPECT_CU(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer));
  EXPECT_EQ(managed, 1u);
  EXPECT_CU(cuMemFree_v2(pointer));
  EXPECT_EQ(FreeBytes(), before);
  EXPECT_CODE(cuMemAllocManaged(&pointer, 8192, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Memory, StreamOrderedFreeing) {
  CUstream stream;
  EXPECT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  size_t before = FreeBytes();
  CUdeviceptr pointer, again;
  EXPECT_CU(cuMemAllocAsync(&pointer, kAll / 2 + 4096, stream));
  EXPECT_EQ(FreeBytes(), before - kAll / 2 - 4096);
  Gate gate;
  gate.Hold(stream);
  EXPECT_CU(cuMemFreeAsync(pointer, stream));
  EXPECT_EQ(FreeBytes(), before - kAll / 2 - 4096);  // not its turn yet
  std::thread opener([&] { gate.Open(); });
  // There is room only once the stream has come to the free; the allocation waits for it.
  EXPECT_CU(cuMemAllocAsync(&again, kAll / 2 + 4096, stream));
  opener.join();
  EXPECT_CU(cuMemFreeAsync(again, stream));
  EXPECT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(FreeBytes(), before);
}

TEST_F(Memory, PoolsTellWhatIsUsed) {
  CUmemoryPool pool, current;
  EXPECT_CU(cuDeviceGetDefaultMemPool(&pool, 0));
  EXPECT_CU(cuDeviceGetMemPool(&current, 0));
  EXPECT_EQ(pool, current);
  CUdeviceptr pointer;
  EXPECT_CU(cuMemAllocFromPoolAsync(&pointer, 100000, pool, nullptr));
  cuuint64_t used = 0, threshold = 12345, found = 0;
  EXPECT_CU(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EXPECT_EQ(used, 102400u);  // 25 pages
  EXPECT_CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  EXPECT_CU(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &found));
  EXPECT_EQ(found, threshold);
  EXPECT_CU(cuMemFreeAsync(pointer, nullptr));
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_CU(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EXPECT_EQ(used, 0u);
  EXPECT_CODE(cuMemPoolTrimTo(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Memory, AttributesOfPointers) {
  CUdeviceptr pointer;
  EXPECT_CU(cuMemAlloc_v2(&pointer, 4096));
  CUcontext owner = nullptr;
  int ordinal = -1;
  size_t size = 0;
  EXPECT_CU(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, pointer + 5));
  EXPECT_EQ(owner, context);
  EXPECT_CU(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer));
  EXPECT_EQ(ordinal, 0);
  EXPECT_CU(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, pointer));
  EXPECT_EQ(size, 4096u);
  EXPECT_CODE(
      cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, reinterpret_cast<CUdeviceptr>(&size)),
      CUDA_ERROR_INVALID_VALUE);
  // Asked for several, a pointer that is none has zeros.
  unsigned type = 9;
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* values[] = {&type, &size};
  EXPECT_CU(cuPointerGetAttributes(2, names, values, reinterpret_cast<CUdeviceptr>(&size)));
  EXPECT_EQ(type, 0u);
  EXPECT_EQ(size, 0u);
}

TEST_F(Memory, AnotherContextsMemoryCanBeFreed) {
  CUdeviceptr pointer;
  EXPECT_CU(cuMemAlloc_v2(&pointer, 4096));
  CUcontext other;
  EXPECT_CU(cuCtxCreate_v2(&other, 0, 0));
  EXPECT_CU(cuMemFree_v2(pointer));
  EXPECT_CU(cuCtxDestroy_v2(other));
  EXPECT_EQ(FreeBytes(), kAll);
}

}  // namespace
}  // namespace cuplex::softcuda
