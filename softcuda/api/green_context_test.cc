// Multiprocessors as resources; contexts that have some of them; and that these run as fast as they should.
// The device of these tests has 7 multiprocessors and two threads.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "softcuda/api/kernels.h"
#include "softcuda/api/testing.h"

namespace cuplex::softcuda {
namespace {

using Clock = std::chrono::steady_clock;

class GreenContexts : public ContextTest {
 protected:
  CUdevResource All() {
    CUdevResource all{};
    EXPECT_CU(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    return all;
  }
  /// `count` groups of `each`.
  std::vector<CUdevResource> Split(const CUdevResource& from, unsigned count, unsigned each,
                                   CUdevResource* rest = nullptr) {
    std::vector<CUdevResource> groups(count);
    EXPECT_CU(cuDevSmResourceSplitByCount(groups.data(), &count, &from, rest, 0, each));
    EXPECT_EQ(count, groups.size());
    return groups;
  }
  CUgreenCtx Make(CUdevResource resource) {
    CUdevResourceDesc desc = nullptr;
    CUgreenCtx green = nullptr;
    EXPECT_CU(cuDevResourceGenerateDesc(&desc, &resource, 1));
    EXPECT_CU(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    return green;
  }
  CUstream StreamIn(CUgreenCtx green) {
    CUstream stream = nullptr;
    EXPECT_CU(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    return stream;
  }
};

TEST_F(GreenContexts, MultiprocessorsAreDivided) {
  const CUdevResource all = All();
  EXPECT_EQ(all.type, CU_DEV_RESOURCE_TYPE_SM);
  EXPECT_EQ(all.sm.smCount, 7u);
  unsigned groups = 0;
  EXPECT_CU(cuDevSmResourceSplitByCount(nullptr, &groups, &all, nullptr, 0, 2));
  EXPECT_EQ(groups, 3u);
  CUdevResource rest{};
  auto parts = Split(all, 2, 2, &rest);
  EXPECT_EQ(parts[0].sm.smCount, 2u);
  EXPECT_EQ(parts[1].sm.smCount, 2u);
  EXPECT_EQ(rest.sm.smCount, 3u);
  // As many as there are, where more are asked for; nothing is left of a whole.
  CUdevResource many[9];
  groups = 9;
  EXPECT_CU(cuDevSmResourceSplitByCount(many, &groups, &all, &rest, 0, 1));
  EXPECT_EQ(groups, 7u);
  EXPECT_EQ(rest.type, CU_DEV_RESOURCE_TYPE_INVALID);
}

TEST_F(GreenContexts, WrongResourcesAreRefused) {
  const CUdevResource all = All();
  auto parts = Split(all, 2, 2);
  unsigned groups = 2;
  CUdevResource out[2];
  EXPECT_CODE(cuDevSmResourceSplitByCount(out, &groups, &all, nullptr, 0, 8), CUDA_ERROR_INVALID_VALUE);
  // What a split gave is not split again, but by way of a green context.
  EXPECT_CODE(cuDevSmResourceSplitByCount(out, &groups, &parts[0], nullptr, 0, 1),
              CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  CUdevResource forged = all;
  std::memset(forged._internal_padding, 0x5a, sizeof(forged._internal_padding));
  EXPECT_CODE(cuDevSmResourceSplitByCount(out, &groups, &forged, nullptr, 0, 1),
              CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  forged = {};
  EXPECT_CODE(cuDevSmResourceSplitByCount(out, &groups, &forged, nullptr, 0, 1),
              CUDA_ERROR_INVALID_RESOURCE_TYPE);
  CUdevResourceDesc desc = nullptr;
  auto others = Split(all, 2, 3);
  CUdevResource mixed[] = {parts[0], others[1]};
  EXPECT_CODE(cuDevResourceGenerateDesc(&desc, mixed, 2), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  CUdevResource twice[] = {parts[0], parts[0]};
  EXPECT_CODE(cuDevResourceGenerateDesc(&desc, twice, 2), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  CUgreenCtx green = nullptr;
  EXPECT_CODE(cuGreenCtxCreate(&green, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuDevResourceGenerateDesc(&desc, parts.data(), 2));
  EXPECT_CODE(cuGreenCtxCreate(&green, desc, 1, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuGreenCtxCreate(&green, desc, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  CUdevResource has{};
  EXPECT_CU(cuGreenCtxGetDevResource(green, &has, CU_DEV_RESOURCE_TYPE_SM));
  EXPECT_EQ(has.sm.smCount, 4u);
  EXPECT_EQ(Split(has, 2, 2).size(), 2u);
  EXPECT_CU(cuGreenCtxDestroy(green));
  EXPECT_CODE(cuGreenCtxDestroy(green), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(GreenContexts, AreThePrimaryContextWithOtherStreams) {
  CUgreenCtx green = Make(Split(All(), 1, 3)[0]);
  CUcontext primary = nullptr, as_context = nullptr, current = nullptr;
  ASSERT_CU(cuDevicePrimaryCtxRetain(&primary, 0));
  ASSERT_CU(cuCtxFromGreenCtx(&as_context, green));

  // A module and memory of the primary context, in the green one's streams.
  ASSERT_CU(cuCtxSetCurrent(primary));
  CUmodule module = nullptr;
  CUfunction add = nullptr;
  CUdeviceptr values = 0;
  ASSERT_CU(cuModuleLoadData(&module, kKernels));
  ASSERT_CU(cuModuleGetFunction(&add, module, "add"));
  ASSERT_CU(cuMemAlloc_v2(&values, 400));
  ASSERT_CU(cuMemsetD32_v2(values, 0, 100));
  CUstream stream = StreamIn(green), plain = nullptr;
  ASSERT_CU(cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
  unsigned amount = 3, count = 100;
  void* params[] = {&values, &values, &amount, &count};
  EXPECT_CU(cuLaunchKernel(add, 2, 1, 1, 64, 1, 1, 0, stream, params, nullptr));
  EXPECT_CU(cuStreamSynchronize(stream));
  CUgreenCtx of = nullptr;
  CUcontext whose = nullptr;
  EXPECT_CU(cuStreamGetGreenCtx(stream, &of));
  EXPECT_EQ(of, green);
  EXPECT_CU(cuStreamGetCtx_v2(stream, &whose, &of));
  EXPECT_EQ(whose, primary);
  EXPECT_CU(cuStreamGetGreenCtx(plain, &of));
  EXPECT_EQ(of, nullptr);

  // Where it is current, NULL is its stream, and new streams are its own.
  ASSERT_CU(cuCtxSetCurrent(as_context));
  EXPECT_CU(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, as_context);
  CUdevResource has{};
  EXPECT_CU(cuCtxGetDevResource(nullptr, &has, CU_DEV_RESOURCE_TYPE_SM));
  EXPECT_EQ(has.sm.smCount, 3u);
  EXPECT_CU(cuLaunchKernel(add, 2, 1, 1, 64, 1, 1, 0, nullptr, params, nullptr));
  CUstream made = nullptr;
  EXPECT_CU(cuStreamCreate(&made, CU_STREAM_DEFAULT));
  EXPECT_CU(cuStreamGetGreenCtx(made, &of));
  EXPECT_EQ(of, green);
  EXPECT_CU(cuLaunchKernel(add, 2, 1, 1, 64, 1, 1, 0, made, params, nullptr));
  EXPECT_CU(cuCtxSynchronize());
  std::vector<unsigned> out(100);
  EXPECT_CU(cuMemcpyDtoH_v2(out.data(), values, 400));
  EXPECT_EQ(out, std::vector<unsigned>(100, 9));
  EXPECT_CODE(cuLaunchKernel(add, 2, 1, 1, 64, 1, 1, 0, CU_STREAM_PER_THREAD, params, nullptr),
              CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CU(cuCtxPopCurrent_v2(&current));
  EXPECT_EQ(current, as_context);

  ASSERT_CU(cuCtxSetCurrent(primary));
  EXPECT_CU(cuGreenCtxDestroy(green));
  EXPECT_CODE(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(cuCtxSetCurrent(as_context), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_CU(cuDevicePrimaryCtxRelease_v2(0));
  ASSERT_CU(cuCtxSetCurrent(context));
}

TEST_F(GreenContexts, TheNullStreamsOfTwoDoNotWaitForOneAnother) {
  auto parts = Split(All(), 2, 2);
  CUgreenCtx a = Make(parts[0]), b = Make(parts[1]);
  CUcontext in_a = nullptr, in_b = nullptr;
  ASSERT_CU(cuCtxFromGreenCtx(&in_a, a));
  ASSERT_CU(cuCtxFromGreenCtx(&in_b, b));
  Gate gate;
  ASSERT_CU(cuCtxSetCurrent(in_a));
  CUstream blocking = nullptr;
  ASSERT_CU(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  gate.Hold(nullptr);
  EXPECT_CU(cuLaunchHostFunc(blocking, [](void*) {}, nullptr));
  ASSERT_CU(cuCtxSetCurrent(in_b));
  EXPECT_CU(cuLaunchHostFunc(nullptr, [](void*) {}, nullptr));
  EXPECT_CU(cuCtxSynchronize());  // b's alone
  ASSERT_CU(cuCtxSetCurrent(in_a));
  EXPECT_CODE(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);  // after a's NULL stream
  CUevent event = nullptr;
  ASSERT_CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  EXPECT_CU(cuGreenCtxRecordEvent(a, event));
  EXPECT_CODE(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  EXPECT_CU(cuGreenCtxWaitEvent(b, event));
  ASSERT_CU(cuCtxSetCurrent(in_b));
  EXPECT_CODE(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
  gate.Open();
  EXPECT_CU(cuEventSynchronize(event));
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_CU(cuEventDestroy_v2(event));
  EXPECT_CU(cuGreenCtxDestroy(a));
  EXPECT_CU(cuGreenCtxDestroy(b));
  ASSERT_CU(cuCtxSetCurrent(context));
}

// Work of a known size: each of `blocks` blocks counts up for a while.
constexpr char kBusy[] = R"(
.version 7.8
.target sm_75
.address_size 64
.visible .entry busy(.param .u64 out, .param .u32 rounds)
{
  .reg .pred %p;
  .reg .b32 %r<4>;
  .reg .b64 %rd;
  ld.param.u64 %rd, [out];
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %ctaid.x;
LOOP:
  mad.lo.u32 %r2, %r2, 1664525, 1013904223;
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p, %r1, 0;
  @%p bra LOOP;
  st.global.u32 [%rd], %r2;
  ret;
}
)";

class Speed : public testing::Test {
 protected:
  void SetUp() override { ASSERT_CU(cuInit(0)); }

  struct Time {
    double used = 0;    // of processors
    double wanted = 0;  // the same, and waiting for one
  };
  /// What the work takes, over its time, in a context with so many multiprocessors.
  Time Processors(unsigned multiprocessors) {
    CUexecAffinityParam affinity{};
    affinity.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT;
    affinity.param.smCount.val = multiprocessors;
    CUcontext context = nullptr;
    EXPECT_CU(cuCtxCreate_v3(&context, &affinity, 1, 0, 0));
    CUexecAffinityParam got{};
    EXPECT_CU(cuCtxGetExecAffinity(&got, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
    EXPECT_EQ(got.param.smCount.val, multiprocessors);
    CUmodule module = nullptr;
    CUfunction busy = nullptr;
    CUdeviceptr out = 0;
    EXPECT_CU(cuModuleLoadData(&module, kBusy));
    EXPECT_CU(cuModuleGetFunction(&busy, module, "busy"));
    EXPECT_CU(cuMemAlloc_v2(&out, 4));
    unsigned rounds = 300'000;
    void* params[] = {&out, &rounds};
    EXPECT_CU(cuLaunchKernel(busy, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
    EXPECT_CU(cuCtxSynchronize());
    const auto start = Clock::now();
    const Time before = Now();
    EXPECT_CU(cuLaunchKernel(busy, 400, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
    EXPECT_CU(cuCtxSynchronize());
    const Time after = Now();
    const double took = std::chrono::duration<double>(Clock::now() - start).count();
    EXPECT_CU(cuCtxDestroy_v2(context));
    return {(after.used - before.used) / took, (after.wanted - before.wanted) / took};
  }
  /// Of all threads of this process, in s.
  static Time Now() {
    Time sum;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
      double on = 0, waited = 0;
      std::ifstream(thread.path() / "schedstat") >> on >> waited;
      sum.used += on * 1e-9;
      sum.wanted += (on + waited) * 1e-9;
    }
    return sum;
  }
};

TEST_F(Speed, IsThatOfTheMultiprocessors) {
  for (unsigned some : {1u, 2u, 5u}) {
    // The device's two threads are seven multiprocessors. Where others have the machine's processors, it is
    // what the threads want of them that is right.
    const double right = some * 2 / 7.0;
    const auto [used, wanted] = Processors(some);
    EXPECT_GT(wanted, 0.85 * right) << some;
    EXPECT_LT(used, 1.1 * right) << some;
  }
}

TEST_F(Speed, WrongCountsAreRefused) {
  CUexecAffinityParam affinity{};
  affinity.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT;
  CUcontext context = nullptr;
  for (unsigned wrong : {0u, 8u}) {
    affinity.param.smCount.val = wrong;
    EXPECT_CODE(cuCtxCreate_v3(&context, &affinity, 1, 0, 0), CUDA_ERROR_INVALID_VALUE);
  }
  affinity.type = CU_EXEC_AFFINITY_TYPE_MAX;
  EXPECT_CODE(cuCtxCreate_v3(&context, &affinity, 1, 0, 0), CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
}

}  // namespace
}  // namespace cuplex::softcuda
