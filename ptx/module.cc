#include "ptx/module.h"

#include <algorithm>

#include <fmt/format.h>

namespace cuplex::ptx {

Operand Operand::Register(uint32_t id) {
  Operand out;
  out.kind = OperandKind::kRegister;
  out.id = id;
  return out;
}

Operand Operand::Integer(int64_t value) {
  Operand out;
  out.kind = OperandKind::kInteger;
  out.bits = static_cast<uint64_t>(value);
  return out;
}

Operand Operand::SpecialRegister(Special special, Mod component) {
  Operand out;
  out.kind = OperandKind::kSpecial;
  out.id = static_cast<uint32_t>(special);
  out.component = component;
  return out;
}

Operand Operand::RegisterAddress(uint32_t id, int64_t offset) {
  Operand out;
  out.kind = OperandKind::kAddress;
  out.base = BaseKind::kRegister;
  out.id = id;
  out.bits = static_cast<uint64_t>(offset);
  return out;
}

Operand Operand::SymbolAddress(SymbolKind symbol, uint32_t id, int64_t offset) {
  Operand out;
  out.kind = OperandKind::kAddress;
  out.base = BaseKind::kSymbol;
  out.symbol = symbol;
  out.id = id;
  out.bits = static_cast<uint64_t>(offset);
  return out;
}

bool Instruction::Has(Mod mod) const { return std::find(mods.begin(), mods.end(), mod) != mods.end(); }

Type Instruction::TypeAt(size_t n) const {
  for (Mod mod : mods) {
    if (Type type = TypeOf(mod); type != Type::kNone && n-- == 0) return type;
  }
  return Type::kNone;
}

Space Instruction::SpaceAt(size_t n) const {
  for (Mod mod : mods) {
    if (Space space = SpaceOf(mod); space != Space::kNone && n-- == 0) return space;
  }
  return Space::kNone;
}

size_t Instruction::TypeCount() const {
  return std::count_if(mods.begin(), mods.end(), [](Mod mod) { return TypeOf(mod) != Type::kNone; });
}

unsigned Instruction::VectorWidth() const {
  for (Mod mod : mods) {
    if (mod == Mod::kV2) return 2;
    if (mod == Mod::kV4) return 4;
    if (mod == Mod::kV8) return 8;
  }
  return 1;
}

namespace {

template <typename Pick>
Mod FirstOf(const std::vector<Mod>& mods, Pick pick) {
  auto at = std::find_if(mods.begin(), mods.end(), pick);
  return at == mods.end() ? Mod::kNone : *at;
}

}  // namespace

Mod Instruction::Rounding() const {
  return FirstOf(mods, [](Mod mod) { return mod >= Mod::kRn && mod <= Mod::kRpi; });
}

Mod Instruction::Comparison() const {
  return FirstOf(mods, [](Mod mod) {
    return (mod >= Mod::kEq && mod <= Mod::kNanu) || mod == Mod::kLo || mod == Mod::kHi;
  });
}

Mod Instruction::Scope() const {
  return FirstOf(mods, [](Mod mod) { return mod >= Mod::kCta && mod <= Mod::kGl; });
}

Mod Instruction::Order() const {
  return FirstOf(mods, [](Mod mod) { return mod >= Mod::kWeak && mod <= Mod::kMmio; });
}

bool Instruction::operator==(const Instruction& other) const {
  return opcode == other.opcode && guard == other.guard && mods == other.mods && operands == other.operands;
}

CallShape ShapeOfCall(const Instruction& call) {
  CallShape shape;
  size_t at = 0;
  const auto& operands = call.operands;
  auto list = [&](const Operand*& to) {
    if (at < operands.size() && operands[at].kind == OperandKind::kList) to = &operands[at++];
  };
  list(shape.returns);
  if (at < operands.size()) shape.callee = &operands[at++];
  list(shape.arguments);
  if (at < operands.size()) shape.prototype = &operands[at];
  return shape;
}

uint64_t Variable::ElementBytes() const { return uint64_t{BitsOf(type)} / 8 * vector; }

uint64_t Variable::SizeBytes() const {
  uint64_t size = ElementBytes();
  for (uint64_t dim : dims) size *= dim;
  return size;
}

uint32_t Variable::Alignment() const {
  if (align) return align;
  return std::max<uint32_t>(1, static_cast<uint32_t>(ElementBytes()));
}

bool Variable::HasAttribute(std::string_view wanted) const {
  return std::find(attributes.begin(), attributes.end(), wanted) != attributes.end();
}

bool Variable::operator==(const Variable& o) const {
  return name == o.name && space == o.space && linkage == o.linkage && type == o.type && vector == o.vector &&
         bank == o.bank && align == o.align && dims == o.dims && pointer == o.pointer &&
         pointee == o.pointee && pointee_align == o.pointee_align && attributes == o.attributes &&
         initializer == o.initializer;
}

const RegisterRange& Function::RangeOf(uint32_t id) const {
  auto after = std::upper_bound(registers.begin(), registers.end(), id,
                                [](uint32_t wanted, const RegisterRange& r) { return wanted < r.first; });
  return *std::prev(after);
}

std::string Function::NameOfRegister(uint32_t id) const {
  const RegisterRange& range = RangeOf(id);
  return range.parametrised ? range.name + std::to_string(id - range.first) : range.name;
}

const Directive* Function::FindDirective(std::string_view wanted) const {
  for (const Directive& directive : directives) {
    if (directive.name == wanted) return &directive;
  }
  return nullptr;
}

bool Function::operator==(const Function& o) const {
  return name == o.name && entry == o.entry && has_body == o.has_body && linkage == o.linkage &&
         returns == o.returns && parameters == o.parameters && directives == o.directives &&
         attributes == o.attributes && register_count == o.register_count && registers == o.registers &&
         variables == o.variables && labels == o.labels && prototypes == o.prototypes && tables == o.tables &&
         body_directives == o.body_directives && instructions == o.instructions && statements == o.statements;
}

std::string_view Module::Text(Opcode opcode) const {
  auto at = static_cast<uint32_t>(opcode) - static_cast<uint32_t>(Opcode::kFirstUnknown);
  return at < words.size() ? std::string_view(words[at]) : ptx::Text(opcode);
}

std::string_view Module::Text(Mod mod) const {
  auto at = static_cast<uint32_t>(mod) - static_cast<uint32_t>(Mod::kFirstUnknown);
  return at < words.size() ? std::string_view(words[at]) : ptx::Text(mod);
}

std::string Module::Text(const Instruction& instruction) const {
  std::string out(Text(instruction.opcode));
  for (Mod mod : instruction.mods) {
    out += '.';
    out += Text(mod);
  }
  return out;
}

uint32_t Module::AddRegisters(Function& function, Type type, uint32_t count) {
  std::string prefix;
  auto in = [&](const auto& things) {
    return std::any_of(things.begin(), things.end(),
                       [&](const auto& thing) { return std::string_view(thing.name).starts_with(prefix); });
  };
  unsigned n = 0;
  do {
    prefix = fmt::format("%cx{}_", n++);
  } while (in(function.registers) || in(function.variables) || in(function.labels) ||
           in(function.prototypes) || in(function.tables) || in(variables) || in(functions));
  RegisterRange range;
  range.name = prefix;
  range.parametrised = true;
  range.type = type;
  range.first = function.register_count;
  range.count = count;
  function.statements.insert(function.statements.begin(),
                             {StatementKind::kRegisters, static_cast<uint32_t>(function.registers.size())});
  function.registers.push_back(range);
  function.register_count += count;
  return range.first;
}

const Function* Module::FindFunction(std::string_view name) const {
  for (const Function& function : functions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

const Variable* Module::FindVariable(std::string_view name) const {
  for (const Variable& variable : variables) {
    if (variable.name == name) return &variable;
  }
  return nullptr;
}

}  // namespace cuplex::ptx
