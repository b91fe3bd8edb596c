#include "ptx/passes/slice.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "ptx/parameters.h"
#include "ptx/passes/uses.h"
#include "ptx/printer.h"

namespace cuplex::ptx {
namespace {

constexpr std::string_view kParameter = "cuplex_slice";

// Where the parts of `slice` lie, in bytes.
constexpr int64_t kFirst = 0;
constexpr int64_t kGrid = 4;
constexpr int64_t kReciprocal = 16;
constexpr int64_t kAddresses = 32;

/// What a driver takes: 32764 bytes from PTX 8.1 and sm_70 on, 4 KiB before.
uint64_t MostParameterBytes(const Module& module) {
  unsigned arch = 0;
  for (const std::string& word : module.target) {
    if (word.starts_with("sm_")) std::from_chars(word.data() + 3, word.data() + word.size(), arch);
  }
  const bool large = std::pair(module.version_major, module.version_minor) >= std::pair(8u, 1u) && arch >= 70;
  return large ? 32764 : 4096;
}

bool IsSliced(const Function& kernel) {
  if (kernel.parameters.empty()) return false;
  const Parameter& last = kernel.parameters.back();
  return !last.in_register && kernel.variables[last.id].name.starts_with(kParameter);
}

std::string ObstacleOfHead(const Function& kernel) {
  for (std::string_view directive : {"reqnctapercluster", "explicitcluster", "blocksareclusters"}) {
    if (kernel.FindDirective(directive))
      return fmt::format("line {} declares it .{}, and slices are not of clusters", kernel.place.line,
                         directive);
  }
  if (IsSliced(kernel))
    return fmt::format("line {} declares one that has been sliced already", kernel.place.line);
  return "";
}

Instruction Make(Opcode opcode, std::vector<Mod> mods, std::vector<Operand> operands) {
  Instruction made;
  made.opcode = opcode;
  made.mods = std::move(mods);
  made.operands = std::move(operands);
  return made;
}

/// The name, or one with a number behind it, that nothing in `module` has at file scope or begins with.
std::string StemFor(const Module& module, std::string_view name) {
  std::string stem(name);
  const auto in = [&](const auto& things) {
    return std::any_of(things.begin(), things.end(),
                       [&](const auto& thing) { return thing.name.starts_with(stem); });
  };
  for (unsigned n = 0; in(module.functions) || in(module.variables); ++n)
    stem = fmt::format("{}{}x", name, n);
  return stem;
}

/// One function of the sliced module while it is rewritten.
class Body {
 public:
  /// `stem`: how the names of new registers begin, from StemFor().
  Body(Function& function, std::string_view stem) : function_(function), stem_(stem) {}

  /// Puts an instruction at the end of what goes before the body.
  void Begin(Instruction instruction) {
    prologue_.push_back({StatementKind::kInstruction, Add(std::move(instruction))});
  }
  uint32_t Register(Type type) {
    if (type == type_) {
      ++function_.registers.back().count;
      return function_.register_count++;
    }
    type_ = type;
    function_.statements.insert(
        function_.statements.begin(),
        {StatementKind::kRegisters, static_cast<uint32_t>(function_.registers.size())});
    ++declarations_;
    return AddRange(type, true);
  }
  /// A parameter more, in a register.
  uint32_t Parameter(Type type) {
    const uint32_t id = AddRange(type, false);
    function_.parameters.push_back({true, id});
    return id;
  }
  uint32_t Add(Instruction instruction) {
    function_.instructions.push_back(std::move(instruction));
    return static_cast<uint32_t>(function_.instructions.size() - 1);
  }
  void End() {
    function_.statements.insert(function_.statements.begin() + static_cast<ptrdiff_t>(declarations_),
                                prologue_.begin(), prologue_.end());
  }

 private:
  uint32_t AddRange(Type type, bool parametrised) {
    RegisterRange range;
    const auto in = [&](const auto& things) {
      return std::any_of(things.begin(), things.end(),
                         [&](const auto& thing) { return thing.name.starts_with(range.name); });
    };
    do {
      range.name = fmt::format("{}{}_", stem_, number_++);
    } while (in(function_.registers) || in(function_.variables) || in(function_.labels) ||
             in(function_.prototypes) || in(function_.tables));
    range.parametrised = parametrised;
    range.type = type;
    range.first = function_.register_count++;
    function_.registers.push_back(range);
    return range.first;
  }

  Function& function_;
  std::string_view stem_;
  unsigned number_ = 0;      // of the next range
  Type type_ = Type::kNone;  // of the last range of registers, where it is one of Register()'s
  size_t declarations_ = 0;
  std::vector<Statement> prologue_;
};

class Slicer {
 public:
  explicit Slicer(const Module& module)
      : in_(module),
        stem_(StemFor(module, "%cx")),
        parameter_(StemFor(module, kParameter)),
        uses_(module),
        function_at_(module.functions.size(), kNoIndex),
        variable_at_(module.variables.size(), kNoIndex) {
    out_.version_major = module.version_major;
    out_.version_minor = module.version_minor;
    out_.target = module.target;
    out_.address_size = module.address_size;
    out_.words = module.words;
    out_.pragmas = module.pragmas;
  }

  Result<SlicedModule> Run(std::span<const std::string_view> wanted) {
    SlicedModule sliced;
    TRY(std::vector<uint32_t> kernels, Kernels(wanted));
    std::vector<uint32_t> taken;
    for (uint32_t index : kernels) {
      sliced.kernels.push_back(Describe(index));
      if (sliced.kernels.back().refusal.empty()) taken.push_back(index);
    }
    if (taken.empty()) return sliced;
    Gather(taken);
    for (uint32_t from : gathered_) Rewrite(from);
    List();
    sliced.text = Print(out_);
    return sliced;
  }

 private:
  using Registers = std::map<Value, uint32_t>;

  Result<std::vector<uint32_t>> Kernels(std::span<const std::string_view> wanted) const {
    std::vector<uint32_t> kernels;
    if (wanted.empty()) {
      for (uint32_t i = 0; i < in_.functions.size(); ++i) {
        if (in_.functions[i].entry && in_.functions[i].has_body) kernels.push_back(i);
      }
      return kernels;
    }
    for (std::string_view name : wanted) {
      const Function* found = in_.FindFunction(name);
      if (!found || !found->entry || !found->has_body)
        return Fail(Blame::kCaller, "the module has no kernel `{}`", name);
      const auto index = static_cast<uint32_t>(found - in_.functions.data());
      if (std::find(kernels.begin(), kernels.end(), index) == kernels.end()) kernels.push_back(index);
    }
    return kernels;
  }

  SlicedKernel Describe(uint32_t index) {
    const Function& kernel = in_.functions[index];
    const Uses& uses = uses_.Of(index);
    SlicedKernel described;
    described.name = kernel.name;
    std::string obstacle = ObstacleOfHead(kernel);
    if (obstacle.empty()) obstacle = uses.obstacle;
    if (uses.values.count(kCtaid + 1)) described.axes = 2;
    if (uses.values.count(kCtaid + 2)) described.axes = 3;
    for (Value value : uses.values) {
      if (value >= kAddressOf) described.globals.push_back(in_.variables[value - kAddressOf].name);
    }
    for (uint32_t id : uses.constants) described.constants.push_back(in_.variables[id].name);
    described.arguments_size =
        static_cast<uint32_t>(kAddresses + 8 * static_cast<int64_t>(described.globals.size()));
    auto layout = LayoutOf(kernel);
    if (!layout.ok()) {
      if (obstacle.empty()) obstacle = layout.error().sentence;
    } else {
      described.arguments_offset = (layout->size + 7) / 8 * 8;
      const uint64_t end = uint64_t{described.arguments_offset} + described.arguments_size;
      if (const uint64_t most = MostParameterBytes(in_); obstacle.empty() && end > most) {
        obstacle = fmt::format("line {} declares {} bytes of parameters, and with {} more they pass {}",
                               kernel.place.line, layout->size, end - layout->size, most);
      }
    }
    if (!obstacle.empty()) {
      described = {};
      described.name = kernel.name;
      described.refusal = fmt::format("kernel `{}` cannot be sliced: {}", kernel.name, obstacle);
    }
    return described;
  }

  /// Copies the kernels and all that they call, without what these functions name; then all variables named.
  void Gather(const std::vector<uint32_t>& kernels) {
    for (uint32_t index : kernels) Take(index);
    for (size_t at = 0; at < gathered_.size(); ++at) {
      for (const Instruction& instruction : in_.functions[gathered_[at]].instructions) {
        for (const Operand& operand : instruction.operands) GatherOperand(operand);
      }
    }
    std::sort(variables_.begin(), variables_.end());
    for (uint32_t index : variables_) {
      variable_at_[index] = static_cast<uint32_t>(out_.variables.size());
      out_.variables.push_back(in_.variables[index]);
      Variable& variable = out_.variables.back();
      // Its contents come from the original; addresses in them would be of variables that are not here.
      if (variable.initializer && NamesSymbol(*variable.initializer)) variable.initializer.reset();
    }
  }

  void Take(uint32_t index) {
    if (function_at_[index] != kNoIndex) return;
    function_at_[index] = static_cast<uint32_t>(out_.functions.size());
    out_.functions.push_back(in_.functions[index]);
    Function& function = out_.functions.back();
    if (!function.entry && function.has_body) function.linkage = Linkage::kNone;  // nobody else calls it
    gathered_.push_back(index);
  }

  void GatherOperand(const Operand& operand) {
    for (const Operand& part : operand.parts) GatherOperand(part);
    if (operand.symbol == SymbolKind::kFunction) Take(uses_.Resolve(operand.id));
    if (operand.symbol == SymbolKind::kGlobalVariable && in_.variables[operand.id].space != Space::kGlobal &&
        variable_at_[operand.id] == kNoIndex) {
      variable_at_[operand.id] = 0;
      variables_.push_back(operand.id);
    }
  }

  static bool NamesSymbol(const Initializer& initializer) {
    return initializer.symbol != SymbolKind::kNone ||
           std::any_of(initializer.parts.begin(), initializer.parts.end(), NamesSymbol);
  }

  void Rewrite(uint32_t from) {
    Function& function = out_.functions[function_at_[from]];
    const Uses& uses = uses_.Of(from);
    Body body(function, stem_);
    const size_t statements = function.statements.size();
    Registers registers;
    if (function.entry) {
      registers = Receive(function, uses, body);
    } else {
      for (Value value : uses.values)
        registers[value] = body.Parameter(value < kAddressOf ? Type::kB32 : Type::kB64);
    }
    if (!function.has_body) return;
    const std::vector<Statement> before(function.statements.end() - static_cast<ptrdiff_t>(statements),
                                        function.statements.end());
    std::vector<Statement> after;
    after.reserve(before.size());
    for (const Statement& statement : before) {
      if (statement.kind == StatementKind::kInstruction) {
        RewriteInstruction(function, statement.index, registers, body, after);
      }
      after.push_back(statement);
    }
    function.statements.erase(function.statements.end() - static_cast<ptrdiff_t>(statements),
                              function.statements.end());
    function.statements.insert(function.statements.end(), after.begin(), after.end());
    body.End();
  }

  /// The kernel's new parameter, and the instructions that make the values of it.
  Registers Receive(Function& kernel, const Uses& uses, Body& body) {
    std::string name = parameter_;
    const auto taken = [&](const auto& things) {
      return std::any_of(things.begin(), things.end(), [&](const auto& thing) { return thing.name == name; });
    };
    for (unsigned n = 0; taken(kernel.variables) || taken(kernel.registers) || taken(kernel.labels) ||
                         taken(kernel.prototypes) || taken(kernel.tables);) {
      name = fmt::format("{}_{}", parameter_, ++n);
    }
    Variable parameter;
    parameter.name = name;
    parameter.space = Space::kParam;
    parameter.type = Type::kB8;
    parameter.align = 8;
    const auto globals =
        static_cast<uint64_t>(std::distance(uses.values.lower_bound(kAddressOf), uses.values.end()));
    parameter.dims = {kAddresses + 8 * globals};
    const auto id = static_cast<uint32_t>(kernel.variables.size());
    kernel.variables.push_back(std::move(parameter));
    kernel.parameters.push_back({false, id});

    const auto load = [&](int64_t offset, Type type = Type::kU32) {
      const uint32_t to = body.Register(type == Type::kU32 ? Type::kB32 : Type::kB64);
      body.Begin(
          Make(Opcode::kLd, {Mod::kSpaceParam, ModOf(type)},
               {Operand::Register(to), Operand::SymbolAddress(SymbolKind::kLocalVariable, id, offset)}));
      return to;
    };
    const auto compute = [&](Opcode opcode, std::vector<Mod> mods, std::vector<Operand> sources) {
      const uint32_t to = body.Register(Type::kB32);
      sources.insert(sources.begin(), Operand::Register(to));
      body.Begin(Make(opcode, std::move(mods), std::move(sources)));
      return to;
    };
    const auto reg = [](uint32_t of) { return Operand::Register(of); };

    Registers registers;
    for (Value axis = 0; axis < 3; ++axis) {
      if (uses.values.count(kNctaid + axis)) registers[kNctaid + axis] = load(kGrid + 4 * int64_t{axis});
    }
    const unsigned axes = uses.values.count(kCtaid + 2) ? 3 : uses.values.count(kCtaid + 1) ? 2 : 1;
    if (uses.values.lower_bound(kCtaid) != uses.values.lower_bound(kNctaid)) {
      const uint32_t first = load(kFirst);
      const uint32_t here =
          compute(Opcode::kMov, {Mod::kTypeU32}, {Operand::SpecialRegister(Special::kCtaid, *FindMod("x"))});
      uint32_t rest = compute(Opcode::kAdd, {Mod::kTypeU32}, {reg(here), reg(first)});
      for (Value axis = 0; axis + 1 < axes; ++axis) {
        const uint32_t multiplier = load(kReciprocal + 8 * int64_t{axis});
        const uint32_t shift = load(kReciprocal + 8 * int64_t{axis} + 4);
        const uint32_t twice = compute(Opcode::kAdd, {Mod::kTypeU32}, {reg(rest), reg(rest)});
        const uint32_t high = compute(Opcode::kMul, {Mod::kHi, Mod::kTypeU32}, {reg(twice), reg(multiplier)});
        const uint32_t quotient = compute(Opcode::kShr, {Mod::kTypeU32}, {reg(high), reg(shift)});
        if (uses.values.count(kCtaid + axis)) {
          const auto known = registers.find(kNctaid + axis);
          const uint32_t extent = known != registers.end() ? known->second : load(kGrid + 4 * int64_t{axis});
          const uint32_t whole =
              compute(Opcode::kMul, {Mod::kLo, Mod::kTypeU32}, {reg(quotient), reg(extent)});
          registers[kCtaid + axis] = compute(Opcode::kSub, {Mod::kTypeU32}, {reg(rest), reg(whole)});
        }
        rest = quotient;
      }
      registers[kCtaid + axes - 1] = rest;
    }
    int64_t at = kAddresses;
    for (auto value = uses.values.lower_bound(kAddressOf); value != uses.values.end(); ++value, at += 8)
      registers[*value] = load(at, Type::kU64);
    return registers;
  }

  void RewriteInstruction(Function& function, uint32_t index, const Registers& registers, Body& body,
                          std::vector<Statement>& statements) {
    Instruction instruction = std::move(function.instructions[index]);
    if (instruction.opcode == Opcode::kCall) PassOn(instruction, registers);
    const bool special =
        std::any_of(instruction.operands.begin(), instruction.operands.end(),
                    [](const Operand& operand) { return operand.kind == OperandKind::kSpecial; });
    std::vector<Operand> before;
    if (special) before = instruction.operands;
    for (Operand& operand : instruction.operands)
      RewriteOperand(operand, registers, function, body, statements);
    // A register of 32 bits is moved to one of 16 by a conversion.
    if (special && instruction.opcode == Opcode::kMov && BitsOf(instruction.TypeAt()) == 16 &&
        before != instruction.operands) {
      instruction.opcode = Opcode::kCvt;
      instruction.mods = {Mod::kTypeU16, Mod::kTypeU32};
    }
    function.instructions[index] = std::move(instruction);
  }

  /// Gives a function what it needs more.
  void PassOn(Instruction& call, const Registers& registers) {
    const size_t callee = call.operands[0].kind == OperandKind::kList ? 1 : 0;
    const Uses& uses = uses_.Of(uses_.Resolve(call.operands[callee].id));
    if (uses.values.empty()) return;
    if (callee + 1 == call.operands.size()) {
      Operand none;
      none.kind = OperandKind::kList;
      call.operands.push_back(none);
    }
    for (Value value : uses.values)
      call.operands[callee + 1].parts.push_back(Operand::Register(registers.at(value)));
  }

  void RewriteOperand(Operand& operand, const Registers& registers, Function& function, Body& body,
                      std::vector<Statement>& statements) {
    for (Operand& part : operand.parts) RewriteOperand(part, registers, function, body, statements);
    if (operand.kind == OperandKind::kSpecial) {
      operand = InPlaceOf(operand, registers);
      return;
    }
    if (operand.symbol == SymbolKind::kFunction) operand.id = function_at_[uses_.Resolve(operand.id)];
    if (operand.symbol != SymbolKind::kGlobalVariable) return;
    const auto known = registers.find(kAddressOf + operand.id);
    if (known == registers.end()) {
      operand.id = variable_at_[operand.id];
    } else if (operand.kind == OperandKind::kAddress) {
      const Mod component = operand.component;
      operand = Operand::RegisterAddress(known->second, operand.offset());
      operand.component = component;
    } else if (operand.offset() == 0) {
      operand = Operand::Register(known->second);
    } else {
      const uint32_t sum = body.Register(Type::kB64);
      statements.push_back({StatementKind::kInstruction,
                            body.Add(Make(Opcode::kAdd, {Mod::kTypeS64},
                                          {Operand::Register(sum), Operand::Register(known->second),
                                           Operand::Integer(operand.offset())}))});
      operand = Operand::Register(sum);
    }
  }

  static Operand InPlaceOf(const Operand& operand, const Registers& registers) {
    const Special special = operand.special();
    if (special != Special::kCtaid && special != Special::kNctaid) return operand;
    const Value first = special == Special::kCtaid ? kCtaid : kNctaid;
    const auto one = [&](Value axis) {
      return axis < 3 ? Operand::Register(registers.at(first + axis)) : Operand::Integer(0);
    };
    if (operand.component != Mod::kNone) return one(*AxisOf(operand.component));
    Operand all;
    all.kind = OperandKind::kVector;
    all.parts = {one(0), one(1), one(2), one(3)};
    return all;
  }

  /// Pragmas, variables, then all functions declared before any is defined.
  void List() {
    const auto add = [&](Item::Kind kind, size_t index) {
      out_.items.push_back({kind, static_cast<uint32_t>(index)});
    };
    for (size_t i = 0; i < out_.pragmas.size(); ++i) add(Item::Kind::kPragma, i);
    for (size_t i = 0; i < out_.variables.size(); ++i) add(Item::Kind::kVariable, i);
    for (size_t i = 0; i < out_.functions.size(); ++i) {
      if (!out_.functions[i].entry) add(Item::Kind::kDeclaration, i);
    }
    for (size_t i = 0; i < out_.functions.size(); ++i) {
      if (out_.functions[i].has_body) add(Item::Kind::kDefinition, i);
    }
  }

  const Module& in_;
  Module out_;
  const std::string stem_, parameter_;  // what new names begin with
  UsesOfFunctions uses_;
  std::vector<uint32_t> gathered_;                   // functions of in_, in the order of out_
  std::vector<uint32_t> variables_;                  // variables of in_ that out_ has
  std::vector<uint32_t> function_at_, variable_at_;  // from index in in_ to index in out_
};

}  // namespace

Result<SlicedModule> Slice(const Module& module, std::span<const std::string_view> wanted) {
  return Slicer(module).Run(wanted);
}

}  // namespace cuplex::ptx
