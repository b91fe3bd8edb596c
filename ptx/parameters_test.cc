#include "ptx/parameters.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ptx/parser.h"

namespace cuplex::ptx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<ParameterLayout> Layout(const std::string& function) {
  auto module = Parse(".version 8.3 .target sm_90 " + function);
  EXPECT_TRUE(module.ok()) << module.error().sentence;
  return LayoutOf(module->functions.at(0));
}

// The offsets of: struct { char c; short s; int i; void* p; struct { float f[3]; } v; double d; float4 q; }
TEST(Parameters, LieAsInACStruct) {
  auto layout = Layout(R"(.entry k(.param .s8 c, .param .s16 s, .param .u32 i, .param .u64 .ptr .align 1 p,
    .param .align 4 .b8 v[12], .param .f64 d, .param .align 16 .b8 q[16]) { ret; })");
  ASSERT_TRUE(layout.ok());
  EXPECT_THAT(layout->slots, ElementsAre(ParameterSlot{0, 1, 1, false}, ParameterSlot{2, 2, 2, false},
                                         ParameterSlot{4, 4, 4, false}, ParameterSlot{8, 8, 8, true},
                                         ParameterSlot{16, 12, 4, false}, ParameterSlot{32, 8, 8, false},
                                         ParameterSlot{48, 16, 16, false}));
  EXPECT_EQ(layout->size, 64u);
}

TEST(Parameters, MayBeNone) {
  auto layout = Layout(".entry k() { ret; }");
  ASSERT_TRUE(layout.ok());
  EXPECT_TRUE(layout->slots.empty());
  EXPECT_EQ(layout->size, 0u);
}

TEST(Parameters, EndWithoutPadding) {
  auto layout = Layout(".entry k(.param .u64 a, .param .u8 b) { ret; }");
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->size, 9u);
}

TEST(Parameters, AreBounded) {
  EXPECT_TRUE(Layout(".entry k(.param .align 4 .b8 a[32764]) { ret; }").ok());
  auto layout = Layout(".entry k(.param .align 4 .b8 a[32764], .param .u8 b) { ret; }");
  ASSERT_FALSE(layout.ok());
  EXPECT_THAT(layout.error().sentence, HasSubstr("32765"));
  EXPECT_FALSE(Layout(".entry k(.param .b64 a[137438953472]) { ret; }").ok());
  EXPECT_FALSE(Layout(".func f(.param .u64 a) { ret; }").ok());
}

}  // namespace
}  // namespace cuplex::ptx
