// atom red: read, change and write memory as one step.
//
// A block runs on one worker, one thread at a time, so on .shared memory plain instructions are atomic
// already.
#include <llvm/IR/Intrinsics.h>

#include "softcuda/jit/emitter.h"
#include "softcuda/jit/families.h"

namespace cuplex::softcuda {
namespace {

using llvm::AtomicOrdering;
using llvm::AtomicRMWInst;
using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Space;
using ptx::Type;

Mod OperationOf(const Instruction& in) {
  for (Mod m : in.mods) {
    switch (m) {
      case Mod::kAnd:
      case Mod::kOr:
      case Mod::kXor:
      case Mod::kAdd:
      case Mod::kMin:
      case Mod::kMax:
      case Mod::kInc:
      case Mod::kDec:
      case Mod::kCas:
      case Mod::kExch:
        return m;
      default:
        break;
    }
  }
  return Mod::kNone;
}

AtomicRMWInst::BinOp BinaryOf(Mod op, Type t) {
  bool is_signed = t == Type::kS32 || t == Type::kS64;
  bool is_float = t == Type::kF32 || t == Type::kF64;
  switch (op) {
    case Mod::kAnd:
      return AtomicRMWInst::And;
    case Mod::kOr:
      return AtomicRMWInst::Or;
    case Mod::kXor:
      return AtomicRMWInst::Xor;
    case Mod::kAdd:
      return is_float ? AtomicRMWInst::FAdd : AtomicRMWInst::Add;
    case Mod::kMin:
      return is_float ? AtomicRMWInst::BAD_BINOP : is_signed ? AtomicRMWInst::Min : AtomicRMWInst::UMin;
    case Mod::kMax:
      return is_float ? AtomicRMWInst::BAD_BINOP : is_signed ? AtomicRMWInst::Max : AtomicRMWInst::UMax;
    case Mod::kInc:
      return AtomicRMWInst::UIncWrap;
    case Mod::kDec:
      return AtomicRMWInst::UDecWrap;
    case Mod::kExch:
      return AtomicRMWInst::Xchg;
    default:
      return AtomicRMWInst::BAD_BINOP;
  }
}

/// The smaller or the larger of two halves as floats: numbers win over NaN, and -0 is less than +0.
Value* MinMaxOfFloats(Emitter& e, bool max, Value* a, Value* b) {
  auto& ir = e.ir;
  llvm::Type* ints = a->getType()->isVectorTy()
                         ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(e.Int(32), 2))
                         : static_cast<llvm::Type*>(e.Int(32));
  Value* x = ir.CreateBitCast(a, ints);
  Value* y = ir.CreateBitCast(b, ints);
  Value* same = ir.CreateBitCast(max ? ir.CreateAnd(x, y) : ir.CreateOr(x, y), a->getType());
  Value* v = ir.CreateSelect(max ? ir.CreateFCmpOGT(a, b) : ir.CreateFCmpOLT(a, b), a, b);
  v = ir.CreateSelect(ir.CreateFCmpOEQ(a, b), same, v);
  return ir.CreateSelect(ir.CreateFCmpUNO(a, a), b, ir.CreateSelect(ir.CreateFCmpUNO(b, b), a, v));
}

bool IsHalf(Type t) { return t == Type::kF16x2 || t == Type::kBf16x2 || t == Type::kF16 || t == Type::kBf16; }

/// What op makes of the old value, for where no single instruction does it.
Value* Apply(Emitter& e, Mod op, Type t, Value* old, Value* b) {
  auto& ir = e.ir;
  bool is_signed = t == Type::kS32 || t == Type::kS64;
  switch (op) {
    case Mod::kAnd:
      return ir.CreateAnd(old, b);
    case Mod::kOr:
      return ir.CreateOr(old, b);
    case Mod::kXor:
      return ir.CreateXor(old, b);
    case Mod::kAdd:
      if (t == Type::kBf16 || t == Type::kBf16x2) {
        return e.FloatToHalf(ir.CreateFAdd(e.HalfToFloat(old, t), e.HalfToFloat(b, t)), t);
      }
      return old->getType()->isIntOrIntVectorTy() ? ir.CreateAdd(old, b) : ir.CreateFAdd(old, b);
    case Mod::kMin:
      if (IsHalf(t))
        return e.FloatToHalf(MinMaxOfFloats(e, false, e.HalfToFloat(old, t), e.HalfToFloat(b, t)), t);
      return ir.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, old, b);
    case Mod::kMax:
      if (IsHalf(t))
        return e.FloatToHalf(MinMaxOfFloats(e, true, e.HalfToFloat(old, t), e.HalfToFloat(b, t)), t);
      return ir.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, old, b);
    case Mod::kInc:
      return ir.CreateSelect(ir.CreateICmpUGE(old, b), e.I32(0), ir.CreateAdd(old, e.I32(1)));
    case Mod::kDec:
      return ir.CreateSelect(ir.CreateOr(ir.CreateICmpEQ(old, e.I32(0)), ir.CreateICmpUGT(old, b)), b,
                             ir.CreateSub(old, e.I32(1)));
    default:
      return b;
  }
}

/// A place in memory, checked, and how it may be touched.
struct Target {
  Value* at = nullptr;
  unsigned size = 0;
  bool shared = false;  // nobody else touches it meanwhile
  AtomicOrdering ordering = AtomicOrdering::Monotonic;
  llvm::SyncScope::ID scope = llvm::SyncScope::System;
};

AtomicOrdering OrderingOfFailure(const Target& target) {
  return target.ordering == AtomicOrdering::Monotonic ? target.ordering : AtomicOrdering::Acquire;
}

/// Reads, makes something of it and writes that back, where no other thread comes between. The value read.
template <typename F>
Value* Exchange(Emitter& e, const Target& target, llvm::Type* type, F&& make) {
  auto* old = e.ir.CreateAlignedLoad(type, target.at, llvm::Align(target.size));
  auto* store = e.ir.CreateAlignedStore(make(old), target.at, llvm::Align(target.size));
  e.MarkProgramAccess(old);
  e.MarkProgramAccess(store);
  return old;
}

Value* CompareAndSwap(Emitter& e, const Target& target, Value* compare, Value* value) {
  if (target.shared) {
    return Exchange(e, target, compare->getType(), [&](Value* old) {
      return e.ir.CreateSelect(e.ir.CreateICmpEQ(old, compare), value, old);
    });
  }
  auto* swap = e.ir.CreateAtomicCmpXchg(target.at, compare, value, llvm::Align(target.size), target.ordering,
                                        OrderingOfFailure(target), target.scope);
  e.MarkProgramAccess(swap);
  return e.ir.CreateExtractValue(swap, 0);
}

Value* ReadAndChange(Emitter& e, const Target& target, Mod op, Type t, Value* b) {
  auto& ir = e.ir;
  if (target.shared) {
    return Exchange(e, target, b->getType(), [&](Value* old) { return Apply(e, op, t, old, b); });
  }
  if (!IsHalf(t) || op == Mod::kExch) {
    if (op == Mod::kExch) b = e.ToBits(b);
    auto* old = ir.CreateAtomicRMW(BinaryOf(op, t), target.at, b, llvm::Align(target.size), target.ordering,
                                   target.scope);
    e.MarkProgramAccess(old);
    return old;
  }
  // Halves and pairs of them: compare and swap until nobody came between.
  auto* bits = e.Int(target.size * 8);
  auto* before = ir.CreateAlignedLoad(bits, target.at, llvm::Align(target.size));
  before->setAtomic(AtomicOrdering::Monotonic);
  e.MarkProgramAccess(before);
  llvm::BasicBlock* from = ir.GetInsertBlock();
  llvm::BasicBlock* loop = e.NewBlock("swap");
  llvm::BasicBlock* done = e.NewBlock("swapped");
  ir.CreateBr(loop);
  ir.SetInsertPoint(loop);
  llvm::PHINode* old = ir.CreatePHI(bits, 2);
  old->addIncoming(before, from);
  Value* made = e.ToBits(Apply(e, op, t, e.FromBits(old, t), b));
  auto* swap = ir.CreateAtomicCmpXchg(target.at, old, made, llvm::Align(target.size), target.ordering,
                                      OrderingOfFailure(target), target.scope);
  e.MarkProgramAccess(swap);
  old->addIncoming(ir.CreateExtractValue(swap, 0), ir.GetInsertBlock());
  ir.CreateCondBr(ir.CreateExtractValue(swap, 1), done, loop);
  ir.SetInsertPoint(done);
  return old;
}

}  // namespace

Status EmitAtom(Emitter& e, const Instruction& in) {
  bool reduces = in.opcode == Opcode::kRed, async = in.Has(Mod::kAsync);
  size_t first = reduces ? 0 : 1;  // the address operand
  Mod op = OperationOf(in);
  Type t = in.TypeAt();
  // red.async tells an mbarrier, its third operand, and is done here when it is issued.
  size_t wants = first + (op == Mod::kCas ? 3 : 2) + async + in.Has(Mod::kL2CacheHint);
  if (in.operands.size() != wants) return e.Refuse(in, fmt::format("takes {} operands", wants));
  unsigned size = ptx::BitsOf(t) / 8, n = in.VectorWidth();
  bool half = t == Type::kF16x2 || t == Type::kBf16x2 || t == Type::kF16 || t == Type::kBf16;
  bool bits_only = t == Type::kB16 || t == Type::kB32 || t == Type::kB64 || t == Type::kB128;
  bool logical = op == Mod::kAnd || op == Mod::kOr || op == Mod::kXor;
  bool moves = op == Mod::kCas || op == Mod::kExch || logical;
  bool wraps = op == Mod::kInc || op == Mod::kDec;
  bool folds = op == Mod::kAdd || op == Mod::kMin || op == Mod::kMax;
  bool whole = t == Type::kS32 || t == Type::kS64 || t == Type::kU32 || t == Type::kU64;
  bool is_float = t == Type::kF32 || t == Type::kF64;
  bool fits = bits_only  ? moves && !(logical && (t == Type::kB16 || t == Type::kB128))
              : half     ? folds || op == Mod::kExch
              : is_float ? op == Mod::kAdd || op == Mod::kExch
                         : whole && (!wraps || t == Type::kU32);
  if (op == Mod::kNone || !fits || (n > 1 && (!folds || !(half || t == Type::kF32)))) {
    return e.Refuse(in, "is a combination of operation and type that softcuda does not support");
  }
  Space space = in.SpaceAt();
  if (space == Space::kSharedCta || space == Space::kSharedCluster) space = Space::kShared;
  TRY(Value * at, e.Address(in, in.operands[first], space, size * n));
  Target target{at, size, space == Space::kShared && !e.lockstep(), AtomicOrdering::Monotonic,
                e.AtomicScope(space)};
  Mod order = in.Order();
  if (order != Mod::kNone && order != Mod::kRelaxed) target.ordering = AtomicOrdering::AcquireRelease;
  bool is_signed = t == Type::kS32 || t == Type::kS64;
  auto part = [&](size_t operand, unsigned i) -> const ptx::Operand* {
    const ptx::Operand& given = in.operands[operand];
    if (n == 1) return &given;
    return given.kind == ptx::OperandKind::kVector && given.parts.size() == n ? &given.parts[i] : nullptr;
  };
  std::vector<Value*> sources;
  for (unsigned i = 0; i < n; ++i) {
    const ptx::Operand* source = part(first + 1, i);
    if (!source) return e.Refuse(in, fmt::format("needs {} registers", n));
    TRY(Value * b, e.Read(in, *source, t));
    sources.push_back(b);
  }
  for (unsigned i = 0; i < n; ++i) {
    const ptx::Operand* result = reduces ? nullptr : part(0, i);
    if (!reduces && !result && in.operands[0].kind != ptx::OperandKind::kSink) {
      return e.Refuse(in, fmt::format("needs {} registers", n));
    }
    Value* b = sources[i];
    Value* old = nullptr;
    if (op == Mod::kCas) {
      TRY(Value * c, e.Read(in, in.operands[first + 2], t));
      old = CompareAndSwap(e, target, e.ToBits(b), e.ToBits(c));
    } else {
      old = ReadAndChange(e, target, op, t, b);
    }
    if (result) TRY(e.Write(in, *result, old, is_signed));
    target.at = e.ir.CreateConstInBoundsGEP1_64(e.ir.getInt8Ty(), target.at, size);
  }
  return async ? CompleteTransaction(e, in, in.operands[2], e.I32(size * n)) : Status();
}

}  // namespace cuplex::softcuda
