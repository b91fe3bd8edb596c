// The exported functions over a mock driver: entering, registering, launching, symbols, copies, errors,
// threads.
#include <atomic>
#include <cstring>
#include <latch>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/runtime/exports.h"
#include "client/runtime/mock_driver.h"
#include "client/runtime/runtime.h"

namespace cuplex::runtime {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

// What nvcc's host code hands over: a wrapper and the container behind it.
struct FatBinary {
  uint32_t container[4] = {0xba55ed50, 0x00100001, 0, 0};
  struct {
    uint32_t magic = 0x466243b1, version = 1;
    const void* container;
    const void* rest = nullptr;
  } wrapper{.container = container};
};

class RuntimeTest : public ::testing::Test {
 protected:
  RuntimeTest() { RenewRoot(); }

  void** RegisterProgram() {
    mock.functions = {"_Z3addv"};
    mock.globals["table"] = std::vector<char>(16);
    void** handle = __cudaRegisterFatBinary(&fat.wrapper);
    __cudaRegisterFunction(handle, Host(add), nullptr, "_Z3addv", -1, nullptr, nullptr, nullptr, nullptr,
                           nullptr);
    __cudaRegisterFunction(handle, Host(lost), nullptr, "_Z4lostv", -1, nullptr, nullptr, nullptr, nullptr,
                           nullptr);
    __cudaRegisterVar(handle, table, nullptr, "table", 0, 16, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    return handle;
  }

  static const char* Host(const char& function) { return &function; }

  MockDriver mock;
  FatBinary fat;
  char add{}, lost{}, stranger{};  // their addresses stand for host functions
  char table[16]{};
};

TEST_F(RuntimeTest, RegisteringCallsNoDriver) {
  RegisterProgram();
  EXPECT_THAT(mock.calls(), ElementsAre());
}

TEST_F(RuntimeTest, FirstLaunchMakesContextAndLoadsOnce) {
  RegisterProgram();
  int argument = 42;
  void* args[] = {&argument};
  ASSERT_EQ(cudaLaunchKernel(&add, {2, 3, 4}, {32, 2, 1}, args, 128, nullptr), cudaSuccess);
  EXPECT_EQ(mock.count("cuInit"), 1);
  EXPECT_EQ(mock.count("cuDevicePrimaryCtxRetain"), 1);
  EXPECT_EQ(mock.count("cuModuleLoadData"), 1);
  EXPECT_EQ(mock.calls().back(), "cuLaunchKernel 0x3000 2,3,4 32,2,1 128 0x0 42");

  mock.clear();
  ASSERT_EQ(cudaLaunchKernel_ptsz(&add, {1, 1, 1}, {1, 1, 1}, args, 0, nullptr), cudaSuccess);
  EXPECT_THAT(mock.calls(), ElementsAre("cuLaunchKernel 0x3000 1,1,1 1,1,1 0 0x2 42"));
}

TEST_F(RuntimeTest, NvccsHandleLaunchesThroughEitherCall) {
  RegisterProgram();
  cudaKernel_t handle = nullptr;
  ASSERT_EQ(__cudaGetKernel(&handle, &add), cudaSuccess);
  ASSERT_EQ(__cudaLaunchKernel(handle, {5, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr), cudaSuccess);
  EXPECT_EQ(mock.calls().back(), "cuLaunchKernel 0x3000 5,1,1 1,1,1 0 0x0 -1");
  ASSERT_EQ(cudaLaunchKernel(handle, {6, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr), cudaSuccess);
  EXPECT_EQ(mock.calls().back(), "cuLaunchKernel 0x3000 6,1,1 1,1,1 0 0x0 -1");
  EXPECT_EQ(__cudaLaunchKernel(nullptr, {1, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr),
            cudaErrorInvalidResourceHandle);
}

TEST_F(RuntimeTest, ConfigurationsNestAndEnd) {
  cudaStream_t stream = reinterpret_cast<cudaStream_t>(0x77);
  EXPECT_EQ(__cudaPushCallConfiguration({1, 2, 3}, {4, 5, 6}, 7, stream), 0u);
  EXPECT_EQ(__cudaPushCallConfiguration({9, 1, 1}, {8, 1, 1}, 0, nullptr), 0u);
  dim3 grid, block;
  size_t shared = 1;
  cudaStream_t popped = stream;
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &popped), cudaSuccess);
  EXPECT_EQ(grid.x, 9u);
  EXPECT_EQ(popped, nullptr);
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &popped), cudaSuccess);
  EXPECT_EQ(grid.z, 3u);
  EXPECT_EQ(block.y, 5u);
  EXPECT_EQ(shared, 7u);
  EXPECT_EQ(popped, stream);
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &popped), cudaErrorMissingConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMissingConfiguration);

  for (unsigned i = 0; i < Thread::kDepth; ++i)
    EXPECT_EQ(__cudaPushCallConfiguration({1}, {1}, 0, nullptr), 0u);
  EXPECT_NE(__cudaPushCallConfiguration({1}, {1}, 0, nullptr), 0u);
}

TEST_F(RuntimeTest, LaunchConfigurationTakesAttributesAndStream) {
  RegisterProgram();
  cudaLaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cudaLaunchConfig_t config{{2, 1, 1}, {64, 1, 1}, 16, nullptr, &attribute, 1};
  ASSERT_EQ(cudaLaunchKernelExC_ptsz(&config, &add, nullptr), cudaSuccess);
  EXPECT_EQ(mock.calls().back(), "cuLaunchKernelEx 0x3000 2,1,1 64,1,1 16 0x2 attributes 1 first 4");
  EXPECT_EQ(config.stream, nullptr) << "the program's own configuration stays as it was";
  EXPECT_EQ(cudaLaunchKernelExC(nullptr, &add, nullptr), cudaErrorInvalidValue);
}

TEST_F(RuntimeTest, UnknownAndLostKernels) {
  RegisterProgram();
  EXPECT_EQ(cudaLaunchKernel(&stranger, {1}, {1}, nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaLaunchKernel(&lost, {1}, {1}, nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaLaunchKernel(nullptr, {1}, {1}, nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(mock.count("cuLaunchKernel"), 0);
}

TEST_F(RuntimeTest, LoadErrorsReachTheLauncherAndMayPass) {
  RegisterProgram();
  mock.Answer("cuModuleLoadData", CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(cudaLaunchKernel(&add, {1}, {1}, nullptr, 0, nullptr), cudaErrorNoKernelImageForDevice);
  mock.Answer("cuModuleLoadData", CUDA_SUCCESS);
  EXPECT_EQ(cudaLaunchKernel(&add, {1}, {1}, nullptr, 0, nullptr), cudaSuccess);
}

TEST_F(RuntimeTest, LinkedDeviceCodeWithoutMachineCodeIsExplained) {
  fat.wrapper.version = 2;
  RegisterProgram();
  mock.Answer("cuModuleLoadData", CUDA_ERROR_NO_BINARY_FOR_GPU);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(cudaLaunchKernel(&add, {1}, {1}, nullptr, 0, nullptr), cudaErrorNoKernelImageForDevice);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("-rdc=true"));
}

TEST_F(RuntimeTest, DamagedFatBinaryIsNoCrash) {
  fat.container[0] = 1;
  void** handle = __cudaRegisterFatBinary(&fat.wrapper);
  __cudaRegisterFunction(handle, &add, nullptr, "_Z3addv", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  EXPECT_EQ(cudaLaunchKernel(&add, {1}, {1}, nullptr, 0, nullptr), cudaErrorInvalidKernelImage);
  __cudaUnregisterFatBinary(handle);
  __cudaRegisterFunction(nullptr, &add, nullptr, "_Z3addv", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
}

TEST_F(RuntimeTest, UnregisteringUnloadsAndForgets) {
  void** handle = RegisterProgram();
  ASSERT_EQ(cudaLaunchKernel(&add, {1}, {1}, nullptr, 0, nullptr), cudaSuccess);
  mock.clear();
  __cudaUnregisterFatBinary(handle);
  EXPECT_THAT(mock.calls(), Contains("cuModuleUnload 0x2000 in 0x1000"));
  EXPECT_EQ(cudaLaunchKernel(&add, {1}, {1}, nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
  __cudaUnregisterFatBinary(handle);  // twice is harmless
}

TEST_F(RuntimeTest, AtExitTheDriverIsLeftAlone) {
  void** handle = RegisterProgram();
  ASSERT_EQ(cudaLaunchKernel(&add, {1}, {1}, nullptr, 0, nullptr), cudaSuccess);
  Root().LeaveAtExit();
  mock.clear();
  __cudaUnregisterFatBinary(handle);
  EXPECT_EQ(cudaFree(&add), cudaErrorCudartUnloading);
  EXPECT_EQ(cudaLaunchKernel(&add, {1}, {1}, nullptr, 0, nullptr), cudaErrorCudartUnloading);
  EXPECT_THAT(mock.calls(), ElementsAre());
}

TEST_F(RuntimeTest, AChildOfAForkIsRefused) {
  ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
  Root().LeaveAtFork();
  EXPECT_EQ(cudaFree(nullptr), cudaErrorInitializationError);
  int count = 7;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInitializationError);
}

TEST_F(RuntimeTest, WithoutADriver) {
  mock.open_fails = true;
  ::testing::internal::CaptureStderr();
  int count = 7, version = 7;
  void* memory = nullptr;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorInsufficientDriver);
  EXPECT_EQ(cudaDriverGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, 0);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "libcudart: The mock does not open.\n") << "once";
}

TEST_F(RuntimeTest, InitialisingMayBeTriedAgain) {
  mock.Answer("cuInit", CUDA_ERROR_SYSTEM_NOT_READY);
  EXPECT_EQ(cudaFree(nullptr), cudaErrorSystemNotReady);
  mock.Answer("cuInit", CUDA_SUCCESS);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
}

TEST_F(RuntimeTest, SymbolsCopyBothWaysWithinTheirBounds) {
  RegisterProgram();
  const char text[] = "0123456789abcdef";
  ASSERT_EQ(cudaMemcpyToSymbol(table, text, 6, 4, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(std::string(mock.globals["table"].data() + 4, 6), "012345");
  EXPECT_EQ(table[4], 0) << "the host's shadow is not the variable";
  char back[6];
  ASSERT_EQ(cudaMemcpyFromSymbol(back, table, 6, 4, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(std::string(back, 6), "012345");
  EXPECT_EQ(mock.count("cuModuleLoadData"), 1);
  EXPECT_EQ(mock.count("cuModuleGetGlobal_v2"), 1);

  EXPECT_EQ(cudaMemcpyToSymbol(table, text, 13, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyToSymbol(table, text, SIZE_MAX, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyToSymbol(table, text, 1, 17, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyToSymbol(table, text, 1, 0, cudaMemcpyDeviceToHost), cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpyFromSymbol(back, table, 1, 0, cudaMemcpyHostToDevice), cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpyToSymbol(&stranger, text, 1, 0, cudaMemcpyHostToDevice), cudaErrorInvalidSymbol);

  void* address = nullptr;
  size_t size = 0;
  EXPECT_EQ(cudaGetSymbolAddress(&address, table), cudaSuccess);
  EXPECT_EQ(address, mock.globals["table"].data());
  EXPECT_EQ(cudaGetSymbolSize(&size, table), cudaSuccess);
  EXPECT_EQ(size, 16u);
}

TEST_F(RuntimeTest, SymbolCopiesKeepTheirStream) {
  RegisterProgram();
  char text[4] = {1, 2, 3, 4};
  ASSERT_EQ(cudaMemcpyToSymbolAsync(table, text, 4, 0, cudaMemcpyHostToDevice,
                                    reinterpret_cast<cudaStream_t>(0x55)),
            cudaSuccess);
  EXPECT_EQ(mock.calls().back(), "cuMemcpyHtoDAsync_v2 4 0x55");
  ASSERT_EQ(cudaMemcpyToSymbolAsync_ptsz(table, text, 4, 0, cudaMemcpyHostToDevice, nullptr), cudaSuccess);
  EXPECT_EQ(mock.calls().back(), "cuMemcpyHtoDAsync_v2 4 0x2");
  mock.clear();
  ASSERT_EQ(cudaMemcpyToSymbol_ptds(table, text, 4, 0, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_THAT(mock.calls(), ElementsAre("cuMemcpyHtoDAsync_v2 4 0x2", "cuStreamSynchronize 0x2"));
}

TEST_F(RuntimeTest, ManagedVariablesNeedManagedMemory) {
  mock.globals["shared"] = std::vector<char>(8);
  void** handle = __cudaRegisterFatBinary(&fat.wrapper);
  void* host_pointer = nullptr;
  __cudaRegisterManagedVar(handle, &host_pointer, nullptr, "shared", 0, 8, 0, 0);
  EXPECT_EQ(__cudaInitModule(handle), 0);
  EXPECT_EQ(host_pointer, nullptr);
  mock.managed_globals = true;
  EXPECT_NE(__cudaInitModule(handle), 0);
  EXPECT_EQ(host_pointer, mock.globals["shared"].data());
}

TEST_F(RuntimeTest, CopiesGoByTheirKind) {
  char a[8] = "abcdefg", b[8] = {};
  ASSERT_EQ(cudaMemcpy(b, a, 8, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(mock.calls().back(), "cuMemcpyHtoD_v2 8");
  EXPECT_STREQ(b, "abcdefg");
  mock.clear();
  ASSERT_EQ(cudaMemcpy(b, a, 8, cudaMemcpyDeviceToHost), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(b, a, 8, cudaMemcpyDeviceToDevice), cudaSuccess);
  EXPECT_THAT(mock.calls(), ElementsAre("cuMemcpyDtoH_v2 8", "cuMemcpyDtoD_v2 8"));
  mock.clear();
  memset(b, 0, 8);
  ASSERT_EQ(cudaMemcpy(b, a, 8, cudaMemcpyHostToHost), cudaSuccess);
  EXPECT_THAT(mock.calls(), ElementsAre("cuStreamSynchronize 0x0"));
  EXPECT_STREQ(b, "abcdefg");
  memset(b, 0, 8);
  ASSERT_EQ(cudaMemcpyAsync(b, a, 8, cudaMemcpyHostToHost, nullptr), cudaSuccess);
  EXPECT_EQ(mock.calls().back(), "cuLaunchHostFunc 0x0");
  EXPECT_STREQ(b, "abcdefg");
  mock.clear();
  ASSERT_EQ(cudaMemcpy_ptds(b, a, 8, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_THAT(mock.calls(), ElementsAre("cuMemcpyHtoDAsync_v2 8 0x2", "cuStreamSynchronize 0x2"));

  EXPECT_EQ(cudaMemcpy(b, a, 8, static_cast<cudaMemcpyKind>(5)), cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpy(nullptr, a, 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice), cudaSuccess);
}

TEST_F(RuntimeTest, TheDefaultKindAsksTheDriver) {
  RegisterProgram();
  void* device = nullptr;
  ASSERT_EQ(cudaGetSymbolAddress(&device, table), cudaSuccess);
  char host[8] = "to dev";
  ASSERT_EQ(cudaMemcpy(device, host, 8, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(mock.calls().back(), "cuMemcpyHtoD_v2 8");
  ASSERT_EQ(cudaMemcpy(host, device, 8, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(mock.calls().back(), "cuMemcpyDtoH_v2 8");
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, device), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.devicePointer, device);
  EXPECT_EQ(attributes.hostPointer, nullptr);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, host), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(attributes.hostPointer, host);
}

TEST_F(RuntimeTest, RowsCopyAndFillByPitch) {
  char a[64], b[64];
  ASSERT_EQ(cudaMemcpy2D(b, 16, a, 8, 8, 4, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(mock.calls().back(), "cuMemcpy2DUnaligned_v2 8x4 from 1 to 2");
  EXPECT_EQ(cudaMemcpy2D(b, 7, a, 8, 8, 4, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
  // A box of 2 layers in rows of 8: layers of 3 rows of which 2 are filled.
  memset(a, '.', sizeof(a));
  ASSERT_EQ(cudaMemset3D({a, 8, 8, 3}, 'x', {4, 2, 2}), cudaSuccess);
  std::string row = "xxxx....", gap = "........";
  EXPECT_EQ(std::string(a, 64), row + row + gap + row + row + gap + gap + gap);
  // One that fills whole layers is one call.
  mock.clear();
  ASSERT_EQ(cudaMemset3D({a, 8, 8, 2}, 'y', {8, 2, 4}), cudaSuccess);
  EXPECT_THAT(mock.calls(), ElementsAre("cuMemsetD2D8Async 8x8 pitch 8 0x0"));
}

TEST_F(RuntimeTest, EveryThreadHasItsDeviceAndItsLastError) {
  mock.devices = 2;
  RegisterProgram();
  EXPECT_EQ(cudaLaunchKernel(&stranger, {1}, {1}, nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
  std::thread other([&] {
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaLaunchKernel(&add, {1}, {1}, nullptr, 0, nullptr), cudaSuccess);
    int device = -1;
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 1);
  });
  other.join();
  EXPECT_EQ(mock.calls().back().substr(0, 21), "cuLaunchKernel 0x3001");
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaLaunchKernel(&add, {1}, {1}, nullptr, 0, nullptr), cudaSuccess);
  EXPECT_EQ(mock.calls().back().substr(0, 21), "cuLaunchKernel 0x3000");
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
}

TEST_F(RuntimeTest, AContextOfTheDriverApiIsUsed) {
  RegisterProgram();
  ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
  mock.table().cuCtxSetCurrent(
      reinterpret_cast<CUcontext>(0x1050));  // as a program would through cuCtxCreate
  ASSERT_EQ(cudaLaunchKernel(&add, {1}, {1}, nullptr, 0, nullptr), cudaSuccess);
  EXPECT_EQ(mock.calls().back().substr(0, 21), "cuLaunchKernel 0x3050");
  mock.table().cuCtxSetCurrent(nullptr);
  ASSERT_EQ(cudaLaunchKernel(&add, {1}, {1}, nullptr, 0, nullptr), cudaSuccess);
  EXPECT_EQ(mock.calls().back().substr(0, 21), "cuLaunchKernel 0x3000");
}

TEST_F(RuntimeTest, ResetLoadsAnew) {
  RegisterProgram();
  ASSERT_EQ(cudaLaunchKernel(&add, {1}, {1}, nullptr, 0, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(mock.count("cuDevicePrimaryCtxReset_v2"), 1);
  mock.clear();
  ASSERT_EQ(cudaLaunchKernel(&add, {1}, {1}, nullptr, 0, nullptr), cudaSuccess);
  EXPECT_EQ(mock.count("cuModuleLoadData"), 1);
}

TEST_F(RuntimeTest, ThreadsThatLaunchTogetherLoadOnce) {
  RegisterProgram();
  constexpr int kThreads = 8, kLaunches = 200;
  std::latch start(kThreads);
  std::vector<std::thread> threads;
  std::atomic<int> failed = 0;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      for (int n = 0; n < kLaunches; ++n)
        failed += cudaLaunchKernel(&add, {1}, {1}, nullptr, 0, nullptr) != cudaSuccess;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(mock.count("cuInit"), 1);
  EXPECT_EQ(mock.count("cuModuleLoadData"), 1);
  EXPECT_EQ(mock.count("cuModuleGetFunction"), 1);
  EXPECT_EQ(mock.count("cuLaunchKernel"), kThreads * kLaunches);
}

TEST_F(RuntimeTest, CallbacksGetTheRuntimesErrors) {
  struct Seen {
    cudaStream_t stream = nullptr;
    cudaError_t status = cudaSuccess;
  } seen;
  auto stream = reinterpret_cast<cudaStream_t>(0x99);
  ASSERT_EQ(
      cudaStreamAddCallback(
          stream,
          [](cudaStream_t on, cudaError_t status, void* data) { *static_cast<Seen*>(data) = {on, status}; },
          &seen, 0),
      cudaSuccess);
  EXPECT_EQ(seen.stream, stream);
  EXPECT_EQ(seen.status, cudaErrorIllegalAddress);
}

TEST_F(RuntimeTest, DriverErrorsAreKept) {
  mock.Answer("cuStreamQuery", CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
  mock.Answer("cuMemAlloc_v2", CUDA_ERROR_OUT_OF_MEMORY);
  void* memory = &memory;
  EXPECT_EQ(cudaMalloc(&memory, 16), cudaErrorMemoryAllocation);
  EXPECT_EQ(memory, nullptr);
}

TEST_F(RuntimeTest, CaptureIsNoneWhereTheDriverHasNone) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  EXPECT_EQ(cudaStreamIsCapturing(nullptr, &status), cudaSuccess);
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
}

TEST_F(RuntimeTest, AllocationsOfNothing) {
  void* memory = &memory;
  EXPECT_EQ(cudaMalloc(&memory, 0), cudaSuccess);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(mock.count("cuMemAlloc_v2"), 0);
  EXPECT_EQ(cudaMalloc(nullptr, 4), cudaErrorInvalidValue);
  ASSERT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(RuntimeTest, PropertiesFitTheVersionsStruct) {
  struct {
    cudaDeviceProp properties;
    unsigned char guard[64];
  } room;
  memset(&room, 0xee, sizeof(room));
  ASSERT_EQ(cudaGetDeviceProperties(&room.properties, 0), cudaSuccess);
  EXPECT_EQ(room.guard[0], 0xee);
  EXPECT_STREQ(room.properties.name, "mock device");
  EXPECT_EQ(room.properties.totalGlobalMem, size_t{8} << 30);
  EXPECT_EQ(room.properties.warpSize, 1000 + CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  EXPECT_EQ(room.properties.maxThreadsDim[2], 1000 + CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  EXPECT_EQ(room.properties.multiProcessorCount, 1000 + CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
#if CUPLEX_CUDART_MAJOR == 12
  EXPECT_EQ(reinterpret_cast<unsigned char*>(&room.properties.hostRegisterSupported)[0], 0xee)
      << "the struct of old programs ends before this member";
  ASSERT_EQ(cudaGetDeviceProperties_v2(&room.properties, 0), cudaSuccess);
#endif
  EXPECT_EQ(room.properties.hostRegisterSupported, 1000 + CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
  EXPECT_EQ(room.guard[0], 0xee);
  EXPECT_EQ(cudaGetDeviceProperties(&room.properties, 1), cudaErrorInvalidDevice);
}

TEST_F(RuntimeTest, Versions) {
  int runtime = 0, driver = 0;
  EXPECT_EQ(cudaRuntimeGetVersion(&runtime), cudaSuccess);
  EXPECT_EQ(runtime / 1000, CUPLEX_CUDART_MAJOR);
  EXPECT_EQ(cudaDriverGetVersion(&driver), cudaSuccess);
  EXPECT_EQ(driver, 13000);
}

}  // namespace
}  // namespace cuplex::runtime
