// The part of BodyParser that reads instructions and their operands.

#include "ptx/body.h"
#include "ptx/constant.h"

namespace cuplex::ptx {
namespace {

constexpr unsigned kDeepestOperand = 8;

OperandKind KindOf(Constant::Kind kind) {
  switch (kind) {
    case Constant::Kind::kFloat32:
      return OperandKind::kFloat32;
    case Constant::Kind::kFloat64:
      return OperandKind::kFloat64;
    default:
      return OperandKind::kInteger;
  }
}

bool HoldsInteger(Type type) {
  switch (type) {
    case Type::kB16:
    case Type::kU16:
    case Type::kS16:
    case Type::kB32:
    case Type::kU32:
    case Type::kS32:
    case Type::kB64:
    case Type::kU64:
    case Type::kS64:
      return true;
    default:
      return false;
  }
}

}  // namespace

Status BodyParser::ParseInstruction() {
  Instruction instruction;
  TRY(Guarded(instruction));
  instruction.place = cursor_.token().place;
  Token opcode = cursor_.token();
  TRY(cursor_.ExpectWord("an opcode"));
  if (auto known = FindOpcode(opcode.text)) {
    instruction.opcode = *known;
  } else {
    TRY(uint32_t word, parsing_.Intern(opcode));
    instruction.opcode = static_cast<Opcode>(static_cast<uint32_t>(Opcode::kFirstUnknown) + word);
  }
  TRY(Modifiers(instruction));
  if (instruction.opcode == Opcode::kCall) {
    TRY(CallOperands(instruction));
  } else if (!cursor_.token().IsSign(";")) {
    do {
      if (TakePending(instruction)) continue;
      TRY(Operand operand, ParseOperand(0));
      instruction.operands.push_back(std::move(operand));
      if (cursor_.token().IsSign("+")) {
        TRY(TakeSum(instruction));
      }
    } while (cursor_.TakeSign(","));
  }
  TRY(cursor_.ExpectSign(";"));
  function_.statements.push_back(
      {StatementKind::kInstruction, static_cast<uint32_t>(function_.instructions.size())});
  function_.instructions.push_back(std::move(instruction));
  return {};
}

Status BodyParser::Guarded(Instruction& instruction) {
  if (!cursor_.TakeSign("@")) return {};
  instruction.guard.negated = cursor_.TakeSign("!");
  Token name = cursor_.token();
  TRY(cursor_.ExpectWord("a predicate register"));
  auto meaning = parsing_.names.Find(name.text);
  if (!meaning || !meaning->is_register || function_.TypeOfRegister(meaning->id) != Type::kPred) {
    return Cursor::Unexpected(name, "a declared predicate register");
  }
  instruction.guard.reg = meaning->id;
  return {};
}

Result<Mod> BodyParser::TakeMod() {
  Token token = cursor_.Take();
  if (auto known = FindMod(token.text)) return *known;
  TRY(uint32_t word, parsing_.Intern(token));
  return static_cast<Mod>(static_cast<uint32_t>(Mod::kFirstUnknown) + word);
}

Status BodyParser::Modifiers(Instruction& instruction) {
  while (cursor_.token().kind == TokenKind::kDotWord) {
    TRY(Mod mod, TakeMod());
    instruction.mods.push_back(mod);
  }
  return {};
}

// Where a branch, or a call, has an operand that is a name not declared yet, takes it and notes it for
// ResolvePending.
bool BodyParser::TakePending(Instruction& instruction) {
  if (instruction.opcode != Opcode::kBra && instruction.opcode != Opcode::kBrx &&
      instruction.opcode != Opcode::kCall) {
    return false;
  }
  const Token& token = cursor_.token();
  if (token.kind != TokenKind::kWord || token.text == "_") return false;
  if (auto meaning = parsing_.names.Find(token.text)) {
    // A label of an outer scope may yet be hidden by one of this scope.
    if (meaning->is_register || meaning->symbol != SymbolKind::kLabel) return false;
  }
  Pending pending;
  pending.name = cursor_.Take();
  pending.scope = parsing_.names.scope();
  pending.instruction = static_cast<uint32_t>(function_.instructions.size());
  pending.operand = static_cast<uint32_t>(instruction.operands.size());
  pending_.push_back(pending);
  Operand operand;
  operand.kind = OperandKind::kSymbol;
  instruction.operands.push_back(operand);
  return true;
}

// Notes `+ constant` after the last operand for PlaceSums, where that is a source in a register of integers.
Status BodyParser::TakeSum(Instruction& instruction) {
  const Operand& operand = instruction.operands.back();
  Token sign = cursor_.token();
  if (!operand.IsRegister() || operand.negated || operand.component != Mod::kNone ||
      instruction.operands.size() == 1) {
    return cursor_.Unexpected("`;`");
  }
  const RegisterRange& range = function_.RangeOf(operand.id);
  Sum sum;
  sum.bits = BitsOf(range.type);
  if (!HoldsInteger(range.type) || range.vector != 1) {
    return Cursor::Unexpected(sign, "`+` after a register of 16, 32 or 64 bits, not of floats");
  }
  sum.statement = static_cast<uint32_t>(function_.statements.size());
  sum.instruction = static_cast<uint32_t>(function_.instructions.size());
  sum.operand = static_cast<uint32_t>(instruction.operands.size() - 1);
  sum.place = instruction.place;
  TRY(sum.constant, ParseOffset(cursor_));
  if (function_.register_count + sums_.size() >= kMostRegisters) {
    return Cursor::Unexpected(sign, fmt::format("at most {} registers in a function", kMostRegisters));
  }
  sums_.push_back(sum);
  return {};
}

Status BodyParser::CallOperands(Instruction& instruction) {
  auto list = [&]() -> Status {
    Operand operand;
    operand.kind = OperandKind::kList;
    cursor_.Take();
    TRY(operand.parts, Sequence(")", 1));
    instruction.operands.push_back(std::move(operand));
    return {};
  };
  if (cursor_.token().IsSign("(")) {
    TRY(list());
    TRY(cursor_.ExpectSign(","));
  }
  if (!TakePending(instruction)) {
    if (cursor_.token().kind != TokenKind::kWord) return cursor_.Unexpected("a function or a register");
    TRY(Operand callee, Named(false));
    instruction.operands.push_back(std::move(callee));
  }
  while (cursor_.TakeSign(",")) {
    if (cursor_.token().IsSign("(")) {
      TRY(list());
    } else if (!TakePending(instruction)) {
      TRY(Operand prototype, Named(false));
      instruction.operands.push_back(std::move(prototype));
    }
  }
  return {};
}

Result<std::vector<Operand>> BodyParser::Sequence(std::string_view close, unsigned depth) {
  std::vector<Operand> operands;
  if (cursor_.TakeSign(close)) return operands;
  do {
    TRY(Operand operand, ParseOperand(depth));
    operands.push_back(std::move(operand));
  } while (cursor_.TakeSign(","));
  TRY(cursor_.ExpectSign(close));
  return operands;
}

Result<Operand> BodyParser::ParseOperand(unsigned depth) {
  if (depth == kDeepestOperand) return cursor_.Unexpected("an operand that is nested less deeply");
  TRY(Operand first, Primary(depth));
  if (!cursor_.TakeSign("|")) return first;
  TRY(Operand second, Primary(depth));
  Operand pair;
  pair.kind = OperandKind::kPair;
  pair.parts.push_back(std::move(first));
  pair.parts.push_back(std::move(second));
  return pair;
}

Result<Operand> BodyParser::Primary(unsigned depth) {
  Operand operand;
  if (AtConstant(cursor_)) {
    TRY(Constant constant, ParseConstant(cursor_));
    operand.kind = KindOf(constant.kind);
    operand.bits = constant.bits;
    return operand;
  }
  if (cursor_.token().IsSign("!")) {
    Token sign = cursor_.Take();
    if (AtConstant(cursor_)) {
      TRY(Constant constant, ParseConstantTerm(cursor_));
      operand.kind = OperandKind::kInteger;
      operand.bits = constant.bits == 0;
      return operand;
    }
    TRY(operand, Named(false));
    if (operand.kind != OperandKind::kRegister)
      return Cursor::Unexpected(sign, "`!` before a predicate alone");
    operand.negated = true;
    return operand;
  }
  if (cursor_.token().IsSign("[")) return Bracketed(depth);
  if (cursor_.TakeSign("{")) {
    operand.kind = OperandKind::kVector;
    TRY(operand.parts, Sequence("}", depth + 1));
    return operand;
  }
  return Named(false);
}

Result<Operand> BodyParser::Named(bool in_brackets) {
  Operand operand;
  Token name = cursor_.token();
  TRY(cursor_.ExpectWord("an operand"));
  if (name.text == "_") return operand;  // a sink
  auto meaning = parsing_.names.Find(name.text);
  if (meaning && !meaning->is_register) {
    operand.kind = OperandKind::kSymbol;
    operand.symbol = meaning->symbol;
    operand.id = meaning->id;
    if (!in_brackets) {
      TRY(operand.bits, ParseOffset(cursor_));
    }
    return operand;
  }
  if (meaning) {
    operand.kind = OperandKind::kRegister;
    operand.id = meaning->id;
  } else if (auto special = name.text[0] == '%' ? FindSpecial(name.text.substr(1)) : std::nullopt) {
    operand.kind = OperandKind::kSpecial;
    operand.id = static_cast<uint32_t>(*special);
  } else {
    return Cursor::Unexpected(name, "a declared register, variable, function or label");
  }
  if (cursor_.token().kind == TokenKind::kDotWord) {
    TRY(operand.component, TakeMod());
  }
  return operand;
}

Result<Operand> BodyParser::Bracketed(unsigned depth) {
  cursor_.Take();  // '['
  Operand address;
  address.kind = OperandKind::kAddress;
  Token at = cursor_.token();
  if (at.kind == TokenKind::kWord && !AtConstant(cursor_)) {
    TRY(Operand base, Named(true));
    if (base.kind != OperandKind::kRegister && base.kind != OperandKind::kSymbol) {
      return Cursor::Unexpected(at, "a register, a variable or an integer");
    }
    address.base = base.kind == OperandKind::kRegister ? BaseKind::kRegister : BaseKind::kSymbol;
    address.symbol = base.symbol;
    address.id = base.id;
    TRY(address.bits, ParseOffset(cursor_));
  } else {
    TRY(Constant constant, ParseConstant(cursor_));
    if (constant.kind != Constant::Kind::kInteger) return Cursor::Unexpected(at, "an integer address");
    address.bits = constant.bits;
  }
  if (cursor_.TakeSign(",")) {
    Operand texture;
    texture.kind = OperandKind::kTexture;
    texture.parts.push_back(std::move(address));
    TRY(std::vector<Operand> rest, Sequence("]", depth + 1));
    for (Operand& part : rest) texture.parts.push_back(std::move(part));
    return texture;
  }
  TRY(cursor_.ExpectSign("]"));
  if (cursor_.token().kind == TokenKind::kDotWord) {  // [a].unified
    TRY(address.component, TakeMod());
  }
  return address;
}

}  // namespace cuplex::ptx
