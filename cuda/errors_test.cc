#include "cuda/errors.h"

#include <cstring>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace cuplex {
namespace {

TEST(CuErrorName, NumbersAreThoseOfTheDriverApi) {
  // The numbers as the driver API's documentation lists them.
  EXPECT_STREQ(CuErrorName(static_cast<CUresult>(0)), "CUDA_SUCCESS");
  EXPECT_STREQ(CuErrorName(static_cast<CUresult>(1)), "CUDA_ERROR_INVALID_VALUE");
  EXPECT_STREQ(CuErrorName(static_cast<CUresult>(2)), "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_STREQ(CuErrorName(static_cast<CUresult>(209)), "CUDA_ERROR_NO_BINARY_FOR_GPU");
  EXPECT_STREQ(CuErrorName(static_cast<CUresult>(700)), "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_STREQ(CuErrorName(static_cast<CUresult>(720)), "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE");
  EXPECT_STREQ(CuErrorName(static_cast<CUresult>(999)), "CUDA_ERROR_UNKNOWN");
}

TEST(CuErrorName, NumbersBetweenCodesHaveNeitherNameNorText) {
  for (int code : {-1, 9, 203, 601, 998, 1000}) {
    EXPECT_EQ(CuErrorName(static_cast<CUresult>(code)), nullptr) << code;
    EXPECT_EQ(CuErrorText(static_cast<CUresult>(code)), nullptr) << code;
  }
}

TEST(CuErrorText, EveryCodeHasASentenceOfItsOwn) {
  std::set<std::string> texts;
  int names = 0;
  for (int code = 0; code <= 999; ++code) {
    const char* name = CuErrorName(static_cast<CUresult>(code));
    const char* text = CuErrorText(static_cast<CUresult>(code));
    ASSERT_EQ(name == nullptr, text == nullptr) << code;
    if (!name) continue;
    ++names;
    EXPECT_TRUE(texts.insert(text).second) << text;
    EXPECT_NE(text[std::strlen(text) - 1], '.') << text;
  }
  EXPECT_EQ(names, 101);
}

}  // namespace
}  // namespace cuplex
