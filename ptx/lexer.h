// Lexer: PTX text -> tokens. One thread at a time; tokens view the text.
//
//   word     [A-Za-z_] [A-Za-z0-9_$%]* | [$%] [A-Za-z0-9_$%]+       mov  %r1  $L__BB0_1  _
//   dot word '.' [A-Za-z0-9_]+ ('::' [A-Za-z0-9_]+)*   .u32  .2d  .shared::cta
//   integer  decimal, 0octal, 0xhex, 0bbinary, each with an optional U
//   float    0f + 8 hex digits, 0d + 16 hex digits, or decimal with a point or an exponent
//   string   '"' anything but '"' and newline '"'
//   sign     one or two characters: ( ) [ ] { } < > , ; : @ ! | + - * / % & ^ ~ = ? << >> <= >= == != && ||
//
// A '.' followed by a digit begins a dot word after a word or a dot word (tex.2d), and a float elsewhere.
// Blanks, // and /* */ comments, and lines that begin with @@ (old debug data) separate tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ptx/module.h"

namespace cuplex::ptx {

enum class TokenKind : uint8_t {
  kEnd,
  kWord,
  kDotWord,
  kInteger,
  kFloat32,
  kFloat64,
  kString,
  kSign,
  kError
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;  // dot words without the dot, strings without the quotes
  uint64_t bits = 0;      // value of numbers
  Place place;

  bool IsSign(std::string_view sign) const { return kind == TokenKind::kSign && text == sign; }
  bool IsDotWord(std::string_view word) const { return kind == TokenKind::kDotWord && text == word; }
  bool IsWord(std::string_view word) const { return kind == TokenKind::kWord && text == word; }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text);

  /// The next token; kEnd for ever at the end. kError: `text` says what is wrong (static storage).
  Token Next();

 private:
  bool SkipBlanks();  // false: a comment that does not end
  Token Make(TokenKind kind, size_t begin, size_t end);
  Token Wrong(std::string_view sentence);
  Token Number();
  Token HexFloat(TokenKind kind, size_t digits);
  Token Decimal();
  Token Radix(unsigned base, size_t begin);

  std::string_view text_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  uint32_t line_ = 1;
  Place place_;
  TokenKind last_ = TokenKind::kEnd;
};

}  // namespace cuplex::ptx
