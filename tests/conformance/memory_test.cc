// Taking memory by every door there is, giving it back, and the limit.
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/conformance/driver_under_test.h"

namespace cuplex::conformance {
namespace {

using Memory = Body;
constexpr uint64_t kMiB = 1 << 20;

/// One way to get memory: Take answers as the driver did and, where that is success, Give gives it back.
struct Door {
  const char* name;
  bool counts_on_device;  // cuMemGetInfo shows it
  std::function<CUresult(uint64_t bytes)> take;
  std::function<void()> give;
};

std::vector<Door> Doors() {
  static CUdeviceptr at;
  static void* host;
  static CUmodule module;
  const auto free = [] { MUST(Cu().cuMemFree_v2(at)); };
  const auto free_async = [] {
    MUST(Cu().cuMemFreeAsync(at, nullptr));
    MUST(Cu().cuStreamSynchronize(nullptr));
  };
  const auto free_host = [] { MUST(Cu().cuMemFreeHost(host)); };
  return {
      {"cuMemAlloc", true, [](uint64_t n) { return Cu().cuMemAlloc_v2(&at, n); }, free},
      {"cuMemAllocPitch", true,
       [](uint64_t n) {
         size_t pitch = 0;
         return Cu().cuMemAllocPitch_v2(&at, &pitch, 4096, n / 4096, 4);
       },
       free},
      {"cuMemAllocManaged", false,
       [](uint64_t n) { return Cu().cuMemAllocManaged(&at, n, CU_MEM_ATTACH_GLOBAL); }, free},
      {"cuMemAllocAsync", true, [](uint64_t n) { return Cu().cuMemAllocAsync(&at, n, nullptr); }, free_async},
      {"cuMemHostAlloc", false, [](uint64_t n) { return Cu().cuMemHostAlloc(&host, n, 0); }, free_host},
      {"cuMemAllocHost", false, [](uint64_t n) { return Cu().cuMemAllocHost_v2(&host, n); }, free_host},
      {"a module's variable", true,
       [](uint64_t n) {
         const std::string ptx =
             ".version 7.0\n.target sm_50\n.address_size 64\n.visible .global .align 8 .b8 big[" +
             std::to_string(n) + "];\n.visible .entry none()\n{\n\tret;\n}\n";
         return Cu().cuModuleLoadData(&module, ptx.c_str());
       },
       [] { MUST(Cu().cuModuleUnload(module)); }},
  };
}

TEST_F(Memory, EveryDoorCountsAndGivesBack) {
  for (const Door& door : Doors()) {
    SCOPED_TRACE(door.name);
    const uint64_t before = FreeBytes();
    ASSERT_EQ(door.take(8 * kMiB), CUDA_SUCCESS);
    if (door.counts_on_device)
      EXPECT_LE(FreeBytes(), before - 8 * kMiB);
    else
      EXPECT_LE(FreeBytes(), before);
    door.give();
    EXPECT_EQ(FreeBytes(), before);
  }
}

TEST_F(Memory, NoDoorPassesTheLimit) {
  ONLY_OURS();
  size_t free = 0, total = 0;
  MUST(Cu().cuMemGetInfo_v2(&free, &total));
  for (const Door& door : Doors()) {
    if (!door.counts_on_device) continue;
    SCOPED_TRACE(door.name);
    const uint64_t before = FreeBytes();
    // More than there is at all, and more than is left.
    EXPECT_EQ(door.take(total + 2 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(FreeBytes(), before);
    CUdeviceptr kept = 0;
    MUST(Cu().cuMemAlloc_v2(&kept, total / 8 * 5));
    EXPECT_EQ(door.take(total / 8 * 5), CUDA_ERROR_OUT_OF_MEMORY);
    MUST(Cu().cuMemFree_v2(kept));
    ASSERT_EQ(door.take(total / 8 * 5), CUDA_SUCCESS) << "the refusal must leave nothing behind";
    door.give();
    EXPECT_EQ(FreeBytes(), before);
  }
}

TEST_F(Memory, AllThatIsFreeCanBeHad) {
  ONLY_OURS();
  const uint64_t before = FreeBytes();
  CUdeviceptr all = 0, more = 0;
  ASSERT_EQ(Cu().cuMemAlloc_v2(&all, before), CUDA_SUCCESS) << before << " bytes";
  EXPECT_EQ(FreeBytes(), 0u);
  EXPECT_EQ(Cu().cuMemAlloc_v2(&more, 1), CUDA_ERROR_OUT_OF_MEMORY);
  // Its first and last bytes are there.
  MUST(Cu().cuMemsetD8_v2(all, 0x5a, 1));
  MUST(Cu().cuMemsetD8_v2(all + before - 1, 0xa5, 1));
  EXPECT_EQ(Read<uint8_t>(all + before - 1, 1)[0], 0xa5);
  EXPECT_EQ(Read<uint8_t>(all, 1)[0], 0x5a);
  MUST(Cu().cuMemFree_v2(all));
  EXPECT_EQ(FreeBytes(), before);
}

TEST_F(Memory, OutOfMemoryIsNotTheEnd) {
  for (uint64_t bytes : {uint64_t{1} << 46, uint64_t{1} << 63, ~uint64_t{0} - 511, ~uint64_t{0}}) {
    CUdeviceptr at = 0;
    EXPECT_EQ(Cu().cuMemAlloc_v2(&at, bytes), CUDA_ERROR_OUT_OF_MEMORY) << std::hex << bytes;
    DeviceMemory some(4096);
    Write(some.at, std::vector<uint32_t>{17});
    EXPECT_EQ(Read<uint32_t>(some.at, 1)[0], 17u);
  }
}

TEST_F(Memory, ManySmallPieces) {
  const uint64_t before = FreeBytes();
  std::vector<CUdeviceptr> pieces(500);
  for (size_t i = 0; i < pieces.size(); ++i) {
    MUST(Cu().cuMemAlloc_v2(&pieces[i], 1 + i * 37 % 3000));
    EXPECT_EQ(pieces[i] % 256, 0u);
    MUST(Cu().cuMemsetD8_v2(pieces[i], static_cast<unsigned char>(i), 1 + i * 37 % 3000));
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    const size_t bytes = 1 + i * 37 % 3000;
    EXPECT_EQ(Read<uint8_t>(pieces[i], bytes), std::vector<uint8_t>(bytes, static_cast<uint8_t>(i)));
    CUdeviceptr base = 0;
    size_t size = 0;
    MUST(Cu().cuMemGetAddressRange_v2(&base, &size, pieces[i] + bytes - 1));
    EXPECT_EQ(base, pieces[i]);
    EXPECT_GE(size, bytes);
  }
  for (size_t i = 0; i < pieces.size(); ++i) MUST(Cu().cuMemFree_v2(pieces[i * 7 % pieces.size()]));
  EXPECT_EQ(FreeBytes(), before);
}

TEST_F(Memory, WhatIsNoAllocationIsNotFreed) {
  CUdeviceptr at = 0;
  EXPECT_EQ(Cu().cuMemAlloc_v2(&at, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Cu().cuMemFree_v2(0xdeadbeef000), CUDA_ERROR_INVALID_VALUE);
  MUST(Cu().cuMemAlloc_v2(&at, 4096));
  EXPECT_EQ(Cu().cuMemFree_v2(at + 256), CUDA_ERROR_INVALID_VALUE);
  MUST(Cu().cuMemFree_v2(at));
  EXPECT_EQ(Cu().cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
  int on_the_stack = 0;
  EXPECT_EQ(Cu().cuMemFreeHost(&on_the_stack), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Memory, PitchKeepsRowsApart) {
  CUdeviceptr at = 0;
  size_t pitch = 0;
  MUST(Cu().cuMemAllocPitch_v2(&at, &pitch, 1001, 7, 4));
  EXPECT_GE(pitch, 1001u);
  EXPECT_EQ(pitch % 16, 0u);
  for (unsigned row = 0; row < 7; ++row)
    MUST(Cu().cuMemsetD8_v2(at + row * pitch, static_cast<uint8_t>(row + 1), 1001));
  for (unsigned row = 0; row < 7; ++row)
    EXPECT_EQ(Read<uint8_t>(at + row * pitch, 1001), std::vector<uint8_t>(1001, row + 1));
  MUST(Cu().cuMemFree_v2(at));
}

TEST_F(Memory, PinnedMemoryIsTheDevicesToo) {
  void* host = nullptr;
  MUST(Cu().cuMemHostAlloc(&host, 64 * 4, CU_MEMHOSTALLOC_DEVICEMAP));
  auto* words = static_cast<volatile unsigned*>(host);
  for (unsigned i = 0; i < 64; ++i) words[i] = i;
  CUdeviceptr device = 0;
  MUST(Cu().cuMemHostGetDevicePointer_v2(&device, host, 0));
  EXPECT_EQ(device, reinterpret_cast<CUdeviceptr>(host)) << "unified addressing";
  MUST(Launch(Kernel("add"), 1, 64, nullptr, device, 1000u, 64u));
  MUST(Cu().cuCtxSynchronize());
  for (unsigned i = 0; i < 64; ++i) ASSERT_EQ(words[i], 1000 + i);
  unsigned flags = 0;
  MUST(Cu().cuMemHostGetFlags(&flags, host));
  EXPECT_TRUE(flags & CU_MEMHOSTALLOC_DEVICEMAP);
  MUST(Cu().cuMemFreeHost(host));
  EXPECT_EQ(Cu().cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Memory, MemoryIsRegisteredAfterTheFact) {
  const size_t bytes = 3 * 4096;
  void* host = aligned_alloc(4096, bytes);
  ASSERT_NE(host, nullptr);
  auto* words = static_cast<unsigned*>(host);
  for (unsigned i = 0; i < bytes / 4; ++i) words[i] = i;
  const CUresult registered = Cu().cuMemHostRegister_v2(host, bytes, CU_MEMHOSTREGISTER_DEVICEMAP);
  if (registered == CUDA_ERROR_NOT_SUPPORTED) {
    free(host);
    GTEST_SKIP() << "this driver refuses to register memory, which is its right";
  }
  ASSERT_EQ(registered, CUDA_SUCCESS);
  EXPECT_EQ(Cu().cuMemHostRegister_v2(host, bytes, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CUdeviceptr device = 0;
  const CUresult mapped = Cu().cuMemHostGetDevicePointer_v2(&device, host, 0);
  if (mapped == CUDA_ERROR_NOT_SUPPORTED) {
    MUST(Cu().cuMemHostUnregister(host));
    free(host);
    GTEST_SKIP() << "this driver keeps registered memory from its kernels, and says so";
  }
  ASSERT_EQ(mapped, CUDA_SUCCESS);
  MUST(Launch(Kernel("add"), bytes / 4 / 256, 256, nullptr, device, 5u, static_cast<unsigned>(bytes / 4)));
  MUST(Cu().cuCtxSynchronize());
  for (unsigned i = 0; i < bytes / 4; ++i) ASSERT_EQ(words[i], i + 5);
  MUST(Cu().cuMemHostUnregister(host));
  EXPECT_EQ(Cu().cuMemHostUnregister(host), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  for (unsigned i = 0; i < bytes / 4; ++i) ASSERT_EQ(words[i], i + 5);
  free(host);
}

TEST_F(Memory, ManagedMemoryIsSeenByBoth) {
  CUdeviceptr managed = 0;
  MUST(Cu().cuMemAllocManaged(&managed, 256 * 4, CU_MEM_ATTACH_GLOBAL));
  auto* words = reinterpret_cast<volatile unsigned*>(managed);
  for (unsigned i = 0; i < 256; ++i) words[i] = 3 * i;
  MUST(Launch(Kernel("add"), 2, 128, nullptr, managed, 9u, 256u));
  MUST(Cu().cuCtxSynchronize());
  for (unsigned i = 0; i < 256; ++i) ASSERT_EQ(words[i], 3 * i + 9);
  MUST(Cu().cuMemFree_v2(managed));
}

TEST_F(Memory, PointersSayWhatTheyAre) {
  DeviceMemory device(4096);
  void* host = nullptr;
  MUST(Cu().cuMemHostAlloc(&host, 4096, 0));
  unsigned type = 0;
  MUST(Cu().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device.at + 100));
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
  MUST(Cu().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  reinterpret_cast<CUdeviceptr>(host)));
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_HOST));
  CUcontext context = nullptr;
  MUST(Cu().cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, device.at));
  EXPECT_EQ(context, context_);
  int on_the_stack = 0;
  EXPECT_EQ(Cu().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                       reinterpret_cast<CUdeviceptr>(&on_the_stack)),
            CUDA_ERROR_INVALID_VALUE);
  MUST(Cu().cuMemFreeHost(host));
}

TEST_F(Memory, StreamOrderedMemoryFollowsItsStream) {
  Stream stream;
  CUdeviceptr at = 0;
  const auto bytes = Noise(100'001, 3);
  MUST(Cu().cuMemAllocAsync(&at, bytes.size(), stream));
  MUST(Cu().cuMemcpyHtoDAsync_v2(at, bytes.data(), bytes.size(), stream));
  std::vector<uint8_t> back(bytes.size());
  MUST(Cu().cuMemcpyDtoHAsync_v2(back.data(), at, back.size(), stream));
  MUST(Cu().cuMemFreeAsync(at, stream));
  MUST(Cu().cuStreamSynchronize(stream));
  EXPECT_EQ(back, bytes);
}

TEST_F(Memory, AContextTakesItsMemoryWithIt) {
  const uint64_t before = FreeBytes();
  CUcontext other = nullptr;
  MUST(Cu().cuCtxCreate_v2(&other, 0, 0));
  CUdeviceptr at = 0;
  for (int i = 0; i < 3; ++i) MUST(Cu().cuMemAlloc_v2(&at, 4 * kMiB));
  MUST(Cu().cuCtxDestroy_v2(other));
  MUST(Cu().cuCtxSetCurrent(context_));
  EXPECT_EQ(FreeBytes(), before);
}

}  // namespace
}  // namespace cuplex::conformance
