#include "ptx/lexer.h"

#include <bit>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace cuplex::ptx {
namespace {

std::vector<Token> All(std::string_view text) {
  Lexer lexer(text);
  std::vector<Token> tokens;
  for (;;) {
    tokens.push_back(lexer.Next());
    if (tokens.back().kind == TokenKind::kEnd || tokens.back().kind == TokenKind::kError) return tokens;
  }
}

std::string Texts(std::string_view text) {
  std::string out;
  for (const Token& token : All(text)) {
    if (token.kind == TokenKind::kDotWord) out += '.';
    out += token.text;
    out += ' ';
  }
  return out;
}

TEST(Lexer, SplitsAnInstructionTheSameWayInEveryDialect) {
  const char* expected = "@ ! %p1 ld .global .v2 .f32 { %f1 , %f2 } , [ %rd1 + -4 ] ;  ";
  std::string signs = expected;
  signs.replace(signs.find("-4"), 2, "- 4");
  EXPECT_EQ(Texts("@!%p1 ld.global.v2.f32 \t{%f1, %f2}, [%rd1+-4];\n"), signs);
  EXPECT_EQ(Texts("@!%p1 ld.global.v2.f32{%f1,%f2},[%rd1+-4];"), signs);
  EXPECT_EQ(Texts("@!%p1/*x*/ld.global.v2.f32 {%f1 ,%f2} , [ %rd1 + -4 ] ; // end"), signs);
}

TEST(Lexer, ReadsDotWords) {
  EXPECT_EQ(Texts("tex.2d.v4.s32.f32"), "tex .2d .v4 .s32 .f32  ");
  EXPECT_EQ(Texts("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"),
            "cp .async .bulk .shared::cluster .global .mbarrier::complete_tx::bytes  ");
  EXPECT_EQ(Texts("ld.global.L2::128B.u32"), "ld .global .L2::128B .u32  ");
  EXPECT_EQ(Texts("p0 : .callprototype()_"), "p0 : .callprototype ( ) _  ");
}

TEST(Lexer, ReadsNumbers) {
  auto one = [](std::string_view text) { return All(text)[0]; };
  EXPECT_EQ(one("0").bits, 0u);
  EXPECT_EQ(one("42U").bits, 42u);
  EXPECT_EQ(one("0x1fU").bits, 31u);
  EXPECT_EQ(one("017").bits, 15u);
  EXPECT_EQ(one("0b101").bits, 5u);
  EXPECT_EQ(one("18446744073709551615").bits, UINT64_MAX);
  EXPECT_EQ(one("0f3F800000").kind, TokenKind::kFloat32);
  EXPECT_EQ(one("0f3F800000").bits, 0x3f800000u);
  EXPECT_EQ(one("0d3ff0000000000000").kind, TokenKind::kFloat64);
  EXPECT_EQ(one("0d3ff0000000000000").bits, 0x3ff0000000000000u);
  EXPECT_EQ(one("1.5").bits, std::bit_cast<uint64_t>(1.5));
  EXPECT_EQ(one("2e3").bits, std::bit_cast<uint64_t>(2000.0));
  EXPECT_EQ(All("x, .25")[2].bits, std::bit_cast<uint64_t>(0.25));
}

TEST(Lexer, RefusesBrokenTokens) {
  for (const char* text : {"/* x", "\"x", "\"x\n\"", "0x", "0f3F80", "18446744073709551616", "09", "12ab",
                           ". ", "`", "1e999", "\x80"}) {
    EXPECT_EQ(All(text).back().kind, TokenKind::kError) << text;
  }
}

TEST(Lexer, CountsLinesAndColumns) {
  auto tokens = All("a\n\tb /* \n */ c // d\n@@DWARF x\n  e");
  ASSERT_EQ(tokens.size(), 5u);
  EXPECT_EQ(tokens[1].place.line, 2u);
  EXPECT_EQ(tokens[1].place.column, 2u);
  EXPECT_EQ(tokens[2].place.line, 3u);
  EXPECT_EQ(tokens[2].place.column, 5u);
  EXPECT_EQ(tokens[3].text, "e");
  EXPECT_EQ(tokens[3].place.line, 5u);
}

TEST(Lexer, IgnoresTrailingNul) {
  EXPECT_EQ(All(std::string_view("ret;\0\0", 6)).size(), 3u);
  EXPECT_EQ(All(std::string_view("re\0t", 4)).back().kind, TokenKind::kError);
}

}  // namespace
}  // namespace cuplex::ptx
