// setp set selp slct: comparison and choice.
#include "softcuda/jit/emitter.h"
#include "softcuda/jit/families.h"

namespace cuplex::softcuda {
namespace {

using llvm::CmpInst;
using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Type;

bool IsBrain(Type t) { return t == Type::kBf16 || t == Type::kBf16x2; }
bool IsFloat(Type t) {
  return t == Type::kF16 || t == Type::kF16x2 || IsBrain(t) || t == Type::kF32 || t == Type::kF64;
}

CmpInst::Predicate FloatPredicate(Mod m) {
  switch (m) {
    case Mod::kEq:
      return CmpInst::FCMP_OEQ;
    case Mod::kNe:
      return CmpInst::FCMP_ONE;
    case Mod::kLt:
      return CmpInst::FCMP_OLT;
    case Mod::kLe:
      return CmpInst::FCMP_OLE;
    case Mod::kGt:
      return CmpInst::FCMP_OGT;
    case Mod::kGe:
      return CmpInst::FCMP_OGE;
    case Mod::kEqu:
      return CmpInst::FCMP_UEQ;
    case Mod::kNeu:
      return CmpInst::FCMP_UNE;
    case Mod::kLtu:
      return CmpInst::FCMP_ULT;
    case Mod::kLeu:
      return CmpInst::FCMP_ULE;
    case Mod::kGtu:
      return CmpInst::FCMP_UGT;
    case Mod::kGeu:
      return CmpInst::FCMP_UGE;
    case Mod::kNum:
      return CmpInst::FCMP_ORD;
    case Mod::kNanu:
      return CmpInst::FCMP_UNO;
    default:
      return CmpInst::BAD_FCMP_PREDICATE;
  }
}

CmpInst::Predicate IntegerPredicate(Mod m, bool is_signed) {
  switch (m) {
    case Mod::kEq:
      return CmpInst::ICMP_EQ;
    case Mod::kNe:
      return CmpInst::ICMP_NE;
    case Mod::kLt:
      return is_signed ? CmpInst::ICMP_SLT : CmpInst::ICMP_ULT;
    case Mod::kLe:
      return is_signed ? CmpInst::ICMP_SLE : CmpInst::ICMP_ULE;
    case Mod::kGt:
      return is_signed ? CmpInst::ICMP_SGT : CmpInst::ICMP_UGT;
    case Mod::kGe:
      return is_signed ? CmpInst::ICMP_SGE : CmpInst::ICMP_UGE;
    case Mod::kLo:
      return CmpInst::ICMP_ULT;
    case Mod::kLs:
      return CmpInst::ICMP_ULE;
    case Mod::kHi:
      return CmpInst::ICMP_UGT;
    case Mod::kHs:
      return CmpInst::ICMP_UGE;
    default:
      return CmpInst::BAD_ICMP_PREDICATE;
  }
}

Value* Combine(Emitter& e, const Instruction& in, Value* p, Value* c) {
  if (!c) return p;
  if (in.Has(Mod::kAnd)) return e.ir.CreateAnd(p, c);
  return in.Has(Mod::kOr) ? e.ir.CreateOr(p, c) : e.ir.CreateXor(p, c);
}

}  // namespace

Status EmitSet(Emitter& e, const Instruction& in) {
  bool setp = in.opcode == Opcode::kSetp;
  bool combines = in.Has(Mod::kAnd) || in.Has(Mod::kOr) || in.Has(Mod::kXor);
  if (in.operands.size() != (combines ? 4u : 3u)) {
    return e.Refuse(in, fmt::format("takes {} operands", combines ? 4 : 3));
  }
  Type t = in.TypeAt(setp ? 0 : 1);
  TRY(Value * a, e.Read(in, in.operands[1], t));
  TRY(Value * b, e.Read(in, in.operands[2], t));
  Value* c = nullptr;
  if (combines) {
    TRY(c, e.Read(in, in.operands[3], Type::kPred));
  }
  Value* p = nullptr;
  if (IsFloat(t)) {
    if (in.Has(Mod::kFtz)) {
      a = e.Flush(a, t);
      b = e.Flush(b, t);
    }
    if (IsBrain(t)) {
      a = e.HalfToFloat(a, t);
      b = e.HalfToFloat(b, t);
    }
    CmpInst::Predicate predicate = FloatPredicate(in.Comparison());
    if (predicate == CmpInst::BAD_FCMP_PREDICATE)
      return e.Refuse(in, "compares floats in a way PTX does not have");
    p = e.ir.CreateFCmp(predicate, a, b);
  } else {
    bool is_signed = t == Type::kS16 || t == Type::kS32 || t == Type::kS64;
    CmpInst::Predicate predicate = IntegerPredicate(in.Comparison(), is_signed);
    if (predicate == CmpInst::BAD_ICMP_PREDICATE || !a->getType()->isIntegerTy()) {
      return e.Refuse(in, "compares integers in a way PTX does not have");
    }
    p = e.ir.CreateICmp(predicate, a, b);
  }
  const ptx::Operand& out = in.operands[0];
  if (setp) {
    if (p->getType()->isVectorTy()) {  // one predicate for each half
      if (out.kind != ptx::OperandKind::kPair) return e.Refuse(in, "needs two destinations");
      for (uint64_t i = 0; i < 2; ++i) {
        TRY(e.Write(in, out.parts[i], Combine(e, in, e.ir.CreateExtractElement(p, i), c)));
      }
      return {};
    }
    if (out.kind != ptx::OperandKind::kPair) return e.Write(in, out, Combine(e, in, p, c));
    TRY(e.Write(in, out.parts[0], Combine(e, in, p, c)));
    return e.Write(in, out.parts[1], Combine(e, in, e.ir.CreateNot(p), c));
  }
  Type to = in.TypeAt(0);
  llvm::Type* want = e.TypeFor(to);
  if (p->getType()->isVectorTy()) {
    if (want->isIntegerTy(32)) want = llvm::FixedVectorType::get(e.Int(16), 2);  // a mask for each half
    if (!want->isVectorTy()) return e.Refuse(in, "has a type that PTX does not give it");
    if (c) c = e.ir.CreateVectorSplat(2, c);
  } else if (want->isVectorTy()) {
    return e.Refuse(in, "has a type that PTX does not give it");
  }
  p = Combine(e, in, p, c);
  if (to == Type::kF32 || to == Type::kF16 || to == Type::kF16x2) {
    return e.Write(in, out, e.ir.CreateUIToFP(p, want));
  }
  if (IsBrain(to)) {
    return e.Write(
        in, out,
        e.ir.CreateSelect(p, llvm::ConstantInt::get(want, 0x3f80), llvm::Constant::getNullValue(want)));
  }
  if (!want->isIntOrIntVectorTy()) return e.Refuse(in, "has a type that PTX does not give it");
  return e.Write(in, out, e.ir.CreateSExt(p, want), true);
}

Status EmitSelp(Emitter& e, const Instruction& in) {
  if (in.operands.size() != 4) return e.Refuse(in, "takes 4 operands");
  Type t = in.TypeAt();
  TRY(Value * a, e.Read(in, in.operands[1], t));
  TRY(Value * b, e.Read(in, in.operands[2], t));
  TRY(Value * c, e.Read(in, in.operands[3], Type::kPred));
  return e.Write(in, in.operands[0], e.ir.CreateSelect(c, a, b));
}

Status EmitSlct(Emitter& e, const Instruction& in) {
  if (in.operands.size() != 4) return e.Refuse(in, "takes 4 operands");
  Type t = in.TypeAt(0), of = in.TypeAt(1);
  TRY(Value * a, e.Read(in, in.operands[1], t));
  TRY(Value * b, e.Read(in, in.operands[2], t));
  TRY(Value * c, e.Read(in, in.operands[3], of));
  if (of != Type::kF32 && of != Type::kS32) return e.Refuse(in, "has a type that PTX does not give it");
  if (in.Has(Mod::kFtz) && of == Type::kF32) c = e.Flush(c);
  Value* zero = llvm::Constant::getNullValue(c->getType());
  Value* p = of == Type::kF32 ? e.ir.CreateFCmpOGE(c, zero) : e.ir.CreateICmpSGE(c, zero);
  return e.Write(in, in.operands[0], e.ir.CreateSelect(p, a, b));
}

}  // namespace cuplex::softcuda
