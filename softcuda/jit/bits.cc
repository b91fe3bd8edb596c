// and or xor not shl shr shf bfe bfi bfind bmsk brev clz popc fns lop3 prmt szext: strings of bits.
#include <llvm/IR/Intrinsics.h>

#include "softcuda/jit/emitter.h"
#include "softcuda/jit/families.h"

namespace cuplex::softcuda {
namespace {

using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Type;

bool IsSigned(Type t) { return t == Type::kS16 || t == Type::kS32 || t == Type::kS64; }

Status NeedOperands(Emitter& e, const Instruction& in, size_t n) {
  if (in.operands.size() != n) return e.Refuse(in, fmt::format("takes {} operands", n));
  if (in.TypeCount() == 0 || !e.TypeFor(in.TypeAt())->isIntegerTy()) {
    return e.Refuse(in, "has a type that PTX does not give it");
  }
  return {};
}

/// a << n, a >> n with n unsigned of any size: bits shifted out are gone, whatever n is.
Value* ShiftLeft(Emitter& e, Value* a, Value* n) {
  unsigned bits = a->getType()->getIntegerBitWidth();
  Value* big = e.ir.CreateICmpUGE(n, llvm::ConstantInt::get(n->getType(), bits));
  Value* amount = e.ir.CreateAnd(e.ir.CreateZExtOrTrunc(n, a->getType()), bits - 1);
  return e.ir.CreateSelect(big, llvm::ConstantInt::get(a->getType(), 0), e.ir.CreateShl(a, amount));
}
Value* ShiftRight(Emitter& e, Value* a, Value* n, bool is_signed) {
  unsigned bits = a->getType()->getIntegerBitWidth();
  Value* big = e.ir.CreateICmpUGE(n, llvm::ConstantInt::get(n->getType(), bits));
  Value* amount = e.ir.CreateZExtOrTrunc(n, a->getType());
  if (is_signed) {
    amount = e.ir.CreateSelect(big, llvm::ConstantInt::get(a->getType(), bits - 1), amount);
    return e.ir.CreateAShr(a, e.ir.CreateAnd(amount, bits - 1));
  }
  return e.ir.CreateSelect(big, llvm::ConstantInt::get(a->getType(), 0),
                           e.ir.CreateLShr(a, e.ir.CreateAnd(amount, bits - 1)));
}
/// The lowest n bits set; all of them where n is at least the width.
Value* LowMask(Emitter& e, llvm::Type* t, Value* n) {
  Value* ones = llvm::Constant::getAllOnesValue(t);
  return e.ir.CreateNot(ShiftLeft(e, ones, n));
}

}  // namespace

Status EmitLogic(Emitter& e, const Instruction& in) {
  TRY(NeedOperands(e, in, 3));
  Type t = in.TypeAt();
  TRY(Value * a, e.Read(in, in.operands[1], t));
  TRY(Value * b, e.Read(in, in.operands[2], t));
  Value* v = in.opcode == Opcode::kAnd  ? e.ir.CreateAnd(a, b)
             : in.opcode == Opcode::kOr ? e.ir.CreateOr(a, b)
                                        : e.ir.CreateXor(a, b);
  return e.Write(in, in.operands[0], v);
}

Status EmitNot(Emitter& e, const Instruction& in) {
  TRY(NeedOperands(e, in, 2));
  TRY(Value * a, e.Read(in, in.operands[1], in.TypeAt()));
  if (in.opcode == Opcode::kCnot) {
    Value* zero = e.ir.CreateICmpEQ(a, llvm::ConstantInt::get(a->getType(), 0));
    return e.Write(in, in.operands[0], e.ir.CreateZExt(zero, a->getType()));
  }
  return e.Write(in, in.operands[0], e.ir.CreateNot(a));
}

Status EmitShift(Emitter& e, const Instruction& in) {
  TRY(NeedOperands(e, in, 3));
  Type t = in.TypeAt();
  TRY(Value * a, e.Read(in, in.operands[1], t));
  TRY(Value * n, e.Read(in, in.operands[2], Type::kU32));
  Value* v = in.opcode == Opcode::kShl ? ShiftLeft(e, a, n) : ShiftRight(e, a, n, IsSigned(t));
  return e.Write(in, in.operands[0], v, IsSigned(t));
}

Status EmitShf(Emitter& e, const Instruction& in) {
  TRY(NeedOperands(e, in, 4));
  TRY(Value * low, e.Read(in, in.operands[1], Type::kB32));
  TRY(Value * high, e.Read(in, in.operands[2], Type::kB32));
  TRY(Value * n, e.Read(in, in.operands[3], Type::kU32));
  n = in.Has(Mod::kClamp) ? e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, n, e.I32(32))
                          : e.ir.CreateAnd(n, e.I32(31));
  auto* i64 = e.Int(64);
  Value* both = e.ir.CreateOr(e.ir.CreateShl(e.ir.CreateZExt(high, i64), 32), e.ir.CreateZExt(low, i64));
  n = e.ir.CreateZExt(n, i64);
  Value* v = in.Has(Mod::kL) ? e.ir.CreateLShr(e.ir.CreateShl(both, n), 32) : e.ir.CreateLShr(both, n);
  return e.Write(in, in.operands[0], e.ir.CreateTrunc(v, e.Int(32)));
}

Status EmitBfe(Emitter& e, const Instruction& in) {
  TRY(NeedOperands(e, in, 4));
  Type t = in.TypeAt();
  TRY(Value * a, e.Read(in, in.operands[1], t));
  TRY(Value * pos, e.Read(in, in.operands[2], Type::kU32));
  TRY(Value * len, e.Read(in, in.operands[3], Type::kU32));
  pos = e.ir.CreateAnd(pos, e.I32(255));
  len = e.ir.CreateAnd(len, e.I32(255));
  unsigned bits = a->getType()->getIntegerBitWidth();
  Value* shifted = ShiftRight(e, a, pos, IsSigned(t));
  Value* v = nullptr;
  if (!IsSigned(t)) {
    v = e.ir.CreateAnd(shifted, LowMask(e, a->getType(), len));
  } else {
    Value* kept = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, len, e.I32(bits));
    Value* up = e.ir.CreateSub(e.I32(bits), kept);
    v = ShiftRight(e, ShiftLeft(e, shifted, up), up, true);
    v = e.ir.CreateSelect(e.ir.CreateICmpEQ(len, e.I32(0)), llvm::ConstantInt::get(a->getType(), 0), v);
  }
  return e.Write(in, in.operands[0], v, IsSigned(t));
}

Status EmitBfi(Emitter& e, const Instruction& in) {
  TRY(NeedOperands(e, in, 5));
  Type t = in.TypeAt();
  TRY(Value * a, e.Read(in, in.operands[1], t));
  TRY(Value * b, e.Read(in, in.operands[2], t));
  TRY(Value * pos, e.Read(in, in.operands[3], Type::kU32));
  TRY(Value * len, e.Read(in, in.operands[4], Type::kU32));
  pos = e.ir.CreateAnd(pos, e.I32(255));
  len = e.ir.CreateAnd(len, e.I32(255));
  Value* mask = ShiftLeft(e, LowMask(e, a->getType(), len), pos);
  Value* v =
      e.ir.CreateOr(e.ir.CreateAnd(b, e.ir.CreateNot(mask)), e.ir.CreateAnd(ShiftLeft(e, a, pos), mask));
  return e.Write(in, in.operands[0], v);
}

Status EmitBfind(Emitter& e, const Instruction& in) {
  TRY(NeedOperands(e, in, 2));
  Type t = in.TypeAt();
  TRY(Value * a, e.Read(in, in.operands[1], t));
  unsigned bits = a->getType()->getIntegerBitWidth();
  if (IsSigned(t)) a = e.ir.CreateXor(a, e.ir.CreateAShr(a, bits - 1));
  Value* zeros = e.ir.CreateIntrinsic(llvm::Intrinsic::ctlz, {a->getType()}, {a, e.ir.getFalse()});
  zeros = e.ir.CreateZExtOrTrunc(zeros, e.Int(32));
  Value* v = in.Has(Mod::kShiftamt) ? zeros : e.ir.CreateSub(e.I32(bits - 1), zeros);
  Value* none = e.ir.CreateICmpEQ(a, llvm::ConstantInt::get(a->getType(), 0));
  return e.Write(in, in.operands[0], e.ir.CreateSelect(none, e.I32(~0u), v));
}

Status EmitBmsk(Emitter& e, const Instruction& in) {
  TRY(NeedOperands(e, in, 3));
  TRY(Value * a, e.Read(in, in.operands[1], Type::kU32));
  TRY(Value * b, e.Read(in, in.operands[2], Type::kU32));
  Value* start = e.ir.CreateAnd(a, e.I32(31));
  Value* end = e.ir.CreateAdd(start, e.ir.CreateAnd(b, e.I32(31)));
  Value* low = ShiftLeft(e, e.I32(~0u), start);
  Value* high = ShiftLeft(e, e.I32(~0u), end);
  if (in.Has(Mod::kClamp)) {
    Value* far = e.ir.CreateICmpUGE(a, e.I32(32));
    low = e.ir.CreateSelect(far, e.I32(0), low);
    high = e.ir.CreateSelect(e.ir.CreateOr(far, e.ir.CreateICmpUGE(b, e.I32(32))), e.I32(0), high);
  }
  return e.Write(in, in.operands[0], e.ir.CreateAnd(low, e.ir.CreateNot(high)));
}

Status EmitBitCount(Emitter& e, const Instruction& in) {
  TRY(NeedOperands(e, in, 2));
  TRY(Value * a, e.Read(in, in.operands[1], in.TypeAt()));
  Value* v = nullptr;
  switch (in.opcode) {
    case Opcode::kBrev:
      return e.Write(in, in.operands[0], e.ir.CreateUnaryIntrinsic(llvm::Intrinsic::bitreverse, a));
    case Opcode::kClz:
      v = e.ir.CreateIntrinsic(llvm::Intrinsic::ctlz, {a->getType()}, {a, e.ir.getFalse()});
      break;
    default:
      v = e.ir.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, a);
      break;
  }
  return e.Write(in, in.operands[0], e.ir.CreateZExtOrTrunc(v, e.Int(32)));
}

Status EmitFns(Emitter& e, const Instruction& in) {
  TRY(NeedOperands(e, in, 4));
  TRY(Value * mask, e.Read(in, in.operands[1], Type::kB32));
  TRY(Value * base, e.Read(in, in.operands[2], Type::kB32));
  TRY(Value * offset, e.Read(in, in.operands[3], Type::kB32));
  return e.Write(in, in.operands[0], e.CallPure("cuplex_fns", e.Int(32), {mask, base, offset}));
}

Status EmitLop3(Emitter& e, const Instruction& in) {
  bool votes = in.Has(Mod::kAnd) || in.Has(Mod::kOr) || in.Has(Mod::kXor);
  TRY(NeedOperands(e, in, votes ? 6 : 5));
  if (in.operands[4].kind != ptx::OperandKind::kInteger) return e.Refuse(in, "needs a constant as its table");
  Value* s[3];
  for (int i = 0; i < 3; ++i) {
    TRY(s[i], e.Read(in, in.operands[1 + i], Type::kB32));
  }
  // Or of the minterms whose bit is set; the optimiser finds the short form.
  Value* v = e.I32(0);
  for (unsigned bit = 0; bit < 8; ++bit) {
    if (!(in.operands[4].bits >> bit & 1)) continue;
    Value* term = e.I32(~0u);
    for (unsigned i = 0; i < 3; ++i) {
      term = e.ir.CreateAnd(term, bit >> (2 - i) & 1 ? s[i] : e.ir.CreateNot(s[i]));
    }
    v = e.ir.CreateOr(v, term);
  }
  const ptx::Operand& out = in.operands[0];
  if (!votes) return e.Write(in, out, v);
  if (out.kind != ptx::OperandKind::kPair) return e.Refuse(in, "needs two destinations");
  TRY(Value * q, e.Read(in, in.operands[5], Type::kPred));
  Value* p = e.ir.CreateICmpNE(v, e.I32(0));
  p = in.Has(Mod::kAnd)  ? e.ir.CreateAnd(p, q)
      : in.Has(Mod::kOr) ? e.ir.CreateOr(p, q)
                         : e.ir.CreateXor(p, q);
  TRY(e.Write(in, out.parts[0], v));
  return e.Write(in, out.parts[1], p);
}

Status EmitPrmt(Emitter& e, const Instruction& in) {
  TRY(NeedOperands(e, in, 4));
  TRY(Value * a, e.Read(in, in.operands[1], Type::kB32));
  TRY(Value * b, e.Read(in, in.operands[2], Type::kB32));
  TRY(Value * c, e.Read(in, in.operands[3], Type::kB32));
  auto* i64 = e.Int(64);
  Value* both = e.ir.CreateOr(e.ir.CreateShl(e.ir.CreateZExt(b, i64), 32), e.ir.CreateZExt(a, i64));
  bool generic = true;
  for (Mod m : {Mod::kF4e, Mod::kB4e, Mod::kRc8, Mod::kEcl, Mod::kEcr, Mod::kRc16}) generic &= !in.Has(m);
  Value* n = e.ir.CreateAnd(c, e.I32(3));
  Value* v = e.I32(0);
  for (uint32_t i = 0; i < 4; ++i) {
    Value* which = nullptr;
    Value* sign = nullptr;
    if (generic) {
      Value* nibble = e.ir.CreateLShr(c, 4 * i);
      which = e.ir.CreateAnd(nibble, e.I32(7));
      sign = e.ir.CreateICmpNE(e.ir.CreateAnd(nibble, e.I32(8)), e.I32(0));
    } else if (in.Has(Mod::kF4e)) {
      which = e.ir.CreateAdd(n, e.I32(i));
    } else if (in.Has(Mod::kB4e)) {
      which = e.ir.CreateAnd(e.ir.CreateSub(n, e.I32(i)), e.I32(7));
    } else if (in.Has(Mod::kRc8)) {
      which = n;
    } else if (in.Has(Mod::kEcl)) {
      which = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::umax, n, e.I32(i));
    } else if (in.Has(Mod::kEcr)) {
      which = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, n, e.I32(i));
    } else {
      which = e.ir.CreateAdd(e.ir.CreateShl(e.ir.CreateAnd(n, e.I32(1)), 1), e.I32(i & 1));
    }
    Value* at = e.ir.CreateShl(e.ir.CreateZExt(which, i64), 3);
    Value* byte = e.ir.CreateTrunc(e.ir.CreateLShr(both, at), e.Int(8));
    if (sign) byte = e.ir.CreateSelect(sign, e.ir.CreateAShr(byte, 7), byte);
    v = e.ir.CreateOr(v, e.ir.CreateShl(e.ir.CreateZExt(byte, e.Int(32)), 8 * i));
  }
  return e.Write(in, in.operands[0], v);
}

Status EmitSzext(Emitter& e, const Instruction& in) {
  TRY(NeedOperands(e, in, 3));
  bool is_signed = IsSigned(in.TypeAt());
  TRY(Value * a, e.Read(in, in.operands[1], Type::kB32));
  TRY(Value * n, e.Read(in, in.operands[2], Type::kB32));
  n = in.Has(Mod::kClamp) ? e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, n, e.I32(32))
                          : e.ir.CreateAnd(n, e.I32(31));
  Value* up = e.ir.CreateSub(e.I32(32), n);
  Value* v = ShiftRight(e, ShiftLeft(e, a, up), up, is_signed);
  v = e.ir.CreateSelect(e.ir.CreateICmpEQ(n, e.I32(0)), e.I32(0), v);
  return e.Write(in, in.operands[0], v, is_signed);
}

}  // namespace cuplex::softcuda
