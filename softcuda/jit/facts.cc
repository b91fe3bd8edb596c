#include "softcuda/jit/facts.h"

#include <algorithm>
#include <functional>

#include "softcuda/jit/opcodes.h"

namespace cuplex::softcuda {
namespace {

// Registers times blocks of one function: bits of memory that liveness takes.
constexpr uint64_t kMostLiveness = uint64_t{1} << 32;
// Functions of one module; what follows looks at all pairs of them.
constexpr size_t kMostFunctions = 20000;

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;

template <typename F>
void EachUse(const Instruction& in, F&& visit) {
  if (in.guard) visit(in.guard.reg);
  const Operand* written = WrittenOperand(in);
  for (const Operand& op : in.operands) {
    if (&op != written || in.guard) EachRegister(op, visit);
  }
}

bool EndsBlock(const Instruction& in) {
  switch (in.opcode) {
    case Opcode::kBra:
    case Opcode::kBrx:
    case Opcode::kRet:
    case Opcode::kExit:
    case Opcode::kTrap:
      return true;
    default:
      return false;
  }
}

/// Reads memory that another thread may be about to write, on purpose.
bool WatchesMemory(const Instruction& in) {
  switch (in.opcode) {
    case Opcode::kAtom:
      return true;
    case Opcode::kMbarrier:
      return in.Has(Mod::kTestWait) || in.Has(Mod::kTryWait);
    case Opcode::kLd:
      switch (in.Order()) {
        case Mod::kVolatile:
        case Mod::kRelaxed:
        case Mod::kAcquire:
        case Mod::kMmio:
          return true;
        default:
          return in.Has(Mod::kCv);
      }
    default:
      return false;
  }
}

void BuildBlocks(FunctionFacts& f) {
  const ptx::Function& fn = *f.function;
  f.position.assign(fn.instructions.size(), ptx::kNoIndex);
  f.label_position.assign(fn.labels.size(), 0);
  for (const ptx::Statement& s : fn.statements) {
    if (s.kind == ptx::StatementKind::kInstruction) {
      f.position[s.index] = static_cast<uint32_t>(f.order.size());
      f.order.push_back(s.index);
    } else if (s.kind == ptx::StatementKind::kLabel) {
      f.label_position[s.index] = static_cast<uint32_t>(f.order.size());
    }
  }
  size_t n = f.order.size();
  std::vector<bool> leader(n + 1, false);
  leader[0] = true;
  for (uint32_t p : f.label_position) leader[p] = true;
  for (uint32_t p = 0; p < n; ++p) {
    if (EndsBlock(fn.instructions[f.order[p]])) leader[p + 1] = true;
  }
  f.block_of.assign(n + 1, 0);
  for (uint32_t p = 0; p < n; ++p) {
    if (leader[p]) f.blocks.push_back({p, p, {}, RegisterSet(fn.register_count)});
    f.block_of[p] = static_cast<uint32_t>(f.blocks.size() - 1);
    f.blocks.back().end = p + 1;
  }
  auto to = [&](FunctionFacts::Block& b, uint32_t position) {
    if (position < n) b.next.push_back(f.block_of[position]);
  };
  for (FunctionFacts::Block& b : f.blocks) {
    const Instruction& last = fn.instructions[f.order[b.end - 1]];
    bool falls_through = !EndsBlock(last) || last.guard;
    if (last.opcode == Opcode::kBra && !last.operands.empty() &&
        last.operands[0].symbol == ptx::SymbolKind::kLabel) {
      to(b, f.label_position[last.operands[0].id]);
    }
    if (last.opcode == Opcode::kBrx) {
      for (const Operand& op : last.operands) {
        if (op.symbol == ptx::SymbolKind::kTable && !fn.tables[op.id].calls) {
          for (uint32_t label : fn.tables[op.id].targets) to(b, f.label_position[label]);
        }
      }
    }
    if (falls_through) to(b, b.end);
  }
}

/// Walks a block backwards from its end to `stop` (exclusive), turning live-out into live-before-the-rest.
void WalkBack(const FunctionFacts& f, const FunctionFacts::Block& b, uint32_t stop, RegisterSet& live) {
  for (uint32_t p = b.end; p-- > stop;) {
    const Instruction& in = f.function->instructions[f.order[p]];
    if (!in.guard) EachWrittenRegister(in, [&](uint32_t r) { live.Remove(r); });
    EachUse(in, [&](uint32_t r) { live.Add(r); });
  }
}

void FindLiveness(FunctionFacts& f) {
  if (f.blocks.empty()) {
    f.live_at_entry = RegisterSet(f.function->register_count);
    return;
  }
  std::vector<std::vector<uint32_t>> before(f.blocks.size());
  for (uint32_t i = 0; i < f.blocks.size(); ++i) {
    for (uint32_t n : f.blocks[i].next) before[n].push_back(i);
  }
  std::vector<uint32_t> work;
  std::vector<bool> queued(f.blocks.size(), true);
  for (uint32_t i = 0; i < f.blocks.size(); ++i) work.push_back(i);
  while (!work.empty()) {
    uint32_t i = work.back();
    work.pop_back();
    queued[i] = false;
    RegisterSet live = f.blocks[i].live_out;
    WalkBack(f, f.blocks[i], f.blocks[i].begin, live);
    if (i == 0) f.live_at_entry = live;
    for (uint32_t b : before[i]) {
      if (f.blocks[b].live_out.Unite(live) && !queued[b]) {
        queued[b] = true;
        work.push_back(b);
      }
    }
  }
}

/// Strongly connected components of the control flow graph (Tarjan), without recursion.
std::vector<uint32_t> Components(const FunctionFacts& f) {
  size_t n = f.blocks.size();
  std::vector<uint32_t> index(n, 0), low(n, 0), component(n, ptx::kNoIndex), next(n, 0), stack, path;
  uint32_t count = 0, components = 0;
  for (uint32_t root = 0; root < n; ++root) {
    if (index[root]) continue;
    path.push_back(root);
    while (!path.empty()) {
      uint32_t v = path.back();
      if (!index[v]) {
        index[v] = low[v] = ++count;
        stack.push_back(v);
      }
      bool descended = false;
      for (; next[v] < f.blocks[v].next.size(); ++next[v]) {
        uint32_t w = f.blocks[v].next[next[v]];
        if (!index[w]) {
          path.push_back(w);
          descended = true;
          break;
        }
        if (component[w] == ptx::kNoIndex) low[v] = std::min(low[v], low[w]);
      }
      if (descended) continue;
      if (low[v] == index[v]) {
        for (uint32_t w = ptx::kNoIndex; w != v;) {
          w = stack.back();
          stack.pop_back();
          component[w] = components;
        }
        ++components;
      }
      path.pop_back();
    }
  }
  return component;
}

/// A loop spins where a branch in it depends on memory that the loop watches.
void FindSpins(FunctionFacts& f) {
  const ptx::Function& fn = *f.function;
  f.spins.assign(fn.instructions.size(), false);
  bool any = std::any_of(fn.instructions.begin(), fn.instructions.end(), WatchesMemory);
  if (!any) return;
  std::vector<uint32_t> component = Components(f);
  RegisterSet watched(fn.register_count);
  for (const Instruction& in : fn.instructions) {
    if (WatchesMemory(in)) EachWrittenRegister(in, [&](uint32_t r) { watched.Add(r); });
  }
  for (bool grew = true; grew;) {
    grew = false;
    for (const Instruction& in : fn.instructions) {
      bool tainted = false;
      EachUse(in, [&](uint32_t r) { tainted |= watched.Has(r); });
      if (!tainted) continue;
      EachWrittenRegister(in, [&](uint32_t r) {
        grew |= !watched.Has(r);
        watched.Add(r);
      });
    }
  }
  // Components with a watching instruction and a branch that depends on one.
  std::vector<uint8_t> watches(f.blocks.size(), 0), decides(f.blocks.size(), 0);
  for (const FunctionFacts::Block& b : f.blocks) {
    uint32_t c = component[&b - f.blocks.data()];
    for (uint32_t p = b.begin; p < b.end; ++p) {
      const Instruction& in = fn.instructions[f.order[p]];
      watches[c] |= WatchesMemory(in);
      decides[c] |= in.opcode == Opcode::kBra && in.guard && watched.Has(in.guard.reg);
    }
  }
  for (const FunctionFacts::Block& b : f.blocks) {
    uint32_t i = static_cast<uint32_t>(&b - f.blocks.data());
    uint32_t c = component[i];
    if (!watches[c] || !decides[c]) continue;
    const Instruction& last = fn.instructions[f.order[b.end - 1]];
    if (last.opcode != Opcode::kBra || last.operands.empty() ||
        last.operands[0].symbol != ptx::SymbolKind::kLabel) {
      continue;
    }
    uint32_t target = f.label_position[last.operands[0].id];
    if (target < b.end && component[f.block_of[target]] == c) f.spins[f.order[b.end - 1]] = true;
  }
}

bool WaitsItself(const FunctionFacts& f) {
  for (const Instruction& in : f.function->instructions) {
    const OpcodeRow* row = FindOpcodeRow(in.opcode);
    if (row && row->waits) return true;
  }
  return std::find(f.spins.begin(), f.spins.end(), true) != f.spins.end();
}

}  // namespace

const Operand* WrittenOperand(const Instruction& in) {
  if (in.opcode == Opcode::kCall) return ptx::ShapeOfCall(in).returns;
  const OpcodeRow* row = FindOpcodeRow(in.opcode);
  bool writes = row ? row->writes : true;
  if (!writes || in.operands.empty()) return nullptr;
  // `bar.red` writes; `bar.sync` does not. `red` never does.
  if ((in.opcode == Opcode::kBar || in.opcode == Opcode::kBarrier) && !in.Has(Mod::kRed)) return nullptr;
  const Operand& first = in.operands[0];
  return first.kind == OperandKind::kAddress || first.kind == OperandKind::kTexture ? nullptr : &first;
}

bool RegisterSet::Unite(const RegisterSet& other) {
  bool grew = false;
  for (size_t i = 0; i < words_.size(); ++i) {
    uint64_t to = words_[i] | other.words_[i];
    grew |= to != words_[i];
    words_[i] = to;
  }
  return grew;
}

std::vector<uint32_t> RegisterSet::Members() const {
  std::vector<uint32_t> out;
  for (size_t i = 0; i < words_.size(); ++i) {
    for (uint64_t w = words_[i]; w; w &= w - 1) {
      out.push_back(static_cast<uint32_t>(i * 64 + __builtin_ctzll(w)));
    }
  }
  return out;
}

RegisterSet FunctionFacts::LiveAfter(uint32_t instruction) const {
  uint32_t p = position[instruction];
  const Block& b = blocks[block_of[p]];
  RegisterSet live = b.live_out;
  WalkBack(*this, b, p + 1, live);
  // A guarded instruction at the block's end falls through or not: both ways are in live_out already.
  return live;
}

Result<std::vector<FunctionFacts>> GatherFacts(const ptx::Module& module) {
  if (module.functions.size() > kMostFunctions) {
    return Fail(Blame::kUnsupported, "the module has {} functions; softcuda compiles {}",
                module.functions.size(), kMostFunctions);
  }
  std::vector<FunctionFacts> all(module.functions.size());
  for (size_t i = 0; i < all.size(); ++i) {
    FunctionFacts& f = all[i];
    const ptx::Function& fn = module.functions[i];
    f.function = &fn;
    if (!fn.has_body) continue;
    BuildBlocks(f);
    if (uint64_t{fn.register_count} * f.blocks.size() > kMostLiveness) {
      f.refusal =
          fmt::format("line {}: function `{}` has {} registers and {} blocks, more than softcuda compiles",
                      fn.place.line, fn.name, fn.register_count, f.blocks.size());
      f.live_at_entry = RegisterSet(fn.register_count);
      continue;
    }
    FindLiveness(f);
    FindSpins(f);
    f.waits_itself = WaitsItself(f);
    for (const Instruction& in : fn.instructions) {
      if (in.opcode == Opcode::kExit) f.exits = true;
      if (in.opcode != Opcode::kCall) continue;
      f.has_calls = true;
      ptx::CallShape call = ptx::ShapeOfCall(in);
      if (call.callee && call.callee->symbol == ptx::SymbolKind::kFunction) {
        f.callees.push_back(call.callee->id);
      } else {
        f.indirect_calls = true;
      }
    }
    f.waits = f.waits_itself;
    f.inlined = !fn.entry && (f.waits || f.exits);
  }
  for (bool grew = true; grew;) {
    grew = false;
    for (FunctionFacts& f : all) {
      for (uint32_t callee : f.callees) {
        if (all[callee].waits && !f.waits) f.waits = grew = true;
        if (all[callee].inlined && !f.inlined && !f.function->entry) f.inlined = grew = true;
      }
      if (f.waits && !f.inlined && !f.function->entry && f.function->has_body) f.inlined = grew = true;
    }
  }
  // Recursion: a function that reaches itself.
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<bool> seen(all.size(), false);
    std::vector<uint32_t> work = all[i].callees;
    while (!work.empty()) {
      uint32_t c = work.back();
      work.pop_back();
      if (c == i) all[i].recursive = true;
      if (seen[c]) continue;
      seen[c] = true;
      work.insert(work.end(), all[c].callees.begin(), all[c].callees.end());
    }
    if (all[i].recursive && all[i].inlined) {
      all[i].refusal = fmt::format(
          "line {}: function `{}` calls itself and waits for other threads (or exits), which softcuda does "
          "not run",
          module.functions[i].place.line, module.functions[i].name);
    }
  }
  return all;
}

}  // namespace cuplex::softcuda
