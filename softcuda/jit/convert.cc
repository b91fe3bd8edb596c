// cvt: between types, with PTX's roundings and saturation.
#include <array>
#include <optional>

#include <llvm/IR/Intrinsics.h>

#include "softcuda/jit/emitter.h"
#include "softcuda/jit/families.h"
#include "softcuda/jit/small_float.h"

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

/// Numbers that are not positive to +0; NaN stays.
Value* Rectify(Emitter& e, Value* f) {
  Value* zero = llvm::ConstantFP::get(f->getType(), 0.0);
  return e.ir.CreateSelect(e.ir.CreateFCmpOLE(f, zero), zero, f);
}

/// .satfinite of f16 and bf16: infinities become the largest number of their sign.
Value* KeepFinite(Emitter& e, Value* v, Type to) {
  Value* bits = e.ToBits(v);
  uint64_t infinity = to == Type::kF16 ? 0x7c00 : 0x7f80;
  auto constant = [&](uint64_t c) { return llvm::ConstantInt::get(bits->getType(), c); };
  Value* magnitude = e.ir.CreateAnd(bits, constant(0x7fff));
  Value* infinite = e.ir.CreateICmpEQ(magnitude, constant(infinity));
  Value* nan = e.ir.CreateICmpUGT(magnitude, constant(infinity));
  bits = e.ir.CreateSelect(infinite, e.ir.CreateSub(bits, constant(1)), bits);
  return e.FromBits(e.ir.CreateSelect(nan, constant(0x7fff), bits), to);
}

Value* ToHalfOf(Emitter& e, const Instruction& in, Value* f, Type to) {
  if (in.Has(Mod::kRelu)) f = Rectify(e, f);
  Value* v = ToHalf(e, f, to, in.Rounding());
  return in.Has(Mod::kSatfinite) ? KeepFinite(e, v, to) : v;
}

/// Small floats come in pairs, the first operand in the upper part.
struct SmallPair {
  SmallFloat kind = SmallFloat::kE4m3;
  unsigned place = 8;  // bits from one to the other
};
std::optional<SmallPair> SmallPairOf(Type type) {
  switch (type) {
    case Type::kE4m3x2:
      return SmallPair{SmallFloat::kE4m3, 8};
    case Type::kE5m2x2:
      return SmallPair{SmallFloat::kE5m2, 8};
    case Type::kE3m2x2:
      return SmallPair{SmallFloat::kE3m2, 8};
    case Type::kE2m3x2:
      return SmallPair{SmallFloat::kE2m3, 8};
    case Type::kE2m1x2:
      return SmallPair{SmallFloat::kE2m1, 4};
    default:
      return std::nullopt;
  }
}

/// The two floats of cvt's sources, lower first: two .f32, or a pair of halves, or of small floats.
Result<std::array<Value*, 2>> PairOfFloats(Emitter& e, const Instruction& in, Type from) {
  std::array<Value*, 2> out = {};
  size_t wants = from == Type::kF32 ? 3 : 2;
  if (in.operands.size() != wants) return e.Refuse(in, fmt::format("takes {} operands", wants));
  if (from == Type::kF32) {
    for (size_t i = 0; i < 2; ++i) {
      TRY(out[i], e.Read(in, in.operands[2 - i], Type::kF32));
    }
    return out;
  }
  if (auto small = SmallPairOf(from)) {
    TRY(Value * bits, e.Read(in, in.operands[1], small->place == 4 ? Type::kB8 : Type::kB16));
    bits = e.ir.CreateZExt(bits, e.Int(32));
    for (unsigned i = 0; i < 2; ++i) {
      Value* code = e.ir.CreateAnd(e.ir.CreateLShr(bits, i * small->place), (1u << small->place) - 1);
      out[i] = e.CallPure("cuplex_from_small_float", e.ir.getFloatTy(),
                          {code, e.I32(static_cast<uint32_t>(small->kind))});
    }
    return out;
  }
  if (from != Type::kF16x2 && from != Type::kBf16x2) {
    return e.Refuse(in, "converts from something other than two .f32, halves or small floats");
  }
  TRY(Value * v, e.Read(in, in.operands[1], from));
  v = e.HalfToFloat(v, from);
  for (uint64_t i = 0; i < 2; ++i) out[i] = e.ir.CreateExtractElement(v, i);
  return out;
}

/// cvt.rn.f16x2.f32 d, a, b: a goes to the upper half; and cvt.rn.f16x2.e4m3x2 d, a.
Status ConvertPair(Emitter& e, const Instruction& in) {
  Type to = in.TypeAt(0), from = in.TypeAt(1);
  if (in.TypeCount() != 2 || from == Type::kF16x2 || from == Type::kBf16x2) {
    return e.Refuse(in, "converts to a pair from something other than two .f32 or small floats");
  }
  TRY(auto pair, PairOfFloats(e, in, from));
  Value* v = llvm::PoisonValue::get(e.TypeFor(to));
  for (unsigned i = 0; i < 2; ++i) {
    Value* half = ToHalfOf(e, in, pair[i], to == Type::kF16x2 ? Type::kF16 : Type::kBf16);
    v = e.ir.CreateInsertElement(v, half, static_cast<uint64_t>(i));
  }
  return e.Write(in, in.operands[0], v);
}

/// cvt.rn.satfinite.e4m3x2.f32 d, a, b and the like.
Status ConvertToSmallPair(Emitter& e, const Instruction& in, SmallPair small) {
  if (in.TypeCount() != 2 || in.Rounding() != Mod::kRn || !in.Has(Mod::kSatfinite) ||
      SmallPairOf(in.TypeAt(1))) {
    return e.Refuse(in, "needs .rn.satfinite and two .f32, or a pair of halves");
  }
  TRY(auto pair, PairOfFloats(e, in, in.TypeAt(1)));
  Value* bits = e.I32(0);
  for (unsigned i = 0; i < 2; ++i) {
    Value* f = in.Has(Mod::kRelu) ? Rectify(e, pair[i]) : pair[i];
    Value* code = e.CallPure("cuplex_small_float", e.Int(32), {f, e.I32(static_cast<uint32_t>(small.kind))});
    bits = e.ir.CreateOr(bits, e.ir.CreateShl(code, i * small.place));
  }
  return e.Write(in, in.operands[0], e.ir.CreateTrunc(bits, e.Int(2 * small.place)));
}

/// To 10 bits of fraction.
Status ConvertToTf32(Emitter& e, const Instruction& in) {
  auto& ir = e.ir;
  if (in.TypeAt(1) != Type::kF32) return e.Refuse(in, "converts between types that softcuda does not have");
  TRY(Value * v, e.Read(in, in.operands[1], Type::kF32));
  if (in.Has(Mod::kRelu)) v = Rectify(e, v);
  Value* bits = e.ToBits(v);
  Value* more = nullptr;  // what carries into the last place that is kept
  switch (in.Rounding()) {
    case Mod::kRna:
      more = e.I32(0x1000);
      break;
    case Mod::kRn:
      more = ir.CreateAdd(e.I32(0xfff), ir.CreateAnd(ir.CreateLShr(bits, 13), e.I32(1)));
      break;
    case Mod::kRz:
      more = e.I32(0);
      break;
    default:
      return e.Refuse(in, "rounds to tf32 in a way that PTX does not have");
  }
  Value* finite = ir.CreateICmpULT(ir.CreateAnd(bits, e.I32(0x7fffffff)), e.I32(0x7f800000));
  Value* rounded = ir.CreateAnd(ir.CreateSelect(finite, ir.CreateAdd(bits, more), bits), e.I32(0xffffe000));
  if (in.Has(Mod::kSatfinite)) {
    Value* infinite = ir.CreateICmpEQ(ir.CreateAnd(rounded, e.I32(0x7fffffff)), e.I32(0x7f800000));
    rounded = ir.CreateSelect(infinite, ir.CreateSub(rounded, e.I32(0x2000)), rounded);
  }
  return e.Write(in, in.operands[0], ir.CreateSelect(ir.CreateFCmpUNO(v, v), e.I32(0x7fffffff), rounded));
}

/// cvt.pack: two numbers clamped to fewer bits, side by side; bytes and less move what c holds up.
Status ConvertPack(Emitter& e, const Instruction& in) {
  Type to = in.TypeAt(0);
  bool to_signed = to == Type::kS16 || to == Type::kS8 || to == Type::kS4, shifts = in.TypeCount() == 3;
  bool fits = to_signed || to == Type::kU16 || to == Type::kU8 || to == Type::kU4;
  unsigned bits = ptx::BitsOf(to);
  if (!fits || in.TypeAt(1) != Type::kS32 || shifts != (bits < 16) ||
      in.operands.size() != (shifts ? 4u : 3u)) {
    return e.Refuse(in, "packs in a way that softcuda does not support");
  }
  int32_t low = to_signed ? -(1 << (bits - 1)) : 0;
  int32_t high = to_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
  Value* out = e.I32(0);
  if (shifts) {
    TRY(Value * c, e.Read(in, in.operands[3], Type::kB32));
    out = e.ir.CreateShl(c, 2 * bits);
  }
  for (unsigned i = 0; i < 2; ++i) {
    TRY(Value * v, e.Read(in, in.operands[2 - i], Type::kS32));
    v = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, v, e.I32(static_cast<uint32_t>(low)));
    v = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, v, e.I32(static_cast<uint32_t>(high)));
    out = e.ir.CreateOr(out, e.ir.CreateShl(e.ir.CreateAnd(v, e.I32((1u << bits) - 1)), i * bits));
  }
  return e.Write(in, in.operands[0], out);
}

}  // namespace

Status EmitCvt(Emitter& e, const Instruction& in) {
  Type to = in.TypeAt(0), from = in.TypeAt(1);
  if (in.Has(Mod::kPack)) return ConvertPack(e, in);
  if (to == Type::kF16x2 || to == Type::kBf16x2) return ConvertPair(e, in);
  if (auto small = SmallPairOf(to)) return ConvertToSmallPair(e, in, *small);
  if (in.operands.size() != 2 || in.TypeCount() != 2) return e.Refuse(in, "takes two types and 2 operands");
  if (to == Type::kTf32) return ConvertToTf32(e, in);
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
    if (sat) v = e.Saturate(v);
    return e.Write(in, in.operands[0], ToHalfOf(e, in, v, to));
  }
  if (in.Has(Mod::kFtz) && to == Type::kF32) v = e.Flush(v);
  if (sat) v = to == Type::kBf16 ? e.FloatToHalf(e.Saturate(e.HalfToFloat(v, to)), to) : e.Saturate(v);
  return e.Write(in, in.operands[0], v);
}

}  // namespace cuplex::softcuda
