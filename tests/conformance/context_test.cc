// Contexts: the stack of each thread, created ones, primary ones and their counts.
#include <thread>

#include "tests/conformance/driver_under_test.h"

namespace cuplex::conformance {
namespace {

/// Begins without a current context.
class Contexts : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(Current(), nullptr); }
  void TearDown() override {
    CUcontext popped = nullptr;
    while (Current() && Cu().cuCtxPopCurrent_v2(&popped) == CUDA_SUCCESS) {
    }
    (void)Cu().cuCtxSetCurrent(nullptr);
    int active = 1;
    unsigned flags = 0;
    MUST(Cu().cuDevicePrimaryCtxGetState(0, &flags, &active));
    EXPECT_EQ(active, 0);
  }
  static CUcontext Current() {
    CUcontext current = nullptr;
    MUST(Cu().cuCtxGetCurrent(&current));
    return current;
  }
};

TEST_F(Contexts, WithoutOneNothingWorks) {
  CUdeviceptr at = 0;
  CUdevice device = 0;
  CUcontext popped = nullptr;
  EXPECT_EQ(Cu().cuMemAlloc_v2(&at, 100), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(Cu().cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(Cu().cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(Cu().cuCtxPopCurrent_v2(&popped), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Contexts, TheStackIsAStack) {
  CUcontext one = nullptr, two = nullptr, popped = nullptr;
  MUST(Cu().cuCtxCreate_v2(&one, CU_CTX_SCHED_YIELD, 0));
  MUST(Cu().cuCtxCreate_v2(&two, 0, 0));
  EXPECT_EQ(Current(), two);
  MUST(Cu().cuCtxPopCurrent_v2(&popped));
  EXPECT_EQ(popped, two);
  EXPECT_EQ(Current(), one);
  unsigned flags = 0;
  MUST(Cu().cuCtxGetFlags(&flags));
  EXPECT_EQ(flags & CU_CTX_SCHED_MASK, static_cast<unsigned>(CU_CTX_SCHED_YIELD));
  MUST(Cu().cuCtxPushCurrent_v2(two));
  EXPECT_EQ(Current(), two);
  MUST(Cu().cuCtxSetCurrent(one));  // replaces the top
  EXPECT_EQ(Current(), one);
  MUST(Cu().cuCtxPopCurrent_v2(&popped));
  EXPECT_EQ(popped, one);
  EXPECT_EQ(Current(), one);
  CUdevice device = -1;
  MUST(Cu().cuCtxGetDevice(&device));
  EXPECT_EQ(device, 0);
  unsigned long long id_one = 0, id_two = 0;
  MUST(Cu().cuCtxGetId(one, &id_one));
  MUST(Cu().cuCtxGetId(two, &id_two));
  EXPECT_NE(id_one, id_two);
  MUST(Cu().cuCtxDestroy_v2(two));
  MUST(Cu().cuCtxDestroy_v2(one));
  EXPECT_EQ(Current(), nullptr);
}

TEST_F(Contexts, EachThreadHasItsOwn) {
  CUcontext context = nullptr;
  MUST(Cu().cuCtxCreate_v2(&context, 0, 0));
  CUcontext theirs = context;
  CUresult without = CUDA_SUCCESS, with = CUDA_ERROR_UNKNOWN;
  std::thread([&] {
    MUST(Cu().cuCtxGetCurrent(&theirs));
    CUdeviceptr at = 0;
    without = Cu().cuMemAlloc_v2(&at, 100);
    MUST(Cu().cuCtxSetCurrent(context));
    with = Cu().cuMemAlloc_v2(&at, 100);
    if (with == CUDA_SUCCESS) with = Cu().cuMemFree_v2(at);
  }).join();
  EXPECT_EQ(theirs, nullptr);
  EXPECT_EQ(without, CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(with, CUDA_SUCCESS);
  MUST(Cu().cuCtxDestroy_v2(context));
}

TEST_F(Contexts, ADestroyedOneIsNoMore) {
  ONLY_OURS();
  CUcontext context = nullptr;
  MUST(Cu().cuCtxCreate_v2(&context, 0, 0));
  CUresult elsewhere = CUDA_SUCCESS;
  std::thread([&] {
    MUST(Cu().cuCtxSetCurrent(context));
    std::thread([&] { MUST(Cu().cuCtxDestroy_v2(context)); }).join();
    elsewhere = Cu().cuCtxSynchronize();
  }).join();
  const auto no_more = testing::AnyOf(CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_THAT(elsewhere, no_more);
  EXPECT_THAT(Cu().cuCtxDestroy_v2(context), no_more);
  EXPECT_THAT(Cu().cuCtxPushCurrent_v2(context), no_more);
  EXPECT_EQ(Cu().cuCtxDestroy_v2(reinterpret_cast<CUcontext>(0x12345678)), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(Cu().cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
}

TEST_F(Contexts, ThePrimaryOneIsCounted) {
  CUcontext one = nullptr, two = nullptr;
  unsigned flags = 0;
  int active = 1;
  MUST(Cu().cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 0);
  MUST(Cu().cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_BLOCKING_SYNC));
  MUST(Cu().cuDevicePrimaryCtxRetain(&one, 0));
  MUST(Cu().cuDevicePrimaryCtxRetain(&two, 0));
  EXPECT_EQ(one, two);
  EXPECT_EQ(Current(), nullptr) << "retaining makes nothing current";
  MUST(Cu().cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 1);
  EXPECT_EQ(flags & CU_CTX_SCHED_MASK, static_cast<unsigned>(CU_CTX_SCHED_BLOCKING_SYNC));
  MUST(Cu().cuCtxSetCurrent(one));
  DeviceMemory kept(100);
  MUST(Cu().cuDevicePrimaryCtxRelease_v2(0));
  MUST(Cu().cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 1);
  Write(kept.at, std::vector<uint8_t>(100, 1));
  MUST(Cu().cuMemFree_v2(kept.at));
  MUST(Cu().cuDevicePrimaryCtxRelease_v2(0));
  MUST(Cu().cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 0);
  EXPECT_EQ(Cu().cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
  MUST(Cu().cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_AUTO));
}

TEST_F(Contexts, ResettingThePrimaryFreesAll) {
  CUcontext primary = nullptr;
  MUST(Cu().cuDevicePrimaryCtxRetain(&primary, 0));
  MUST(Cu().cuCtxSetCurrent(primary));
  const uint64_t before = FreeBytes();
  CUdeviceptr at = 0;
  MUST(Cu().cuMemAlloc_v2(&at, 8 << 20));
  MUST(Cu().cuDevicePrimaryCtxReset_v2(0));
  int active = 1;
  unsigned flags = 0;
  MUST(Cu().cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 0);
  MUST(Cu().cuDevicePrimaryCtxRetain(&primary, 0));
  MUST(Cu().cuCtxSetCurrent(primary));
  EXPECT_EQ(FreeBytes(), before);
  MUST(Cu().cuDevicePrimaryCtxRelease_v2(0));
}

TEST_F(Contexts, LimitsCanBeReadBack) {
  CUcontext context = nullptr;
  MUST(Cu().cuCtxCreate_v2(&context, 0, 0));
  size_t value = 0;
  MUST(Cu().cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
  EXPECT_GT(value, 0u);
  MUST(Cu().cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 8192));
  MUST(Cu().cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
  EXPECT_EQ(value, 8192u);
  EXPECT_THAT(Cu().cuCtxGetLimit(&value, static_cast<CUlimit>(999)),
              testing::AnyOf(CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_UNSUPPORTED_LIMIT));
  MUST(Cu().cuCtxDestroy_v2(context));
}

}  // namespace
}  // namespace cuplex::conformance
