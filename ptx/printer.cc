#include "ptx/printer.h"

#include <fmt/format.h>

namespace cuplex::ptx {
namespace {

std::string_view TextOf(Linkage linkage) {
  switch (linkage) {
    case Linkage::kVisible:
      return ".visible ";
    case Linkage::kExtern:
      return ".extern ";
    case Linkage::kWeak:
      return ".weak ";
    case Linkage::kCommon:
      return ".common ";
    case Linkage::kNone:
      break;
  }
  return "";
}

class Printer {
 public:
  explicit Printer(const Module& module) : module_(module) {}

  std::string PrintHead() {
    Put(".version {}.{}\n.target ", module_.version_major, module_.version_minor);
    List(module_.target, [&](const std::string& word) { out_ += word; });
    Put("\n.address_size {}\n\n", module_.address_size);
    return std::move(out_);
  }

  std::string Print(const Function& function) {
    PrintHeader(function);
    if (function.has_body) {
      PrintBody(function);
    } else {
      out_ += ";\n";
    }
    return std::move(out_);
  }

  std::string Print(const Variable& variable) {
    PrintVariable(variable);
    out_ += ";\n";
    return std::move(out_);
  }

  std::string Print() {
    out_ = PrintHead();
    for (const Item& item : module_.items) PrintItem(item);
    return std::move(out_);
  }

 private:
  template <typename... A>
  void Put(fmt::format_string<A...> format, A&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<A>(arguments)...);
  }

  template <typename Things, typename Each>
  void List(const Things& things, Each each) {
    bool first = true;
    for (const auto& thing : things) {
      if (!first) out_ += ", ";
      first = false;
      each(thing);
    }
  }

  void PrintItem(const Item& item);
  void PrintDirective(const Directive& directive);
  void PrintAttributes(const std::vector<std::string>& attributes);
  void PrintVariable(const Variable& variable);
  void PrintInitializer(const Initializer& value);
  void PrintOffset(uint64_t bits);
  void PrintParameters(const std::vector<Parameter>& parameters);
  void PrintHeader(const Function& function);
  void PrintBody(const Function& function);
  void PrintStatement(const Statement& statement);
  void PrintRegisters(const RegisterRange& range);
  void PrintPrototype(const Prototype& prototype);
  void PrintTable(const Table& table);
  void PrintInstruction(const Instruction& instruction);
  void PrintOperand(const Operand& operand);
  void PrintAddress(const Operand& operand);
  void PrintComponent(Mod component);
  std::string_view NameOf(SymbolKind symbol, uint32_t id) const;
  void PrintRegister(uint32_t id);

  const Module& module_;
  const Function* function_ = nullptr;  // whose body is printed
  unsigned depth_ = 0;
  std::string out_;
};

void Printer::PrintItem(const Item& item) {
  switch (item.kind) {
    case Item::Kind::kVariable:
      PrintVariable(module_.variables[item.index]);
      out_ += ";\n";
      break;
    case Item::Kind::kDeclaration:
      PrintHeader(module_.functions[item.index]);
      out_ += ";\n";
      break;
    case Item::Kind::kDefinition:
      PrintHeader(module_.functions[item.index]);
      PrintBody(module_.functions[item.index]);
      break;
    case Item::Kind::kAlias:
      Put(".alias {}, {};\n", module_.functions[module_.aliases[item.index].alias].name,
          module_.functions[module_.aliases[item.index].aliasee].name);
      break;
    case Item::Kind::kPragma:
      PrintDirective(module_.pragmas[item.index]);
      out_ += '\n';
      break;
  }
}

void Printer::PrintDirective(const Directive& directive) {
  Put(".{} ", directive.name);
  List(directive.values, [&](uint64_t value) { Put("{}", value); });
  List(directive.strings, [&](const std::string& text) { Put("\"{}\"", text); });
  if (directive.name == "pragma") out_ += ';';
}

void Printer::PrintAttributes(const std::vector<std::string>& attributes) {
  if (attributes.empty()) return;
  out_ += ".attribute(";
  List(attributes, [&](const std::string& text) { Put(".{}", text); });
  out_ += ") ";
}

void Printer::PrintVariable(const Variable& variable) {
  Put("{}.{}", TextOf(variable.linkage), Text(variable.space));
  if (variable.bank != kNoIndex) Put("[{}]", variable.bank);
  out_ += ' ';
  PrintAttributes(variable.attributes);
  if (variable.align) Put(".align {} ", variable.align);
  if (variable.vector > 1) Put(".v{} ", variable.vector);
  Put(".{} ", Text(variable.type));
  if (variable.pointer) {
    out_ += ".ptr ";
    if (variable.pointee != Space::kNone) Put(".{} ", Text(variable.pointee));
    if (variable.pointee_align) Put(".align {} ", variable.pointee_align);
  }
  out_ += variable.name;
  for (uint64_t dim : variable.dims) {
    if (dim) {
      Put("[{}]", dim);
    } else {
      out_ += "[]";
    }
  }
  if (variable.initializer) {
    out_ += " = ";
    PrintInitializer(*variable.initializer);
  }
}

// The largest negative integer has no decimal spelling, as in C.
std::string TextOfInteger(uint64_t bits) {
  if (bits == 1ull << 63) return "0x8000000000000000";
  return fmt::format("{}", static_cast<int64_t>(bits));
}

// `x+-4`: ptxas knows no `x-4`.
void Printer::PrintOffset(uint64_t bits) {
  if (bits) Put("+{}", TextOfInteger(bits));
}

void Printer::PrintInitializer(const Initializer& value) {
  switch (value.kind) {
    case Initializer::Kind::kList:
      out_ += '{';
      List(value.parts, [&](const Initializer& part) { PrintInitializer(part); });
      out_ += '}';
      break;
    case Initializer::Kind::kInteger:
      out_ += TextOfInteger(value.bits);
      break;
    case Initializer::Kind::kFloat32:
      Put("0f{:08X}", value.bits);
      break;
    case Initializer::Kind::kFloat64:
      Put("0d{:016X}", value.bits);
      break;
    case Initializer::Kind::kField:
      out_ += module_.words[value.id];
      break;
    case Initializer::Kind::kAddress:
      if (value.mask) Put("0x{:X}(", value.mask);
      Put("{}{}{}", value.generic ? "generic(" : "", NameOf(value.symbol, value.id),
          value.generic ? ")" : "");
      PrintOffset(value.bits);
      if (value.mask) out_ += ')';
      break;
  }
}

void Printer::PrintParameters(const std::vector<Parameter>& parameters) {
  out_ += '(';
  List(parameters, [&](const Parameter& parameter) {
    if (parameter.in_register) {
      const RegisterRange& range = function_->RangeOf(parameter.id);
      out_ += ".reg ";
      if (range.vector > 1) Put(".v{} ", range.vector);
      Put(".{} {}", Text(range.type), range.name);
    } else {
      PrintVariable(function_->variables[parameter.id]);
    }
  });
  out_ += ')';
}

void Printer::PrintHeader(const Function& function) {
  function_ = &function;
  Put("{}{} ", TextOf(function.linkage), function.entry ? ".entry" : ".func");
  PrintAttributes(function.attributes);
  if (!function.returns.empty()) {
    PrintParameters(function.returns);
    out_ += ' ';
  }
  out_ += function.name;
  PrintParameters(function.parameters);
  for (const Directive& directive : function.directives) {
    out_ += '\n';
    PrintDirective(directive);
  }
}

void Printer::PrintBody(const Function& function) {
  function_ = &function;
  depth_ = 1;
  out_ += "\n{\n";
  for (const Statement& statement : function.statements) PrintStatement(statement);
  out_ += "}\n";
}

void Printer::PrintStatement(const Statement& statement) {
  uint32_t at = statement.index;
  if (statement.kind == StatementKind::kLabel) {
    Put("{}:\n", function_->labels[at].name);
    return;
  }
  if (statement.kind == StatementKind::kClose && depth_ > 1) --depth_;
  out_.append(depth_, '\t');
  switch (statement.kind) {
    case StatementKind::kInstruction:
      PrintInstruction(function_->instructions[at]);
      break;
    case StatementKind::kRegisters:
      PrintRegisters(function_->registers[at]);
      break;
    case StatementKind::kVariable:
      PrintVariable(function_->variables[at]);
      out_ += ';';
      break;
    case StatementKind::kPrototype:
      PrintPrototype(function_->prototypes[at]);
      break;
    case StatementKind::kTable:
      PrintTable(function_->tables[at]);
      break;
    case StatementKind::kPragma:
      PrintDirective(function_->body_directives[at]);
      break;
    case StatementKind::kOpen:
      out_ += '{';
      ++depth_;
      break;
    case StatementKind::kClose:
      out_ += '}';
      break;
    case StatementKind::kLabel:
      break;
  }
  out_ += '\n';
}

void Printer::PrintRegisters(const RegisterRange& range) {
  out_ += ".reg ";
  if (range.vector > 1) Put(".v{} ", range.vector);
  Put(".{} {}", Text(range.type), range.name);
  if (range.parametrised) Put("<{}>", range.count);
  out_ += ';';
}

void Printer::PrintPrototype(const Prototype& prototype) {
  Put("{}: .callprototype ", prototype.name);
  auto list = [&](const std::vector<Variable>& variables) {
    out_ += '(';
    List(variables, [&](const Variable& variable) { PrintVariable(variable); });
    out_ += ')';
  };
  list(prototype.returns);
  out_ += " _ ";
  list(prototype.parameters);
  for (const Directive& directive : prototype.directives) {
    out_ += ' ';
    PrintDirective(directive);
  }
  out_ += ';';
}

void Printer::PrintTable(const Table& table) {
  Put("{}: {} ", table.name, table.calls ? ".calltargets" : ".branchtargets");
  List(table.targets, [&](uint32_t target) {
    out_ += table.calls ? module_.functions[target].name : function_->labels[target].name;
  });
  out_ += ';';
}

void Printer::PrintInstruction(const Instruction& instruction) {
  if (instruction.guard) {
    out_ += instruction.guard.negated ? "@!" : "@";
    PrintRegister(instruction.guard.reg);
    out_ += ' ';
  }
  out_ += module_.Text(instruction.opcode);
  for (Mod mod : instruction.mods) Put(".{}", module_.Text(mod));
  if (!instruction.operands.empty()) {
    out_ += ' ';
    List(instruction.operands, [&](const Operand& operand) { PrintOperand(operand); });
  }
  out_ += ';';
}

void Printer::PrintComponent(Mod component) {
  if (component != Mod::kNone) Put(".{}", module_.Text(component));
}

void Printer::PrintRegister(uint32_t id) {
  const RegisterRange& range = function_->RangeOf(id);
  out_ += range.name;
  if (range.parametrised) Put("{}", id - range.first);
}

std::string_view Printer::NameOf(SymbolKind symbol, uint32_t id) const {
  switch (symbol) {
    case SymbolKind::kGlobalVariable:
      return module_.variables[id].name;
    case SymbolKind::kLocalVariable:
      return function_->variables[id].name;
    case SymbolKind::kFunction:
      return module_.functions[id].name;
    case SymbolKind::kLabel:
      return function_->labels[id].name;
    case SymbolKind::kPrototype:
      return function_->prototypes[id].name;
    case SymbolKind::kTable:
      return function_->tables[id].name;
    case SymbolKind::kNone:
      break;
  }
  return "";
}

void Printer::PrintOperand(const Operand& operand) {
  auto parts = [&](char open, char close) {
    out_ += open;
    List(operand.parts, [&](const Operand& part) { PrintOperand(part); });
    out_ += close;
  };
  switch (operand.kind) {
    case OperandKind::kRegister:
      if (operand.negated) out_ += '!';
      PrintRegister(operand.id);
      PrintComponent(operand.component);
      break;
    case OperandKind::kSpecial:
      out_ += Text(operand.special());
      PrintComponent(operand.component);
      break;
    case OperandKind::kInteger:
      out_ += TextOfInteger(operand.bits);
      break;
    case OperandKind::kFloat32:
      Put("0f{:08X}", operand.bits);
      break;
    case OperandKind::kFloat64:
      Put("0d{:016X}", operand.bits);
      break;
    case OperandKind::kSymbol:
      out_ += NameOf(operand.symbol, operand.id);
      PrintOffset(operand.bits);
      break;
    case OperandKind::kAddress:
      out_ += '[';
      PrintAddress(operand);
      out_ += ']';
      PrintComponent(operand.component);
      break;
    case OperandKind::kVector:
      parts('{', '}');
      break;
    case OperandKind::kSink:
      out_ += '_';
      break;
    case OperandKind::kList:
      parts('(', ')');
      break;
    case OperandKind::kPair:
      PrintOperand(operand.parts[0]);
      out_ += '|';
      PrintOperand(operand.parts[1]);
      break;
    case OperandKind::kTexture:
      out_ += '[';
      PrintAddress(operand.parts[0]);
      for (size_t at = 1; at < operand.parts.size(); ++at) {
        out_ += ", ";
        PrintOperand(operand.parts[at]);
      }
      out_ += ']';
      break;
  }
}

void Printer::PrintAddress(const Operand& operand) {
  switch (operand.base) {
    case BaseKind::kNone:
      out_ += TextOfInteger(operand.bits);
      return;
    case BaseKind::kRegister:
      PrintRegister(operand.id);
      break;
    case BaseKind::kSymbol:
      out_ += NameOf(operand.symbol, operand.id);
      break;
  }
  PrintOffset(operand.bits);
}

}  // namespace

std::string Print(const Module& module) { return Printer(module).Print(); }
std::string Print(const Module& module, const Function& function) { return Printer(module).Print(function); }
std::string Print(const Module& module, const Variable& variable) { return Printer(module).Print(variable); }
std::string PrintHead(const Module& module) { return Printer(module).PrintHead(); }

}  // namespace cuplex::ptx
