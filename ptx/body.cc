#include "ptx/body.h"

#include <array>

namespace cuplex::ptx {
namespace {

constexpr uint32_t kDeepestScope = 64;

// .loc 1 24 9, function_name $L__info_string0, inlined_at 1 40 3
Status SkipLoc(Cursor& cursor) {
  while (cursor.token().kind == TokenKind::kInteger) cursor.Take();
  while (cursor.token().IsSign(",")) {
    cursor.Take();
    TRY(cursor.ExpectWord("`function_name` or `inlined_at`"));
    if (cursor.token().kind == TokenKind::kWord) cursor.Take();
    if (cursor.TakeSign("+") && cursor.token().kind != TokenKind::kInteger) {
      return cursor.Unexpected("an integer");
    }
    while (cursor.token().kind == TokenKind::kInteger) cursor.Take();
  }
  return {};
}

// .file 1 "x.cu", 1700000000, 1234
Status SkipFile(Cursor& cursor) {
  while (cursor.token().kind == TokenKind::kInteger || cursor.token().kind == TokenKind::kString)
    cursor.Take();
  while (cursor.TakeSign(",")) {
    if (cursor.token().kind != TokenKind::kInteger) return cursor.Unexpected("an integer");
    cursor.Take();
  }
  return {};
}

// .section .debug_str { ... }
Status SkipSection(Cursor& cursor) {
  TRY(cursor.ExpectDotWord("the name of a section"));
  TRY(cursor.ExpectSign("{"));
  while (!cursor.TakeSign("}")) {
    TokenKind kind = cursor.token().kind;
    if (kind == TokenKind::kEnd || kind == TokenKind::kError) return cursor.Unexpected("`}`");
    cursor.Take();
  }
  return {};
}

}  // namespace

Result<bool> SkipDebug(Cursor& cursor) {
  if (cursor.TakeDotWord("loc")) {
    TRY(SkipLoc(cursor));
  } else if (cursor.TakeDotWord("file")) {
    TRY(SkipFile(cursor));
  } else if (cursor.TakeDotWord("section")) {
    TRY(SkipSection(cursor));
  } else {
    return false;
  }
  return true;
}

Status BodyParser::Parse() {
  for (;;) {
    if (cursor_.TakeSign("}")) {
      if (!parsing_.names.CloseScope()) {
        TRY(ResolvePending());
        return PlaceSums();
      }
      function_.statements.push_back({StatementKind::kClose, 0});
      continue;
    }
    TRY(Statement());
  }
}

Status BodyParser::Statement() {
  const Token& token = cursor_.token();
  if (token.kind == TokenKind::kDotWord) return Declaration();
  if (token.kind == TokenKind::kWord && cursor_.next().IsSign(":")) return LabelOrNamed();
  if (token.kind == TokenKind::kWord || token.IsSign("@")) return ParseInstruction();
  if (token.IsSign("{")) {
    if (parsing_.names.depth() == kDeepestScope) {
      return cursor_.Unexpected(fmt::format("at most {} nested scopes", kDeepestScope));
    }
    cursor_.Take();
    parsing_.names.OpenScope();
    function_.statements.push_back({StatementKind::kOpen, 0});
    return {};
  }
  if (cursor_.TakeSign(";")) return {};
  return cursor_.Unexpected("an instruction, a declaration, a label or `}`");
}

Status BodyParser::Declaration() {
  if (cursor_.TakeDotWord("reg")) return ParseRegisters(parsing_, function_);
  TRY(bool debug, SkipDebug(cursor_));
  if (debug) return {};
  if (SpaceAtHand(cursor_) != Space::kNone) return LocalVariables();
  if (cursor_.token().IsDotWord("pragma")) {
    TRY(Directive pragma, ParseDirective(cursor_));
    function_.statements.push_back(
        {StatementKind::kPragma, static_cast<uint32_t>(function_.body_directives.size())});
    function_.body_directives.push_back(std::move(pragma));
    return {};
  }
  return cursor_.Unexpected("a declaration");
}

Status BodyParser::Declare(const Token& name, Meaning meaning) {
  if (parsing_.names.DeclareLocal(name.text, meaning)) return {};
  return Cursor::Unexpected(name, "a name that this scope does not have yet");
}

Status BodyParser::LocalVariables() {
  std::string_view name;
  TRY(Variable variable, ParseVariable(cursor_, false, &name));
  for (;;) {
    Token at;
    at.kind = TokenKind::kWord;
    at.text = name;
    at.place = variable.place;
    auto index = static_cast<uint32_t>(function_.variables.size());
    TRY(Declare(at, {false, SymbolKind::kLocalVariable, index}));
    TRY(ParseInitializer(parsing_, variable));
    function_.statements.push_back({StatementKind::kVariable, index});
    function_.variables.push_back(variable);
    if (!cursor_.TakeSign(",")) break;
    TRY(variable, ParseNextVariable(cursor_, function_.variables.back(), &name));
  }
  return cursor_.ExpectSign(";");
}

Status BodyParser::LabelOrNamed() {
  Token name = cursor_.Take();
  cursor_.Take();  // ':'
  if (cursor_.TakeDotWord("callprototype")) {
    auto index = static_cast<uint32_t>(function_.prototypes.size());
    TRY(Declare(name, {false, SymbolKind::kPrototype, index}));
    TRY(Prototype prototype, ParsePrototype(cursor_, name.text));
    function_.prototypes.push_back(std::move(prototype));
    function_.statements.push_back({StatementKind::kPrototype, index});
    return {};
  }
  if (cursor_.TakeDotWord("branchtargets")) return TargetTable(name, false);
  if (cursor_.TakeDotWord("calltargets")) return TargetTable(name, true);
  auto index = static_cast<uint32_t>(function_.labels.size());
  TRY(Declare(name, {false, SymbolKind::kLabel, index}));
  function_.labels.push_back({std::string(name.text), static_cast<uint32_t>(function_.statements.size())});
  function_.statements.push_back({StatementKind::kLabel, index});
  return {};
}

Status BodyParser::TargetTable(const Token& name, bool calls) {
  auto index = static_cast<uint32_t>(function_.tables.size());
  TRY(Declare(name, {false, SymbolKind::kTable, index}));
  Table table;
  table.name = name.text;
  table.calls = calls;
  do {
    if (cursor_.token().kind != TokenKind::kWord) {
      return cursor_.Unexpected(calls ? "the name of a function" : "a label");
    }
    Pending pending;
    pending.name = cursor_.Take();
    pending.scope = parsing_.names.scope();
    pending.table = index;
    pending.target = static_cast<uint32_t>(table.targets.size());
    pending_.push_back(pending);
    table.targets.push_back(kNoIndex);
  } while (cursor_.TakeSign(","));
  TRY(cursor_.ExpectSign(";"));
  function_.tables.push_back(std::move(table));
  function_.statements.push_back({StatementKind::kTable, index});
  return {};
}

Status BodyParser::ResolvePending() {
  for (const Pending& pending : pending_) {
    auto meaning = parsing_.names.FindFrom(pending.scope, pending.name.text);
    if (pending.table != kNoIndex) {
      Table& table = function_.tables[pending.table];
      SymbolKind wanted = table.calls ? SymbolKind::kFunction : SymbolKind::kLabel;
      if (!meaning || meaning->is_register || meaning->symbol != wanted) {
        return Cursor::Unexpected(pending.name, table.calls ? "a declared function" : "a label in scope");
      }
      table.targets[pending.target] = meaning->id;
      continue;
    }
    if (!meaning || meaning->is_register) {
      return Cursor::Unexpected(pending.name, "a label, a function or a prototype in scope");
    }
    Operand& operand = function_.instructions[pending.instruction].operands[pending.operand];
    operand.symbol = meaning->symbol;
    operand.id = meaning->id;
  }
  return {};
}

// Nothing past the parser knows an operand that computes: each sum becomes an `add` to a register of its own.
Status BodyParser::PlaceSums() {
  if (sums_.empty()) return {};
  std::vector<cuplex::ptx::Statement> statements;
  statements.reserve(function_.statements.size() + sums_.size());
  size_t sum = 0, label = 0;
  std::array<uint32_t, 3> next{};  // registers of 16, 32 and 64 bits
  auto slot = [](uint32_t bits) { return bits == 16 ? 0 : bits == 32 ? 1 : 2; };
  for (const Sum& s : sums_) ++next[slot(s.bits)];
  std::array<Type, 3> types = {Type::kU16, Type::kU32, Type::kU64};
  std::array<Mod, 3> mods = {Mod::kTypeU16, Mod::kTypeU32, Mod::kTypeU64};
  for (uint32_t at = 0; at < function_.statements.size(); ++at) {
    for (; sum < sums_.size() && sums_[sum].statement == at; ++sum) {
      statements.push_back(
          {StatementKind::kInstruction, static_cast<uint32_t>(function_.instructions.size() + sum)});
    }
    while (label < function_.labels.size() && function_.labels[label].statement == at) {
      function_.labels[label++].statement = static_cast<uint32_t>(statements.size());
    }
    statements.push_back(function_.statements[at]);
  }
  function_.statements = std::move(statements);
  for (size_t width = 0; width < next.size(); ++width) {
    if (!next[width]) continue;
    next[width] = parsing_.module.AddRegisters(function_, types[width], next[width]);
    for (Label& moved : function_.labels) ++moved.statement;  // past the declaration
  }
  for (const Sum& s : sums_) {
    Operand& operand = function_.instructions[s.instruction].operands[s.operand];
    Instruction add;
    add.opcode = Opcode::kAdd;
    add.mods = {mods[slot(s.bits)]};
    add.place = s.place;
    Operand result = Operand::Register(next[slot(s.bits)]++);
    add.operands = {result, operand, Operand::Integer(static_cast<int64_t>(s.constant))};
    operand = result;
    function_.instructions.push_back(std::move(add));
  }
  return {};
}

}  // namespace cuplex::ptx
