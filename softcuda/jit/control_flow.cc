// bra brx call ret exit trap nanosleep: where a thread goes next.
#include "softcuda/jit/emitter.h"
#include "softcuda/jit/families.h"
#include "softcuda/jit/system_functions.h"

namespace cuplex::softcuda {
namespace {

// ThreadSanitizer holds signals back until the thread calls something it knows, which an endless loop of
// kernel code never does; so there the loop asks.
#if __has_feature(thread_sanitizer)
constexpr bool kPollsForAbort = true;
#else
constexpr bool kPollsForAbort = false;
#endif

using llvm::Value;
using ptx::Instruction;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Type;

bool IsParamVariable(Emitter& e, const Operand& op) {
  return op.kind == OperandKind::kSymbol && op.symbol == ptx::SymbolKind::kLocalVariable &&
         e.function().variables[op.id].space == ptx::Space::kParam;
}

Value* At(Emitter& e, Value* buffer, uint32_t offset) {
  return e.ir.CreateConstInBoundsGEP1_64(e.ir.getInt8Ty(), buffer, offset);
}

bool FitsRegister(uint32_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8; }

Status PassArguments(Emitter& e, const Instruction& in, const std::vector<Operand>& given,
                     const BufferLayout& layout, Value* buffer) {
  if (given.size() != layout.offsets.size()) {
    return e.Refuse(in, fmt::format("passes {} arguments where the callee takes {}", given.size(),
                                    layout.offsets.size()));
  }
  for (size_t i = 0; i < given.size(); ++i) {
    uint32_t size = layout.sizes[i];
    Value* to = At(e, buffer, layout.offsets[i]);
    if (IsParamVariable(e, given[i])) {
      TRY(Value * from, e.ParamVariable(in, given[i].id, 0, size));
      e.ir.CreateMemCpy(to, llvm::Align(1), from, llvm::Align(1), size);
      continue;
    }
    if (!FitsRegister(size)) return e.Refuse(in, "passes an argument by register that no register holds");
    Type t = size == 1 ? Type::kB8 : size == 2 ? Type::kB16 : size == 4 ? Type::kB32 : Type::kB64;
    TRY(Value * v, e.Read(in, given[i], t));
    e.ir.CreateAlignedStore(v, to, llvm::Align(1));
  }
  return {};
}

Status TakeReturns(Emitter& e, const Instruction& in, const std::vector<Operand>& given,
                   const BufferLayout& layout, Value* buffer) {
  if (given.size() != layout.offsets.size()) {
    return e.Refuse(
        in, fmt::format("takes {} results where the callee gives {}", given.size(), layout.offsets.size()));
  }
  for (size_t i = 0; i < given.size(); ++i) {
    uint32_t size = layout.sizes[i];
    Value* from = At(e, buffer, layout.offsets[i]);
    if (IsParamVariable(e, given[i])) {
      TRY(Value * to, e.ParamVariable(in, given[i].id, 0, size));
      e.ir.CreateMemCpy(to, llvm::Align(1), from, llvm::Align(1), size);
      continue;
    }
    if (!FitsRegister(size)) return e.Refuse(in, "takes a result in a register that no register holds");
    TRY(e.Write(in, given[i], e.ir.CreateAlignedLoad(e.Int(size * 8), from, llvm::Align(1))));
  }
  return {};
}

/// Calls the runtime's function that does the work of `callee`.
void CallSystem(Emitter& e, const SystemFunction& callee, Value* args, Value* returns,
                const FunctionLayout& layout) {
  std::vector<Value*> given = {e.context(), e.lane()};
  for (size_t i = 0; i < callee.parameters.size(); ++i) {
    given.push_back(e.ir.CreateAlignedLoad(e.Int(callee.parameters[i] * 8),
                                           At(e, args, layout.params.offsets[i]), llvm::Align(1)));
  }
  llvm::Type* result = callee.result ? e.Int(callee.result * 8) : e.ir.getVoidTy();
  Value* value = e.CallRuntime(std::string(callee.runtime), result, given);
  if (callee.result) e.ir.CreateAlignedStore(value, At(e, returns, 0), llvm::Align(1));
  if (!callee.returns) {
    e.ir.CreateUnreachable();
    e.ir.SetInsertPoint(e.NewBlock("dead"));
  }
}

Status CallIndirect(Emitter& e, const Instruction& in, const ptx::CallShape& call) {
  bool table = call.prototype && call.prototype->symbol == ptx::SymbolKind::kTable;
  if (!call.callee->IsRegister() || !call.prototype ||
      !(call.prototype->symbol == ptx::SymbolKind::kPrototype ||
        (table && e.function().tables[call.prototype->id].calls))) {
    return e.Refuse(in,
                    "must call a function, or through a register with a prototype or a table of functions");
  }
  std::vector<uint32_t> candidates;
  BufferLayout params, returns;
  const ptx::Module& module = e.build.module;
  if (table) {
    candidates = e.function().tables[call.prototype->id].targets;
    if (candidates.empty()) return e.Refuse(in, "calls through an empty table");
    params = e.build.layout.functions[candidates[0]].params;
    returns = e.build.layout.functions[candidates[0]].returns;
    for (uint32_t i : candidates) {
      const FunctionLayout& f = e.build.layout.functions[i];
      if (module.functions[i].entry || !module.functions[i].has_body || f.params != params ||
          f.returns != returns) {
        return e.Refuse(in, "calls through a table of functions that differ in their parameters");
      }
    }
  } else {
    const ptx::Prototype& p = e.function().prototypes[call.prototype->id];
    params = LayoutOfBuffer(p.parameters);
    returns = LayoutOfBuffer(p.returns);
    for (uint32_t i = 0; i < module.functions.size(); ++i) {
      const FunctionLayout& f = e.build.layout.functions[i];
      if (f.address_taken && !module.functions[i].entry && module.functions[i].has_body &&
          f.params == params && f.returns == returns) {
        candidates.push_back(i);
      }
    }
  }
  Value* args = e.Scratch(params.bytes, 16);
  Value* results = e.Scratch(returns.bytes, 16);
  static const std::vector<Operand> kNone;
  TRY(PassArguments(e, in, call.arguments ? call.arguments->parts : kNone, params, args));
  TRY(Value * callee, e.Read(in, *call.callee, Type::kB64));
  llvm::BasicBlock* done = e.NewBlock("called");
  llvm::BasicBlock* lost = e.NewBlock("bad.callee");
  llvm::SwitchInst* choose = e.ir.CreateSwitch(callee, lost, static_cast<unsigned>(candidates.size()));
  for (uint32_t i : candidates) {
    if (e.build.facts[i].inlined) {
      return e.Refuse(
          in, fmt::format("may call `{}`, which waits for other threads, through a pointer; softcuda does "
                          "not support that",
                          module.functions[i].name));
    }
    llvm::BasicBlock* b = e.NewBlock("callee");
    choose->addCase(e.ir.getInt64(ModuleLayout::FunctionToken(i)), b);
    e.ir.SetInsertPoint(b);
    e.ir.CreateCall(e.build.DeviceFunction(i), {e.context(), e.lane(), e.LocalTop(), args, results});
    e.ir.CreateBr(done);
  }
  e.ir.SetInsertPoint(lost);
  e.CallRuntime("cuplex_bad_callee", e.ir.getVoidTy(), {e.context(), e.lane(), callee});
  e.ir.CreateUnreachable();
  e.ir.SetInsertPoint(done);
  return TakeReturns(e, in, call.returns ? call.returns->parts : kNone, returns, results);
}

}  // namespace

Status EmitBra(Emitter& e, const Instruction& in) {
  if (in.operands.size() != 1 || in.operands[0].symbol != ptx::SymbolKind::kLabel) {
    return e.Refuse(in, "needs a label");
  }
  if (kPollsForAbort && e.facts().label_position[in.operands[0].id] <= e.facts().position[e.IndexOf(in)]) {
    e.CallRuntime("cuplex_poll", e.ir.getVoidTy(), {e.lane()});
  }
  e.ir.CreateBr(e.LabelBlock(in.operands[0].id));
  e.ir.SetInsertPoint(e.NewBlock("dead"));
  return {};
}

Status EmitBrx(Emitter& e, const Instruction& in) {
  if (in.operands.size() != 2 || in.operands[1].symbol != ptx::SymbolKind::kTable) {
    return e.Refuse(in, "needs an index and a table of labels");
  }
  TRY(Value * index, e.Read(in, in.operands[0], Type::kB32));
  const ptx::Table& table = e.function().tables[in.operands[1].id];
  if (table.calls) return e.Refuse(in, "needs an index and a table of labels");
  llvm::BasicBlock* lost = e.NewBlock("bad.index");
  llvm::SwitchInst* choose = e.ir.CreateSwitch(index, lost, static_cast<unsigned>(table.targets.size()));
  for (size_t i = 0; i < table.targets.size(); ++i) {
    choose->addCase(e.I32(static_cast<uint32_t>(i)), e.LabelBlock(table.targets[i]));
  }
  e.ir.SetInsertPoint(lost);
  e.RaiseTrap();
  return {};
}

Status EmitRet(Emitter& e, const Instruction&) {
  e.Return();
  return {};
}

Status EmitExit(Emitter& e, const Instruction&) {
  e.Exit();
  return {};
}

Status EmitTrap(Emitter& e, const Instruction&) {
  e.RaiseTrap();
  return {};
}

Status EmitNanosleep(Emitter& e, const Instruction& in) {
  // Sleeping lets others run; nobody would be helped by the worker's sleep.
  return e.waits() ? e.Suspend(in, Step::kYield) : Status();
}

Status EmitCall(Emitter& e, const Instruction& in) {
  ptx::CallShape call = ptx::ShapeOfCall(in);
  if (!call.callee) return e.Refuse(in, "names nothing to call");
  if (call.callee->symbol != ptx::SymbolKind::kFunction) return CallIndirect(e, in, call);
  uint32_t index = call.callee->id;
  const ptx::Function& callee = e.build.module.functions[index];
  const FunctionLayout& layout = e.build.layout.functions[index];
  if (callee.entry) return e.Refuse(in, fmt::format("calls the kernel `{}`", callee.name));
  Value* args = e.Scratch(layout.params.bytes, 16);
  Value* returns = e.Scratch(layout.returns.bytes, 16);
  static const std::vector<Operand> kNone;
  TRY(PassArguments(e, in, call.arguments ? call.arguments->parts : kNone, layout.params, args));
  if (!callee.has_body) {
    const SystemFunction* system = FindSystemFunction(callee.name, layout);
    if (!system) {
      return e.Refuse(in,
                      fmt::format("calls `{}`, which the module does not define and softcuda does not have",
                                  callee.name));
    }
    CallSystem(e, *system, args, returns, layout);
  } else if (e.build.facts[index].inlined || (e.lockstep() && !e.build.facts[index].recursive)) {
    if (!e.waits() && !e.lockstep() && e.build.facts[index].waits)
      return e.Refuse(in, "calls a function that waits for other threads");
    TRY(e.InlineCall(in, index, args, returns));
  } else {
    e.ir.CreateCall(e.build.DeviceFunction(index), {e.context(), e.lane(), e.LocalTop(), args, returns});
  }
  return TakeReturns(e, in, call.returns ? call.returns->parts : kNone, layout.returns, returns);
}

}  // namespace cuplex::softcuda
