#include "ptx/declaration.h"

#include <algorithm>
#include <bit>

#include "ptx/constant.h"

namespace cuplex::ptx {
namespace {

constexpr uint64_t kMostBytes = 1ull << 40;
constexpr uint64_t kMostAlign = 1ull << 20;
constexpr uint32_t kMostWords = 4096;
constexpr size_t kMostDimensions = 16;
constexpr size_t kMostAttributes = 8;  // they are copied to each variable of a list
constexpr size_t kLongestAttribute = 128;

// Names and `x[2][3]` of a variable whose attributes are already there.
Status ParseName(Cursor& cursor, Variable& variable, bool nameless, std::string_view* view = nullptr) {
  variable.place = cursor.token().place;
  if (!nameless || cursor.token().kind == TokenKind::kWord) {
    TRY(std::string_view name, cursor.ExpectWord("the name of a variable"));
    variable.name = name;
    if (view) *view = name;
  }
  uint64_t elements = 1;
  while (cursor.TakeSign("[")) {
    Token token = cursor.token();
    uint64_t dim = 0;
    if (!token.IsSign("]")) {
      TRY(dim, ParseCount(cursor, kMostBytes, "an array size"));
      if (dim == 0) return Cursor::Unexpected(token, "an array size above zero");
    } else if (!variable.dims.empty()) {
      return Cursor::Unexpected(token, "a size, since only the first dimension may be open");
    }
    TRY(cursor.ExpectSign("]"));
    if (variable.dims.size() == kMostDimensions) {
      return Cursor::Unexpected(token, fmt::format("at most {} dimensions", kMostDimensions));
    }
    variable.dims.push_back(dim);
    if (dim > 0 && __builtin_mul_overflow(elements, dim, &elements)) elements = kMostBytes + 1;
    if (elements > kMostBytes / std::max<uint64_t>(1, variable.ElementBytes())) {
      return Cursor::Unexpected(token, fmt::format("a variable of at most {} bytes", kMostBytes));
    }
  }
  return {};
}

Status ParsePointer(Cursor& cursor, Variable& variable) {
  variable.pointer = true;
  Space space = SpaceAtHand(cursor);
  if (space != Space::kNone) {
    variable.pointee = space;
    cursor.Take();
  }
  if (cursor.TakeDotWord("align")) {
    Token token = cursor.token();
    TRY(uint64_t align, ParseCount(cursor, kMostAlign, "an alignment"));
    if (!std::has_single_bit(align)) return Cursor::Unexpected(token, "an alignment that is a power of two");
    variable.pointee_align = static_cast<uint32_t>(align);
  }
  return {};
}

}  // namespace

Result<uint32_t> Parsing::Intern(const Token& token) {
  auto [at, added] = words.emplace(token.text, static_cast<uint32_t>(module.words.size()));
  if (!added) return at->second;
  if (module.words.size() == kMostWords) {
    return Cursor::Unexpected(token, fmt::format("at most {} unknown words in a module", kMostWords));
  }
  module.words.emplace_back(token.text);
  return at->second;
}

Linkage ParseLinkage(Cursor& cursor) {
  if (cursor.TakeDotWord("visible")) return Linkage::kVisible;
  if (cursor.TakeDotWord("extern")) return Linkage::kExtern;
  if (cursor.TakeDotWord("weak")) return Linkage::kWeak;
  if (cursor.TakeDotWord("common")) return Linkage::kCommon;
  return Linkage::kNone;
}

Space SpaceAtHand(const Cursor& cursor) {
  if (cursor.token().kind != TokenKind::kDotWord) return Space::kNone;
  auto mod = FindMod(cursor.token().text);
  return mod ? SpaceOf(*mod) : Space::kNone;
}

Result<Directive> ParseDirective(Cursor& cursor) {
  Directive directive;
  TRY(directive.name, cursor.ExpectDotWord("a directive"));
  if (cursor.token().kind == TokenKind::kString) {
    do {
      if (cursor.token().kind != TokenKind::kString) return cursor.Unexpected("a string");
      directive.strings.emplace_back(cursor.Take().text);
    } while (cursor.TakeSign(","));
    if (directive.name == "pragma") TRY(cursor.ExpectSign(";"));
  } else if (AtConstant(cursor)) {
    do {
      TRY(uint64_t value, ParseCount(cursor, UINT32_MAX, "a number"));
      directive.values.push_back(value);
    } while (cursor.TakeSign(","));
  }
  return directive;
}

Result<std::vector<std::string>> ParseAttributes(Cursor& cursor) {
  std::vector<std::string> attributes;
  TRY(cursor.ExpectSign("("));
  do {
    TRY(std::string_view name, cursor.ExpectDotWord("an attribute"));
    std::string text(name);
    if (cursor.TakeSign("(")) {
      char before = '(';
      do {
        TRY(uint64_t value, ParseCount(cursor, UINT64_MAX, "a number"));
        text += before + std::to_string(value);
        before = ',';
      } while (cursor.TakeSign(","));
      TRY(cursor.ExpectSign(")"));
      text += ')';
    }
    if (attributes.size() == kMostAttributes || text.size() > kLongestAttribute) {
      return cursor.Unexpected(
          fmt::format("at most {} attributes of at most {} bytes", kMostAttributes, kLongestAttribute));
    }
    attributes.push_back(std::move(text));
  } while (cursor.TakeSign(","));
  TRY(cursor.ExpectSign(")"));
  return attributes;
}

Result<Variable> ParseVariable(Cursor& cursor, bool nameless, std::string_view* view) {
  Variable variable;
  variable.space = SpaceAtHand(cursor);
  if (variable.space == Space::kNone) return cursor.Unexpected("a state space");
  cursor.Take();
  if (variable.space == Space::kConst && cursor.TakeSign("[")) {
    TRY(uint64_t bank, ParseCount(cursor, 10, "a constant bank"));
    variable.bank = static_cast<uint32_t>(bank);
    TRY(cursor.ExpectSign("]"));
  }
  while (cursor.token().kind == TokenKind::kDotWord) {
    Token token = cursor.Take();
    auto mod = FindMod(token.text);
    if (token.text == "align") {
      Token at = cursor.token();
      TRY(uint64_t align, ParseCount(cursor, kMostAlign, "an alignment"));
      if (!std::has_single_bit(align)) return Cursor::Unexpected(at, "an alignment that is a power of two");
      variable.align = static_cast<uint32_t>(align);
    } else if (token.text == "attribute") {
      TRY(variable.attributes, ParseAttributes(cursor));
    } else if (token.text == "ptr" && variable.space == Space::kParam) {
      TRY(ParsePointer(cursor, variable));
    } else if (mod == Mod::kV2 || mod == Mod::kV4 || mod == Mod::kV8) {
      variable.vector = mod == Mod::kV2 ? 2 : mod == Mod::kV4 ? 4 : 8;
    } else if (mod && TypeOf(*mod) != Type::kNone) {
      variable.type = TypeOf(*mod);
    } else {
      return Cursor::Unexpected(token, "a type, an alignment or an attribute");
    }
  }
  if (variable.type == Type::kNone) return cursor.Unexpected("a type");
  bool sized = BitsOf(variable.type) >= 8 || variable.space == Space::kReg;
  if (!sized)
    return cursor.Unexpected(fmt::format("a type that memory can hold, not .{}", Text(variable.type)));
  TRY(ParseName(cursor, variable, nameless, view));
  return variable;
}

Result<Variable> ParseNextVariable(Cursor& cursor, const Variable& like, std::string_view* view) {
  Variable variable = like;
  variable.dims.clear();
  variable.initializer.reset();
  TRY(ParseName(cursor, variable, false, view));
  return variable;
}

Status ParseRegisters(Parsing& parsing, Function& function) {
  Cursor& cursor = parsing.cursor;
  RegisterRange range;
  while (cursor.token().kind == TokenKind::kDotWord) {
    Token token = cursor.Take();
    auto mod = FindMod(token.text);
    if (mod == Mod::kV2 || mod == Mod::kV4) {
      range.vector = mod == Mod::kV2 ? 2 : 4;
    } else if (mod && TypeOf(*mod) != Type::kNone) {
      range.type = TypeOf(*mod);
    } else if (token.text == "align") {
      TRY(ParseCount(cursor, kMostAlign, "an alignment"));  // of no meaning to a register
    } else {
      return Cursor::Unexpected(token, "the type of a register");
    }
  }
  if (range.type == Type::kNone) return cursor.Unexpected("the type of a register");
  do {
    Token name = cursor.token();
    TRY(range.name, cursor.ExpectWord("the name of a register"));
    range.first = function.register_count;
    range.count = 1;
    range.parametrised = cursor.TakeSign("<");
    if (range.parametrised) {
      Token count = cursor.token();
      if (count.kind != TokenKind::kInteger) return cursor.Unexpected("a number of registers");
      if (count.bits > kMostRegisters) {
        return cursor.Unexpected(fmt::format("at most {} registers", kMostRegisters));
      }
      cursor.Take();
      TRY(cursor.ExpectSign(">"));
      range.count = static_cast<uint32_t>(count.bits);
    }
    if (function.register_count + range.count > kMostRegisters) {
      return Cursor::Unexpected(name, fmt::format("at most {} registers in a function", kMostRegisters));
    }
    Meaning meaning{true, SymbolKind::kNone, range.first};
    bool fresh = range.parametrised ? parsing.names.DeclareRange(name.text, range.first, range.count)
                                    : parsing.names.DeclareLocal(name.text, meaning);
    if (!fresh) return Cursor::Unexpected(name, "a name that this scope does not have yet");
    function.register_count += range.count;
    function.statements.push_back(
        {StatementKind::kRegisters, static_cast<uint32_t>(function.registers.size())});
    function.registers.push_back(range);
  } while (cursor.TakeSign(","));
  return cursor.ExpectSign(";");
}

Result<std::vector<Parameter>> ParseParameters(Parsing& parsing, Function& function) {
  Cursor& cursor = parsing.cursor;
  std::vector<Parameter> parameters;
  TRY(cursor.ExpectSign("("));
  if (cursor.TakeSign(")")) return parameters;
  do {
    Token at = cursor.token();
    std::string_view name;
    TRY(Variable variable, ParseVariable(cursor, false, &name));
    Parameter parameter;
    parameter.in_register = variable.space == Space::kReg;
    Meaning meaning;
    if (parameter.in_register) {
      if (function.entry || !variable.dims.empty()) return Cursor::Unexpected(at, "a .param");
      parameter.id = function.register_count++;
      function.registers.push_back({variable.name, false, variable.type, variable.vector, parameter.id, 1});
      meaning = {true, SymbolKind::kNone, parameter.id};
    } else {
      if (variable.space != Space::kParam) return Cursor::Unexpected(at, "`.param` or `.reg`");
      parameter.id = static_cast<uint32_t>(function.variables.size());
      meaning = {false, SymbolKind::kLocalVariable, parameter.id};
      function.variables.push_back(variable);
    }
    parameters.push_back(parameter);
    if (!parsing.names.DeclareLocal(name, meaning) && name != "_") {
      return Cursor::Unexpected(at, fmt::format("a parameter not called {} like another", variable.name));
    }
  } while (cursor.TakeSign(","));
  TRY(cursor.ExpectSign(")"));
  return parameters;
}

Result<Prototype> ParsePrototype(Cursor& cursor, std::string_view name) {
  Prototype prototype;
  prototype.name = name;
  auto list = [&](std::vector<Variable>& to) -> Status {
    TRY(cursor.ExpectSign("("));
    if (cursor.TakeSign(")")) return {};
    do {
      TRY(Variable variable, ParseVariable(cursor, true));
      to.push_back(std::move(variable));
    } while (cursor.TakeSign(","));
    return cursor.ExpectSign(")");
  };
  if (cursor.token().IsSign("(")) TRY(list(prototype.returns));
  TRY(cursor.ExpectWord("`_`"));
  if (cursor.token().IsSign("(")) TRY(list(prototype.parameters));
  while (cursor.token().kind == TokenKind::kDotWord) {
    TRY(Directive directive, ParseDirective(cursor));
    prototype.directives.push_back(std::move(directive));
  }
  TRY(cursor.ExpectSign(";"));
  return prototype;
}

}  // namespace cuplex::ptx
