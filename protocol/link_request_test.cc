#include "protocol/link_request.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cuplex {
namespace {

using testing::HasSubstr;

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string Good() {
  const LinkOption of_all[] = {{CU_JIT_MAX_REGISTERS, 32}, {CU_JIT_WALL_TIME, 0}};
  const LinkOption of_one[] = {{CU_JIT_OPTIMIZATION_LEVEL, 3}};
  std::string request;
  EncodeLinkOptions(of_all, &request);
  EncodeLinkInput(CU_JIT_INPUT_PTX, "a.ptx", BytesOf("first"), of_one, &request);
  EncodeLinkInput(CU_JIT_INPUT_CUBIN, "", BytesOf(std::string_view("\0\1", 2)), {}, &request);
  return request;
}

TEST(LinkRequest, ComesOutAsItWentIn) {
  const std::string bytes = Good();
  auto request = DecodeLinkRequest(BytesOf(bytes));
  ASSERT_TRUE(request.ok()) << request.error().sentence;
  ASSERT_EQ(request->options.size(), 2u);
  EXPECT_EQ(request->options[0].option, uint32_t{CU_JIT_MAX_REGISTERS});
  EXPECT_EQ(request->options[0].value, 32u);
  ASSERT_EQ(request->inputs.size(), 2u);
  EXPECT_EQ(request->inputs[0].type, CU_JIT_INPUT_PTX);
  EXPECT_EQ(request->inputs[0].name, "a.ptx");
  EXPECT_EQ(TextOf(request->inputs[0].data), "first");
  ASSERT_EQ(request->inputs[0].options.size(), 1u);
  EXPECT_EQ(request->inputs[0].options[0].value, 3u);
  EXPECT_EQ(request->inputs[1].type, CU_JIT_INPUT_CUBIN);
  EXPECT_EQ(TextOf(request->inputs[1].data), std::string("\0\1", 2));
}

// The layout, by hand: a server may not be of the client's build.
TEST(LinkRequest, LiesAsItsGrammarSays) {
  std::string request;
  EncodeLinkOptions({}, &request);
  EncodeLinkInput(CU_JIT_INPUT_PTX, "n", BytesOf("dd"), {}, &request);
  const char expected[] =
      "\0\0\0\0"
      "\1\0\0\0"
      "\1\0\0\0"
      "\2\0\0\0\0\0\0\0"
      "\0\0\0\0"
      "n"
      "dd";
  EXPECT_EQ(request, std::string(expected, sizeof(expected) - 1));
}

TEST(LinkRequest, EveryPartOfOneIsNoneOrHasFewerInputs) {
  const std::string whole = Good();
  for (size_t n = 0; n < whole.size(); ++n) {
    auto part = DecodeLinkRequest(BytesOf(whole).first(n));
    if (part.ok())
      EXPECT_EQ(part->inputs.size(), 1u) << n;
    else
      EXPECT_EQ(part.error().blame, Blame::kCaller) << n;
  }
}

TEST(LinkRequest, WhatPassesTheBoundsIsNamed) {
  const auto says = [](const std::string& bytes, const char* part) {
    auto request = DecodeLinkRequest(BytesOf(bytes));
    ASSERT_FALSE(request.ok()) << part;
    EXPECT_EQ(request.error().blame, Blame::kCaller);
    EXPECT_THAT(request.error().sentence, HasSubstr(part));
  };
  const auto changed = [](size_t at, uint64_t value, size_t bytes) {
    std::string request;
    EncodeLinkOptions({}, &request);
    EncodeLinkInput(CU_JIT_INPUT_PTX, "n", BytesOf("dd"), {}, &request);
    std::memcpy(request.data() + at, &value, bytes);
    return request;
  };
  says("", "the number of its options");
  says(std::string(4, '\0'), "no inputs");
  says(changed(0, 0xffffffff, 4), "4294967295 options");
  says(changed(4, 6, 4), "type 6");
  says(changed(4, 0xffffffff, 4), "type 4294967295");
  says(changed(8, 0xffffffff, 4), "4294967295 bytes, at most 4096");
  says(changed(8, 100, 4), "an input's name");
  says(changed(12, ~uint64_t{0}, 8), "an input's bytes");
  says(changed(12, 3, 8), "an input's bytes");
  says(changed(20, 36, 4), "36 options");
  says(changed(12, 0, 8), "no bytes");
  std::string many;
  EncodeLinkOptions({}, &many);
  for (size_t i = 0; i <= kMostLinkInputs; ++i)
    EncodeLinkInput(CU_JIT_INPUT_PTX, "", BytesOf("d"), {}, &many);
  says(many, "more than 4096 inputs");
}

TEST(LinkRequest, PointersOfAnotherProcessDoNotTravel) {
  for (uint32_t option : {3u, 4u, 5u, 6u, 17u, 18u, 19u, 25u, 26u, 27u, 28u, 35u, 0x80000003u, ~0u}) {
    EXPECT_FALSE(LinkOption::Travels(option));
    const LinkOption one[] = {{option, 4096}};
    std::string request;
    EncodeLinkOptions(one, &request);
    EXPECT_FALSE(DecodeLinkRequest(BytesOf(request)).ok());
  }
}

TEST(LinkRequest, ALongNameIsCut) {
  std::string request;
  EncodeLinkOptions({}, &request);
  EncodeLinkInput(CU_JIT_INPUT_PTX, std::string(10'000, 'n'), BytesOf("d"), {}, &request);
  auto decoded = DecodeLinkRequest(BytesOf(request));
  ASSERT_TRUE(decoded.ok()) << decoded.error().sentence;
  EXPECT_EQ(decoded->inputs[0].name, std::string(kMostLinkNameBytes, 'n'));
}

}  // namespace
}  // namespace cuplex
