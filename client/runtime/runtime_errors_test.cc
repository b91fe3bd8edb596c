#include "client/runtime/runtime_errors.h"

#include <cstring>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace cuplex::runtime {
namespace {

TEST(RuntimeErrors, MeanWhatTheDriverMeant) {
  EXPECT_EQ(FromDriver(CUDA_SUCCESS), cudaSuccess);
  EXPECT_EQ(FromDriver(CUDA_ERROR_INVALID_VALUE), cudaErrorInvalidValue);
  EXPECT_EQ(FromDriver(CUDA_ERROR_OUT_OF_MEMORY), cudaErrorMemoryAllocation);
  EXPECT_EQ(FromDriver(CUDA_ERROR_NO_DEVICE), cudaErrorNoDevice);
  EXPECT_EQ(FromDriver(CUDA_ERROR_NO_BINARY_FOR_GPU), cudaErrorNoKernelImageForDevice);
  EXPECT_EQ(FromDriver(CUDA_ERROR_INVALID_HANDLE), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(FromDriver(CUDA_ERROR_NOT_READY), cudaErrorNotReady);
  EXPECT_EQ(FromDriver(CUDA_ERROR_ILLEGAL_ADDRESS), cudaErrorIllegalAddress);
  EXPECT_EQ(FromDriver(CUDA_ERROR_LAUNCH_FAILED), cudaErrorLaunchFailure);
  EXPECT_EQ(FromDriver(CUDA_ERROR_NOT_SUPPORTED), cudaErrorNotSupported);
  EXPECT_EQ(FromDriver(CUDA_ERROR_UNKNOWN), cudaErrorUnknown);
}

TEST(RuntimeErrors, NumbersTheRuntimeLacksAreUnknown) {
  EXPECT_EQ(FromDriver(CUDA_ERROR_CONTEXT_ALREADY_CURRENT), cudaErrorUnknown);
  EXPECT_EQ(FromDriver(static_cast<CUresult>(1001)), cudaErrorUnknown);
}

TEST(RuntimeErrors, EachHasANameAndASentenceOfItsOwn) {
  std::set<std::string> names, sentences;
  int count = 0;
  for (int number = 0; number < 1000; ++number) {
    const char* name = NameOf(static_cast<cudaError_t>(number));
    const char* sentence = SentenceOf(static_cast<cudaError_t>(number));
    ASSERT_EQ(name == nullptr, sentence == nullptr) << number;
    if (!name) continue;
    EXPECT_EQ(std::string(name).rfind("cuda", 0), 0u);
    names.insert(name);
    sentences.insert(sentence);
    ++count;
  }
  EXPECT_EQ(static_cast<int>(names.size()), count);
  EXPECT_EQ(static_cast<int>(sentences.size()), count);
  EXPECT_STREQ(NameOf(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(SentenceOf(cudaErrorMemoryAllocation), "out of memory");
}

}  // namespace
}  // namespace cuplex::runtime
