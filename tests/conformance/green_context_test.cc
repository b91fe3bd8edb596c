// Green contexts: multiprocessors divided, and contexts and streams made of them. That a context is confined
// to its multiprocessors cannot be seen from here; that it works as the primary context does can.
#include <algorithm>
#include <atomic>
#include <vector>

#include "tests/conformance/driver_under_test.h"
#include "tests/conformance/kernels_ptx.h"

namespace cuplex::conformance {
namespace {

class GreenContexts : public Body {
 protected:
  void SetUp() override {
    Body::SetUp();
    const CUresult code = Cu().cuDeviceGetDevResource(0, &all_, CU_DEV_RESOURCE_TYPE_SM);
    if (code == CUDA_ERROR_NOT_SUPPORTED || code == CUDA_ERROR_NOT_FOUND)
      GTEST_SKIP() << "this driver has no green contexts";
    MUST(code);
    least_ = std::max(all_.sm.minSmPartitionSize, all_.sm.smCoscheduledAlignment);
    if (all_.sm.smCount < 2 * least_) GTEST_SKIP() << "this device cannot be divided";
  }
  std::vector<CUdevResource> Split(const CUdevResource& from, unsigned count, unsigned each) {
    std::vector<CUdevResource> groups(count);
    MUST(Cu().cuDevSmResourceSplitByCount(groups.data(), &count, &from, nullptr, 0, each));
    EXPECT_EQ(count, groups.size());
    return groups;
  }
  CUgreenCtx Make(CUdevResource resource) {
    CUdevResourceDesc desc = nullptr;
    CUgreenCtx green = nullptr;
    MUST(Cu().cuDevResourceGenerateDesc(&desc, &resource, 1));
    MUST(Cu().cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    return green;
  }

  CUdevResource all_{};
  unsigned least_ = 1;
};

TEST_F(GreenContexts, ADeviceHasAllItsMultiprocessors) {
  int count = 0;
  MUST(Cu().cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  EXPECT_EQ(all_.type, CU_DEV_RESOURCE_TYPE_SM);
  EXPECT_EQ(all_.sm.smCount, static_cast<unsigned>(count));
  CUdevResource of_context{};
  MUST(Cu().cuCtxGetDevResource(nullptr, &of_context, CU_DEV_RESOURCE_TYPE_SM));
  EXPECT_EQ(of_context.sm.smCount, all_.sm.smCount);
  EXPECT_EQ(Cu().cuDeviceGetDevResource(0, &of_context, CU_DEV_RESOURCE_TYPE_INVALID),
            CUDA_ERROR_INVALID_RESOURCE_TYPE);
}

TEST_F(GreenContexts, GroupsAreEqualAndTheRestIsLeft) {
  unsigned groups = 0;
  MUST(Cu().cuDevSmResourceSplitByCount(nullptr, &groups, &all_, nullptr, 0, least_));
  EXPECT_GE(groups, 2u);
  CUdevResource one{}, rest{};
  groups = 1;
  MUST(Cu().cuDevSmResourceSplitByCount(&one, &groups, &all_, &rest, 0, least_));
  EXPECT_EQ(groups, 1u);
  EXPECT_EQ(one.sm.smCount, least_);
  EXPECT_EQ(rest.sm.smCount, all_.sm.smCount - least_);
  // More than there are, and what a split gave, cannot be split.
  EXPECT_EQ(Cu().cuDevSmResourceSplitByCount(&one, &groups, &all_, nullptr, 0, all_.sm.smCount + 1),
            CUDA_ERROR_INVALID_VALUE);
  CUdevResource again{};
  EXPECT_NE(Cu().cuDevSmResourceSplitByCount(&again, &groups, &one, nullptr, 0, least_), CUDA_SUCCESS);
}

TEST_F(GreenContexts, WorkInTheirStreamsIsThePrimaryContexts) {
  CUcontext primary = nullptr, before = nullptr, as_context = nullptr, current = nullptr;
  MUST(Cu().cuCtxGetCurrent(&before));
  MUST(Cu().cuDevicePrimaryCtxRetain(&primary, 0));
  CUgreenCtx green = Make(Split(all_, 1, least_)[0]);
  MUST(Cu().cuCtxFromGreenCtx(&as_context, green));
  MUST(Cu().cuCtxSetCurrent(primary));
  CUmodule module = nullptr;
  CUfunction add = nullptr;
  MUST(Cu().cuModuleLoadData(&module, kPtx));
  MUST(Cu().cuModuleGetFunction(&add, module, "add"));
  constexpr unsigned kCount = 100;
  {
    DeviceMemory x(kCount * 4);
    MUST(Cu().cuMemsetD32_v2(x.at, 1, kCount));
    CUstream stream = nullptr;
    MUST(Cu().cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    CUdeviceptr at = x.at;
    unsigned amount = 3, count = kCount;
    void* params[] = {&at, &amount, &count};
    MUST(Cu().cuLaunchKernel(add, 2, 1, 1, 64, 1, 1, 0, stream, params, nullptr));
    MUST(Cu().cuStreamSynchronize(stream));
    CUgreenCtx of = nullptr;
    MUST(Cu().cuStreamGetGreenCtx(stream, &of));
    EXPECT_EQ(of, green);
    // Current, it is what it was made current as, and its new streams are its own.
    MUST(Cu().cuCtxSetCurrent(as_context));
    MUST(Cu().cuCtxGetCurrent(&current));
    EXPECT_EQ(current, as_context);
    CUdevResource has{};
    MUST(Cu().cuCtxGetDevResource(as_context, &has, CU_DEV_RESOURCE_TYPE_SM));
    EXPECT_EQ(has.sm.smCount, least_);
    CUstream made = nullptr;
    MUST(Cu().cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
    MUST(Cu().cuStreamGetGreenCtx(made, &of));
    EXPECT_EQ(of, green);
    MUST(Cu().cuLaunchKernel(add, 2, 1, 1, 64, 1, 1, 0, made, params, nullptr));
    MUST(Cu().cuStreamSynchronize(made));
    MUST(Cu().cuLaunchKernel(add, 2, 1, 1, 64, 1, 1, 0, nullptr, params, nullptr));
    MUST(Cu().cuCtxSynchronize());
    std::vector<unsigned> out(kCount);
    MUST(Cu().cuMemcpyDtoH_v2(out.data(), x.at, kCount * 4));
    EXPECT_EQ(out, std::vector<unsigned>(kCount, 1 + 3 * amount));
    MUST(Cu().cuStreamDestroy_v2(made));
    MUST(Cu().cuStreamDestroy_v2(stream));
    MUST(Cu().cuCtxSetCurrent(primary));
  }
  MUST(Cu().cuModuleUnload(module));
  MUST(Cu().cuGreenCtxDestroy(green));
  EXPECT_NE(Cu().cuCtxSetCurrent(as_context), CUDA_SUCCESS);
  MUST(Cu().cuDevicePrimaryCtxRelease_v2(0));
  MUST(Cu().cuCtxSetCurrent(before));
}

TEST_F(GreenContexts, AnEventOfOneStandsForAllItsStreams) {
  CUcontext before = nullptr, as_context = nullptr;
  MUST(Cu().cuCtxGetCurrent(&before));
  auto parts = Split(all_, 2, least_);
  CUgreenCtx a = Make(parts[0]), b = Make(parts[1]);
  MUST(Cu().cuCtxFromGreenCtx(&as_context, a));
  MUST(Cu().cuCtxSetCurrent(as_context));
  CUstream first = nullptr, second = nullptr, elsewhere = nullptr;
  MUST(Cu().cuGreenCtxStreamCreate(&first, a, CU_STREAM_NON_BLOCKING, 0));
  MUST(Cu().cuGreenCtxStreamCreate(&second, a, CU_STREAM_NON_BLOCKING, 0));
  MUST(Cu().cuGreenCtxStreamCreate(&elsewhere, b, CU_STREAM_NON_BLOCKING, 0));
  static std::atomic<bool> go;
  static std::atomic<int> done;
  go = false;
  done = 0;
  for (CUstream stream : {first, second}) {
    MUST(Cu().cuLaunchHostFunc(
        stream,
        [](void*) {
          go.wait(false);
          ++done;
        },
        nullptr));
  }
  CUevent event = nullptr;
  MUST(Cu().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  MUST(Cu().cuGreenCtxRecordEvent(a, event));
  EXPECT_EQ(Cu().cuEventQuery(event), CUDA_ERROR_NOT_READY);
  MUST(Cu().cuGreenCtxWaitEvent(b, event));
  EXPECT_EQ(Cu().cuStreamQuery(elsewhere), CUDA_ERROR_NOT_READY);
  go = true;
  go.notify_all();
  MUST(Cu().cuStreamSynchronize(elsewhere));
  EXPECT_EQ(done, 2);
  MUST(Cu().cuEventDestroy_v2(event));
  for (CUstream stream : {first, second, elsewhere}) MUST(Cu().cuStreamDestroy_v2(stream));
  MUST(Cu().cuCtxSetCurrent(before));
  MUST(Cu().cuGreenCtxDestroy(a));
  MUST(Cu().cuGreenCtxDestroy(b));
}

}  // namespace
}  // namespace cuplex::conformance
