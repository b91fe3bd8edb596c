#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "softcuda/api/testing.h"

namespace cuplex::softcuda {
namespace {

TEST(Initialization, CallsBeforeCuInitAreRefused) {
  // In a process of its own, in which nothing has started the driver.
  pid_t child = fork();
  if (child == 0) {
    int count;
    CUdeviceptr pointer;
    bool refused = cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED &&
                   cuMemAlloc_v2(&pointer, 4) == CUDA_ERROR_NOT_INITIALIZED &&
                   cuCtxGetCurrent(nullptr) == CUDA_ERROR_NOT_INITIALIZED;
    _exit(refused ? 0 : 1);
  }
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Initialization, AForkedChildMayNotGoOn) {
  ASSERT_CU(cuInit(0));
  pid_t child = fork();
  if (child == 0) {
    int count;
    _exit(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED && cuInit(0) == CUDA_ERROR_NOT_INITIALIZED
              ? 0
              : 1);
  }
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Initialization, FlagsMustBeZero) { EXPECT_CODE(cuInit(1), CUDA_ERROR_INVALID_VALUE); }

TEST(Initialization, Version) {
  int version = 0;
  EXPECT_CU(cuDriverGetVersion(&version));
  EXPECT_EQ(version, 13000);
  EXPECT_CODE(cuDriverGetVersion(nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST(Initialization, ErrorsHaveNamesAndSentences) {
  const char* text = nullptr;
  EXPECT_CU(cuGetErrorName(static_cast<CUresult>(700), &text));
  EXPECT_STREQ(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_CU(cuGetErrorString(static_cast<CUresult>(700), &text));
  EXPECT_GT(std::strlen(text), 10u);
  EXPECT_CODE(cuGetErrorName(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(text, nullptr);
}

TEST(GetProcAddress, AnswersWithTheVersionAskedFor) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status;
  EXPECT_CU(cuGetProcAddress_v2("cuMemAlloc", &function, 13000, 0, &status));
  EXPECT_EQ(function, reinterpret_cast<void*>(&cuMemAlloc_v2));
  EXPECT_CU(cuGetProcAddress_v2("cuCtxCreate", &function, 12000, 0, &status));
  EXPECT_EQ(function, reinterpret_cast<void*>(&cuCtxCreate_v3));
  EXPECT_CU(cuGetProcAddress_v2("cuCtxCreate", &function, 13000, 0, &status));
  EXPECT_EQ(function, reinterpret_cast<void*>(&cuCtxCreate_v4));
  EXPECT_CU(cuGetProcAddress_v2("cuStreamSynchronize", &function, 13000,
                                CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
  EXPECT_EQ(function, reinterpret_cast<void*>(&cuStreamSynchronize_ptsz));
}

TEST(GetProcAddress, SaysWhyThereIsNothing) {
  void* function = this;
  CUdriverProcAddressQueryResult status;
  EXPECT_CU(cuGetProcAddress_v2("cuNoSuchCall", &function, 13000, 0, &status));
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_CU(cuGetProcAddress_v2("cuMemAllocAsync", &function, 10000, 0, &status));
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  EXPECT_CODE(cuGetProcAddress("cuNoSuchCall", &function, 13000, 0), CUDA_ERROR_NOT_FOUND);
  EXPECT_CODE(cuGetProcAddress_v2(nullptr, &function, 13000, 0, &status), CUDA_ERROR_INVALID_VALUE);
}

TEST(ExportTable, IsRefusedWithAdvice) {
  const void* table = this;
  CUuuid id{};
  testing::internal::CaptureStderr();
  EXPECT_CODE(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(table, nullptr);
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("-cudart shared"), std::string::npos) << said;
}

TEST(NotCarried, IsRefused) {
  ASSERT_CU(cuInit(0));
  CUgraphConditionalHandle handle;
  EXPECT_CODE(cuGraphConditionalHandleCreate(&handle, nullptr, nullptr, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
}

}  // namespace
}  // namespace cuplex::softcuda
