#include <cstring>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/fake_server.h"
#include "client/process.h"
#include "cuda/driver_api.h"

namespace cuplex::client {
namespace {

using testing::ElementsAre;

constexpr char kPtx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry f()\n{\n ret;\n}\n";

class LaunchTest : public testing::Test {
 protected:
  ~LaunchTest() override { Detach(); }

  CUfunction Function(std::vector<FunctionParameter> parameters = {}) {
    server_.Seen([&] {
      server_.parameters = std::move(parameters);
      return 0;
    });
    EXPECT_EQ(cuModuleLoadData(&module_, kPtx), CUDA_SUCCESS);
    CUfunction f = nullptr;
    EXPECT_EQ(cuModuleGetFunction(&f, module_, "f"), CUDA_SUCCESS);
    return f;
  }
  std::vector<SeenLaunch> Launches() {
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    return server_.Seen([&] { return server_.launches; });
  }

  FakeServer server_;
  CUcontext context_ = Attach(server_);
  CUmodule module_ = nullptr;
};

TEST_F(LaunchTest, GathersParametersByTheirLayout) {
  struct Triple {
    char c[12];
  };
  CUfunction f = Function({{0, 1}, {8, 8}, {16, 12}, {32, 8}});
  uint8_t a = 0x5a;
  double b = 2.5;
  Triple c;
  std::memcpy(c.c, "twelve bytes", 12);
  uint64_t d = 0x1122334455667788;
  void* params[] = {&a, &b, &c, &d};
  ASSERT_EQ(cuLaunchKernel(f, 3, 4, 5, 32, 2, 1, 100, nullptr, params, nullptr), CUDA_SUCCESS);

  std::vector<std::byte> expected(40);
  std::memcpy(&expected[0], &a, 1);
  std::memcpy(&expected[8], &b, 8);
  std::memcpy(&expected[16], &c, 12);
  std::memcpy(&expected[32], &d, 8);
  const auto seen = Launches();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].parameters, expected);
  EXPECT_THAT(seen[0].grid, ElementsAre(3, 4, 5));
  EXPECT_THAT(seen[0].block, ElementsAre(32, 2, 1));
  EXPECT_EQ(seen[0].shared_bytes, 100u);
  EXPECT_EQ(seen[0].flags, 0u);
  EXPECT_EQ(seen[0].stream, kLegacyStream);
  EXPECT_EQ(seen[0].context, 1u);
}

TEST_F(LaunchTest, TakesParametersInOnePiece) {
  CUfunction f = Function({{0, 4}, {4, 4}});
  uint32_t buffer[3] = {1, 2, 3};
  size_t bytes = sizeof(buffer);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  EXPECT_EQ(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra), CUDA_SUCCESS);
  const auto seen = Launches();
  ASSERT_EQ(seen.size(), 1u);
  ASSERT_EQ(seen[0].parameters.size(), 8u);
  EXPECT_EQ(std::memcmp(seen[0].parameters.data(), buffer, 8), 0);
  bytes = 7;
  EXPECT_EQ(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra), CUDA_ERROR_INVALID_VALUE);
  void* params[] = {buffer, buffer};
  bytes = 8;
  EXPECT_EQ(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, params, extra), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(LaunchTest, HoldsTheShapeAgainstLimits) {
  CUfunction f = Function();
  auto launch = [&](unsigned gx, unsigned gy, unsigned bx, unsigned by, unsigned bz, unsigned shared) {
    return cuLaunchKernel(f, gx, gy, 1, bx, by, bz, shared, nullptr, nullptr, nullptr);
  };
  EXPECT_EQ(launch(0, 1, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(1, 1, 0, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(1, 65536, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(1, 65535, 1, 1, 1, 0), CUDA_SUCCESS);
  EXPECT_EQ(launch(1, 1, 1025, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(1, 1, 1, 513, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(1, 1, 64, 16, 2, 0), CUDA_ERROR_INVALID_VALUE);            // 2048 threads
  EXPECT_EQ(launch(1, 1, 513, 1, 1, 0), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);  // this function takes 512
  EXPECT_EQ(launch(1, 1, 512, 1, 1, 4097), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(1, 1, 512, 1, 1, 4096), CUDA_SUCCESS);
  EXPECT_EQ(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8000), CUDA_SUCCESS);
  EXPECT_EQ(launch(1, 1, 512, 1, 1, 8000), CUDA_SUCCESS);
  EXPECT_EQ(Launches().size(), 3u);
}

TEST_F(LaunchTest, HandlesOfOthersAreInvalid) {
  CUfunction f = Function();
  CUcontext other;
  CUstream stream;
  ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_EQ(cuCtxPopCurrent_v2(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_EQ(cuModuleUnload(module_), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleUnload(module_), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(LaunchTest, TheOrderThatThreadsAgreeOnIsTheOrderOnTheWire) {
  CUfunction f = Function({{0, 4}});
  constexpr uint32_t kLaunches = 30000;  // more than the ring holds
  constexpr uint32_t kRun = 50;          // of them before it is the other thread's turn
  std::atomic<uint32_t> turn{0};
  auto play = [&](uint32_t parity) {
    ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    for (uint32_t run = parity; run < kLaunches / kRun; run += 2) {
      while (turn.load(std::memory_order_acquire) != run) std::this_thread::yield();
      for (uint32_t n = run * kRun; n < (run + 1) * kRun; ++n) {
        void* params[] = {&n};
        ASSERT_EQ(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr), CUDA_SUCCESS);
      }
      turn.store(run + 1, std::memory_order_release);
    }
  };
  std::thread even(play, 0), odd(play, 1);
  even.join();
  odd.join();
  const auto seen = Launches();
  ASSERT_EQ(seen.size(), kLaunches);
  for (uint32_t n = 0; n < kLaunches; ++n) {
    uint32_t said;
    std::memcpy(&said, seen[n].parameters.data(), sizeof(said));
    ASSERT_EQ(said, n);
  }
}

TEST_F(LaunchTest, AttributesOfALaunch) {
  CUfunction f = Function();
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.cooperative = 1;
  CUlaunchConfig config{2, 1, 1, 32, 1, 1, 0, nullptr, &attribute, 1};
  EXPECT_EQ(cuLaunchKernelEx(&config, f, nullptr, nullptr), CUDA_SUCCESS);
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim.x = 2;
  attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
  EXPECT_EQ(cuLaunchKernelEx(&config, f, nullptr, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  const auto seen = Launches();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].flags, 1u);
}

TEST_F(LaunchTest, OccupancyPicksTheLargestBlockThatFillsMost) {
  CUfunction f = Function();
  int grid = 0, block = 0;
  // The server says that 900 threads fit: of the multiples of 32 up to 512, 448 x 2 = 896 fills most.
  EXPECT_EQ(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, nullptr, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(block, 448);
  EXPECT_EQ(grid, 2 * 7);
  EXPECT_EQ(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, nullptr, 0, 100), CUDA_SUCCESS);
  EXPECT_EQ(block, 100);  // nine of these are all 900
}

}  // namespace
}  // namespace cuplex::client
