#include "base/result.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace cuplex {
namespace {

Result<int> Half(int n) {
  if (n % 2) return Fail(Blame::kCaller, "{} is odd, an even number was expected.", n);
  return n / 2;
}

Result<int> Quarter(int n) {
  TRY(auto half, Half(n));
  TRY(Half(half));
  return half / 2;
}

TEST(Result, TryTakesTheValueOrPassesTheErrorUp) {
  EXPECT_EQ(*Quarter(12), 3);
  auto odd = Quarter(6);
  ASSERT_FALSE(odd.ok());
  EXPECT_EQ(odd.error().sentence, "3 is odd, an even number was expected.");
  EXPECT_EQ(odd.error().blame, Blame::kCaller);
}

TEST(Result, ErrnoBecomesASentence) {
  EXPECT_EQ(FailErrno(ENOENT, "cannot open \"x\"").sentence, "cannot open \"x\": No such file or directory");
}

}  // namespace
}  // namespace cuplex
