// Emitter: addresses, and the checks that keep them inside what a kernel may touch.
#include "softcuda/jit/emitter.h"

#include <algorithm>
#include <bit>

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>

#include "softcuda/jit/markers.h"
#include "softcuda/jit/opcodes.h"

namespace cuplex::softcuda {

using llvm::BasicBlock;
using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

// How many instructions a check looks ahead for accesses that it can answer for too.
constexpr uint32_t kLookAhead = 128;

namespace {

bool IsNear(int64_t offset) {
  constexpr auto guard = static_cast<int64_t>(AddressWindow::kGuardBytes);
  return offset > -guard && offset < guard - 64;
}

/// Bytes a memory instruction touches at its address; 0 where it touches none.
unsigned AccessBytes(const Instruction& in) {
  switch (in.opcode) {
    case ptx::Opcode::kLd:
    case ptx::Opcode::kLdu:
    case ptx::Opcode::kSt:
      if (in.Has(Mod::kBulk)) return 0;
      return ptx::BitsOf(in.TypeAt()) / 8 * in.VectorWidth();
    case ptx::Opcode::kAtom:
    case ptx::Opcode::kRed:
      return ptx::BitsOf(in.TypeAt()) / 8 * in.VectorWidth();
    default:
      return 0;
  }
}

/// State spaces whose addresses are checked in the same way.
Space KindOf(Space space) {
  switch (space) {
    case Space::kSharedCta:
    case Space::kSharedCluster:
      return Space::kShared;
    case Space::kConst:
    case Space::kGlobal:
      return Space::kNone;
    default:
      return space;
  }
}

/// Whether code after it may run without it having run, or other code in between.
bool EndsRegion(const Instruction& in) {
  const OpcodeRow* row = FindOpcodeRow(in.opcode);
  return !row || row->waits || in.opcode == ptx::Opcode::kCall || in.opcode == ptx::Opcode::kNanosleep;
}

}  // namespace

/// What the straight line of code from `in` on touches around register `reg`: all of it or nothing will run,
/// so one check of the whole is as good as one for each.
Emitter::Extent Emitter::ExtentAround(const Instruction& in, uint32_t reg, int64_t offset,
                                      unsigned bytes) const {
  Extent out{offset, offset + bytes, bytes};
  if (in.guard) return out;
  const FunctionFacts& f = facts();
  uint32_t at = f.position[IndexOf(in)], end = f.blocks[f.block_of[at]].end;
  auto writes = [&](const Instruction& i) {
    bool hit = false;
    EachWrittenRegister(i, [&](uint32_t r) { hit |= r == reg; });
    return hit;
  };
  if (writes(in)) return out;
  for (uint32_t p = at + 1; p < end && p < at + kLookAhead; ++p) {
    const Instruction& next = f.function->instructions[f.order[p]];
    if (EndsRegion(next)) break;
    unsigned size = AccessBytes(next);
    Space space = next.SpaceAt();
    if (size && !next.guard && KindOf(space) == KindOf(in.SpaceAt())) {
      for (const Operand& op : next.operands) {
        if (op.kind != OperandKind::kAddress || op.base != ptx::BaseKind::kRegister || op.id != reg) continue;
        if (!IsNear(op.offset()) || op.offset() % size) continue;
        out.low = std::min(out.low, op.offset());
        out.high = std::max(out.high, op.offset() + size);
        out.alignment = std::max(out.alignment, size);
      }
    }
    if (writes(next)) break;
  }
  return out;
}

void Emitter::ForgetChecks(const Instruction& in) {
  EachWrittenRegister(in, [&](uint32_t r) {
    checked_.erase(r);
    bounded_.erase({0, r});
    bounded_.erase({1, r});
  });
}

/// base + offset for an access of `bytes` bytes, after a check that may cover more accesses that follow.
/// `reg` is the register that base was read from, kNoIndex without one.
Value* Emitter::CheckedPointer(const Instruction& in, Value* base, uint32_t reg, int64_t offset,
                               unsigned bytes) {
  Value* address = offset ? ir.CreateAdd(base, I64(static_cast<uint64_t>(offset))) : base;
  bool shares = IsNear(offset) && offset % static_cast<int64_t>(bytes) == 0;
  Extent extent{offset, offset + bytes, bytes};
  Value* checked = address;
  if (shares) {
    if (auto it = checked_.find(reg); reg != ptx::kNoIndex && it != checked_.end()) {
      const Extent& e = it->second;
      if (e.low <= extent.low && e.high >= extent.high && e.alignment >= bytes) {
        return ir.CreateIntToPtr(address, ir.getPtrTy());
      }
    }
    checked = base;
    if (reg != ptx::kNoIndex) extent = ExtentAround(in, reg, offset, bytes);
    if (!in.guard && reg != ptx::kNoIndex) checked_[reg] = extent;
  }
  if (lockstep()) {
    auto* check = llvm::cast<llvm::CallInst>(
        Mark(marker::kCheckWindow, ir.getVoidTy(),
             {checked, I64(static_cast<uint64_t>(extent.low - (checked == base ? 0 : offset))),
              I64(static_cast<uint64_t>(extent.high - (checked == base ? 0 : offset))), I32(extent.alignment),
              I32(bytes)}));
    check->setOnlyAccessesInaccessibleMemory();
    return ir.CreateIntToPtr(address, ir.getPtrTy());
  }
  const Window& window = build.window.all();
  Value* distance = ir.CreateSub(checked, I64(window.base));
  unsigned shift = static_cast<unsigned>(std::countr_zero(extent.alignment));
  // Rotating right brings the low bits, which alignment wants zero, to the top: one compare sees both.
  if (shift)
    distance = ir.CreateIntrinsic(llvm::Intrinsic::fshr, {Int(64)}, {distance, distance, I64(shift)});
  BasicBlock* on = NewBlock("inside");
  BasicBlock* outside = NewBlock("outside");
  llvm::MDBuilder md(ir.getContext());
  ir.CreateCondBr(ir.CreateICmpULT(distance, I64(window.size >> shift)), on, outside,
                  md.createBranchWeights(1 << 20, 1));
  ir.SetInsertPoint(outside);
  // The access, and what the check answers for, relative to the access (runtime.cc).
  uint64_t span = static_cast<uint32_t>(extent.low - offset) | static_cast<uint64_t>(extent.high - extent.low)
                                                                   << 32;
  uint64_t shape = bytes | static_cast<uint64_t>(extent.alignment) << 8 |
                   static_cast<uint64_t>(static_cast<uint32_t>(checked == base ? offset : 0)) << 32;
  CallRuntime("cuplex_outside_window", ir.getVoidTy(), {context_, lane_, address, I64(span), I64(shape)});
  ir.CreateBr(on);
  ir.SetInsertPoint(on);
  return ir.CreateIntToPtr(address, ir.getPtrTy());
}

/// base + origin + offset, for an access of `bytes` bytes in shared (zone 0), local (1) or parameter memory
/// (2) of `limit` bytes; or an address in the fault zone that tells what is wrong, where some of the accesses
/// that the check answers for are out of bounds or misaligned. `reg` as in CheckedPointer.
Value* Emitter::BoundedPointer(const Instruction& in, Bounds bounds, Value* origin, uint32_t reg,
                               int64_t offset, unsigned bytes) {
  bool shares = reg != ptx::kNoIndex && IsNear(offset) && offset % static_cast<int64_t>(bytes) == 0;
  Extent extent{offset, offset + bytes, bytes};
  auto at = [&](Value* start) {
    return ir.CreateIntToPtr(ir.CreateAdd(start, I64(static_cast<uint64_t>(offset))), ir.getPtrTy());
  };
  if (auto it = bounded_.find({bounds.zone, reg}); shares && it != bounded_.end()) {
    const Extent& e = it->second.first;
    if (e.low <= extent.low && e.high >= extent.high && e.alignment >= bytes) return at(it->second.second);
  }
  if (shares) extent = ExtentAround(in, reg, offset, bytes);
  // The lowest byte's offset must be a multiple of the alignment, and leave room for the rest.
  if (shares) {
    auto alignment = static_cast<int64_t>(extent.alignment);
    int64_t past = extent.low % alignment;
    extent.low -= past < 0 ? past + alignment : past;
  }
  if (lockstep()) {
    auto* check = llvm::cast<llvm::CallInst>(
        Mark(marker::kCheckBounds, ir.getVoidTy(),
             {origin, bounds.limit, I64(static_cast<uint64_t>(extent.low)),
              I64(static_cast<uint64_t>(extent.high)), I32(extent.alignment), I32(bytes), I32(bounds.zone)}));
    check->setOnlyAccessesInaccessibleMemory();
    Value* start = ir.CreateAdd(bounds.base, origin);
    if (shares && !in.guard) bounded_[{bounds.zone, reg}] = {extent, start};
    return at(start);
  }
  unsigned shift = static_cast<unsigned>(std::countr_zero(extent.alignment));
  auto span = static_cast<uint64_t>(extent.high - extent.low);
  Value* lowest = ir.CreateAdd(origin, I64(static_cast<uint64_t>(extent.low)));
  Value* turned = lowest;
  if (shift) turned = ir.CreateIntrinsic(llvm::Intrinsic::fshr, {Int(64)}, {lowest, lowest, I64(shift)});
  Value* starts = ir.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, bounds.limit, I64(span - 1));
  Value* ok =
      ir.CreateICmpULT(turned, ir.CreateLShr(ir.CreateAdd(starts, I64(extent.alignment - 1)), I64(shift)));
  uint64_t zone = build.window.fault_zone().base + bounds.zone * AddressWindow::kZoneBytes;
  Value* odd = ir.CreateICmpNE(ir.CreateAnd(lowest, I64(extent.alignment - 1)), I64(0));
  Value* lost = ir.CreateAdd(ir.CreateAnd(origin, I64(0xffffffff)),
                             ir.CreateSelect(odd, I64(zone + AddressWindow::kMisalignedZones), I64(zone)));
  Value* start = ir.CreateSelect(ok, ir.CreateAdd(bounds.base, origin), lost);
  if (shares && !in.guard) bounded_[{bounds.zone, reg}] = {extent, start};
  return at(start);
}

Result<Value*> Emitter::SharedOffset(const Instruction& in, uint32_t scope, const Operand& op) {
  auto it = build.kernel.shared.find({scope, op.id});
  if (it == build.kernel.shared.end()) return Refuse(in, "uses a shared variable that has no place");
  return I64(it->second + op.bits);
}

Result<Value*> Emitter::SymbolValue(const Instruction& in, const Operand& op) {
  switch (op.symbol) {
    case ptx::SymbolKind::kFunction:
      if (!build.module.functions[op.id].has_body) {
        return Refuse(in, fmt::format("takes the address of `{}`, which the module does not define",
                                      build.module.functions[op.id].name));
      }
      return I64(ModuleLayout::FunctionToken(op.id));
    case ptx::SymbolKind::kGlobalVariable: {
      const ptx::Variable& v = build.module.variables[op.id];
      if (v.space == Space::kShared || v.space == Space::kSharedCta)
        return SharedOffset(in, kModuleScope, op);
      if (v.space != Space::kGlobal && v.space != Space::kConst) {
        return Refuse(
            in, fmt::format("uses `{}`, which lies in a state space that softcuda does not have", v.name));
      }
      return ir.CreateAdd(build.VariableAddress(op.id), I64(op.bits));
    }
    case ptx::SymbolKind::kLocalVariable: {
      const ptx::Variable& v = frame_->fn->variables[op.id];
      if (v.space == Space::kShared || v.space == Space::kSharedCta) {
        return SharedOffset(in, frame_->index, op);
      }
      const auto& locals = build.layout.functions[frame_->index].locals;
      if (auto local = locals.find(op.id); v.space == Space::kLocal && local != locals.end()) {
        uint64_t at = frame_->local_base + local->second + op.bits;
        return local_start_ ? ir.CreateAdd(local_start_, I64(at)) : static_cast<Value*>(I64(at));
      }
      if (v.space == Space::kParam && frame_->fn->entry) {
        for (size_t i = 0; i < frame_->fn->parameters.size(); ++i) {
          if (frame_->fn->parameters[i].id == op.id) {
            return I64(build.layout.functions[frame_->index].params.offsets[i] + op.bits);
          }
        }
      }
      return Refuse(in, fmt::format("takes the address of `{}`, which has none in softcuda", v.name));
    }
    default:
      return Refuse(in, "uses a symbol that has no address");
  }
}

Result<Value*> Emitter::ParamVariable(const Instruction& in, uint32_t variable, int64_t offset,
                                      unsigned bytes) {
  const ptx::Variable& v = frame_->fn->variables[variable];
  uint64_t size = v.SizeBytes();
  if (offset < 0 || static_cast<uint64_t>(offset) + bytes > size) {
    return Refuse(
        in, fmt::format("touches bytes {}..{} of `{}`, which has {}", offset, offset + bytes, v.name, size));
  }
  if (frame_->fn->entry) {
    for (size_t i = 0; i < frame_->fn->parameters.size(); ++i) {
      if (frame_->fn->parameters[i].id != variable) continue;
      uint64_t in_buffer =
          build.layout.functions[frame_->index].params.offsets[i] + static_cast<uint64_t>(offset);
      Value* params = ContextField(offsetof(BlockContext, params), 64);
      return ir.CreateIntToPtr(ir.CreateAdd(params, I64(in_buffer)), ir.getPtrTy());
    }
  }
  Value*& at = frame_->params[variable];
  if (!at) at = Scratch(size, v.Alignment());
  return ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), at, static_cast<uint64_t>(offset));
}

bool Emitter::IsKernelParameter(const Operand& op) const {
  if (!frame_->fn->entry) return false;
  if (op.base != ptx::BaseKind::kSymbol) return true;
  for (const ptx::Parameter& p : frame_->fn->parameters) {
    if (op.symbol == ptx::SymbolKind::kLocalVariable && p.id == op.id) return true;
  }
  return false;
}

Value* Emitter::Scratch(uint64_t bytes, uint64_t align) {
  if (waits()) {
    build.lane_bytes = (build.lane_bytes + 15) / 16 * 16;
    llvm::IRBuilder<> at(entry_, entry_->end());
    Value* v = at.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), lane_, build.lane_bytes);
    build.lane_bytes += static_cast<uint32_t>(std::max<uint64_t>(bytes, 1));
    return v;
  }
  llvm::IRBuilder<> at(entry_, entry_->begin());
  auto* v = at.CreateAlloca(llvm::ArrayType::get(Int(8), std::max<uint64_t>(bytes, 1)));
  v->setAlignment(llvm::Align(std::max<uint64_t>(std::bit_ceil(std::max<uint64_t>(align, 1)), 16)));
  return v;
}

Value* Emitter::LocalTop() {
  return local_start_ ? ir.CreateAdd(local_start_, I64(local_top_)) : static_cast<Value*>(I64(local_top_));
}

Result<Value*> Emitter::PlainAddress(const Instruction& in, const Operand& op, Space space) {
  if (op.kind != OperandKind::kAddress || !op.parts.empty()) return Refuse(in, "needs an address there");
  Value* base = I64(0);
  if (op.base == ptx::BaseKind::kRegister) {
    unsigned width = ptx::BitsOf(frame_->fn->TypeOfRegister(op.id));
    TRY(base, Read(in, Operand::Register(op.id), width == 64 ? Type::kB64 : Type::kB32));
    base = ir.CreateZExt(base, Int(64));
  } else if (op.base == ptx::BaseKind::kSymbol) {
    const ptx::Variable* v = op.symbol == ptx::SymbolKind::kGlobalVariable  ? &build.module.variables[op.id]
                             : op.symbol == ptx::SymbolKind::kLocalVariable ? &frame_->fn->variables[op.id]
                                                                            : nullptr;
    if (!v) return Refuse(in, "has an address that is no variable's");
    bool fits = KindOf(space) == KindOf(v->space) || (space == Space::kNone && v->space == Space::kGlobal);
    if (!fits) return Refuse(in, "names a variable of another state space");
    Operand symbol = op;
    symbol.kind = OperandKind::kSymbol;
    symbol.bits = 0;
    TRY(base, SymbolValue(in, symbol));
  }
  return ir.CreateAdd(base, I64(op.bits));
}

Result<Value*> Emitter::Address(const Instruction& in, const Operand& op, Space space, unsigned bytes) {
  if (op.kind != OperandKind::kAddress) return Refuse(in, "needs an address there");
  bool shared = space == Space::kShared || space == Space::kSharedCta || space == Space::kSharedCluster;
  bool param = space == Space::kParam || space == Space::kParamEntry || space == Space::kParamFunc;
  if (!op.parts.empty()) return Refuse(in, "indexes a symbol, which softcuda does not support");
  if (op.base == ptx::BaseKind::kSymbol && op.symbol == ptx::SymbolKind::kLocalVariable &&
      frame_->fn->variables[op.id].space == Space::kParam) {
    if (!param) return Refuse(in, "names a parameter in another state space");
    TRY(Value * at, ParamVariable(in, op.id, op.offset(), bytes));
    return at;
  }
  Value* base = nullptr;
  int64_t offset = op.offset();
  uint32_t reg = op.base == ptx::BaseKind::kRegister ? op.id : ptx::kNoIndex;
  if (op.base == ptx::BaseKind::kRegister) {
    Operand r = Operand::Register(op.id);
    unsigned width = ptx::BitsOf(frame_->fn->TypeOfRegister(op.id));
    TRY(base, Read(in, r, width == 64 ? Type::kB64 : Type::kB32));
    bool bounded = shared || space == Space::kLocal || param;
    base = lockstep() && bounded && width == 32 ? Mark(marker::kOffset, Int(64), {base}, true)
                                                : ir.CreateZExt(base, Int(64));
  } else if (op.base == ptx::BaseKind::kSymbol) {
    Operand symbol = op;
    symbol.kind = OperandKind::kSymbol;
    symbol.bits = 0;
    const ptx::Variable* v = op.symbol == ptx::SymbolKind::kGlobalVariable  ? &build.module.variables[op.id]
                             : op.symbol == ptx::SymbolKind::kLocalVariable ? &frame_->fn->variables[op.id]
                                                                            : nullptr;
    if (!v) return Refuse(in, "has an address that is no variable's");
    Space of = v->space == Space::kSharedCta ? Space::kShared : v->space;
    if (space == Space::kNone && (of == Space::kShared || of == Space::kLocal))
      space = of;  // as ptxas takes it
    shared |= space == Space::kShared;
    Space wanted = shared ? Space::kShared : space;
    if (wanted != Space::kNone && wanted != of) return Refuse(in, "names a variable of another state space");
    TRY(base, SymbolValue(in, symbol));
    bool within = offset >= 0 && static_cast<uint64_t>(offset) + bytes <= v->SizeBytes();
    bool aligned = (offset % bytes) == 0 && v->Alignment() % bytes == 0;
    if (within && aligned) {
      Value* at = ir.CreateAdd(base, I64(static_cast<uint64_t>(offset)));
      if (of == Space::kShared) at = ir.CreateAdd(shared_base(), at);
      // A called function's frame may lie past the thread's stack, so there the bound is still checked.
      if (of == Space::kLocal && !local_start_) at = ir.CreateAdd(local_base(), at);
      if (of != Space::kLocal || !local_start_) return ir.CreateIntToPtr(at, ir.getPtrTy());
    }
  } else {
    base = I64(0);
  }
  if (shared || space == Space::kLocal || param) {
    auto field = [&](size_t at) { return ir.CreateZExt(ContextField(at, 32), Int(64)); };
    Bounds bounds;
    if (shared) {
      bounds = {0, shared_base(), field(offsetof(BlockContext, shared_bytes))};
    } else if (param) {
      if (!frame_->fn->entry) {
        return Refuse(in, "computes an address of a parameter, which softcuda supports in kernels only");
      }
      Value* limit = I64((build.layout.functions[frame_->index].params.bytes + 15) / 16 * 16);
      bounds = {2, ContextField(offsetof(BlockContext, params), 64), limit};
    } else {
      bounds = {1, local_base(), field(offsetof(BlockContext, local_bytes))};
    }
    return BoundedPointer(in, bounds, base, param ? ptx::kNoIndex : reg, offset, bytes);
  }
  if (space != Space::kNone && space != Space::kGlobal && space != Space::kConst) {
    return Refuse(in, "addresses a state space that softcuda does not have");
  }
  return CheckedPointer(in, base, reg, offset, bytes);
}

}  // namespace cuplex::softcuda
