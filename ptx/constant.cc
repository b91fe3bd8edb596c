#include "ptx/constant.h"

#include <string_view>

namespace cuplex::ptx {
namespace {

constexpr unsigned kDeepest = 64;  // nesting of operators and parentheses
constexpr unsigned kTermPrecedence = 10;

struct Operator {
  std::string_view sign;
  unsigned precedence;  // larger binds tighter, as in C
};
constexpr Operator kOperators[] = {
    {"||", 1}, {"&&", 2}, {"|", 3},  {"^", 4},  {"&", 5}, {"==", 6}, {"!=", 6}, {"<", 7},  {">", 7},
    {"<=", 7}, {">=", 7}, {"<<", 8}, {">>", 8}, {"+", 9}, {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10},
};

unsigned PrecedenceOf(const Token& token) {
  if (token.kind != TokenKind::kSign) return 0;
  for (const Operator& op : kOperators) {
    if (token.text == op.sign) return op.precedence;
  }
  return 0;
}

Constant Truth(bool value) { return {Constant::Kind::kInteger, false, value ? 1u : 0u}; }

Result<Constant> Apply(const Token& op, const Constant& a, const Constant& b) {
  if (a.kind != Constant::Kind::kInteger || b.kind != Constant::Kind::kInteger) {
    return Cursor::Unexpected(op, "no operator after a float constant");
  }
  bool u = a.is_unsigned || b.is_unsigned;
  uint64_t x = a.bits, y = b.bits;
  auto sx = static_cast<int64_t>(x), sy = static_cast<int64_t>(y);
  auto number = [&](uint64_t bits) { return Constant{Constant::Kind::kInteger, u, bits}; };
  std::string_view s = op.text;
  if (s == "+") return number(x + y);
  if (s == "-") return number(x - y);
  if (s == "*") return number(x * y);
  if (s == "&") return number(x & y);
  if (s == "|") return number(x | y);
  if (s == "^") return number(x ^ y);
  if (s == "==") return Truth(x == y);
  if (s == "!=") return Truth(x != y);
  if (s == "<") return Truth(u ? x < y : sx < sy);
  if (s == ">") return Truth(u ? x > y : sx > sy);
  if (s == "<=") return Truth(u ? x <= y : sx <= sy);
  if (s == ">=") return Truth(u ? x >= y : sx >= sy);
  if (s == "&&") return Truth(x && y);
  if (s == "||") return Truth(x || y);
  if (s == "<<" || s == ">>") {
    bool is_unsigned = a.is_unsigned;  // as in C, the left side alone decides
    if (y > 63) return Cursor::Unexpected(op, "a shift by less than 64");
    uint64_t bits = s == "<<" ? x << y : is_unsigned ? x >> y : static_cast<uint64_t>(sx >> y);
    return Constant{Constant::Kind::kInteger, is_unsigned, bits};
  }
  bool overflow = !u && sx == INT64_MIN && sy == -1;
  if (y == 0 || overflow) return Cursor::Unexpected(op, "a division that has a result");
  if (s == "/") return number(u ? x / y : static_cast<uint64_t>(sx / sy));
  return number(u ? x % y : static_cast<uint64_t>(sx % sy));
}

Result<Constant> Expression(Cursor& cursor, unsigned least, unsigned depth);
Result<Constant> Choice(Cursor& cursor, unsigned depth);

Result<Constant> Unary(Cursor& cursor, unsigned depth) {
  if (depth > kDeepest) return cursor.Unexpected("a constant expression that is nested less deeply");
  Token token = cursor.token();
  switch (token.kind) {
    case TokenKind::kInteger: {
      cursor.Take();
      bool has_u = token.text.back() == 'U' || token.text.back() == 'u';
      return Constant{Constant::Kind::kInteger, has_u || token.bits > INT64_MAX, token.bits};
    }
    case TokenKind::kFloat32:
      cursor.Take();
      return Constant{Constant::Kind::kFloat32, false, token.bits};
    case TokenKind::kFloat64:
      cursor.Take();
      return Constant{Constant::Kind::kFloat64, false, token.bits};
    case TokenKind::kWord:
      if (token.text == "WARP_SZ") {
        cursor.Take();
        return Constant{Constant::Kind::kInteger, false, 32};
      }
      break;
    default:
      break;
  }
  if (cursor.TakeSign("(")) {
    if (cursor.token().IsDotWord("s64") || cursor.token().IsDotWord("u64")) {
      bool is_unsigned = cursor.Take().text == "u64";
      TRY(cursor.ExpectSign(")"));
      TRY(Constant value, Unary(cursor, depth + 1));
      if (value.kind != Constant::Kind::kInteger) return Cursor::Unexpected(token, "a cast of an integer");
      value.is_unsigned = is_unsigned;
      return value;
    }
    TRY(Constant value, Choice(cursor, depth + 1));
    TRY(cursor.ExpectSign(")"));
    return value;
  }
  for (std::string_view sign : {"-", "+", "~", "!"}) {
    if (!cursor.TakeSign(sign)) continue;
    TRY(Constant value, Unary(cursor, depth + 1));
    if (value.kind == Constant::Kind::kInteger) {
      if (sign == "-") value.bits = -value.bits;
      if (sign == "~") value.bits = ~value.bits;
      if (sign == "!") return Truth(value.bits == 0);
      return value;
    }
    if (sign == "~" || sign == "!") return Cursor::Unexpected(token, "`-` or `+` before a float");
    if (sign == "-") value.bits ^= value.kind == Constant::Kind::kFloat32 ? 1ull << 31 : 1ull << 63;
    return value;
  }
  return cursor.Unexpected("a constant");
}

Result<Constant> Expression(Cursor& cursor, unsigned least, unsigned depth) {
  TRY(Constant left, Unary(cursor, depth + 1));
  for (;;) {
    unsigned precedence = PrecedenceOf(cursor.token());
    if (precedence == 0 || precedence < least) return left;
    if (depth > kDeepest) return cursor.Unexpected("a constant expression that is nested less deeply");
    Token op = cursor.Take();
    TRY(Constant right, Expression(cursor, precedence + 1, depth + 1));
    TRY(left, Apply(op, left, right));
  }
}

Result<Constant> Choice(Cursor& cursor, unsigned depth) {
  if (depth > kDeepest) return cursor.Unexpected("a constant expression that is nested less deeply");
  TRY(Constant condition, Expression(cursor, 1, depth));
  if (!cursor.TakeSign("?")) return condition;
  TRY(Constant yes, Choice(cursor, depth + 1));
  TRY(cursor.ExpectSign(":"));
  TRY(Constant no, Choice(cursor, depth + 1));
  return condition.bits ? yes : no;
}

}  // namespace

bool AtConstant(const Cursor& cursor) {
  const Token& token = cursor.token();
  switch (token.kind) {
    case TokenKind::kInteger:
    case TokenKind::kFloat32:
    case TokenKind::kFloat64:
      return true;
    case TokenKind::kWord:
      return token.text == "WARP_SZ";
    case TokenKind::kSign:
      return token.text == "-" || token.text == "+" || token.text == "~" || token.text == "(";
    default:
      return false;
  }
}

Result<Constant> ParseConstant(Cursor& cursor) { return Choice(cursor, 0); }

Result<Constant> ParseConstantTerm(Cursor& cursor) { return Expression(cursor, kTermPrecedence, 0); }

Result<uint64_t> ParseOffset(Cursor& cursor) {
  uint64_t sum = 0;
  while (cursor.token().IsSign("+") || cursor.token().IsSign("-")) {
    Token sign = cursor.Take();
    TRY(Constant term, ParseConstantTerm(cursor));
    if (term.kind != Constant::Kind::kInteger) return Cursor::Unexpected(sign, "an integer offset");
    sum = sign.text == "+" ? sum + term.bits : sum - term.bits;
  }
  return sum;
}

Result<uint64_t> ParseCount(Cursor& cursor, uint64_t most, const char* what) {
  Token token = cursor.token();
  TRY(Constant value, ParseConstant(cursor));
  if (value.kind != Constant::Kind::kInteger || value.bits > most) {
    return Cursor::Unexpected(token, fmt::format("{}, an integer from 0 to {}", what, most));
  }
  return value.bits;
}

}  // namespace cuplex::ptx
