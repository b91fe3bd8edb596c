#include "softcuda/jit/layout.h"

#include <algorithm>
#include <functional>

#include "softcuda/jit/program.h"

namespace cuplex::softcuda {
namespace {

using ptx::Operand;
using ptx::Space;

constexpr uint64_t kStackOfRecursion = 16 << 10;
constexpr uint64_t kStackOfAlloca = 16 << 10;

uint64_t Align(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

bool IsShared(Space space) { return space == Space::kShared || space == Space::kSharedCta; }

template <typename F>
void EachSymbol(const Operand& op, F&& visit) {
  if (op.symbol != ptx::SymbolKind::kNone) visit(op.symbol, op.id);
  for (const Operand& part : op.parts) EachSymbol(part, visit);
}

bool AsksForReserved(const Operand& op) {
  if (op.kind != ptx::OperandKind::kSpecial) return false;
  switch (op.special()) {
    case ptx::Special::kReservedSmemOffsetBegin:
    case ptx::Special::kReservedSmemOffsetEnd:
    case ptx::Special::kReservedSmemOffsetCap:
    case ptx::Special::kReservedSmemOffset0:
    case ptx::Special::kReservedSmemOffset1:
      return true;
    default:
      return false;
  }
}

BufferLayout LayoutOfParameters(const ptx::Function& fn, const std::vector<ptx::Parameter>& parameters) {
  std::vector<ptx::Variable> variables;
  for (const ptx::Parameter& p : parameters) {
    if (p.in_register) {
      ptx::Variable v;
      v.space = Space::kReg;
      v.type = fn.TypeOfRegister(p.id);
      variables.push_back(v);
    } else {
      variables.push_back(fn.variables[p.id]);
    }
  }
  return LayoutOfBuffer(variables);
}

void EachFunctionAddress(const ptx::Initializer& init, std::vector<FunctionLayout>& out) {
  if (init.symbol == ptx::SymbolKind::kFunction && init.id < out.size()) out[init.id].address_taken = true;
  for (const ptx::Initializer& part : init.parts) EachFunctionAddress(part, out);
}

}  // namespace

bool UsesStack(const ptx::Function& function) {
  return std::any_of(function.instructions.begin(), function.instructions.end(),
                     [](const ptx::Instruction& in) {
                       return in.opcode == ptx::Opcode::kAlloca || in.opcode == ptx::Opcode::kStacksave ||
                              in.opcode == ptx::Opcode::kStackrestore;
                     });
}

BufferLayout LayoutOfBuffer(const std::vector<ptx::Variable>& variables) {
  BufferLayout out;
  for (const ptx::Variable& v : variables) {
    uint64_t size = v.type == ptx::Type::kPred ? 1 : std::max<uint64_t>(v.SizeBytes(), 1);
    uint64_t align = v.type == ptx::Type::kPred ? 1 : std::max<uint64_t>(v.Alignment(), 1);
    uint64_t at = Align(out.bytes, align);
    out.offsets.push_back(static_cast<uint32_t>(at));
    out.sizes.push_back(static_cast<uint32_t>(size));
    out.bytes = static_cast<uint32_t>(at + size);
  }
  return out;
}

Result<ModuleLayout> LayOutModule(const ptx::Module& module, const std::vector<FunctionFacts>& facts) {
  ModuleLayout out;
  out.functions.resize(module.functions.size());
  out.places.resize(module.variables.size(), 0);
  for (size_t i = 0; i < module.functions.size(); ++i) {
    const ptx::Function& fn = module.functions[i];
    FunctionLayout& f = out.functions[i];
    f.params = LayoutOfParameters(fn, fn.parameters);
    f.returns = LayoutOfParameters(fn, fn.returns);
    for (uint32_t v = 0; v < fn.variables.size(); ++v) {
      const ptx::Variable& var = fn.variables[v];
      if (var.space != Space::kLocal) continue;
      f.frame_bytes = Align(f.frame_bytes, std::max<uint32_t>(var.Alignment(), 1));
      f.locals[v] = f.frame_bytes;
      f.frame_bytes += var.SizeBytes();
      if (f.frame_bytes > kMaxLocalBytes) {
        f.refusal = fmt::format("line {}: function `{}` declares more than {} bytes of local memory",
                                var.place.line, fn.name, kMaxLocalBytes);
        f.frame_bytes = 0;
      }
    }
    f.frame_bytes = Align(f.frame_bytes, 16);
    for (const ptx::Instruction& in : fn.instructions) {
      const Operand* callee = in.opcode == ptx::Opcode::kCall ? ptx::ShapeOfCall(in).callee : nullptr;
      for (const Operand& op : in.operands) {
        if (&op == callee) continue;
        EachSymbol(op, [&](ptx::SymbolKind kind, uint32_t id) {
          if (kind == ptx::SymbolKind::kFunction) out.functions[id].address_taken = true;
        });
      }
    }
  }
  for (const ptx::Variable& v : module.variables) {
    if (v.initializer) EachFunctionAddress(*v.initializer, out.functions);
  }
  return out;
}

Result<KernelLayout> LayOutKernel(const ptx::Module& module, const std::vector<FunctionFacts>& facts,
                                  const ModuleLayout& layout, uint32_t kernel) {
  KernelLayout out;
  std::vector<bool> seen(module.functions.size(), false);
  std::vector<uint32_t> work = {kernel};
  bool indirect = false, recursive = false;
  seen[kernel] = true;
  auto reach = [&](uint32_t f) {
    if (!seen[f] && module.functions[f].has_body) {
      seen[f] = true;
      work.push_back(f);
    }
  };
  while (!work.empty()) {
    uint32_t f = work.back();
    work.pop_back();
    out.reachable.push_back(f);
    recursive |= facts[f].recursive;
    for (uint32_t callee : facts[f].callees) reach(callee);
    if (facts[f].indirect_calls && !indirect) {
      indirect = true;
      for (uint32_t c = 0; c < module.functions.size(); ++c) {
        if (layout.functions[c].address_taken && !module.functions[c].entry && !facts[c].inlined) reach(c);
      }
    }
  }
  for (uint32_t f : out.reachable) {
    for (const ptx::Instruction& in : module.functions[f].instructions) {
      for (const Operand& op : in.operands) {
        if (AsksForReserved(op)) out.reserved_shared = kReservedShared;
      }
    }
  }
  out.static_shared = out.reserved_shared;
  // Shared memory: what the reachable functions declare, and what they use of the module's.
  std::vector<bool> used(module.variables.size(), false);
  uint64_t align_of_dynamic = 16;
  auto place = [&](uint32_t scope, uint32_t index, const ptx::Variable& v) {
    if (!IsShared(v.space) || v.IsUnsizedArray()) return;
    out.static_shared = Align(out.static_shared, std::max<uint32_t>(v.Alignment(), 1));
    out.shared[{scope, index}] = out.static_shared;
    out.static_shared += v.SizeBytes();
  };
  for (uint32_t f : out.reachable) {
    const ptx::Function& fn = module.functions[f];
    for (uint32_t v = 0; v < fn.variables.size(); ++v) place(f, v, fn.variables[v]);
    for (const ptx::Instruction& in : fn.instructions) {
      for (const Operand& op : in.operands) {
        EachSymbol(op, [&](ptx::SymbolKind kind, uint32_t id) {
          if (kind == ptx::SymbolKind::kGlobalVariable) used[id] = true;
        });
      }
    }
  }
  for (uint32_t v = 0; v < module.variables.size(); ++v) {
    if (used[v]) place(kModuleScope, v, module.variables[v]);
  }
  for (uint32_t v = 0; v < module.variables.size(); ++v) {
    const ptx::Variable& var = module.variables[v];
    if (used[v] && IsShared(var.space) && var.IsUnsizedArray()) {
      align_of_dynamic = std::max<uint64_t>(align_of_dynamic, var.Alignment());
    }
  }
  uint64_t dynamic = Align(out.static_shared, align_of_dynamic);
  bool any_dynamic = false;
  for (uint32_t f : out.reachable) {
    const ptx::Function& fn = module.functions[f];
    for (uint32_t v = 0; v < fn.variables.size(); ++v) {
      if (IsShared(fn.variables[v].space) && fn.variables[v].IsUnsizedArray()) {
        out.shared[{f, v}] = dynamic;
        any_dynamic = true;
      }
    }
  }
  for (uint32_t v = 0; v < module.variables.size(); ++v) {
    if (used[v] && IsShared(module.variables[v].space) && module.variables[v].IsUnsizedArray()) {
      out.shared[{kModuleScope, v}] = dynamic;
      any_dynamic = true;
    }
  }
  if (any_dynamic) out.static_shared = dynamic;
  out.static_shared -= out.reserved_shared;
  if (out.static_shared > kMaxShared) {
    return Fail(Blame::kUnsupported, "kernel `{}` declares {} bytes of shared memory; a block has {}",
                module.functions[kernel].name, out.static_shared, kMaxShared);
  }
  // Local memory: the deepest chain of frames; recursion and calls through pointers get a stack of fixed
  // size.
  std::vector<uint64_t> depth(module.functions.size(), 0);
  std::vector<uint8_t> state(module.functions.size(), 0);
  std::function<uint64_t(uint32_t)> deepest = [&](uint32_t f) -> uint64_t {
    if (state[f] == 1) return 0;
    if (state[f] == 2) return depth[f];
    state[f] = 1;
    uint64_t below = 0;
    for (uint32_t callee : facts[f].callees) {
      if (module.functions[callee].has_body) below = std::max(below, deepest(callee));
    }
    state[f] = 2;
    return depth[f] = layout.functions[f].frame_bytes + below;
  };
  out.local_bytes = deepest(kernel);
  if (recursive || indirect) out.local_bytes += kStackOfRecursion;
  out.local_bytes = Align(out.local_bytes, 16);
  for (uint32_t f : out.reachable) {
    if (UsesStack(module.functions[f])) out.stack_base = std::max<uint64_t>(out.local_bytes, 16);
  }
  if (out.stack_base) out.local_bytes = out.stack_base + kStackOfAlloca;
  if (out.local_bytes > kMaxLocalBytes) {
    return Fail(Blame::kUnsupported, "kernel `{}` needs {} bytes of local memory a thread; {} is the most",
                module.functions[kernel].name, out.local_bytes, kMaxLocalBytes);
  }
  return out;
}

}  // namespace cuplex::softcuda
