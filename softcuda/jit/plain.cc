#include "softcuda/jit/plain.h"

#include <algorithm>
#include <map>
#include <utility>

namespace cuplex::softcuda {
namespace {

using ptx::Instruction;
using ptx::Mod;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;

bool IsVectorMove(const Instruction& in) { return in.opcode == ptx::Opcode::kMov && in.VectorWidth() > 1; }

bool OfModule(const ptx::Variable& v) { return v.space == Space::kGlobal || v.space == Space::kConst; }

bool IsPlain(const ptx::Module& module) {
  return std::all_of(module.functions.begin(), module.functions.end(), [](const ptx::Function& fn) {
    return std::none_of(fn.registers.begin(), fn.registers.end(),
                        [](const auto& r) { return r.vector > 1; }) &&
           std::none_of(fn.variables.begin(), fn.variables.end(), OfModule) &&
           std::none_of(fn.instructions.begin(), fn.instructions.end(), IsVectorMove);
  });
}

std::vector<ptx::Variable> Split(const std::vector<ptx::Variable>& variables) {
  std::vector<ptx::Variable> out;
  for (const ptx::Variable& v : variables) {
    if (v.space != Space::kReg || v.vector == 1) {
      out.push_back(v);
      continue;
    }
    ptx::Variable part = v;
    part.vector = 1;
    out.insert(out.end(), v.vector, part);
  }
  return out;
}

/// Rewrites one function of a module.
class Rewriting {
 public:
  Rewriting(ptx::Module& module, ptx::Function& function) : module_(module), fn_(function) {}

  Status Run() {
    const size_t ranges = fn_.registers.size();
    for (size_t r = 0; r < ranges; ++r) {
      const ptx::RegisterRange range = fn_.registers[r];
      if (range.vector == 1) continue;
      const uint32_t first = module_.AddRegisters(fn_, range.type, range.vector * range.count);
      for (uint32_t i = 0; i < range.count; ++i) {
        parts_[range.first + i] = {first + i * range.vector, range.vector};
      }
    }
    fn_.returns = Split(fn_.returns);
    fn_.parameters = Split(fn_.parameters);
    for (ptx::Prototype& prototype : fn_.prototypes) {
      prototype.returns = softcuda::Split(prototype.returns);
      prototype.parameters = softcuda::Split(prototype.parameters);
    }
    LiftVariables();
    for (Instruction& in : fn_.instructions) {
      for (Operand& operand : in.operands) TRY(Rewrite(in, &operand));
    }
    SplitMoves();
    return {};
  }

 private:
  struct Parts {
    uint32_t first = 0;
    uint32_t count = 0;
  };

  std::vector<ptx::Parameter> Split(const std::vector<ptx::Parameter>& parameters) const {
    std::vector<ptx::Parameter> out;
    for (const ptx::Parameter& p : parameters) {
      auto found = p.in_register ? parts_.find(p.id) : parts_.end();
      if (found == parts_.end()) {
        out.push_back(p);
        continue;
      }
      for (uint32_t i = 0; i < found->second.count; ++i) out.push_back({true, found->second.first + i});
    }
    return out;
  }

  void LiftVariables() {
    for (uint32_t v = 0; v < fn_.variables.size(); ++v) {
      if (!OfModule(fn_.variables[v])) continue;
      lifted_[v] = static_cast<uint32_t>(module_.variables.size());
      ptx::Variable variable = fn_.variables[v];
      variable.name =
          fn_.name + "." + variable.name + "." + std::to_string(v);  // no name that PTX could write
      module_.variables.push_back(std::move(variable));
    }
    for (const auto& [local, global] : lifted_) {
      if (auto& initializer = module_.variables[global].initializer) Redirect(&*initializer);
    }
  }

  void Redirect(ptx::Initializer* initializer) const {
    if (initializer->symbol == ptx::SymbolKind::kLocalVariable) {
      if (auto lifted = lifted_.find(initializer->id); lifted != lifted_.end()) {
        initializer->symbol = ptx::SymbolKind::kGlobalVariable;
        initializer->id = lifted->second;
      }
    }
    for (ptx::Initializer& part : initializer->parts) Redirect(&part);
  }

  Status Rewrite(const Instruction& in, Operand* operand) {
    if (operand->symbol == ptx::SymbolKind::kLocalVariable) {
      if (auto lifted = lifted_.find(operand->id); lifted != lifted_.end()) {
        operand->symbol = ptx::SymbolKind::kGlobalVariable;
        operand->id = lifted->second;
      }
    }
    auto found = operand->IsRegister() ? parts_.find(operand->id) : parts_.end();
    if (found != parts_.end()) {
      const Parts parts = found->second;
      if (operand->component == Mod::kNone) {
        *operand = {};
        operand->kind = OperandKind::kVector;
        for (uint32_t i = 0; i < parts.count; ++i)
          operand->parts.push_back(Operand::Register(parts.first + i));
        return {};
      }
      const std::string_view name = module_.Text(operand->component);
      const size_t part = name.size() == 1 ? std::string_view("xyzw").find(name) : std::string_view::npos;
      if (part >= parts.count) {
        return Fail(Blame::kCaller, "line {}: `{}` takes a part of a vector register that has {} of them",
                    in.place.line, module_.Text(in), parts.count);
      }
      *operand = Operand::Register(parts.first + static_cast<uint32_t>(part));
      return {};
    }
    std::vector<Operand> rewritten;
    for (Operand& part : operand->parts) {
      const bool vector = part.kind == OperandKind::kVector;
      TRY(Rewrite(in, &part));
      if (operand->kind == OperandKind::kList && !vector && part.kind == OperandKind::kVector) {
        rewritten.insert(rewritten.end(), part.parts.begin(), part.parts.end());
      } else {
        rewritten.push_back(std::move(part));
      }
    }
    operand->parts = std::move(rewritten);
    return {};
  }

  static bool CanSplit(const Instruction& in) {
    const size_t width = in.VectorWidth();
    return IsVectorMove(in) && in.operands.size() == 2 && in.operands[0].parts.size() == width &&
           in.operands[1].parts.size() == width;
  }

  void SplitMoves() {
    std::map<uint32_t, uint32_t> between;  // instruction, first of the registers that it goes over
    for (uint32_t i = 0; i < fn_.instructions.size(); ++i) {
      const Instruction& in = fn_.instructions[i];
      if (CanSplit(in)) between[i] = module_.AddRegisters(fn_, in.TypeAt(), in.VectorWidth());
    }
    if (between.empty()) return;
    for (const ptx::Statement& statement : std::exchange(fn_.statements, {})) {
      auto found =
          statement.kind == ptx::StatementKind::kInstruction ? between.find(statement.index) : between.end();
      if (found == between.end()) {
        fn_.statements.push_back(statement);
      } else {
        SplitMove(statement.index, found->second);
      }
    }
  }

  /// The first of the moves takes the instruction's place in the list, the others are appended.
  void SplitMove(uint32_t index, uint32_t between) {
    const Instruction in = fn_.instructions[index];
    Instruction move = in;
    std::erase_if(move.mods, [](Mod mod) { return mod == Mod::kV2 || mod == Mod::kV4 || mod == Mod::kV8; });
    auto add = [&, at = index](Operand to, Operand from) mutable {
      move.operands = {std::move(to), std::move(from)};
      if (at == fn_.instructions.size()) fn_.instructions.emplace_back();
      fn_.instructions[at] = move;
      fn_.statements.push_back({ptx::StatementKind::kInstruction, at});
      at = static_cast<uint32_t>(fn_.instructions.size());
    };
    const unsigned width = in.VectorWidth();
    for (uint32_t i = 0; i < width; ++i) add(Operand::Register(between + i), in.operands[1].parts[i]);
    for (uint32_t i = 0; i < width; ++i) add(in.operands[0].parts[i], Operand::Register(between + i));
  }

  ptx::Module& module_;
  ptx::Function& fn_;
  std::map<uint32_t, Parts> parts_;      // of vector registers
  std::map<uint32_t, uint32_t> lifted_;  // variables: index in the function, in the module
};

}  // namespace

Result<std::shared_ptr<const ptx::Module>> MakePlain(std::shared_ptr<const ptx::Module> module) {
  if (IsPlain(*module)) return module;
  auto plain = std::make_shared<ptx::Module>(*module);
  for (ptx::Function& function : plain->functions) TRY(Rewriting(*plain, function).Run());
  return std::shared_ptr<const ptx::Module>(std::move(plain));
}

}  // namespace cuplex::softcuda
