#include "ptx/initializer.h"

#include <algorithm>

#include "ptx/constant.h"
#include "ptx/declaration.h"

namespace cuplex::ptx {
namespace {

constexpr unsigned kDeepest = 18;  // one more than a variable can have dimensions and vector components
constexpr uint64_t kOpenExtent = 1ull << 40;

using Set = std::function<void(uint64_t, const Initializer&)>;

// Scalars below one position of dimension `level`, vector components being the last dimension.
uint64_t StrideOf(const Variable& variable, size_t level) {
  uint64_t stride = 1;
  for (size_t at = level + 1; at < variable.dims.size(); ++at) stride *= variable.dims[at];
  return level < variable.dims.size() ? stride * variable.vector : 1;
}

size_t LevelsOf(const Variable& variable) { return variable.dims.size() + (variable.vector > 1 ? 1 : 0); }

Error TooMuch(const Variable& variable) {
  return Cursor::Wrong(variable.place,
                       fmt::format("the initialiser of {} has more values, or deeper braces, than "
                                   "the variable has elements",
                                   variable.name));
}

// Fills the aggregate of `extent` scalars at `base`; gives the scalars up to the last one set.
Result<uint64_t> Fill(const Variable& variable, const Initializer& list, size_t level, uint64_t base,
                      uint64_t extent, const Set& set) {
  uint64_t at = 0;
  uint64_t stride = StrideOf(variable, level);
  for (const Initializer& part : list.parts) {
    if (part.kind == Initializer::Kind::kList) {
      at = (at + stride - 1) / stride * stride;
      if (level + 1 >= LevelsOf(variable) || at + stride > extent) return TooMuch(variable);
      TRY(uint64_t ignored, Fill(variable, part, level + 1, base + at, stride, set));
      (void)ignored;
      at += stride;
    } else {
      if (at >= extent) return TooMuch(variable);
      set(base + at++, part);
    }
  }
  return at;
}

Result<uint64_t> Visit(const Variable& variable, const Set& set) {
  const Initializer& top = *variable.initializer;
  bool scalar = LevelsOf(variable) == 0;
  if (top.kind != Initializer::Kind::kList) {
    if (!scalar) {
      return Cursor::Wrong(variable.place,
                           fmt::format("the initialiser of {} must be in braces", variable.name));
    }
    set(0, top);
    return 1;
  }
  uint64_t first = variable.dims.empty() ? 1 : variable.dims[0] ? variable.dims[0] : kOpenExtent;
  uint64_t stride = variable.dims.empty() ? variable.vector : StrideOf(variable, 0);
  uint64_t extent = first > kOpenExtent / stride ? kOpenExtent : first * stride;
  return Fill(variable, top, 0, 0, extent, set);
}

Result<Initializer> ParseAddress(Parsing& parsing) {
  Cursor& cursor = parsing.cursor;
  Initializer value;
  value.kind = Initializer::Kind::kAddress;
  if (cursor.token().IsWord("generic") && cursor.next().IsSign("(")) {
    cursor.Take();
    cursor.Take();
    value.generic = true;
  }
  if (cursor.token().kind != TokenKind::kWord) return cursor.Unexpected("a variable or a function");
  value.id = static_cast<uint32_t>(parsing.addresses.size());
  parsing.addresses.push_back(cursor.Take());
  if (value.generic) TRY(cursor.ExpectSign(")"));
  TRY(value.bits, ParseOffset(cursor));
  return value;
}

Result<Initializer> ParseValue(Parsing& parsing, const Variable& variable, unsigned depth) {
  Cursor& cursor = parsing.cursor;
  Initializer value;
  if (cursor.token().IsSign("{")) {
    if (depth == kDeepest) return cursor.Unexpected("braces that are nested less deeply");
    cursor.Take();
    value.kind = Initializer::Kind::kList;
    while (!cursor.TakeSign("}")) {
      TRY(Initializer part, ParseValue(parsing, variable, depth + 1));
      value.parts.push_back(std::move(part));
      if (!cursor.TakeSign(",") && !cursor.token().IsSign("}")) return cursor.Unexpected("`,` or `}`");
    }
    return value;
  }
  bool handle =
      variable.type == Type::kTexref || variable.type == Type::kSamplerref || variable.type == Type::kSurfref;
  if (handle && cursor.token().kind == TokenKind::kWord) {
    value.kind = Initializer::Kind::kField;
    value.field = cursor.Take().text;
    TRY(cursor.ExpectSign("="));
    if (cursor.token().kind != TokenKind::kWord && cursor.token().kind != TokenKind::kInteger) {
      return cursor.Unexpected("the value of a field");
    }
    value.field += fmt::format(" = {}", cursor.Take().text);
    return value;
  }
  if (!AtConstant(cursor)) return ParseAddress(parsing);
  TRY(Constant constant, ParseConstant(cursor));
  if (constant.kind == Constant::Kind::kInteger && cursor.TakeSign("(")) {
    TRY(value, ParseAddress(parsing));
    TRY(cursor.ExpectSign(")"));
    value.mask = constant.bits;
    return value;
  }
  switch (constant.kind) {
    case Constant::Kind::kInteger:
      value.kind = Initializer::Kind::kInteger;
      break;
    case Constant::Kind::kFloat32:
      value.kind = Initializer::Kind::kFloat32;
      break;
    case Constant::Kind::kFloat64:
      value.kind = Initializer::Kind::kFloat64;
      break;
  }
  value.bits = constant.bits;
  return value;
}

bool HasFields(const Initializer& value) {
  return std::any_of(value.parts.begin(), value.parts.end(),
                     [](const Initializer& part) { return part.kind == Initializer::Kind::kField; });
}

}  // namespace

Status ForEachElement(const Variable& variable, const Set& set) {
  if (!variable.initializer || HasFields(*variable.initializer)) return {};
  TRY(uint64_t ignored, Visit(variable, set));
  (void)ignored;
  return {};
}

Status ParseInitializer(Parsing& parsing, Variable& variable) {
  if (!parsing.cursor.TakeSign("=")) return {};
  TRY(variable.initializer, ParseValue(parsing, variable, 0));
  if (HasFields(*variable.initializer)) return {};
  TRY(uint64_t end, Visit(variable, [](uint64_t, const Initializer&) {}));
  if (variable.IsUnsizedArray()) {
    uint64_t stride = StrideOf(variable, 0);
    variable.dims[0] = (end + stride - 1) / stride;
  }
  return {};
}

Status ResolveInitializer(const Parsing& parsing, Initializer& value) {
  for (Initializer& part : value.parts) TRY(ResolveInitializer(parsing, part));
  if (value.kind != Initializer::Kind::kAddress) return {};
  const Token& name = parsing.addresses[value.id];
  auto meaning = parsing.names.FindGlobal(name.text);
  if (!meaning) return Cursor::Unexpected(name, "a variable or a function of the module");
  value.symbol = meaning->symbol;
  value.id = meaning->id;
  return {};
}

}  // namespace cuplex::ptx
