#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/exports.h"
#include "cuda/driver_api.h"

namespace cuplex::client {
namespace {

template <typename F>
void* Address(F* f) {
  return reinterpret_cast<void*>(f);
}

void* Proc(const char* name, int version, cuuint64_t flags = 0) {
  void* f = nullptr;
  CUdriverProcAddressQueryResult status;
  (void)cuGetProcAddress_v2(name, &f, version, flags, &status);
  return f;
}

TEST(EntryPointsTest, AnswersWithTheVersionAskedFor) {
  EXPECT_EQ(Proc("cuMemAlloc", 2000), Address(cuMemAlloc));
  EXPECT_EQ(Proc("cuMemAlloc", 3010), Address(cuMemAlloc));
  EXPECT_EQ(Proc("cuMemAlloc", 3020), Address(cuMemAlloc_v2));
  EXPECT_EQ(Proc("cuMemAlloc", 13000), Address(cuMemAlloc_v2));
  EXPECT_EQ(Proc("cuCtxCreate", 11030), Address(cuCtxCreate_v2));
  EXPECT_EQ(Proc("cuCtxCreate", 11040), Address(cuCtxCreate_v3));
  EXPECT_EQ(Proc("cuCtxCreate", 12050), Address(cuCtxCreate_v4));
  EXPECT_EQ(Proc("cuGetProcAddress", 11030), Address(cuGetProcAddress));
  EXPECT_EQ(Proc("cuGetProcAddress", 12000), Address(cuGetProcAddress_v2));
  EXPECT_EQ(Proc("cuLaunchKernel", 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM), Address(cuLaunchKernel));
  EXPECT_EQ(Proc("cuLaunchKernel", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM),
            Address(cuLaunchKernel_ptsz));
  EXPECT_EQ(Proc("cuMemcpyHtoD", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM),
            Address(cuMemcpyHtoD_v2_ptds));
}

TEST(EntryPointsTest, SaysWhyThereIsNone) {
  void* f = &f;
  CUdriverProcAddressQueryResult status;
  EXPECT_EQ(cuGetProcAddress_v2("cuNothing", &f, 13000, 0, &status), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(f, nullptr);
  EXPECT_EQ(cuGetProcAddress_v2("cuMemAllocAsync", &f, 11010, 0, &status), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  EXPECT_EQ(cuGetProcAddress_v2("cuInit", &f, 13000, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuGetProcAddress("cuInit", nullptr, 13000, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGetProcAddress(nullptr, &f, 13000, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGetProcAddress("cuInit", &f, 13000, 3), CUDA_ERROR_INVALID_VALUE);
}

TEST(EntryPointsTest, WhatIsNotCarriedIsNamedOnce) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuTexRefDestroy(nullptr), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuTexRefDestroy(nullptr), CUDA_ERROR_NOT_SUPPORTED);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, testing::HasSubstr("cuTexRefDestroy"));
  EXPECT_EQ(std::ranges::count(said, '\n'), 1);
}

TEST(EntryPointsTest, TheUndocumentedTableIsRefusedWithASentence) {
  testing::internal::CaptureStderr();
  const void* table = &table;
  CUuuid id{};
  EXPECT_EQ(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(table, nullptr);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("use cuplex's libcudart"));
}

}  // namespace
}  // namespace cuplex::client
