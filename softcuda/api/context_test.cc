#include <thread>
#include <vector>

#include "softcuda/api/testing.h"

namespace cuplex::softcuda {
namespace {

class Contexts : public testing::Test {
 protected:
  void SetUp() override { ASSERT_CU(cuInit(0)); }
  CUcontext Current() {
    CUcontext current = nullptr;
    EXPECT_CU(cuCtxGetCurrent(&current));
    return current;
  }
};

TEST_F(Contexts, TheStackOfCurrentOnes) {
  CUcontext a, b, popped;
  EXPECT_EQ(Current(), nullptr);
  EXPECT_CODE(cuCtxPopCurrent_v2(&popped), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_CU(cuCtxCreate_v2(&a, 0, 0));
  EXPECT_CU(cuCtxCreate_v2(&b, 0, 1));
  EXPECT_EQ(Current(), b);
  CUdevice device;
  EXPECT_CU(cuCtxGetDevice(&device));
  EXPECT_EQ(device, 1);
  EXPECT_CU(cuCtxPopCurrent_v2(&popped));
  EXPECT_EQ(popped, b);
  EXPECT_EQ(Current(), a);
  EXPECT_CU(cuCtxPushCurrent_v2(b));
  EXPECT_CU(cuCtxDestroy_v2(b));  // and it is popped
  EXPECT_EQ(Current(), a);
  EXPECT_CODE(cuCtxSetCurrent(b), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_CODE(cuCtxDestroy_v2(b), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_CU(cuCtxDestroy_v2(a));
  EXPECT_EQ(Current(), nullptr);
  EXPECT_CODE(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Contexts, OneDestroyedElsewhereSaysSo) {
  CUcontext context;
  EXPECT_CU(cuCtxCreate_v2(&context, 0, 0));
  std::thread([&] { EXPECT_CU(cuCtxDestroy_v2(context)); }).join();
  CUdeviceptr pointer;
  EXPECT_CODE(cuMemAlloc_v2(&pointer, 16), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_CU(cuCtxSetCurrent(nullptr));
  EXPECT_CODE(cuMemAlloc_v2(&pointer, 16), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Contexts, DestroyingFreesWhatIsInIt) {
  CUcontext keep, context;
  EXPECT_CU(cuCtxCreate_v2(&keep, 0, 0));
  size_t before, after;
  EXPECT_CU(cuMemGetInfo_v2(&before, nullptr));
  EXPECT_CU(cuCtxCreate_v2(&context, 0, 0));
  CUdeviceptr pointer;
  CUstream stream;
  CUevent event;
  EXPECT_CU(cuMemAlloc_v2(&pointer, 1 << 20));
  EXPECT_CU(cuStreamCreate(&stream, 0));
  EXPECT_CU(cuEventCreate(&event, 0));
  EXPECT_CU(cuCtxDestroy_v2(context));
  EXPECT_CU(cuMemGetInfo_v2(&after, nullptr));
  EXPECT_EQ(before, after);
  EXPECT_CODE(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(cuMemcpyDtoH_v2(&before, pointer, 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuCtxDestroy_v2(keep));
}

TEST_F(Contexts, ThePrimaryOneIsCounted) {
  unsigned flags;
  int active;
  EXPECT_CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 0);
  EXPECT_CODE(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
  CUcontext first, second;
  EXPECT_CU(cuDevicePrimaryCtxRetain(&first, 0));
  EXPECT_CU(cuDevicePrimaryCtxRetain(&second, 0));
  EXPECT_EQ(first, second);
  EXPECT_EQ(Current(), nullptr);  // retaining makes nothing current
  EXPECT_CODE(cuCtxDestroy_v2(first), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_CU(cuDevicePrimaryCtxRelease_v2(0));
  EXPECT_CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 1);
  EXPECT_CU(cuDevicePrimaryCtxRelease_v2(0));
  EXPECT_CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 0);
  EXPECT_CODE(cuCtxSetCurrent(first), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Contexts, ResetKillsThePrimaryOne) {
  CUcontext context;
  EXPECT_CU(cuDevicePrimaryCtxSetFlags_v2(1, CU_CTX_SCHED_SPIN));
  EXPECT_CU(cuDevicePrimaryCtxRetain(&context, 1));
  EXPECT_CU(cuCtxSetCurrent(context));
  unsigned flags;
  EXPECT_CU(cuCtxGetFlags(&flags));
  EXPECT_EQ(flags, unsigned{CU_CTX_SCHED_SPIN});
  EXPECT_CU(cuDevicePrimaryCtxReset_v2(1));
  CUdeviceptr pointer;
  EXPECT_CODE(cuMemAlloc_v2(&pointer, 16), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_CU(cuCtxSetCurrent(nullptr));
}

TEST_F(Contexts, LimitsAreKept) {
  CUcontext context;
  EXPECT_CU(cuCtxCreate_v2(&context, 0, 0));
  size_t value = 0;
  EXPECT_CU(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
  EXPECT_CU(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
  EXPECT_EQ(value, 4096u);
  EXPECT_CODE(cuCtxGetLimit(&value, CU_LIMIT_MAX), CUDA_ERROR_UNSUPPORTED_LIMIT);
  EXPECT_CODE(cuCtxGetLimit(nullptr, CU_LIMIT_STACK_SIZE), CUDA_ERROR_INVALID_VALUE);
  int least, greatest;
  EXPECT_CU(cuCtxGetStreamPriorityRange(&least, &greatest));
  EXPECT_EQ(least, 0);
  EXPECT_LT(greatest, 0);
  EXPECT_CU(cuCtxDestroy_v2(context));
}

TEST_F(Contexts, WrongArgumentsAreRefused) {
  CUcontext context;
  EXPECT_CODE(cuCtxCreate_v2(nullptr, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuCtxCreate_v2(&context, 0x10000, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuCtxCreate_v2(&context, 3, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuCtxCreate_v2(&context, 0, 9), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_CODE(cuCtxSetCurrent(reinterpret_cast<CUcontext>(uintptr_t{0x1234})), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_CODE(cuCtxPushCurrent_v2(nullptr), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_CODE(cuCtxDestroy_v2(nullptr), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Contexts, ManyThreadsMakeAndDestroyTheirOwn) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 20; ++round) {
        CUcontext context;
        CUdeviceptr pointer;
        EXPECT_CU(cuCtxCreate_v2(&context, 0, 0));
        EXPECT_CU(cuMemAlloc_v2(&pointer, 4096));
        EXPECT_CU(cuMemsetD8Async(pointer, 1, 4096, nullptr));
        EXPECT_CU(cuCtxDestroy_v2(context));
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace cuplex::softcuda
