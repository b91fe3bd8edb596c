#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <barrier>
#include <cstring>
#include <thread>
#include <vector>

#include "softcuda/api/testing.h"

// SOFTCUDA_MEMORY=256MiB
namespace cuplex::softcuda {
namespace {

constexpr size_t kUnit = size_t{2} << 20;
constexpr size_t kTiB = size_t{1} << 40;

class VirtualMemory : public ContextTest {
 protected:
  void SetUp() override {
    ContextTest::SetUp();
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  }
  CUdeviceptr Reserve(size_t size, size_t alignment = 0, CUdeviceptr at = 0) {
    CUdeviceptr address = 0;
    EXPECT_CU(cuMemAddressReserve(&address, size, alignment, at, 0));
    return address;
  }
  CUmemGenericAllocationHandle Create(size_t size) {
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_CU(cuMemCreate(&handle, size, &prop, 0));
    return handle;
  }

  CUmemAllocationProp prop{};
  CUmemAccessDesc access{};
};

TEST_F(VirtualMemory, AlignmentIsHonouredUpToATebibyte) {
  // The size of the window depends on the build; where a whole tebibyte fits, it is aligned.
  for (size_t alignment : {kUnit, size_t{1} << 30, size_t{4} << 30, size_t{64} << 30}) {
    CUdeviceptr address = Reserve(alignment, alignment);
    EXPECT_EQ(address % alignment, 0u);
    EXPECT_CU(cuMemAddressFree(address, alignment));
  }
  CUdeviceptr address;
  CUresult result = cuMemAddressReserve(&address, kUnit, kTiB, 0, 0);
  if (result == CUDA_SUCCESS) {
    EXPECT_EQ(address % kTiB, 0u);
    EXPECT_CU(cuMemAddressFree(address, kUnit));
  } else {
    EXPECT_CODE(result, CUDA_ERROR_OUT_OF_MEMORY);
  }
}

TEST_F(VirtualMemory, AFixedAddressIsHonouredWhereItIsFree) {
  CUdeviceptr first = Reserve(4 * kUnit);
  EXPECT_CU(cuMemAddressFree(first, 4 * kUnit));
  CUdeviceptr again = Reserve(kUnit, 0, first + kUnit);
  EXPECT_EQ(again, first + kUnit);
  CUdeviceptr elsewhere = Reserve(kUnit, 0, first + kUnit);
  EXPECT_NE(elsewhere, again);
  EXPECT_CU(cuMemAddressFree(again, kUnit));
  EXPECT_CU(cuMemAddressFree(elsewhere, kUnit));
  EXPECT_CODE(cuMemAddressFree(again, kUnit), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualMemory, WrongSizesAndAlignmentsAreRefused) {
  CUdeviceptr address;
  CUmemGenericAllocationHandle handle;
  EXPECT_CODE(cuMemAddressReserve(&address, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemAddressReserve(&address, kUnit - 1, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemAddressReserve(&address, kUnit, 3 * kUnit, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemAddressReserve(nullptr, kUnit, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemAddressReserve(&address, size_t{1} << 60, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_CODE(cuMemCreate(&handle, kUnit + 1, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemCreate(&handle, kUnit, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemCreate(&handle, size_t{1} << 40, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
  prop.location.id = 7;
  EXPECT_CODE(cuMemCreate(&handle, kUnit, &prop, 0), CUDA_ERROR_INVALID_DEVICE);
}

TEST_F(VirtualMemory, GranularityIsTwoMebibytes) {
  size_t granularity = 0;
  EXPECT_CU(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  EXPECT_EQ(granularity, kUnit);
  EXPECT_CU(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  EXPECT_EQ(granularity, kUnit);
}

TEST_F(VirtualMemory, MemoryIsChargedFromCreationToTheLastUse) {
  size_t before = FreeBytes();
  CUdeviceptr address = Reserve(4 * kUnit);
  EXPECT_EQ(FreeBytes(), before);
  auto handle = Create(2 * kUnit);
  EXPECT_EQ(FreeBytes(), before - 2 * kUnit);
  EXPECT_CU(cuMemMap(address + kUnit, 2 * kUnit, 0, handle, 0));
  EXPECT_CU(cuMemRelease(handle));
  EXPECT_EQ(FreeBytes(), before - 2 * kUnit);  // the mapping holds it
  EXPECT_CODE(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemAddressFree(address, 4 * kUnit), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemUnmap(address + kUnit, 2 * kUnit));
  EXPECT_EQ(FreeBytes(), before);
  EXPECT_CU(cuMemAddressFree(address, 4 * kUnit));
}

TEST_F(VirtualMemory, MappingTwiceShowsTheSameBytes) {
  CUdeviceptr address = Reserve(4 * kUnit);
  auto handle = Create(2 * kUnit);
  EXPECT_CU(cuMemMap(address, 2 * kUnit, 0, handle, 0));
  EXPECT_CU(cuMemMap(address + 2 * kUnit, kUnit, kUnit, handle, 0));
  EXPECT_CU(cuMemSetAccess(address, 3 * kUnit, &access, 1));
  EXPECT_CU(cuMemsetD32_v2(address + kUnit, 0xabcd1234, 16));
  uint32_t found[16] = {};
  EXPECT_CU(cuMemcpyDtoH_v2(found, address + 2 * kUnit, sizeof(found)));
  for (uint32_t word : found) EXPECT_EQ(word, 0xabcd1234u);
  // A copy may run across mappings that touch.
  std::vector<char> all(3 * kUnit);
  EXPECT_CU(cuMemcpyDtoH_v2(all.data(), address, all.size()));
  EXPECT_CODE(cuMemcpyDtoH_v2(all.data(), address + 2 * kUnit, kUnit + 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemUnmap(address, 3 * kUnit));
  EXPECT_CU(cuMemRelease(handle));
  EXPECT_CU(cuMemAddressFree(address, 4 * kUnit));
}

TEST_F(VirtualMemory, MappingsDoNotOverlapNorLeaveTheirReservation) {
  CUdeviceptr address = Reserve(2 * kUnit);
  auto handle = Create(2 * kUnit);
  EXPECT_CODE(cuMemMap(address, kUnit, kUnit * 2, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemMap(address + kUnit, 2 * kUnit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemMap(address + 1, kUnit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemMap(address, kUnit, 0, 0xdead, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemMap(address, 2 * kUnit, 0, handle, 0));
  EXPECT_CODE(cuMemMap(address, kUnit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemMap(address + kUnit, kUnit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuMemUnmap(address, kUnit), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemUnmap(address, 2 * kUnit));
  EXPECT_CODE(cuMemUnmap(address, 2 * kUnit), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemRelease(handle));
  EXPECT_CU(cuMemAddressFree(address, 2 * kUnit));
}

TEST_F(VirtualMemory, AccessIsWhatWasSet) {
  CUdeviceptr address = Reserve(kUnit);
  auto handle = Create(kUnit);
  EXPECT_CU(cuMemMap(address, kUnit, 0, handle, 0));
  unsigned long long flags = 9;
  EXPECT_CU(cuMemGetAccess(&flags, &prop.location, address));
  EXPECT_EQ(flags, unsigned{CU_MEM_ACCESS_FLAGS_PROT_NONE});
  char byte = 0;
  EXPECT_CODE(cuMemcpyDtoH_v2(&byte, address, 1), CUDA_ERROR_INVALID_VALUE);
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  EXPECT_CU(cuMemSetAccess(address, kUnit, &access, 1));
  EXPECT_CU(cuMemcpyDtoH_v2(&byte, address, 1));
  EXPECT_CODE(cuMemcpyHtoD_v2(address, &byte, 1), CUDA_ERROR_INVALID_VALUE);
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  EXPECT_CU(cuMemSetAccess(address, kUnit, &access, 1));
  EXPECT_CU(cuMemcpyHtoD_v2(address, &byte, 1));
  EXPECT_CU(cuMemGetAccess(&flags, &prop.location, address + 5));
  EXPECT_EQ(flags, unsigned{CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
  EXPECT_CU(cuMemUnmap(address, kUnit));
  EXPECT_CU(cuMemRelease(handle));
  EXPECT_CU(cuMemAddressFree(address, kUnit));
}

TEST_F(VirtualMemory, ADescriptorCarriesTheMemory) {
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  auto handle = Create(kUnit);
  size_t after_create = FreeBytes();
  int fd = -1;
  EXPECT_CU(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  // What another process would do with it.
  void* seen = mmap(nullptr, kUnit, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(seen, MAP_FAILED);
  static_cast<char*>(seen)[12345] = 42;
  CUmemGenericAllocationHandle imported;
  EXPECT_CU(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(intptr_t{fd}),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(fd);
  EXPECT_EQ(FreeBytes(), after_create);  // imported memory is the exporter's
  CUdeviceptr address = Reserve(kUnit);
  EXPECT_CU(cuMemMap(address, kUnit, 0, imported, 0));
  EXPECT_CU(cuMemSetAccess(address, kUnit, &access, 1));
  char byte = 0;
  EXPECT_CU(cuMemcpyDtoH_v2(&byte, address + 12345, 1));
  EXPECT_EQ(byte, 42);
  EXPECT_CU(cuMemUnmap(address, kUnit));
  EXPECT_CU(cuMemRelease(imported));
  EXPECT_CU(cuMemRelease(handle));
  EXPECT_CU(cuMemAddressFree(address, kUnit));
  munmap(seen, kUnit);
}

TEST_F(VirtualMemory, OtherDescriptorsAreRefused) {
  CUmemGenericAllocationHandle handle;
  auto import = [&](int fd) {
    return cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(intptr_t{fd}),
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  };
  EXPECT_CODE(import(-1), CUDA_ERROR_INVALID_VALUE);
  int null = open("/dev/null", O_RDWR);
  EXPECT_CODE(import(null), CUDA_ERROR_INVALID_VALUE);
  close(null);
  // One that could shrink under a kernel's feet.
  int unsealed = memfd_create("unsealed", 0);
  ASSERT_EQ(ftruncate(unsealed, kUnit), 0);
  EXPECT_CODE(import(unsealed), CUDA_ERROR_INVALID_VALUE);
  close(unsealed);
  auto plain = Create(kUnit);
  int fd;
  EXPECT_CODE(cuMemExportToShareableHandle(&fd, plain, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
              CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemRelease(plain));
}

TEST_F(VirtualMemory, AHandleComesBackFromAnAddress) {
  CUdeviceptr address = Reserve(kUnit);
  size_t before = FreeBytes();
  auto handle = Create(kUnit);
  EXPECT_CU(cuMemMap(address, kUnit, 0, handle, 0));
  EXPECT_CU(cuMemRelease(handle));
  CUmemGenericAllocationHandle again = 0;
  EXPECT_CU(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(address + 100)));
  EXPECT_EQ(again, handle);
  CUmemAllocationProp found{};
  EXPECT_CU(cuMemGetAllocationPropertiesFromHandle(&found, again));
  EXPECT_EQ(found.location.id, 0);
  EXPECT_CU(cuMemUnmap(address, kUnit));
  EXPECT_EQ(FreeBytes(), before - kUnit);
  EXPECT_CU(cuMemRelease(again));
  EXPECT_EQ(FreeBytes(), before);
  EXPECT_CODE(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(address)),
              CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemAddressFree(address, kUnit));
}

TEST_F(VirtualMemory, RacingCreatorsGetExactlyWhatThereIs) {
  size_t free = FreeBytes();
  std::atomic<size_t> got = 0;
  std::barrier all_tried(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      std::vector<CUmemGenericAllocationHandle> mine;
      for (int i = 0; i < 200; ++i) {
        CUmemGenericAllocationHandle handle;
        CUresult result = cuMemCreate(&handle, kUnit, &prop, 0);
        if (result == CUDA_SUCCESS) {
          mine.push_back(handle);
        } else {
          EXPECT_CODE(result, CUDA_ERROR_OUT_OF_MEMORY);
        }
      }
      got += mine.size();
      all_tried.arrive_and_wait();  // nobody gives back before all have tried
      for (auto handle : mine) EXPECT_CU(cuMemRelease(handle));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(got, free / kUnit);
  EXPECT_EQ(FreeBytes(), free);
}

}  // namespace
}  // namespace cuplex::softcuda
