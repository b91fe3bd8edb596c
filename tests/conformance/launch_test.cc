// Kernels: what they are given, what they see, and which launches are refused.
#include <cstring>

#include "tests/conformance/driver_under_test.h"
#include "tests/conformance/kernel_types.h"

namespace cuplex::conformance {
namespace {

using Launches = Body;

TEST_F(Launches, EveryThreadKnowsItsPlace) {
  constexpr unsigned kGrid[3] = {3, 2, 4}, kBlock[3] = {5, 3, 2};
  constexpr unsigned kThreads = 3 * 2 * 4 * 5 * 3 * 2;
  DeviceMemory out(kThreads * 6 * 4);
  MUST(Cu().cuMemsetD8_v2(out.at, 0xff, kThreads * 6 * 4));
  void* parameters[] = {&out.at};
  MUST(Cu().cuLaunchKernel(Kernel("where"), kGrid[0], kGrid[1], kGrid[2], kBlock[0], kBlock[1], kBlock[2], 0,
                           nullptr, parameters, nullptr));
  const auto got = Read<uint32_t>(out.at, kThreads * 6);
  std::vector<uint32_t> expected;
  for (unsigned bz = 0; bz < kGrid[2]; ++bz)
    for (unsigned by = 0; by < kGrid[1]; ++by)
      for (unsigned bx = 0; bx < kGrid[0]; ++bx)
        for (unsigned tz = 0; tz < kBlock[2]; ++tz)
          for (unsigned ty = 0; ty < kBlock[1]; ++ty)
            for (unsigned tx = 0; tx < kBlock[0]; ++tx)
              expected.insert(expected.end(), {bx, by, bz, tx, ty, tz});
  EXPECT_EQ(got, expected);
}

TEST_F(Launches, StructsGoByValue) {
  DeviceMemory out(8 * 8);
  const Mixed mixed{'q', -2.75, {-1, 300, 32767}, -123456789};
  MUST(Launch(Kernel("take_struct"), 1, 1, nullptr, static_cast<signed char>(-5), mixed,
              static_cast<unsigned short>(65535), out.at));
  EXPECT_EQ(Read<double>(out.at, 8),
            (std::vector<double>{-5, 'q', -2.75, -1, 300, 32767, -123456789, 65535}));
}

TEST_F(Launches, ParametersInOneBuffer) {
  DeviceMemory out(8 * 8);
  // By the ABI: 1 byte at 0, the struct at 8, 2 bytes at 40, 8 bytes at 48.
  unsigned char buffer[56] = {};
  const Mixed mixed{'z', 1.5, {1, 2, 3}, 4};
  buffer[0] = 100;
  memcpy(buffer + 8, &mixed, sizeof(mixed));
  const unsigned short after = 77;
  memcpy(buffer + 40, &after, 2);
  memcpy(buffer + 48, &out.at, 8);
  size_t bytes = sizeof(buffer);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  MUST(Cu().cuLaunchKernel(Kernel("take_struct"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  EXPECT_EQ(Read<double>(out.at, 8), (std::vector<double>{100, 'z', 1.5, 1, 2, 3, 4, 77}));
}

TEST_F(Launches, PointersInDeviceMemoryAreDevicePointers) {
  constexpr unsigned kLinks = 100;
  DeviceMemory links(kLinks * sizeof(Link)), out(8);
  std::vector<Link> list(kLinks);
  unsigned long long expected = 0;
  for (unsigned i = 0; i < kLinks; ++i) {
    // 0 -> 37 -> 74 -> ...: every link once, since 37 and 100 share no factor.
    const unsigned at = i * 37 % kLinks, next = (i + 1) * 37 % kLinks;
    list[at].value = i * i + 1;
    list[at].next = i + 1 == kLinks ? nullptr : reinterpret_cast<const Link*>(links.at + next * sizeof(Link));
    expected += list[at].value;
  }
  MUST(Cu().cuMemcpyHtoD_v2(links.at, list.data(), kLinks * sizeof(Link)));
  MUST(Launch(Kernel("follow"), 1, 1, nullptr, links.at, out.at));
  EXPECT_EQ(Read<unsigned long long>(out.at, 1)[0], expected);
}

TEST_F(Launches, VariablesHaveTheirInitialValuesAndKeepTheirs) {
  DeviceMemory out(6 * 4);
  CUfunction use = Kernel("use_variables");
  MUST(Launch(use, 1, 1, nullptr, out.at));
  EXPECT_EQ(Read<uint32_t>(out.at, 6), (std::vector<uint32_t>{11, 22, 33, 44, 7, 0}));
  CUdeviceptr table = 0, counter = 0;
  size_t bytes = 0;
  MUST(Cu().cuModuleGetGlobal_v2(&table, &bytes, Kernels(), "table"));
  EXPECT_EQ(bytes, 16u);
  MUST(Cu().cuModuleGetGlobal_v2(&counter, &bytes, Kernels(), "counter"));
  EXPECT_EQ(bytes, 4u);
  EXPECT_EQ(Read<uint32_t>(counter, 1)[0], 8u);
  Write(table, std::vector<uint32_t>{5, 6, 7, 8});
  Write(counter, std::vector<uint32_t>{1000});
  MUST(Launch(use, 1, 1, nullptr, out.at));
  EXPECT_EQ(Read<uint32_t>(out.at, 6), (std::vector<uint32_t>{5, 6, 7, 8, 1000, 0}));
}

TEST_F(Launches, SharedMemoryOfTheLaunch) {
  constexpr unsigned kCount = 200;
  DeviceMemory values(kCount * 4), total(4);
  std::vector<uint32_t> numbers(kCount);
  for (unsigned i = 0; i < kCount; ++i) numbers[i] = i * 3;
  Write(values.at, numbers);
  void* parameters[] = {&values.at};
  MUST(Cu().cuLaunchKernel(Kernel("reverse"), 1, 1, 1, kCount, 1, 1, kCount * 4, nullptr, parameters,
                           nullptr));
  std::reverse(numbers.begin(), numbers.end());
  EXPECT_EQ(Read<uint32_t>(values.at, kCount), numbers);
  MUST(Launch(Kernel("static_shared"), 1, 256, nullptr, total.at));
  EXPECT_EQ(Read<uint32_t>(total.at, 1)[0], 255u * 256 / 2);
}

TEST_F(Launches, AGridAddsUp) {
  constexpr unsigned kCount = 100'003;
  DeviceMemory values(kCount * 4), total(8);
  std::vector<uint32_t> numbers(kCount);
  unsigned long long expected = 0;
  for (unsigned i = 0; i < kCount; ++i) expected += numbers[i] = i * 2654435761u;
  Write(values.at, numbers);
  MUST(Cu().cuMemsetD8_v2(total.at, 0, 8));
  MUST(Launch(Kernel("sum"), 16, 128, nullptr, values.at, kCount, total.at));
  EXPECT_EQ(Read<unsigned long long>(total.at, 1)[0], expected);
}

TEST_F(Launches, LaunchKernelExTakesTheSame) {
  DeviceMemory values(64 * 4);
  Write(values.at, std::vector<uint32_t>(64, 1));
  Stream stream;
  CUlaunchConfig config{};
  config.gridDimX = 2;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 32;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  unsigned amount = 6, count = 64;
  void* parameters[] = {&values.at, &amount, &count};
  MUST(Cu().cuLaunchKernelEx(&config, Kernel("add"), parameters, nullptr));
  MUST(Cu().cuStreamSynchronize(stream));
  EXPECT_EQ(Read<uint32_t>(values.at, 64), std::vector<uint32_t>(64, 7));
}

TEST_F(Launches, RefusedWithoutASideEffect) {
  DeviceMemory out(4 * 4096);
  unsigned amount = 1, count = 4;
  void* parameters[] = {&out.at, &amount, &count};
  CUfunction add = Kernel("add");
  const auto launch = [&](unsigned gx, unsigned gy, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                          void** p) {
    return Cu().cuLaunchKernel(add, gx, gy, 1, bx, by, bz, shared, nullptr, p, nullptr);
  };
  EXPECT_EQ(launch(0, 1, 1, 1, 1, 0, parameters), CUDA_ERROR_INVALID_VALUE) << "no blocks";
  EXPECT_EQ(launch(1, 1, 0, 1, 1, 0, parameters), CUDA_ERROR_INVALID_VALUE) << "no threads";
  EXPECT_EQ(launch(1, 65536, 1, 1, 1, 0, parameters), CUDA_ERROR_INVALID_VALUE) << "y ends at 65535";
  EXPECT_EQ(launch(1, 1, 1025, 1, 1, 0, parameters), CUDA_ERROR_INVALID_VALUE)
      << "a block has 1024 threads at most";
  EXPECT_EQ(launch(1, 1, 32, 33, 1, 0, parameters), CUDA_ERROR_INVALID_VALUE) << "and so has their product";
  EXPECT_EQ(launch(1, 1, 1, 1, 65, 0, parameters), CUDA_ERROR_INVALID_VALUE) << "z ends at 64";
  EXPECT_EQ(launch(1, 1, 1, 1, 1, 64 << 20, parameters), CUDA_ERROR_INVALID_VALUE) << "shared memory";
  EXPECT_THAT(Launch(Kernel("small_blocks"), 1, 65, nullptr, out.at),
              testing::AnyOf(CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES));
  EXPECT_EQ(Launch(Kernel("small_blocks"), 1, 64, nullptr, out.at), CUDA_SUCCESS);
  EXPECT_EQ(launch(1, 1, 1024, 1, 1, 0, parameters), CUDA_SUCCESS);
  EXPECT_EQ(Launch(Kernel("nothing"), 70000, 1, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(Cu().cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(Read<uint32_t>(out.at, 1)[0], 65u) << "64 by small_blocks, then one more";
  if (Given().ours) {
    EXPECT_EQ(launch(1, 1, 1, 1, 1, 0, nullptr), CUDA_ERROR_INVALID_VALUE)
        << "no parameters where three are due";
    size_t bytes = 4;
    unsigned char few[4] = {};
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, few, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    EXPECT_EQ(Cu().cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra),
              CUDA_ERROR_INVALID_VALUE);
  }
}

TEST_F(Launches, OccupancyIsWithinReason) {
  int blocks = 0, grid = 0, block = 0, multiprocessors = 0, threads = 0;
  CUfunction add = Kernel("add");
  MUST(Cu().cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  MUST(Cu().cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0));
  MUST(Cu().cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 256, 0));
  EXPECT_GE(blocks, 1);
  EXPECT_LE(blocks * 256, threads);
  MUST(Cu().cuOccupancyMaxPotentialBlockSize(&grid, &block, add, nullptr, 0, 0));
  EXPECT_GE(grid, multiprocessors);
  EXPECT_GE(block, 32);
  EXPECT_LE(block, 1024);
}

}  // namespace
}  // namespace cuplex::conformance
