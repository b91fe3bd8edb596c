// cuGetProcAddress: for each CUDA version the form that this version knew, the very function that dlsym
// finds.
#include <optional>

#include "tests/conformance/driver_under_test.h"

namespace cuplex::conformance {
namespace {

/// What a name means from a version on: the exported name, and that of its per-thread twin, empty where it
/// has none.
struct Step {
  int since;
  const char* exported;
  const char* per_thread;
};
struct Name {
  const char* asked;
  std::vector<Step> steps;
};

// Versions are those of NVIDIA's cudaTypedefs.h and of its notes on each release.
const std::vector<Name>& Names() {
  static const std::vector<Name> names = {
      {"cuInit", {{2000, "cuInit", ""}}},
      {"cuMemAlloc", {{3020, "cuMemAlloc_v2", ""}}},
      {"cuMemFree", {{3020, "cuMemFree_v2", ""}}},
      {"cuMemGetInfo", {{3020, "cuMemGetInfo_v2", ""}}},
      {"cuDeviceTotalMem", {{3020, "cuDeviceTotalMem_v2", ""}}},
      {"cuMemcpyHtoD", {{3020, "cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2_ptds"}}},
      {"cuMemcpyDtoHAsync", {{3020, "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoHAsync_v2_ptsz"}}},
      {"cuMemcpy2D", {{3020, "cuMemcpy2D_v2", "cuMemcpy2D_v2_ptds"}}},
      {"cuMemsetD8", {{3020, "cuMemsetD8_v2", "cuMemsetD8_v2_ptds"}}},
      {"cuLaunchKernel", {{4000, "cuLaunchKernel", "cuLaunchKernel_ptsz"}}},
      {"cuLaunchKernelEx", {{11060, "cuLaunchKernelEx", "cuLaunchKernelEx_ptsz"}}},
      {"cuLaunchHostFunc", {{10000, "cuLaunchHostFunc", "cuLaunchHostFunc_ptsz"}}},
      {"cuStreamSynchronize", {{2000, "cuStreamSynchronize", "cuStreamSynchronize_ptsz"}}},
      {"cuStreamDestroy", {{4000, "cuStreamDestroy_v2", ""}}},
      {"cuEventRecord", {{2000, "cuEventRecord", "cuEventRecord_ptsz"}}},
      {"cuEventDestroy", {{4000, "cuEventDestroy_v2", ""}}},
      {"cuEventElapsedTime", {{2000, "cuEventElapsedTime", ""}, {12080, "cuEventElapsedTime_v2", ""}}},
      {"cuCtxCreate",
       {{3020, "cuCtxCreate_v2", ""}, {11040, "cuCtxCreate_v3", ""}, {12050, "cuCtxCreate_v4", ""}}},
      {"cuCtxDestroy", {{4000, "cuCtxDestroy_v2", ""}}},
      {"cuCtxPushCurrent", {{4000, "cuCtxPushCurrent_v2", ""}}},
      {"cuDevicePrimaryCtxRelease",
       {{7000, "cuDevicePrimaryCtxRelease", ""}, {11000, "cuDevicePrimaryCtxRelease_v2", ""}}},
      {"cuDeviceGetUuid", {{9020, "cuDeviceGetUuid", ""}, {11040, "cuDeviceGetUuid_v2", ""}}},
      {"cuMemAllocAsync", {{11020, "cuMemAllocAsync", "cuMemAllocAsync_ptsz"}}},
      {"cuMemPrefetchAsync",
       {{8000, "cuMemPrefetchAsync", "cuMemPrefetchAsync_ptsz"},
        {12020, "cuMemPrefetchAsync_v2", "cuMemPrefetchAsync_v2_ptsz"}}},
      {"cuMemAdvise", {{8000, "cuMemAdvise", ""}, {12020, "cuMemAdvise_v2", ""}}},
      {"cuModuleGetGlobal", {{3020, "cuModuleGetGlobal_v2", ""}}},
      {"cuModuleGetFunctionCount", {{12040, "cuModuleGetFunctionCount", ""}}},
      {"cuLibraryLoadData", {{12000, "cuLibraryLoadData", ""}}},
      {"cuGetProcAddress", {{11030, "cuGetProcAddress", ""}, {12000, "cuGetProcAddress_v2", ""}}},
  };
  return names;
}

const Step* At(const Name& name, int version) {
  const Step* found = nullptr;
  for (const Step& step : name.steps)
    if (step.since <= version) found = &step;
  return found;
}

constexpr int kVersions[] = {11000, 11010, 11020, 11030, 11040, 11060, 11070, 11080, 12000,
                             12010, 12020, 12030, 12040, 12050, 12060, 12080, 12090, 13000};

TEST(ProcAddress, EachVersionHasItsForm) {
  int driver_version = 0;
  MUST(Cu().cuDriverGetVersion(&driver_version));
  for (const Name& name : Names()) {
    for (int version : kVersions) {
      if (version > driver_version) continue;
      for (uint64_t flags :
           {uint64_t{CU_GET_PROC_ADDRESS_DEFAULT}, uint64_t{CU_GET_PROC_ADDRESS_LEGACY_STREAM},
            uint64_t{CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM}}) {
        SCOPED_TRACE(std::string(name.asked) + " at " + std::to_string(version) + " with flags " +
                     std::to_string(flags));
        const bool per_thread = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
        const Step* step = At(name, version);
        void* got = reinterpret_cast<void*>(1);
        CUdriverProcAddressQueryResult status{};
        const CUresult code = Cu().cuGetProcAddress_v2(name.asked, &got, version, flags, &status);
        if (!step) {
          EXPECT_EQ(got, nullptr);
          EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
          continue;
        }
        ASSERT_EQ(code, CUDA_SUCCESS);
        EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
        const char* expected = per_thread && *step->per_thread ? step->per_thread : step->exported;
        ASSERT_NE(Exported(expected), nullptr) << expected;
        EXPECT_EQ(got, Exported(expected)) << expected;
        // The older form of the question.
        void* older = nullptr;
        MUST(Cu().cuGetProcAddress(name.asked, &older, version, flags));
        EXPECT_EQ(older, got);
      }
    }
  }
}

TEST(ProcAddress, WhatIsNotThere) {
  void* got = reinterpret_cast<void*>(1);
  CUdriverProcAddressQueryResult status{};
  // Where a status is asked for, drivers differ in whether the call itself fails.
  const auto not_found = testing::AnyOf(CUDA_SUCCESS, CUDA_ERROR_NOT_FOUND);
  EXPECT_THAT(Cu().cuGetProcAddress_v2("cuNoSuchCall", &got, 12000, 0, &status), not_found);
  EXPECT_EQ(got, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(Cu().cuGetProcAddress("cuNoSuchCall", &got, 12000, 0), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(Cu().cuGetProcAddress_v2("cuInit", nullptr, 12000, 0, &status), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Cu().cuGetProcAddress_v2("", &got, 12000, 0, &status), not_found);
  EXPECT_EQ(got, nullptr);
  // Nobody has to ask how it went.
  EXPECT_EQ(Cu().cuGetProcAddress_v2("cuInit", &got, 12000, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(got, Exported("cuInit"));
}

}  // namespace
}  // namespace cuplex::conformance
