#include "server/sliced_texts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ptx/parser.h"

namespace cuplex::server {
namespace {

std::string Image(int constant) {
  return fmt::format(
      ".version 7.0\n.target sm_70\n.address_size 64\n"
      ".visible .entry one(.param .u64 a)\n{{\n  .reg .b32 %r<3>;\n  .reg .b64 %rd<2>;\n  mov.u32 %r1, "
      "%ctaid.x;\n"
      "  add.u32 %r2, %r1, {};\n  ld.param.u64 %rd1, [a];\n  st.global.u32 [%rd1], %r2;\n  ret;\n}}\n"
      ".visible .entry two()\n{{\n  ret;\n}}\n"
      ".visible .entry whole(.param .u64 a)\n{{\n  .reg .b64 %rd<3>;\n  mov.u64 %rd1, %gridid;\n  "
      "ld.param.u64 %rd2, [a];\n"
      "  st.global.u64 [%rd2], %rd1;\n  ret;\n}}\n",
      constant);
}

std::shared_ptr<const SlicedTexts::Made> Get(SlicedTexts& texts, const std::string& image, const char* name) {
  auto made = texts.Get(image, 75, name);
  EXPECT_TRUE(made.ok()) << made.error().sentence;
  return made.ok() ? *made : nullptr;
}

TEST(SlicedTexts, MakeEachKernelOfAContentOnce) {
  SlicedTexts texts(1 << 20);
  const auto one = Get(texts, Image(1), "one");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->kernel.name, "one");
  EXPECT_TRUE(ptx::Parse(one->text).ok());
  const std::string elsewhere = Image(1);
  EXPECT_EQ(Get(texts, elsewhere, "one"), one);
  EXPECT_EQ(texts.made(), 1u);
  EXPECT_NE(Get(texts, elsewhere, "two"), one);
  EXPECT_NE(Get(texts, Image(2), "one")->text, one->text);
  EXPECT_EQ(texts.made(), 3u);
  EXPECT_TRUE(texts.Get(Image(1), 90, "one").ok());
  EXPECT_EQ(texts.made(), 4u) << "of a fatbin it could be another text";
}

TEST(SlicedTexts, RememberWhatCannotBeSliced) {
  SlicedTexts texts(1 << 20);
  EXPECT_FALSE(Get(texts, Image(1), "whole")->kernel.refusal.empty());
  EXPECT_FALSE(Get(texts, Image(1), "whole")->kernel.refusal.empty());
  EXPECT_EQ(texts.made(), 1u);
  EXPECT_FALSE(texts.Get("neither PTX nor a fatbin", 75, "one").ok());
  EXPECT_FALSE(texts.Get(Image(1), 75, "three").ok());
}

TEST(SlicedTexts, KeepNoMoreThanTheyMay) {
  SlicedTexts all(1 << 20);
  const uint64_t first = (Get(all, Image(1), "one"), all.bytes());
  SlicedTexts texts(2 * first + first / 2);
  for (int i = 1; i <= 3; ++i) {
    Get(texts, Image(i), "one");
    EXPECT_LE(texts.bytes(), 2 * first + first / 2);
    Get(texts, Image(1), "one");  // so that it is never the one unused for longest
  }
  EXPECT_EQ(texts.made(), 3u);
  Get(texts, Image(2), "one");
  EXPECT_EQ(texts.made(), 4u);
  SlicedTexts none(100);
  EXPECT_TRUE(Get(none, Image(1), "one"));
  EXPECT_EQ(none.bytes(), 0u);
}

}  // namespace
}  // namespace cuplex::server
