#include "ptx/lexer.h"

#include <array>
#include <bit>
#include <charconv>

namespace cuplex::ptx {
namespace {

enum : uint8_t { kBlank = 1, kLetter = 2, kDigit = 4, kDollar = 8 };

constexpr std::array<uint8_t, 256> kClass = [] {
  std::array<uint8_t, 256> out{};
  for (char c : {' ', '\t', '\r', '\n', '\f', '\v'}) out[static_cast<uint8_t>(c)] = kBlank;
  for (int c = 'a'; c <= 'z'; ++c) out[c] = out[c - 'a' + 'A'] = kLetter;
  for (int c = '0'; c <= '9'; ++c) out[c] = kDigit;
  out['_'] = kLetter;
  out['$'] = out['%'] = kDollar;
  return out;
}();

bool Is(char c, uint8_t classes) { return kClass[static_cast<uint8_t>(c)] & classes; }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr std::string_view kPairs[] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
constexpr std::string_view kSingles = "()[]{}<>,;:@!|+-*/%&^~=?";

}  // namespace

Lexer::Lexer(std::string_view text) : text_(text) {
  while (!text_.empty() && text_.back() == '\0') text_.remove_suffix(1);
}

bool Lexer::SkipBlanks() {
  auto starts = [this](std::string_view with) { return text_.substr(at_, with.size()) == with; };
  auto newline = [this] {
    ++line_;
    line_start_ = at_ + 1;
  };
  while (at_ < text_.size()) {
    if (Is(text_[at_], kBlank)) {
      if (text_[at_] == '\n') newline();
      ++at_;
    } else if (starts("//") || starts("@@")) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (starts("/*")) {
      size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) return false;
      for (; at_ < end; ++at_) {
        if (text_[at_] == '\n') newline();
      }
      at_ = end + 2;
    } else {
      break;
    }
  }
  return true;
}

Token Lexer::Make(TokenKind kind, size_t begin, size_t end) {
  Token token;
  token.kind = last_ = kind;
  token.text = text_.substr(begin, end - begin);
  token.place = place_;
  return token;
}

Token Lexer::Wrong(std::string_view sentence) {
  Token token = Make(TokenKind::kError, 0, 0);
  token.text = sentence;
  at_ = text_.size();
  return token;
}

Token Lexer::Next() {
  bool blanks = SkipBlanks();
  place_ = {line_, static_cast<uint32_t>(at_ - line_start_ + 1)};
  if (!blanks) return Wrong("a comment that does not end");
  if (at_ >= text_.size()) return Make(TokenKind::kEnd, at_, at_);
  size_t begin = at_;
  char c = text_[at_];
  auto next_is = [&](size_t n, uint8_t classes) {
    return at_ + n < text_.size() && Is(text_[at_ + n], classes);
  };
  // After a number, % is the remainder: 5%3.
  bool after_number = last_ == TokenKind::kInteger || last_ == TokenKind::kFloat64;
  bool sigil = Is(c, kDollar) && next_is(1, kLetter | kDigit | kDollar) && !(c == '%' && after_number);
  if (Is(c, kLetter) || sigil) {
    while (next_is(0, kLetter | kDigit | kDollar)) ++at_;
    return Make(TokenKind::kWord, begin, at_);
  }
  if (c == '.') {
    bool after_word = last_ == TokenKind::kWord || last_ == TokenKind::kDotWord;
    if (next_is(1, kLetter) || (next_is(1, kDigit) && after_word)) {
      size_t separator = 1;  // the dot, later `::`
      do {
        at_ += separator;
        while (next_is(0, kLetter | kDigit)) ++at_;
        separator = 2;
      } while (text_.substr(at_, 2) == "::" && next_is(2, kLetter | kDigit));
      return Make(TokenKind::kDotWord, begin + 1, at_);
    }
    if (next_is(1, kDigit)) return Decimal();
    return Wrong("a dot without a word");
  }
  if (Is(c, kDigit)) return Number();
  if (c == '"') {
    size_t end = text_.find_first_of("\"\n", at_ + 1);
    if (end == std::string_view::npos || text_[end] == '\n') return Wrong("a string that does not end");
    at_ = end + 1;
    return Make(TokenKind::kString, begin + 1, end);
  }
  for (std::string_view pair : kPairs) {
    if (text_.substr(at_, 2) == pair) {
      at_ += 2;
      return Make(TokenKind::kSign, begin, at_);
    }
  }
  if (kSingles.find(c) != std::string_view::npos) {
    ++at_;
    return Make(TokenKind::kSign, begin, at_);
  }
  return Wrong("a character that is not PTX");
}

Token Lexer::Number() {
  char second = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
  if (text_[at_] == '0') {
    if (second == 'f' || second == 'F') return HexFloat(TokenKind::kFloat32, 8);
    if (second == 'd' || second == 'D') return HexFloat(TokenKind::kFloat64, 16);
    if (second == 'x' || second == 'X') return Radix(16, at_ + 2);
    if (second == 'b' || second == 'B') return Radix(2, at_ + 2);
  }
  size_t end = at_;
  while (end < text_.size() && Is(text_[end], kDigit)) ++end;
  char after = end < text_.size() ? text_[end] : '\0';
  if (after == '.' || after == 'e' || after == 'E') return Decimal();
  return Radix(text_[at_] == '0' ? 8 : 10, at_);
}

Token Lexer::HexFloat(TokenKind kind, size_t digits) {
  size_t begin = at_;
  uint64_t bits = 0;
  for (at_ += 2; at_ < begin + 2 + digits; ++at_) {
    int digit = at_ < text_.size() ? HexDigit(text_[at_]) : -1;
    if (digit < 0) return Wrong("a hexadecimal float with too few digits");
    bits = bits << 4 | static_cast<uint64_t>(digit);
  }
  Token token = Make(kind, begin, at_);
  token.bits = bits;
  return token;
}

Token Lexer::Decimal() {
  double value = 0;
  const char* first = text_.data() + at_;
  auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
  if (error != std::errc()) return Wrong("a float out of range");
  size_t begin = at_;
  at_ = static_cast<size_t>(end - text_.data());
  Token token = Make(TokenKind::kFloat64, begin, at_);
  token.bits = std::bit_cast<uint64_t>(value);
  return token;
}

Token Lexer::Radix(unsigned base, size_t begin) {
  size_t end = begin;
  uint64_t bits = 0;
  for (; end < text_.size(); ++end) {
    int digit = HexDigit(text_[end]);
    if (digit < 0 || digit >= static_cast<int>(base)) break;
    if (__builtin_mul_overflow(bits, uint64_t{base}, &bits) ||
        __builtin_add_overflow(bits, static_cast<uint64_t>(digit), &bits)) {
      return Wrong("an integer that passes 64 bits");
    }
  }
  if (end == begin) return Wrong("a number without digits");
  if (end < text_.size() && (text_[end] == 'U' || text_[end] == 'u')) ++end;
  if (end < text_.size() && Is(text_[end], kLetter | kDigit)) return Wrong("a number with a stray digit");
  size_t start = at_;
  at_ = end;
  Token token = Make(TokenKind::kInteger, start, end);
  token.bits = bits;
  return token;
}

}  // namespace cuplex::ptx
