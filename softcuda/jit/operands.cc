// Emitter: operands, special registers, fields of the context, and the words for floats.
#include "softcuda/jit/emitter.h"

#include <bit>

#include <llvm/IR/ConstantRange.h>
#include <llvm/IR/MDBuilder.h>

#include "softcuda/jit/markers.h"
#include "softcuda/jit/program.h"

namespace cuplex::softcuda {

using llvm::BasicBlock;
using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

namespace {

/// Says that a value of 32 bits is always below the bound.
Value* Below(Value* v, uint32_t bound) {
  llvm::ConstantRange range(llvm::APInt(32, 0), llvm::APInt(32, bound));
  if (auto* call = llvm::dyn_cast<llvm::CallInst>(v)) {
    call->addRangeRetAttr(range);
  } else if (auto* load = llvm::dyn_cast<llvm::LoadInst>(v)) {
    llvm::MDBuilder md(v->getContext());
    load->setMetadata(llvm::LLVMContext::MD_range, md.createRange(range.getLower(), range.getUpper()));
  }
  return v;
}

}  // namespace

Value* Emitter::ContextField(size_t offset, unsigned bits) {
  if (lockstep()) {  // once, where every use can see that it is the same
    Value*& known = context_fields_[offset];
    if (known && known->getType()->isIntegerTy(bits)) return known;
    llvm::IRBuilder<> top(entry_, entry_->end());
    auto* load = top.CreateLoad(Int(bits), top.CreateConstInBoundsGEP1_64(top.getInt8Ty(), context_, offset));
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(ir.getContext(), {}));
    return known = load;
  }
  auto* load = ir.CreateLoad(Int(bits), ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), context_, offset));
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(ir.getContext(), {}));
  return load;
}

Value* Emitter::LaneField(size_t offset, unsigned bits) {
  if (lockstep()) {
    if (offset == offsetof(Lane, local)) return Mark(marker::kLocal, Int(64), {}, true);
    if (offset == offsetof(Lane, linear)) {
      return Below(Mark(marker::kLinear, Int(32), {}, true),
                   build.block[0] * build.block[1] * build.block[2]);
    }
    size_t axis = (offset - offsetof(Lane, tid)) / sizeof(uint32_t);
    return Below(Mark(marker::kTid[axis], Int(32), {}, true), build.block[axis]);
  }
  auto* load = ir.CreateLoad(Int(bits), ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), lane_, offset));
  load->setMetadata(llvm::LLVMContext::MD_alias_scope, own_scope_);
  // A stepped thread keeps its record; the record of a loop is each thread's in turn, but for `local`.
  if (build.waits || offset == offsetof(Lane, local)) {
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(ir.getContext(), {}));
  }
  return load;
}

void Emitter::StoreLane(size_t offset, Value* value, bool is_volatile) {
  auto* store =
      ir.CreateStore(value, ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), lane_, offset), is_volatile);
  store->setMetadata(llvm::LLVMContext::MD_alias_scope, own_scope_);
}

Value* Emitter::LoadLane(size_t offset, unsigned bits) {
  auto* load = ir.CreateLoad(Int(bits), ir.CreateConstInBoundsGEP1_64(ir.getInt8Ty(), lane_, offset));
  load->setMetadata(llvm::LLVMContext::MD_alias_scope, own_scope_);
  return load;
}

void Emitter::MarkProgramAccess(llvm::Instruction* access) {
  access->setMetadata(llvm::LLVMContext::MD_noalias, own_scope_);
}

Value* Emitter::Special(const Instruction& in, ptx::Special special, Mod component) {
  using S = ptx::Special;
  int axis = component == Mod::kY ? 1 : component == Mod::kZ ? 2 : 0;
  if (component == Mod::kW) return I32(0);
  auto of = [&](size_t offset) { return ContextField(offset + 4 * axis, 32); };
  auto linear = [&]() -> Value* {
    if (shape_ != Shape::kLoop) return LaneField(offsetof(Lane, linear), 32);
    return LoadLane(offsetof(Lane, linear), 32);
  };
  auto laneid = [&]() -> Value* {
    if (lockstep()) return Below(Mark(marker::kLaneid, Int(32), {}, true), kWarpSize);
    return ir.CreateAnd(linear(), I32(31));
  };
  auto bit = [&] { return ir.CreateShl(I32(1), laneid()); };
  switch (special) {
    case S::kTid:
      return shape_ == Shape::kLoop ? tid_[axis] : LaneField(offsetof(Lane, tid) + 4 * axis, 32);
    case S::kNtid:
      if (lockstep()) return I32(build.block[static_cast<size_t>(axis)]);
      return of(offsetof(BlockContext, ntid));
    case S::kCtaid:
    case S::kClusterid:
      return Below(of(offsetof(BlockContext, ctaid)), 0x7fffffff);
    case S::kNctaid:
    case S::kNclusterid:
      return Below(of(offsetof(BlockContext, nctaid)), 0x80000000);
    case S::kClusterCtaid:
    case S::kClusterCtarank:
      return I32(0);
    case S::kClusterNctaid:
    case S::kClusterNctarank:
      return I32(1);
    case S::kIsExplicitCluster: {
      const ptx::Function& kernel = build.module.functions[build.kernel.reachable[0]];
      return ir.getInt1(kernel.FindDirective("explicitcluster") || kernel.FindDirective("reqnctapercluster"));
    }
    case S::kLaneid:
      return laneid();
    case S::kWarpid:
      if (lockstep()) {
        return Below(Mark(marker::kWarpid, Int(32), {}, true), kMaxThreadsPerBlock / kWarpSize);
      }
      return ir.CreateLShr(linear(), I32(5));
    case S::kNwarpid:
      return I32(kMaxThreadsPerBlock / kWarpSize);
    case S::kSmid:
      return ContextField(offsetof(BlockContext, smid), 32);
    case S::kNsmid:
      return ContextField(offsetof(BlockContext, nsmid), 32);
    case S::kGridid:
      return ContextField(offsetof(BlockContext, grid_id), 64);
    case S::kLanemaskEq:
      return bit();
    case S::kLanemaskLt:
      return ir.CreateSub(bit(), I32(1));
    case S::kLanemaskLe:
      return ir.CreateSub(ir.CreateShl(bit(), I32(1)), I32(1));
    case S::kLanemaskGe:
      return ir.CreateNeg(bit());
    case S::kLanemaskGt:
      return ir.CreateNeg(ir.CreateShl(bit(), I32(1)));
    case S::kClock:
    case S::kClock64:
    case S::kClockHi: {
      Value* now = ir.CreateIntrinsic(llvm::Intrinsic::readcyclecounter, {}, {});
      if (special == S::kClock64) return now;
      return ir.CreateTrunc(special == S::kClock ? now : ir.CreateLShr(now, I64(32)), Int(32));
    }
    case S::kGlobaltimer:
    case S::kGlobaltimerLo:
    case S::kGlobaltimerHi: {
      Value* now = CallRuntime("cuplex_globaltimer", Int(64), {});
      if (special == S::kGlobaltimer) return now;
      return ir.CreateTrunc(special == S::kGlobaltimerLo ? now : ir.CreateLShr(now, I64(32)), Int(32));
    }
    case S::kDynamicSmemSize:
      return ContextField(offsetof(BlockContext, dynamic_shared), 32);
    case S::kTotalSmemSize:
      return ir.CreateSub(ContextField(offsetof(BlockContext, shared_bytes), 32),
                          I32(static_cast<uint32_t>(build.kernel.reserved_shared)));
    case S::kAggrSmemSize:
      return ContextField(offsetof(BlockContext, shared_bytes), 32);
    // A kernel that asks for the shared memory kept for the system has some, at the start: half of it at
    // either of two offsets.
    case S::kReservedSmemOffsetBegin:
    case S::kReservedSmemOffset0:
      return I32(0);
    case S::kReservedSmemOffset1:
      return I32(kReservedShared / 2);
    case S::kReservedSmemOffsetEnd:
    case S::kReservedSmemOffsetCap:
      return I32(kReservedShared);
    case S::kCurrentGraphExec:
      return I64(0);
    default:
      if (special == static_cast<S>(static_cast<uint32_t>(S::kEnvreg0) + 1)) {
        return ContextField(offsetof(BlockContext, envreg1), 32);
      }
      if (special == static_cast<S>(static_cast<uint32_t>(S::kEnvreg0) + 2)) {
        return ContextField(offsetof(BlockContext, envreg2), 32);
      }
      if (special >= S::kEnvreg0 &&
          static_cast<uint32_t>(special) < static_cast<uint32_t>(S::kEnvreg0) + 32) {
        return I32(0);
      }
      // Performance counters count nothing.
      if (special >= S::kPm0 && static_cast<uint32_t>(special) < static_cast<uint32_t>(S::kPm0) + 8)
        return I32(0);
      if (special >= S::kPm0x64 && static_cast<uint32_t>(special) < static_cast<uint32_t>(S::kPm0x64) + 8) {
        return I64(0);
      }
      return nullptr;
  }
}

// ----------------------------------------------------------------------------------------------- operands

llvm::Type* Emitter::TypeFor(Type type) {
  switch (type) {
    case Type::kF16:
      return ir.getHalfTy();
    case Type::kF32:
    case Type::kTf32:
      return ir.getFloatTy();
    case Type::kF64:
      return ir.getDoubleTy();
    case Type::kF16x2:
      return llvm::FixedVectorType::get(ir.getHalfTy(), 2);
    case Type::kBf16x2:
    case Type::kU16x2:
    case Type::kS16x2:
      return llvm::FixedVectorType::get(Int(16), 2);
    case Type::kF32x2:
      return llvm::FixedVectorType::get(ir.getFloatTy(), 2);
    default:
      return Int(std::max(1u, ptx::BitsOf(type)));
  }
}

Value* Emitter::ToBits(Value* value) {
  llvm::Type* t = value->getType();
  if (t->isIntegerTy()) return value;
  return ir.CreateBitCast(value, Int(static_cast<unsigned>(t->getPrimitiveSizeInBits())));
}

Value* Emitter::FromBits(Value* bits, Type type) {
  llvm::Type* want = TypeFor(type);
  unsigned width = static_cast<unsigned>(want->getPrimitiveSizeInBits());
  Value* v = ir.CreateZExtOrTrunc(ToBits(bits), Int(width));
  return want->isIntegerTy() ? v : ir.CreateBitCast(v, want);
}

Result<Value*> Emitter::Read(const Instruction& in, const Operand& operand, Type type) {
  llvm::Type* want = TypeFor(type);
  switch (operand.kind) {
    case OperandKind::kRegister: {
      if (operand.component != Mod::kNone)
        return Refuse(in, "reads a part of a register, which softcuda does not support");
      if (frame_->fn->RangeOf(operand.id).vector != 1) {
        return Refuse(in, "uses a vector register, which softcuda does not support");
      }
      Type declared = frame_->fn->TypeOfRegister(operand.id);
      llvm::Type* t = declared == Type::kF32   ? ir.getFloatTy()
                      : declared == Type::kF64 ? ir.getDoubleTy()
                                               : static_cast<llvm::Type*>(Int(ptx::BitsOf(declared)));
      llvm::LoadInst* load = ir.CreateLoad(t, RegisterSlot(*frame_, operand.id));
      if (resident_) load->setMetadata(llvm::LLVMContext::MD_alias_scope, own_scope_);
      Value* v = load;
      if (operand.negated) v = ir.CreateNot(v);
      return t == want ? v : FromBits(v, type);
    }
    case OperandKind::kSpecial: {
      Value* v = Special(in, operand.special(), operand.component);
      if (!v) {
        return Refuse(in,
                      fmt::format("reads {}, which softcuda does not have", ptx::Text(operand.special())));
      }
      return FromBits(v, type);
    }
    case OperandKind::kInteger: {
      if (want->isFloatingPointTy())
        return llvm::ConstantFP::get(want, static_cast<double>(operand.offset()));
      unsigned width = static_cast<unsigned>(want->getPrimitiveSizeInBits());
      Value* v = llvm::ConstantInt::get(Int(width), llvm::APInt(64, operand.bits).sextOrTrunc(width));
      return FromBits(v, type);
    }
    case OperandKind::kFloat32:
    case OperandKind::kFloat64: {
      bool narrow = operand.kind == OperandKind::kFloat32;
      if (want->isFloatTy() && narrow) return FromBits(I32(static_cast<uint32_t>(operand.bits)), type);
      if (want->isFloatTy() || want->isDoubleTy() || want->isHalfTy()) {
        double d = narrow ? std::bit_cast<float>(static_cast<uint32_t>(operand.bits))
                          : std::bit_cast<double>(operand.bits);
        return llvm::ConstantFP::get(want, d);
      }
      return FromBits(
          narrow ? static_cast<Value*>(I32(static_cast<uint32_t>(operand.bits))) : I64(operand.bits), type);
    }
    case OperandKind::kSymbol: {
      TRY(Value * v, SymbolValue(in, operand));
      return FromBits(v, type);
    }
    default:
      return Refuse(in, "has an operand that softcuda does not take there");
  }
}

Status Emitter::Write(const Instruction& in, const Operand& operand, Value* value, bool is_signed) {
  if (operand.kind == OperandKind::kSink) return {};
  if (!operand.IsRegister() || operand.component != Mod::kNone) {
    return Refuse(in, "writes to something other than a register");
  }
  if (frame_->fn->RangeOf(operand.id).vector != 1) {
    return Refuse(in, "uses a vector register, which softcuda does not support");
  }
  Type declared = frame_->fn->TypeOfRegister(operand.id);
  llvm::Type* t = declared == Type::kF32   ? ir.getFloatTy()
                  : declared == Type::kF64 ? ir.getDoubleTy()
                                           : static_cast<llvm::Type*>(Int(ptx::BitsOf(declared)));
  if (value->getType() != t) {
    Value* bits = ToBits(value);
    unsigned width = static_cast<unsigned>(t->getPrimitiveSizeInBits());
    bits = is_signed ? ir.CreateSExtOrTrunc(bits, Int(width)) : ir.CreateZExtOrTrunc(bits, Int(width));
    value = t->isIntegerTy() ? bits : ir.CreateBitCast(bits, t);
  }
  llvm::StoreInst* store = ir.CreateStore(value, RegisterSlot(*frame_, operand.id));
  if (resident_) store->setMetadata(llvm::LLVMContext::MD_alias_scope, own_scope_);
  return {};
}

Value* Emitter::CallPure(const std::string& name, llvm::Type* result, llvm::ArrayRef<Value*> args) {
  auto* call = llvm::cast<llvm::CallInst>(CallRuntime(name, result, args));
  call->setDoesNotAccessMemory();
  call->addFnAttr(llvm::Attribute::WillReturn);
  return call;
}

Value* Emitter::Mark(const char* name, llvm::Type* result, llvm::ArrayRef<Value*> args, bool pure) {
  auto* call = llvm::cast<llvm::CallInst>(CallRuntime(name, result, args));
  if (pure) {
    call->setDoesNotAccessMemory();
    call->addFnAttr(llvm::Attribute::WillReturn);
  } else {
    call->setConvergent();
  }
  return call;
}

Value* Emitter::CallRuntime(const std::string& name, llvm::Type* result, llvm::ArrayRef<Value*> args) {
  std::vector<llvm::Type*> types;
  for (Value* a : args) types.push_back(a->getType());
  auto callee = build.llvm.getOrInsertFunction(name, llvm::FunctionType::get(result, types, false));
  auto* call = ir.CreateCall(callee, args);
  call->setDoesNotThrow();
  return call;
}

// ------------------------------------------------------------------------------------------------- floats

Value* Emitter::Flush(Value* f, Type type) {
  if (type == Type::kF64) return f;
  bool pair = f->getType()->isVectorTy();
  unsigned bits = static_cast<unsigned>(f->getType()->getScalarSizeInBits());
  llvm::Type* ints = pair ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(Int(bits), 2)) : Int(bits);
  uint64_t exponent = bits == 32 ? 0x7f800000 : type == Type::kF16 || type == Type::kF16x2 ? 0x7c00 : 0x7f80;
  Value* raw = ir.CreateBitCast(f, ints);
  Value* tiny = ir.CreateICmpEQ(ir.CreateAnd(raw, llvm::ConstantInt::get(ints, exponent)),
                                llvm::Constant::getNullValue(ints));
  Value* zero = ir.CreateAnd(raw, llvm::ConstantInt::get(ints, uint64_t{1} << (bits - 1)));
  return ir.CreateBitCast(ir.CreateSelect(tiny, zero, raw), f->getType());
}

Value* Emitter::Saturate(Value* f) {
  llvm::Type* t = f->getType();
  Value* zero = llvm::ConstantFP::get(t, 0.0);
  Value* one = llvm::ConstantFP::get(t, 1.0);
  Value* low = ir.CreateSelect(ir.CreateFCmpOGT(f, zero), f, zero);
  return ir.CreateSelect(ir.CreateFCmpOLT(low, one), low, one);
}

Value* Emitter::HalfToFloat(Value* v, Type type) {
  if (type == Type::kF16) return ir.CreateFPExt(v, ir.getFloatTy());
  if (type == Type::kF16x2) return ir.CreateFPExt(v, llvm::FixedVectorType::get(ir.getFloatTy(), 2));
  bool pair = type == Type::kBf16x2;
  llvm::Type* wide = pair ? llvm::FixedVectorType::get(Int(32), 2) : static_cast<llvm::Type*>(Int(32));
  llvm::Type* f = pair ? llvm::FixedVectorType::get(ir.getFloatTy(), 2) : ir.getFloatTy();
  Value* bits = ir.CreateShl(ir.CreateZExt(v, wide), llvm::ConstantInt::get(wide, 16));
  return ir.CreateBitCast(bits, f);
}

Value* Emitter::FloatToHalf(Value* v, Type type) {
  if (type == Type::kF16) return ir.CreateFPTrunc(v, ir.getHalfTy());
  if (type == Type::kF16x2) return ir.CreateFPTrunc(v, llvm::FixedVectorType::get(ir.getHalfTy(), 2));
  bool pair = type == Type::kBf16x2;
  llvm::Type* wide = pair ? llvm::FixedVectorType::get(Int(32), 2) : static_cast<llvm::Type*>(Int(32));
  llvm::Type* narrow = pair ? llvm::FixedVectorType::get(Int(16), 2) : static_cast<llvm::Type*>(Int(16));
  auto constant = [&](uint32_t c) { return llvm::ConstantInt::get(wide, c); };
  Value* bits = ir.CreateBitCast(v, wide);
  Value* odd = ir.CreateAnd(ir.CreateLShr(bits, constant(16)), constant(1));
  Value* rounded = ir.CreateLShr(ir.CreateAdd(ir.CreateAdd(bits, constant(0x7fff)), odd), constant(16));
  Value* nan = ir.CreateFCmpUNO(v, v);
  return ir.CreateTrunc(ir.CreateSelect(nan, constant(0x7fff), rounded), narrow);
}

Value* Emitter::DoubleToHalf(Value* v, Type type) {
  Value* odd = CallPure("cuplex_f64_to_f32_odd", ir.getFloatTy(), {v});
  return FloatToHalf(odd, type);
}

}  // namespace cuplex::softcuda
