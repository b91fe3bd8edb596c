// rcp sqrt rsqrt sin cos ex2 lg2 tanh copysign testp: functions of real numbers.
#include <llvm/IR/Intrinsics.h>

#include "softcuda/jit/approximations.h"
#include "softcuda/jit/emitter.h"
#include "softcuda/jit/families.h"

namespace cuplex::softcuda {
namespace {

using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Type;

const char* Rounding(const Instruction& in) {
  switch (in.Rounding()) {
    case Mod::kRz:
      return "_rz";
    case Mod::kRm:
      return "_rm";
    case Mod::kRp:
      return "_rp";
    default:
      return "";
  }
}

Value* Approximate(Emitter& e, Opcode opcode, Value* x) {
  switch (opcode) {
    case Opcode::kSin:
      return Sine(e.ir, x);
    case Opcode::kCos:
      return Cosine(e.ir, x);
    case Opcode::kEx2:
      return ExpTwo(e.ir, x);
    case Opcode::kLg2:
      return LogTwo(e.ir, x);
    default:
      return HyperbolicTangent(e.ir, x);
  }
}

}  // namespace

Status EmitMath(Emitter& e, const Instruction& in) {
  Type t = in.TypeAt();
  if (in.operands.size() != 2) return e.Refuse(in, "takes 2 operands");
  TRY(Value * v, e.Read(in, in.operands[1], t));
  auto of = [&](Value* x) { return Approximate(e, in.opcode, x); };
  switch (t) {
    case Type::kF32:
      if (in.Has(Mod::kFtz)) v = e.Flush(v);
      v = of(v);
      if (in.Has(Mod::kFtz)) v = e.Flush(v);
      break;
    case Type::kF16:
    case Type::kBf16:
      if (in.Has(Mod::kFtz)) v = e.Flush(v, t);
      v = e.FloatToHalf(of(e.HalfToFloat(v, t)), t);
      if (in.Has(Mod::kFtz)) v = e.Flush(v, t);
      break;
    case Type::kF16x2:
    case Type::kBf16x2: {
      if (in.Has(Mod::kFtz)) v = e.Flush(v, t);
      Value* f = e.HalfToFloat(v, t);
      for (uint64_t i = 0; i < 2; ++i)
        f = e.ir.CreateInsertElement(f, of(e.ir.CreateExtractElement(f, i)), i);
      v = e.FloatToHalf(f, t);
      if (in.Has(Mod::kFtz)) v = e.Flush(v, t);
      break;
    }
    default:
      return e.Refuse(in, "has a type that PTX does not give it");
  }
  return e.Write(in, in.operands[0], v);
}

Status EmitRoot(Emitter& e, const Instruction& in) {
  Type t = in.TypeAt();
  if (t != Type::kF32 && t != Type::kF64) return e.Refuse(in, "has a type that PTX does not give it");
  if (in.operands.size() != 2) return e.Refuse(in, "takes 2 operands");
  TRY(Value * v, e.Read(in, in.operands[1], t));
  if (in.Has(Mod::kFtz) && t == Type::kF32) v = e.Flush(v);
  const bool gross = in.Has(Mod::kFtz) && t == Type::kF64;  // computed in the upper words alone
  if (gross) {
    v = e.ir.CreateSelect(
        e.ir.createIsFPClass(v, llvm::fcSubnormal),
        e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, llvm::ConstantFP::get(v->getType(), 0.0), v),
        v);
  }
  std::string suffix = std::string(Rounding(in)) + (t == Type::kF32 ? "_f32" : "_f64");
  bool directed = *Rounding(in);
  Value* one = llvm::ConstantFP::get(v->getType(), 1.0);
  switch (in.opcode) {
    case Opcode::kRcp:
      v = directed ? e.CallPure("cuplex_div" + suffix, v->getType(), {one, v}) : e.ir.CreateFDiv(one, v);
      break;
    case Opcode::kSqrt:
      v = directed ? e.CallPure("cuplex_sqrt" + suffix, v->getType(), {v})
                   : e.ir.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, v);
      break;
    default:
      v = e.ir.CreateFDiv(one, e.ir.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, v));
      break;
  }
  if (in.Has(Mod::kFtz) && t == Type::kF32) v = e.Flush(v);
  if (gross) {
    Value* bits = e.ir.CreateBitCast(v, e.ir.getInt64Ty());
    v = e.ir.CreateBitCast(e.ir.CreateAnd(bits, ~uint64_t{0xffffffff}), v->getType());
  }
  return e.Write(in, in.operands[0], v);
}

Status EmitCopysign(Emitter& e, const Instruction& in) {
  Type t = in.TypeAt();
  if (t != Type::kF32 && t != Type::kF64) return e.Refuse(in, "has a type that PTX does not give it");
  if (in.operands.size() != 3) return e.Refuse(in, "takes 3 operands");
  TRY(Value * sign, e.Read(in, in.operands[1], t));
  TRY(Value * magnitude, e.Read(in, in.operands[2], t));
  return e.Write(in, in.operands[0], e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign));
}

Status EmitTestp(Emitter& e, const Instruction& in) {
  Type t = in.TypeAt();
  if (t != Type::kF32 && t != Type::kF64) return e.Refuse(in, "has a type that PTX does not give it");
  if (in.operands.size() != 2) return e.Refuse(in, "takes 2 operands");
  TRY(Value * v, e.Read(in, in.operands[1], t));
  unsigned test = in.Has(Mod::kFinite)       ? llvm::fcFinite
                  : in.Has(Mod::kInfinite)   ? llvm::fcInf
                  : in.Has(Mod::kNumber)     ? (llvm::fcFinite | llvm::fcInf)
                  : in.Has(Mod::kNotanumber) ? llvm::fcNan
                  : in.Has(Mod::kNormal)     ? (llvm::fcNormal | llvm::fcZero)  // zeros count as normal
                                             : llvm::fcSubnormal;
  return e.Write(in, in.operands[0], e.ir.createIsFPClass(v, test));
}

}  // namespace cuplex::softcuda
