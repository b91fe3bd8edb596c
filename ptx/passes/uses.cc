#include "ptx/passes/uses.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace cuplex::ptx {
namespace {

/// A kernel that needs more is refused: its arguments would not fit, and functions would be passed them all.
constexpr size_t kMostVariables = 64;

bool IsHandle(Type type) {
  return type == Type::kTexref || type == Type::kSamplerref || type == Type::kSurfref;
}

std::string InLine(const Place& place, std::string_view what) {
  return fmt::format("line {} {}", place.line, what);
}

void Obstruct(Uses& uses, std::string sentence) {
  if (uses.obstacle.empty()) uses.obstacle = std::move(sentence);
}

/// Why reading it is an obstacle; empty where it is none.
std::string_view ObstacleOf(Special special) {
  if (special >= Special::kEnvreg0 &&
      static_cast<uint32_t>(special) < static_cast<uint32_t>(Special::kEnvreg0) + 32) {
    return "as kernels do that synchronise their whole grid";
  }
  switch (special) {
    case Special::kGridid:
      return "which differs from slice to slice";
    case Special::kClusterid:
    case Special::kNclusterid:
      return "and slices are not of clusters";
    case Special::kCurrentGraphExec:
      return "as kernels do that launch graphs";
    default:
      return "";
  }
}

}  // namespace

std::optional<unsigned> AxisOf(Mod component) {
  constexpr std::string_view kAxes = "xyzw";
  const std::string_view text = Text(component);
  const size_t axis = text.size() == 1 ? kAxes.find(text[0]) : kAxes.npos;
  if (axis == kAxes.npos) return std::nullopt;
  return static_cast<unsigned>(axis);
}

bool IsProvided(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kNames = {"vprintf", "__assertfail", "malloc", "free"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

UsesOfFunctions::UsesOfFunctions(const Module& module)
    : module_(module), resolved_(module.functions.size()), rows_(module.functions.size()) {
  for (uint32_t i = 0; i < resolved_.size(); ++i) resolved_[i] = i;
  for (const Alias& alias : module.aliases) {
    // An alias of an alias is none: PTX wants a definition, and others are left undefined.
    if (module.functions[alias.aliasee].has_body && !module.functions[alias.alias].has_body)
      resolved_[alias.alias] = alias.aliasee;
  }
}

const Uses& UsesOfFunctions::Of(uint32_t function) {
  if (rows_[function].complete) return rows_[function].uses;
  std::vector<uint32_t> reached = {function};
  Scan(function);
  for (size_t at = 0; at < reached.size(); ++at) {
    for (uint32_t callee : rows_[reached[at]].callees) {
      Row& row = rows_[callee];
      row.callers.push_back(reached[at]);
      if (row.scanned) continue;
      Scan(callee);
      reached.push_back(callee);
    }
  }
  std::vector<uint32_t> changed = reached;
  for (uint32_t of : reached) {
    for (uint32_t callee : rows_[of].callees) Merge(rows_[callee].uses, rows_[of].uses);
  }
  while (!changed.empty()) {
    const uint32_t of = changed.back();
    changed.pop_back();
    for (uint32_t caller : rows_[of].callers) {
      if (!rows_[caller].complete && Merge(rows_[of].uses, rows_[caller].uses)) changed.push_back(caller);
    }
  }
  for (uint32_t of : reached) {
    rows_[of].complete = true;
    rows_[of].callers.clear();
  }
  return rows_[function].uses;
}

bool UsesOfFunctions::Merge(const Uses& from, Uses& to) const {
  if (&from == &to || !to.obstacle.empty()) return false;  // one obstacle is enough
  const size_t before = to.values.size() + to.constants.size();
  to.obstacle = from.obstacle;
  to.values.insert(from.values.begin(), from.values.end());
  to.constants.insert(from.constants.begin(), from.constants.end());
  if (to.values.size() > kAddressOf + kMostVariables || to.constants.size() > kMostVariables) {
    Obstruct(to, fmt::format("it uses more than {} variables of the module", kMostVariables));
  }
  return !to.obstacle.empty() || to.values.size() + to.constants.size() != before;
}

void UsesOfFunctions::Scan(uint32_t index) {
  const Function& function = module_.functions[index];
  Row& row = rows_[index];
  row.scanned = true;
  for (const Variable& variable : function.variables) {
    if (variable.space == Space::kGlobal || variable.space == Space::kConst || variable.initializer) {
      Obstruct(row.uses, InLine(variable.place, fmt::format("has the .{} variable `{}` inside a function",
                                                            Text(variable.space), variable.name)));
    }
  }
  for (const Instruction& instruction : function.instructions) {
    if (!row.uses.obstacle.empty()) break;
    const Operand* callee = nullptr;
    if (instruction.opcode == Opcode::kCall) {
      callee = ShapeOfCall(instruction).callee;
      if (!callee || callee->kind != OperandKind::kSymbol || callee->symbol != SymbolKind::kFunction)
        Obstruct(row.uses, InLine(instruction.place, "calls a function through a pointer"));
    }
    if (instruction.opcode == Opcode::kClusterlaunchcontrol) {
      Obstruct(row.uses, InLine(instruction.place, "takes blocks from the launch by clusterlaunchcontrol"));
    }
    for (const Operand& operand : instruction.operands)
      ScanOperand(function, instruction, operand, &operand == callee, row);
  }
  for (const Table& table : function.tables) {
    if (table.calls) {
      Obstruct(row.uses, InLine(function.place,
                                fmt::format("begins a function that has the call targets `{}`", table.name)));
    }
  }
  std::sort(row.callees.begin(), row.callees.end());
  row.callees.erase(std::unique(row.callees.begin(), row.callees.end()), row.callees.end());
  Merge({}, row.uses);
}

void UsesOfFunctions::ScanOperand(const Function& function, const Instruction& instruction,
                                  const Operand& operand, bool callee, Row& row) {
  for (const Operand& part : operand.parts) ScanOperand(function, instruction, part, false, row);
  if (operand.kind == OperandKind::kSpecial) {
    const Special special = operand.special();
    if (std::string_view why = ObstacleOf(special); !why.empty()) {
      Obstruct(row.uses, InLine(instruction.place, fmt::format("reads {}, {}", Text(special), why)));
    }
    if (special != Special::kCtaid && special != Special::kNctaid) return;
    const Value first = special == Special::kCtaid ? kCtaid : kNctaid;
    if (operand.component == Mod::kNone) {
      row.uses.values.insert({first, first + 1, first + 2});
    } else if (auto axis = AxisOf(operand.component); !axis) {
      Obstruct(row.uses, InLine(instruction.place,
                                fmt::format("reads a component of {} that it lacks", Text(special))));
    } else if (*axis < 3) {
      row.uses.values.insert(first + *axis);
    }
    return;
  }
  if (operand.symbol == SymbolKind::kGlobalVariable) ScanVariable(instruction, operand, row);
  if (operand.symbol != SymbolKind::kFunction) return;
  const uint32_t target = Resolve(operand.id);
  const Function& named = module_.functions[target];
  if (!callee) {
    Obstruct(row.uses, InLine(instruction.place, fmt::format("takes the address of `{}`", named.name)));
  } else if (named.entry || (!named.has_body && !IsProvided(named.name))) {
    Obstruct(row.uses, InLine(instruction.place,
                              fmt::format("calls `{}`, which the module does not define", named.name)));
  } else if (named.has_body) {
    row.callees.push_back(target);
  }
}

void UsesOfFunctions::ScanVariable(const Instruction& instruction, const Operand& operand, Row& row) {
  const Variable& variable = module_.variables[operand.id];
  if (IsHandle(variable.type)) {
    Obstruct(row.uses, InLine(instruction.place,
                              fmt::format("uses the {} `{}`, which is bound in the module that has it",
                                          Text(variable.type), variable.name)));
  } else if (variable.space == Space::kConst) {
    row.uses.constants.insert(operand.id);
  } else if (variable.space == Space::kGlobal) {
    // Its place is taken by a register of 64 bits.
    const bool narrow = operand.kind == OperandKind::kSymbol &&
                        (instruction.opcode == Opcode::kMov || instruction.opcode == Opcode::kCvta) &&
                        BitsOf(instruction.TypeAt()) != 64;
    if (narrow || module_.address_size != 64) {
      Obstruct(row.uses,
               InLine(instruction.place, fmt::format("has an address of 32 bits of `{}`", variable.name)));
    }
    row.uses.values.insert(kAddressOf + operand.id);
  }
}

}  // namespace cuplex::ptx
