// cvt: between types, with PTX's roundings and saturation.
#include <llvm/IR/Intrinsics.h>

#include "softcuda/jit/emitter.h"
#include "softcuda/jit/families.h"

namespace cuplex::softcuda {
namespace {

using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Type;

bool IsSigned(Type t) { return t == Type::kS8 || t == Type::kS16 || t == Type::kS32 || t == Type::kS64; }
bool IsInteger(Type t) {
  return IsSigned(t) || t == Type::kU8 || t == Type::kU16 || t == Type::kU32 || t == Type::kU64;
}
bool IsHalf(Type t) { return t == Type::kF16 || t == Type::kBf16; }
bool IsFloat(Type t) { return IsHalf(t) || t == Type::kF32 || t == Type::kF64; }

const char* Direction(Mod rounding) {
  switch (rounding) {
    case Mod::kRz:
    case Mod::kRzi:
      return "_rz";
    case Mod::kRm:
    case Mod::kRmi:
      return "_rm";
    case Mod::kRp:
    case Mod::kRpi:
      return "_rp";
    default:
      return "";
  }
}

/// To an integral value, still a float.
Value* RoundToIntegral(Emitter& e, Value* v, Mod rounding) {
  switch (rounding) {
    case Mod::kRzi:
    case Mod::kRz:
      return e.ir.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, v);
    case Mod::kRmi:
    case Mod::kRm:
      return e.ir.CreateUnaryIntrinsic(llvm::Intrinsic::floor, v);
    case Mod::kRpi:
    case Mod::kRp:
      return e.ir.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, v);
    default:
      return e.ir.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, v);
  }
}

bool IsIntegralRounding(Mod m) {
  return m == Mod::kRni || m == Mod::kRzi || m == Mod::kRmi || m == Mod::kRpi;
}

/// f32 or f64 to a half, rounded once in the direction asked for.
Value* ToHalf(Emitter& e, Value* v, Type to, Mod rounding) {
  const char* direction = Direction(rounding);
  if (*direction) {
    const char* name = to == Type::kF16 ? "cuplex_to_half" : "cuplex_to_brain";
    Value* wide = v->getType()->isDoubleTy() ? v : e.ir.CreateFPExt(v, e.ir.getDoubleTy());
    Value* bits = e.CallPure(std::string(name) + direction, e.Int(32), {wide});
    return e.FromBits(bits, to);
  }
  return v->getType()->isDoubleTy() ? e.DoubleToHalf(v, to) : e.FloatToHalf(v, to);
}

Value* IntegerToFloat(Emitter& e, Value* v, Type from, Type to, Mod rounding) {
  bool is_signed = IsSigned(from);
  auto convert = [&](llvm::Type* t) { return is_signed ? e.ir.CreateSIToFP(v, t) : e.ir.CreateUIToFP(v, t); };
  const char* direction = Direction(rounding);
  bool wide = ptx::BitsOf(from) == 64;
  if (to == Type::kF64) {
    if (!*direction || !wide) return convert(e.ir.getDoubleTy());
    return e.CallPure(std::string(is_signed ? "cuplex_s64_to_f64" : "cuplex_u64_to_f64") + direction,
                      e.ir.getDoubleTy(), {v});
  }
  if (to == Type::kF32 && !*direction) return convert(e.ir.getFloatTy());
  // Exact, or rounded so that rounding again is right: 64 bits to odd, fewer fit.
  Value* exact = wide ? e.CallPure(is_signed ? "cuplex_s64_to_f64_odd" : "cuplex_u64_to_f64_odd",
                                   e.ir.getDoubleTy(), {v})
                      : convert(e.ir.getDoubleTy());
  if (to == Type::kF32)
    return e.CallPure(std::string("cuplex_f64_to_f32") + direction, e.ir.getFloatTy(), {exact});
  return ToHalf(e, exact, to, rounding);
}

Status ConvertPair(Emitter& e, const Instruction& in) {
  // cvt.rn.f16x2.f32 d, a, b: a goes to the upper half.
  Type to = in.TypeAt(0);
  Type one = to == Type::kF16x2 ? Type::kF16 : Type::kBf16;
  if (in.operands.size() != 3 || in.TypeAt(1) != Type::kF32) {
    return e.Refuse(in, "converts to a pair from something other than two .f32");
  }
  Value* v = llvm::PoisonValue::get(e.TypeFor(to));
  for (unsigned i = 0; i < 2; ++i) {
    TRY(Value * f, e.Read(in, in.operands[2 - i], Type::kF32));
    if (in.Has(Mod::kRelu)) {
      f = e.ir.CreateSelect(e.ir.CreateFCmpOLT(f, llvm::ConstantFP::get(f->getType(), 0.0)),
                            llvm::ConstantFP::get(f->getType(), 0.0), f);
    }
    v = e.ir.CreateInsertElement(v, ToHalf(e, f, one, in.Rounding()), static_cast<uint64_t>(i));
  }
  return e.Write(in, in.operands[0], v);
}

}  // namespace

Status EmitCvt(Emitter& e, const Instruction& in) {
  Type to = in.TypeAt(0), from = in.TypeAt(1);
  if (to == Type::kF16x2 || to == Type::kBf16x2) return ConvertPair(e, in);
  if (in.operands.size() != 2 || in.TypeCount() != 2) return e.Refuse(in, "takes two types and 2 operands");
  if (to == Type::kTf32) {
    TRY(Value * v, e.Read(in, in.operands[1], Type::kF32));
    if (in.Rounding() != Mod::kRna) return e.Refuse(in, "rounds to tf32 in a way softcuda does not support");
    // To 10 bits of fraction, halves away from zero.
    Value* bits = e.ir.CreateAnd(e.ir.CreateAdd(e.ToBits(v), e.I32(0x1000)), e.I32(0xffffe000));
    return e.Write(in, in.operands[0], e.ir.CreateSelect(e.ir.CreateFCmpUNO(v, v), e.I32(0x7fffffff), bits));
  }
  if (!(IsInteger(to) || IsFloat(to)) || !(IsInteger(from) || IsFloat(from))) {
    return e.Refuse(in, "converts between types that softcuda does not have");
  }
  TRY(Value * v, e.Read(in, in.operands[1], from));
  Mod rounding = in.Rounding();
  bool sat = in.Has(Mod::kSat);
  if (IsInteger(from) && IsInteger(to)) {
    unsigned narrow = ptx::BitsOf(to), wide = ptx::BitsOf(from);
    if (sat) {
      // In a type that holds every value of both, clamped to what the destination holds.
      unsigned bits = std::max(narrow, wide) + 1;
      v = IsSigned(from) ? e.ir.CreateSExt(v, e.Int(bits)) : e.ir.CreateZExt(v, e.Int(bits));
      llvm::APInt low =
          IsSigned(to) ? llvm::APInt::getSignedMinValue(narrow).sext(bits) : llvm::APInt(bits, 0);
      llvm::APInt high = IsSigned(to) ? llvm::APInt::getSignedMaxValue(narrow).sext(bits)
                                      : llvm::APInt::getMaxValue(narrow).zext(bits);
      v = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, v, llvm::ConstantInt::get(e.Int(bits), low));
      v = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, v, llvm::ConstantInt::get(e.Int(bits), high));
      v = e.ir.CreateTrunc(v, e.Int(narrow));
    } else {
      v = IsSigned(from) ? e.ir.CreateSExtOrTrunc(v, e.Int(narrow))
                         : e.ir.CreateZExtOrTrunc(v, e.Int(narrow));
    }
    return e.Write(in, in.operands[0], v, IsSigned(to));
  }
  if (IsInteger(from)) {
    v = IntegerToFloat(e, v, from, to, rounding);
    if (sat && to != Type::kBf16) v = e.Saturate(v);
    return e.Write(in, in.operands[0], v);
  }
  if (in.Has(Mod::kFtz) && from == Type::kF32) v = e.Flush(v);
  Type kind = from;
  if (IsHalf(from) && to != from) {  // exact
    v = e.HalfToFloat(v, from);
    kind = Type::kF32;
  }
  if (IsInteger(to)) {
    v = RoundToIntegral(e, v, rounding);
    if (from == Type::kBf16 && kind == Type::kBf16)
      return e.Refuse(in, "converts between types that softcuda does not have");
    auto id = IsSigned(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    Value* number = v;
    v = e.ir.CreateIntrinsic(id, {e.Int(ptx::BitsOf(to)), v->getType()}, {v});
    if (from == Type::kF64 || ptx::BitsOf(to) == 64) {  // where NaN is the middle of the range, not zero
      Value* middle = llvm::ConstantInt::get(v->getType(), llvm::APInt::getSignedMinValue(ptx::BitsOf(to)));
      v = e.ir.CreateSelect(e.ir.CreateFCmpUNO(number, number), middle, v);
    }
    return e.Write(in, in.operands[0], v, IsSigned(to));
  }
  if (to == from) {
    if (IsIntegralRounding(rounding)) {
      v = to == Type::kBf16 ? e.FloatToHalf(RoundToIntegral(e, e.HalfToFloat(v, to), rounding), to)
                            : RoundToIntegral(e, v, rounding);
    }
  } else if (to == Type::kF64) {
    v = e.ir.CreateFPExt(v, e.ir.getDoubleTy());
    if (IsIntegralRounding(rounding)) v = RoundToIntegral(e, v, rounding);
  } else if (to == Type::kF32) {
    if (kind == Type::kF64) {
      if (IsIntegralRounding(rounding)) v = RoundToIntegral(e, v, rounding);
      const char* direction = Direction(rounding);
      v = *direction && !IsIntegralRounding(rounding)
              ? e.CallPure(std::string("cuplex_f64_to_f32") + direction, e.ir.getFloatTy(), {v})
              : e.ir.CreateFPTrunc(v, e.ir.getFloatTy());
    }
  } else {
    if (in.Has(Mod::kRelu)) {
      Value* zero = llvm::ConstantFP::get(v->getType(), 0.0);
      v = e.ir.CreateSelect(e.ir.CreateFCmpOLT(v, zero), zero, v);
    }
    if (sat) v = e.Saturate(v);
    return e.Write(in, in.operands[0], ToHalf(e, v, to, rounding));
  }
  if (in.Has(Mod::kFtz) && to == Type::kF32) v = e.Flush(v);
  if (sat) v = to == Type::kBf16 ? e.FloatToHalf(e.Saturate(e.HalfToFloat(v, to)), to) : e.Saturate(v);
  return e.Write(in, in.operands[0], v);
}

}  // namespace cuplex::softcuda
