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
      return ir.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, old, b);
    case Mod::kMax:
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

}  // namespace

Status EmitAtom(Emitter& e, const Instruction& in) {
  auto& ir = e.ir;
  bool reduces = in.opcode == Opcode::kRed;
  size_t first = reduces ? 0 : 1;  // the address operand
  Mod op = OperationOf(in);
  Type t = in.TypeAt();
  size_t wants = first + (op == Mod::kCas ? 3 : 2);
  if (in.operands.size() != wants) return e.Refuse(in, fmt::format("takes {} operands", wants));
  unsigned size = ptx::BitsOf(t) / 8;
  bool pair = t == Type::kF16x2 || t == Type::kBf16x2;
  bool half = pair || t == Type::kF16 || t == Type::kBf16;
  bool bits_only = t == Type::kB16 || t == Type::kB32 || t == Type::kB64 || t == Type::kB128;
  bool moves = op == Mod::kCas || op == Mod::kExch || op == Mod::kAnd || op == Mod::kOr || op == Mod::kXor;
  if (op == Mod::kNone || size == 0 || (bits_only && !moves) || (half && op != Mod::kAdd)) {
    return e.Refuse(in, "is a combination of operation and type that softcuda does not support");
  }
  bool is_signed = t == Type::kS32 || t == Type::kS64;
  bool is_float = t == Type::kF32 || t == Type::kF64;
  bool whole = is_signed || t == Type::kU32 || t == Type::kU64;
  bool logical = op == Mod::kAnd || op == Mod::kOr || op == Mod::kXor;
  bool wraps = op == Mod::kInc || op == Mod::kDec;
  if (!(half || bits_only || whole || is_float) || (is_float && op != Mod::kAdd && op != Mod::kExch) ||
      (wraps && t != Type::kU32) || (logical && (t == Type::kB16 || t == Type::kB128))) {
    return e.Refuse(in, "is a combination of operation and type that softcuda does not support");
  }
  Space space = in.SpaceAt();
  if (space == Space::kSharedCta || space == Space::kSharedCluster) space = Space::kShared;
  TRY(Value * b, e.Read(in, in.operands[first + 1], t));
  TRY(Value * at, e.Address(in, in.operands[first], space, size));
  Mod order = in.Order();
  AtomicOrdering ordering = order == Mod::kNone || order == Mod::kRelaxed ? AtomicOrdering::Monotonic
                                                                          : AtomicOrdering::AcquireRelease;
  auto finish = [&](Value* old) -> Status {
    return reduces ? Status() : e.Write(in, in.operands[0], old, is_signed);
  };
  if (op == Mod::kCas) {
    TRY(Value * c, e.Read(in, in.operands[first + 2], t));
    b = e.ToBits(b);
    c = e.ToBits(c);
    if (space == Space::kShared && !e.lockstep()) {
      auto* old = ir.CreateAlignedLoad(b->getType(), at, llvm::Align(size));
      auto* store =
          ir.CreateAlignedStore(ir.CreateSelect(ir.CreateICmpEQ(old, b), c, old), at, llvm::Align(size));
      e.MarkProgramAccess(old);
      e.MarkProgramAccess(store);
      return finish(old);
    }
    auto failure = ordering == AtomicOrdering::Monotonic ? ordering : AtomicOrdering::Acquire;
    auto* swap = ir.CreateAtomicCmpXchg(at, b, c, llvm::Align(size), ordering, failure, e.AtomicScope(space));
    e.MarkProgramAccess(swap);
    return finish(ir.CreateExtractValue(swap, 0));
  }
  AtomicRMWInst::BinOp binary = BinaryOf(op, t);
  if (binary == AtomicRMWInst::BAD_BINOP) {
    return e.Refuse(in, "is a combination of operation and type that softcuda does not support");
  }
  if (space == Space::kShared && !e.lockstep()) {
    auto* old = ir.CreateAlignedLoad(b->getType(), at, llvm::Align(size));
    auto* store = ir.CreateAlignedStore(Apply(e, op, t, old, b), at, llvm::Align(size));
    e.MarkProgramAccess(old);
    e.MarkProgramAccess(store);
    return finish(old);
  }
  if (!half) {
    if (op == Mod::kExch) b = e.ToBits(b);
    auto* old = ir.CreateAtomicRMW(binary, at, b, llvm::Align(size), ordering, e.AtomicScope(space));
    e.MarkProgramAccess(old);
    return finish(old);
  }
  // Halves and pairs of them: compare and swap until nobody came between.
  auto* bits = e.Int(size * 8);
  auto* before = ir.CreateAlignedLoad(bits, at, llvm::Align(size));
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
  auto failure = ordering == AtomicOrdering::Monotonic ? ordering : AtomicOrdering::Acquire;
  auto* swap =
      ir.CreateAtomicCmpXchg(at, old, made, llvm::Align(size), ordering, failure, e.AtomicScope(space));
  e.MarkProgramAccess(swap);
  old->addIncoming(ir.CreateExtractValue(swap, 0), loop);
  ir.CreateCondBr(ir.CreateExtractValue(swap, 1), done, loop);
  ir.SetInsertPoint(done);
  return finish(old);
}

}  // namespace cuplex::softcuda
