#include "ptx/constant.h"

#include <string>

#include <gtest/gtest.h>

namespace cuplex::ptx {
namespace {

int64_t Value(const std::string& text) {
  Cursor cursor(text);
  auto value = ParseConstant(cursor);
  EXPECT_TRUE(value.ok()) << text;
  if (!value.ok()) return -999;
  EXPECT_EQ(cursor.token().kind, TokenKind::kEnd) << text;
  return static_cast<int64_t>(value->bits);
}

TEST(Constant, FollowsC) {
  EXPECT_EQ(Value("1+2*3"), 7);
  EXPECT_EQ(Value("(1+2)*3"), 9);
  EXPECT_EQ(Value("7-2-1"), 4);
  EXPECT_EQ(Value("-5/2"), -2);
  EXPECT_EQ(Value("-5%3"), -2);
  EXPECT_EQ(Value("1<<4|1"), 17);
  EXPECT_EQ(Value("~0"), -1);
  EXPECT_EQ(Value("!3"), 0);
  EXPECT_EQ(Value("-1 < 0"), 1);
  EXPECT_EQ(Value("-1 < 0U"), 0);
  EXPECT_EQ(Value("(.u64)-1 > 5"), 1);
  EXPECT_EQ(Value("-8 >> 1"), -4);
  EXPECT_EQ(Value("1 ? 2 : 0 ? 3 : 4"), 2);
  EXPECT_EQ(Value("0 ? 2 : 0 ? 3 : 4"), 4);
  EXPECT_EQ(Value("WARP_SZ - 1"), 31);
  EXPECT_EQ(Value("1 && 0 || 1"), 1);
  EXPECT_EQ(Value("-9223372036854775808"), INT64_MIN);
}

TEST(Constant, NegatesFloats) {
  Cursor cursor("-0f3F800000");
  auto value = ParseConstant(cursor);
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(value->kind, Constant::Kind::kFloat32);
  EXPECT_EQ(value->bits, 0xbf800000u);
}

TEST(Constant, Refuses) {
  for (std::string text : {"1/0", "1%0", "1<<64", "(.s64)0x8000000000000000/-1", "1.0+2.0", "~1.5", "(1",
                           "1+", "1?2", "*", "(.s64)1.5", "1 >> -1"}) {
    Cursor cursor(text);
    EXPECT_FALSE(ParseConstant(cursor).ok()) << text;
  }
}

TEST(Constant, BoundsNesting) {
  for (std::string open : {"(", "-", "1?", "(.s64)", "!"}) {
    std::string text;
    for (int i = 0; i < 100000; ++i) text += open;
    text += "1";
    Cursor cursor(text);
    EXPECT_FALSE(ParseConstant(cursor).ok()) << open;
  }
}

TEST(Constant, SumsOffsets) {
  Cursor cursor("+4*2-+1+-3]");
  auto sum = ParseOffset(cursor);
  ASSERT_TRUE(sum.ok());
  EXPECT_EQ(*sum, 4u);
  EXPECT_TRUE(cursor.token().IsSign("]"));
}

}  // namespace
}  // namespace cuplex::ptx
