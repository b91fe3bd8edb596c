#include "server/device_text.h"

#include <string>

#include <gtest/gtest.h>

namespace cuplex::server {
namespace {

void Put(TextBox& box, TextStream stream, const std::string& text) {
  box.Put(stream, text.data(), text.size());
}

TEST(TextBoxes, GiveOneStreamAtATimeInOrder) {
  TextBox box;
  EXPECT_TRUE(box.empty());
  Put(box, TextStream::kOutput, "one ");
  Put(box, TextStream::kOutput, "two");
  Put(box, TextStream::kError, "three");
  TextBox::Piece piece = box.Take(5);
  EXPECT_EQ(piece.text, "one t");
  EXPECT_EQ(piece.stream, TextStream::kOutput);
  EXPECT_EQ(box.Take(100).text, "wo");
  piece = box.Take(100);
  EXPECT_EQ(piece.text, "three");
  EXPECT_EQ(piece.stream, TextStream::kError);
  EXPECT_TRUE(box.empty());
  EXPECT_EQ(box.Take(100).text, "");
}

TEST(TextBoxes, KeepTheNewestOfWhatIsTooMuch) {
  TextBox box;
  box.SetMost(8);
  Put(box, TextStream::kOutput, "12345");
  Put(box, TextStream::kOutput, "6789");
  EXPECT_EQ(box.Take(100).text, "6789");
  Put(box, TextStream::kOutput, "0123456789");
  EXPECT_EQ(box.Take(100).text, "23456789");
}

TEST(DeviceTexts, KnowWhoseTextItIs) {
  DeviceTexts texts;
  auto* a = reinterpret_cast<CUcontext>(0x10);
  auto* b = reinterpret_cast<CUcontext>(0x20);
  auto box_a = texts.Open(a), box_b = texts.Open(b);
  DeviceTexts::Receive(&texts, a, TextStream::kOutput, "hello", 5);
  DeviceTexts::Receive(&texts, reinterpret_cast<CUcontext>(0x30), TextStream::kOutput, "nobody", 6);
  EXPECT_TRUE(box_b->empty());
  EXPECT_EQ(box_a->Take(100).text, "hello");
  texts.Close(a);
  DeviceTexts::Receive(&texts, a, TextStream::kOutput, "late", 4);
  EXPECT_TRUE(box_a->empty());
}

}  // namespace
}  // namespace cuplex::server
