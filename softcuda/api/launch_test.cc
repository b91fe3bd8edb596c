#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "softcuda/api/kernels.h"
#include "softcuda/api/testing.h"

namespace cuplex::softcuda {
namespace {

class Launches : public ContextTest {
 protected:
  void SetUp() override {
    ContextTest::SetUp();
    ASSERT_CU(cuModuleLoadData(&module, kKernels));
    ASSERT_CU(cuMemAlloc_v2(&memory, 1 << 20));
  }
  CUfunction Function(const char* name) {
    CUfunction function = nullptr;
    EXPECT_CU(cuModuleGetFunction(&function, module, name));
    return function;
  }
  CUresult Store(CUdeviceptr at, uint32_t value, CUstream stream = nullptr) {
    void* params[] = {&at, &value};
    return cuLaunchKernel(Function("store"), 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr);
  }
  uint32_t Word(CUdeviceptr at) {
    uint32_t value = 0;
    EXPECT_CU(cuMemcpyDtoH_v2(&value, at, 4));
    return value;
  }

  CUmodule module = nullptr;
  CUdeviceptr memory = 0;
};

TEST_F(Launches, AGridComputes) {
  constexpr uint32_t kN = 100'000;
  std::vector<uint32_t> in(kN), out(kN), want(kN);
  std::iota(in.begin(), in.end(), 0u);
  std::iota(want.begin(), want.end(), 17u);
  CUdeviceptr source = memory, target = memory + 4 * kN;
  uint32_t add = 17, n = kN;
  EXPECT_CU(cuMemcpyHtoD_v2(source, in.data(), 4 * kN));
  void* params[] = {&target, &source, &add, &n};
  EXPECT_CU(cuLaunchKernel(Function("add"), (kN + 255) / 256, 1, 1, 256, 1, 1, 0, nullptr, params, nullptr));
  EXPECT_CU(cuMemcpyDtoH_v2(out.data(), target, 4 * kN));
  EXPECT_EQ(out, want);
}

TEST_F(Launches, ParametersComeInABufferToo) {
  struct {
    uint64_t out;
    uint32_t value;
  } buffer{memory, 99};
  size_t size = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  EXPECT_CU(cuLaunchKernel(Function("store"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  EXPECT_EQ(Word(memory), 99u);
  size = 11;
  EXPECT_CODE(cuLaunchKernel(Function("store"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra),
              CUDA_ERROR_INVALID_VALUE);
  size = 12;
  void* params[] = {&buffer.out, &buffer.value};
  EXPECT_CODE(cuLaunchKernel(Function("store"), 1, 1, 1, 1, 1, 1, 0, nullptr, params, extra),
              CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuLaunchKernel(Function("store"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
              CUDA_ERROR_INVALID_VALUE);
  void* hole[] = {&buffer.out, nullptr};
  EXPECT_CODE(cuLaunchKernel(Function("store"), 1, 1, 1, 1, 1, 1, 0, nullptr, hole, nullptr),
              CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Launches, StructuresGoByValue) {
  struct S {
    uint8_t a;
    uint64_t b;
    uint16_t c;
  } s{200, uint64_t{1} << 40, 60000};
  uint8_t x = 7;
  void* params[] = {&memory, &s, &x};
  EXPECT_CU(cuLaunchKernel(Function("structure"), 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  uint64_t sum = 0;
  EXPECT_CU(cuMemcpyDtoH_v2(&sum, memory, 8));
  EXPECT_EQ(sum, (uint64_t{1} << 40) + 200 + 60000 + 7);
}

TEST_F(Launches, ShapesAreChecked) {
  CUfunction f = Function("empty");
  auto launch = [&](CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                    unsigned bz, unsigned shared = 0) {
    return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, nullptr, nullptr, nullptr);
  };
  EXPECT_CU(launch(f, 1, 1, 1, 1024, 1, 1));
  EXPECT_CODE(launch(f, 0, 1, 1, 1, 1, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(launch(f, 1, 1, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(launch(f, 1, 65536, 1, 1, 1, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(launch(f, 0x80000000u, 1, 1, 1, 1, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(launch(f, 1, 1, 1, 1025, 1, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(launch(f, 1, 1, 1, 1, 1, 65), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(launch(f, 1, 1, 1, 512, 2, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(launch(f, 1, 1, 1, 1, 1, 1, 49153), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(launch(Function("small_blocks"), 1, 1, 1, 65, 1, 1), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  EXPECT_CU(launch(Function("small_blocks"), 1, 1, 1, 64, 1, 1));
  EXPECT_CODE(launch(Function("exact_blocks"), 1, 1, 1, 64, 1, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(launch(Function("exact_blocks"), 1, 1, 1, 32, 2, 1));
  EXPECT_CODE(launch(nullptr, 1, 1, 1, 1, 1, 1), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(launch(reinterpret_cast<CUfunction>(this), 1, 1, 1, 1, 1, 1), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CU(cuCtxSynchronize());
}

TEST_F(Launches, SharedMemoryGrowsWhenAskedFor) {
  CUfunction f = Function("shared_end");
  auto launch = [&](uint32_t bytes) {
    void* params[] = {&memory, &bytes};
    return cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, bytes, nullptr, params, nullptr);
  };
  EXPECT_CU(launch(47 << 10));
  EXPECT_CODE(launch((47 << 10) + 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 99 << 10),
              CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 98 << 10));
  EXPECT_CU(launch((98 << 10) - 1));
  EXPECT_EQ(Word(memory), 255u);  // the low byte of 98 KiB - 1
}

TEST_F(Launches, AWildStoreFailsItsContextAlone) {
  CUcontext other;
  EXPECT_CU(cuCtxCreate_v2(&other, 0, 0));
  CUmodule mine;
  CUfunction store;
  CUdeviceptr scratch;
  EXPECT_CU(cuModuleLoadData(&mine, kKernels));
  EXPECT_CU(cuModuleGetFunction(&store, mine, "store"));
  EXPECT_CU(cuMemAlloc_v2(&scratch, 4096));
  uint32_t local = 42, value = 13;
  CUdeviceptr wild = reinterpret_cast<CUdeviceptr>(&local);
  void* params[] = {&wild, &value};
  EXPECT_CU(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  EXPECT_CODE(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(local, 42u);
  // From here on it says so to everything, and frees no less for it.
  EXPECT_CODE(cuMemAlloc_v2(&scratch, 4096), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_CODE(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr),
              CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_CU(cuCtxSetCurrent(context));
  EXPECT_CU(Store(memory, 7));
  EXPECT_EQ(Word(memory), 7u);
  EXPECT_CU(cuCtxDestroy_v2(other));
}

TEST_F(Launches, FreedMemoryIsNoLongerThere) {
  CUcontext other;
  EXPECT_CU(cuCtxCreate_v2(&other, 0, 0));
  CUmodule mine;
  CUfunction store;
  CUdeviceptr freed;
  EXPECT_CU(cuModuleLoadData(&mine, kKernels));
  EXPECT_CU(cuModuleGetFunction(&store, mine, "store"));
  EXPECT_CU(cuMemAlloc_v2(&freed, 4096));
  EXPECT_CU(cuMemFree_v2(freed));
  uint32_t value = 1;
  void* params[] = {&freed, &value};
  EXPECT_CU(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  EXPECT_CODE(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_CU(cuCtxDestroy_v2(other));
}

TEST_F(Launches, OtherDeathsHaveTheirCodes) {
  CUcontext other;
  EXPECT_CU(cuCtxCreate_v2(&other, 0, 0));
  CUmodule mine;
  CUfunction trap;
  EXPECT_CU(cuModuleLoadData(&mine, kKernels));
  EXPECT_CU(cuModuleGetFunction(&trap, mine, "trap"));
  EXPECT_CU(cuLaunchKernel(trap, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_CODE(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_CU(cuCtxDestroy_v2(other));
  EXPECT_CU(cuCtxCreate_v2(&other, 0, 0));
  CUfunction store;
  CUdeviceptr odd;
  EXPECT_CU(cuModuleLoadData(&mine, kKernels));
  EXPECT_CU(cuModuleGetFunction(&store, mine, "store"));
  EXPECT_CU(cuMemAlloc_v2(&odd, 4096));
  odd += 2;
  uint32_t value = 1;
  void* params[] = {&odd, &value};
  EXPECT_CU(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  EXPECT_CODE(cuCtxSynchronize(), CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_CU(cuCtxDestroy_v2(other));
}

TEST_F(Launches, AttributesThatMatterAreHeededOrRefused) {
  CUlaunchAttribute attributes[2]{};
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.attrs = attributes;
  config.numAttrs = 1;
  CUfunction f = Function("empty");
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  EXPECT_CU(cuLaunchKernelEx(&config, f, nullptr, nullptr));
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[0].value.clusterDim = {1, 1, 1};
  EXPECT_CU(cuLaunchKernelEx(&config, f, nullptr, nullptr));
  attributes[0].value.clusterDim = {2, 1, 1};
  EXPECT_CODE(cuLaunchKernelEx(&config, f, nullptr, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attributes[0].value.cooperative = 1;
  EXPECT_CU(cuLaunchKernelEx(&config, f, nullptr, nullptr));
  config.gridDimX = 1 << 24;
  EXPECT_CODE(cuLaunchKernelEx(&config, Function("barrier"), nullptr, nullptr),
              CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  // The limit is what programs compute from occupancy, for kernels with barriers and without.
  int each = 0, multiprocessors = 0;
  EXPECT_CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, f, 256, 0));
  EXPECT_CU(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  config.blockDimX = 256;
  config.gridDimX = static_cast<unsigned>(each * multiprocessors);
  EXPECT_CU(cuLaunchKernelEx(&config, f, nullptr, nullptr));
  ++config.gridDimX;
  EXPECT_CODE(cuLaunchKernelEx(&config, f, nullptr, nullptr), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  attributes[0].id = static_cast<CUlaunchAttributeID>(77);
  EXPECT_CODE(cuLaunchKernelEx(&config, f, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuLaunchKernelEx(nullptr, f, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuCtxSynchronize());
}

TEST_F(Launches, FunctionsStayInTheirContext) {
  CUfunction f = Function("empty");
  CUcontext other;
  EXPECT_CU(cuCtxCreate_v2(&other, 0, 0));
  EXPECT_CODE(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CU(cuCtxDestroy_v2(other));
}

TEST_F(Launches, KernelsOfAStreamFollowOneAnother) {
  CUstream stream;
  EXPECT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  uint32_t one = 1, n = 1;
  void* params[] = {&memory, &memory, &one, &n};
  CUfunction add = Function("add");
  for (int i = 0; i < 20000; ++i) {
    ASSERT_CU(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr));
  }
  EXPECT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(Word(memory), 20000u);
}

TEST_F(Launches, ThreadsLaunchAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      EXPECT_CU(cuCtxSetCurrent(context));
      CUstream stream;
      EXPECT_CU(cuStreamCreate(&stream, t % 2));
      CUdeviceptr at = memory + 4096 * t;
      uint32_t one = 1, n = 1;
      void* params[] = {&at, &at, &one, &n};
      CUfunction add = Function("add");
      for (int i = 0; i < 2000; ++i) {
        ASSERT_CU(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, i % 100 ? stream : nullptr, params, nullptr));
        if (t % 2 && i % 100 == 0) ASSERT_CU(cuCtxSynchronize());
        if (t % 2 && i % 100 == 99) ASSERT_CU(cuStreamSynchronize(stream));
      }
      ASSERT_CU(cuCtxSynchronize());
      EXPECT_EQ(Word(at), 2000u);
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(Launches, UnloadingWaitsForWhatWasLaunched) {
  Gate gate;
  CUstream stream;
  EXPECT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  gate.Hold(stream);
  EXPECT_CU(Store(memory, 31, stream));
  std::thread opener([&] { gate.Open(); });
  EXPECT_CU(cuModuleUnload(module));
  opener.join();
  EXPECT_EQ(Word(memory), 31u);
}

}  // namespace
}  // namespace cuplex::softcuda
