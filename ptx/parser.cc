#include "ptx/parser.h"

#include <utility>

#include "ptx/body.h"
#include "ptx/declaration.h"

namespace cuplex::ptx {
namespace {

class ModuleParser {
 public:
  explicit ModuleParser(std::string_view text) : parsing_(text, module_), cursor_(parsing_.cursor) {}

  Result<Module> Parse() {
    TRY(Header());
    while (cursor_.token().kind != TokenKind::kEnd) TRY(FileScope());
    TRY(Resolve());
    return std::move(module_);
  }

 private:
  Status Header();
  Status Version();
  Status Target();
  Status FileScope();
  Status ParseFunction(Linkage linkage, bool entry);
  Status Directives(Function& function);
  Result<uint32_t> Register(Function function, const Token& name);
  Status Variables(Linkage linkage);
  Status ParseAlias();
  Status Resolve();
  void Add(Item::Kind kind, size_t index) { module_.items.push_back({kind, static_cast<uint32_t>(index)}); }

  Module module_;
  Parsing parsing_;
  Cursor& cursor_;
};

Status ModuleParser::Header() {
  for (;;) {
    TRY(bool debug, SkipDebug(cursor_));
    if (!debug) break;
  }
  if (!cursor_.token().IsDotWord("version"))
    return cursor_.Unexpected("`.version`, which begins a PTX module");
  TRY(Version());
  if (!cursor_.token().IsDotWord("target")) return cursor_.Unexpected("`.target`");
  return Target();
}

// `.version 9.0`: the lexer sees a float, whose spelling has both numbers.
Status ModuleParser::Version() {
  cursor_.Take();
  Token token = cursor_.token();
  uint32_t numbers[2] = {0, 0};
  size_t at = 0;
  for (char c : token.text) {
    if (c == '.' && at == 0) {
      at = 1;
    } else if (c >= '0' && c <= '9' && numbers[at] < 1000) {
      numbers[at] = numbers[at] * 10 + static_cast<uint32_t>(c - '0');
    } else {
      at = 2;
      break;
    }
  }
  if (token.kind != TokenKind::kFloat64 || at != 1) return cursor_.Unexpected("a version such as 9.0");
  cursor_.Take();
  module_.version_major = numbers[0];
  module_.version_minor = numbers[1];
  return {};
}

Status ModuleParser::Target() {
  cursor_.Take();
  module_.target.clear();
  do {
    TRY(std::string_view word, cursor_.ExpectWord("a target such as sm_90"));
    if (word != "debug") module_.target.emplace_back(word);  // it promises debug data, which is skipped
  } while (cursor_.TakeSign(","));
  if (module_.target.empty()) return cursor_.Unexpected("a target such as sm_90 beside `debug`");
  return {};
}

Status ModuleParser::FileScope() {
  TRY(bool debug, SkipDebug(cursor_));
  if (debug || cursor_.TakeSign(";")) return {};
  const Token& token = cursor_.token();
  if (token.IsDotWord("version")) return Version();
  if (token.IsDotWord("target")) return Target();
  if (token.IsDotWord("address_size")) {
    cursor_.Take();
    if (cursor_.token().kind != TokenKind::kInteger || (token.bits != 32 && token.bits != 64)) {
      return cursor_.Unexpected("32 or 64");
    }
    module_.address_size = static_cast<uint32_t>(cursor_.Take().bits);
    return {};
  }
  if (token.IsDotWord("pragma")) {
    TRY(Directive pragma, ParseDirective(cursor_));
    Add(Item::Kind::kPragma, module_.pragmas.size());
    module_.pragmas.push_back(std::move(pragma));
    return {};
  }
  if (cursor_.TakeDotWord("alias")) return ParseAlias();
  Linkage linkage = ParseLinkage(cursor_);
  if (cursor_.TakeDotWord("entry")) return ParseFunction(linkage, true);
  if (cursor_.TakeDotWord("func")) return ParseFunction(linkage, false);
  if (SpaceAtHand(cursor_) != Space::kNone) return Variables(linkage);
  return cursor_.Unexpected("a variable, a function or another directive");
}

Status ModuleParser::Directives(Function& function) {
  while (cursor_.token().kind == TokenKind::kDotWord) {
    TRY(Directive directive, ParseDirective(cursor_));
    function.directives.push_back(std::move(directive));
  }
  return {};
}

Status ModuleParser::ParseFunction(Linkage linkage, bool entry) {
  Function function;
  function.entry = entry;
  function.linkage = linkage;
  parsing_.names.BeginFunction();
  if (cursor_.TakeDotWord("attribute")) {
    TRY(function.attributes, ParseAttributes(cursor_));
  }
  if (!entry && cursor_.token().IsSign("(")) {
    TRY(function.returns, ParseParameters(parsing_, function));
  }
  Token name = cursor_.token();
  TRY(function.name, cursor_.ExpectWord("the name of a function"));
  function.place = name.place;
  if (cursor_.token().IsSign("(")) {
    TRY(function.parameters, ParseParameters(parsing_, function));
  }
  TRY(Directives(function));
  function.has_body = cursor_.token().IsSign("{");
  bool declaration = !function.has_body;
  // The name comes first, so that the body can call itself.
  TRY(uint32_t index, Register(std::move(function), name));
  Add(declaration ? Item::Kind::kDeclaration : Item::Kind::kDefinition, index);
  if (declaration) return cursor_.ExpectSign(";");
  cursor_.Take();
  return BodyParser(parsing_, module_.functions[index]).Parse();
}

// A function may be declared often and defined once; all of these are one element of Module::functions.
Result<uint32_t> ModuleParser::Register(Function function, const Token& name) {
  auto index = static_cast<uint32_t>(module_.functions.size());
  Meaning meaning{false, SymbolKind::kFunction, index};
  if (parsing_.names.DeclareGlobal(name.text, meaning)) {
    module_.functions.push_back(std::move(function));
    return index;
  }
  Meaning earlier = *parsing_.names.FindGlobal(name.text);
  if (earlier.symbol != SymbolKind::kFunction) {
    return Cursor::Unexpected(name, "a name that the module does not have yet");
  }
  Function& known = module_.functions[earlier.id];
  if (known.has_body && function.has_body) {
    return Cursor::Unexpected(name, "a function that is not yet defined");
  }
  if (known.entry != function.entry) {
    return Cursor::Unexpected(name, fmt::format("{} as declared before", known.entry ? ".entry" : ".func"));
  }
  if (!known.has_body) known = std::move(function);
  return earlier.id;
}

Status ModuleParser::Variables(Linkage linkage) {
  std::string_view name;
  TRY(Variable variable, ParseVariable(cursor_, false, &name));
  if (variable.space == Space::kReg || variable.space == Space::kParam) {
    return Cursor::Wrong(variable.place,
                         fmt::format("found `.{}` at file scope, expected .global, .const, .shared "
                                     "or .local",
                                     Text(variable.space)));
  }
  variable.linkage = linkage;
  for (;;) {
    auto index = static_cast<uint32_t>(module_.variables.size());
    TRY(ParseInitializer(parsing_, variable));
    Place place = variable.place;
    if (parsing_.names.DeclareGlobal(name, {false, SymbolKind::kGlobalVariable, index})) {
      module_.variables.push_back(variable);
      Add(Item::Kind::kVariable, index);
    } else {
      // An .extern declaration may precede the definition, or repeat.
      Meaning earlier = *parsing_.names.FindGlobal(name);
      bool again = earlier.symbol == SymbolKind::kGlobalVariable &&
                   (linkage == Linkage::kExtern || module_.variables[earlier.id].linkage == Linkage::kExtern);
      if (!again) {
        return Cursor::Wrong(place, fmt::format("{} is declared twice in the module", variable.name));
      }
      if (linkage != Linkage::kExtern) module_.variables[earlier.id] = variable;
    }
    if (!cursor_.TakeSign(",")) break;
    Variable like = std::move(variable);
    TRY(variable, ParseNextVariable(cursor_, like, &name));
  }
  return cursor_.ExpectSign(";");
}

Status ModuleParser::ParseAlias() {
  Alias alias;
  for (uint32_t* to : {&alias.alias, &alias.aliasee}) {
    Token name = cursor_.token();
    TRY(cursor_.ExpectWord("the name of a function"));
    auto meaning = parsing_.names.FindGlobal(name.text);
    if (!meaning || meaning->symbol != SymbolKind::kFunction) {
      return Cursor::Unexpected(name, "a declared function");
    }
    *to = meaning->id;
    if (to == &alias.alias) {
      TRY(cursor_.ExpectSign(","));
    }
  }
  TRY(cursor_.ExpectSign(";"));
  Add(Item::Kind::kAlias, module_.aliases.size());
  module_.aliases.push_back(alias);
  return {};
}

Status ModuleParser::Resolve() {
  for (Variable& variable : module_.variables) {
    if (variable.initializer) {
      TRY(ResolveInitializer(parsing_, *variable.initializer));
    }
  }
  for (Function& function : module_.functions) {
    for (Variable& variable : function.variables) {
      if (variable.initializer) {
        TRY(ResolveInitializer(parsing_, *variable.initializer));
      }
    }
  }
  return {};
}

}  // namespace

Result<Module> Parse(std::string_view text) {
  constexpr size_t kLongest = 256u << 20;
  if (text.size() > kLongest) {
    return Fail(Blame::kCaller, "PTX of {} bytes, at most {} are read", text.size(), kLongest);
  }
  return ModuleParser(text).Parse();
}

}  // namespace cuplex::ptx
