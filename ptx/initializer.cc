#include "ptx/initializer.h"

#include <algorithm>

#include "ptx/constant.h"
#include "ptx/declaration.h"

namespace cuplex::ptx {
namespace {

constexpr unsigned kDeepest = 18;  // one more than a variable can have dimensions and vector components
constexpr uint64_t kOpenExtent = 1ull << 40;

using Set = std::function<void(uint64_t, const Initializer&)>;

size_t LevelsOf(const Variable& variable) { return variable.dims.size() + (variable.vector > 1 ? 1 : 0); }

// How many parts a list of that level may have: a dimension, or vector components at the last level.
uint64_t ExtentOf(const Variable& variable, size_t level) {
  if (level >= variable.dims.size()) return variable.vector;
  return variable.dims[level] ? variable.dims[level] : kOpenExtent;
}

// Scalars in one part of a list of that level.
uint64_t StrideOf(const Variable& variable, size_t level) {
  uint64_t stride = 1;
  for (size_t at = level + 1; at < LevelsOf(variable); ++at) stride *= ExtentOf(variable, at);
  return stride;
}

Status Visit(const Variable& variable, const Initializer& value, size_t level, uint64_t base,
             const Set& set) {
  bool list = value.kind == Initializer::Kind::kList;
  if (list != (level < LevelsOf(variable)) || (list && value.parts.size() > ExtentOf(variable, level))) {
    return Cursor::Wrong(variable.place,
                         fmt::format("the initialiser of {} has other braces, or more values, than "
                                     "the variable has dimensions and elements",
                                     variable.name));
  }
  if (!list) {
    set(base, value);
    return {};
  }
  uint64_t stride = StrideOf(variable, level);
  for (size_t at = 0; at < value.parts.size(); ++at) {
    TRY(Visit(variable, value.parts[at], level + 1, base + at * stride, set));
  }
  return {};
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
    if (cursor.TakeSign("}")) return value;
    do {
      TRY(Initializer part, ParseValue(parsing, variable, depth + 1));
      value.parts.push_back(std::move(part));
    } while (cursor.TakeSign(","));
    TRY(cursor.ExpectSign("}"));
    return value;
  }
  bool handle =
      variable.type == Type::kTexref || variable.type == Type::kSamplerref || variable.type == Type::kSurfref;
  if (handle && cursor.token().kind == TokenKind::kWord) {
    value.kind = Initializer::Kind::kField;
    std::string field(cursor.Take().text);
    TRY(cursor.ExpectSign("="));
    if (cursor.token().kind != TokenKind::kWord && cursor.token().kind != TokenKind::kInteger) {
      return cursor.Unexpected("the value of a field");
    }
    value.id = static_cast<uint32_t>(parsing.module.words.size());
    parsing.module.words.push_back(fmt::format("{} = {}", field, cursor.Take().text));
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
  return Visit(variable, *variable.initializer, 0, 0, set);
}

Status ParseInitializer(Parsing& parsing, Variable& variable) {
  if (!parsing.cursor.TakeSign("=")) return {};
  TRY(variable.initializer, ParseValue(parsing, variable, 0));
  TRY(ForEachElement(variable, [](uint64_t, const Initializer&) {}));
  if (variable.IsUnsizedArray()) variable.dims[0] = variable.initializer->parts.size();
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
