#include "softcuda/jit/device_text.h"

#include <gtest/gtest.h>

namespace cuplex::softcuda {
namespace {

TEST(DeviceTexts, KeepTheOrderAcrossStreams) {
  DeviceText text(100);
  EXPECT_TRUE(text.empty());
  text.Put(TextStream::kOutput, "a");
  text.Put(TextStream::kOutput, "b");
  text.Put(TextStream::kError, "c");
  text.Put(TextStream::kOutput, "d");
  EXPECT_FALSE(text.empty());
  auto pieces = text.Take();
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].text, "ab");
  EXPECT_EQ(pieces[1].text, "c");
  EXPECT_EQ(pieces[1].stream, TextStream::kError);
  EXPECT_EQ(pieces[2].text, "d");
  EXPECT_TRUE(text.empty());
  EXPECT_TRUE(text.Take().empty());
}

TEST(DeviceTexts, DropTheOldestWhereMoreComes) {
  DeviceText text(10);
  for (char c = 'a'; c < 'h'; ++c) text.Put(TextStream::kOutput, std::string(3, c));
  auto pieces = text.Take();
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].text, "eeefffggg");
  text.Put(TextStream::kOutput, "0123456789abc");
  EXPECT_EQ(text.Take()[0].text, "3456789abc");
  text.Put(TextStream::kOutput, "0123456789");
  text.SetMost(4);
  EXPECT_TRUE(text.Take().empty());
}

}  // namespace
}  // namespace cuplex::softcuda
