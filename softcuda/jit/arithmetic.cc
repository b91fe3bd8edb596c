// add sub mul mad fma div rem min max abs neg sad dp4a: numbers, of every type PTX has them for.
#include <llvm/IR/Intrinsics.h>

#include "softcuda/jit/emitter.h"
#include "softcuda/jit/families.h"
#include "softcuda/jit/markers.h"

namespace cuplex::softcuda {
namespace {

using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Type;

bool IsSigned(Type t) {
  return t == Type::kS8 || t == Type::kS16 || t == Type::kS32 || t == Type::kS64 || t == Type::kS16x2;
}
bool IsInteger(Type t) {
  switch (t) {
    case Type::kU16:
    case Type::kU32:
    case Type::kU64:
    case Type::kS16:
    case Type::kS32:
    case Type::kS64:
    case Type::kU16x2:
    case Type::kS16x2:
      return true;
    default:
      return false;
  }
}
bool IsPair(Type t) { return t == Type::kU16x2 || t == Type::kS16x2; }
bool IsHalf(Type t) { return t == Type::kF16 || t == Type::kF16x2 || t == Type::kBf16 || t == Type::kBf16x2; }
bool IsFloat(Type t) { return IsHalf(t) || t == Type::kF32 || t == Type::kF64 || t == Type::kF32x2; }

/// "_rz", "_rm", "_rp", or "" where rounding is to nearest even.
const char* RoundingSuffix(const Instruction& in) {
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

/// Reads operands 1 .. n as `t`, flushed where the instruction says .ftz.
Result<std::vector<Value*>> Sources(Emitter& e, const Instruction& in, Type t, size_t n) {
  if (in.operands.size() < n + 1) return e.Refuse(in, fmt::format("takes {} operands", n + 1));
  if (*RoundingSuffix(in) && t != Type::kF32 && t != Type::kF64 && t != Type::kF32x2) {
    return e.Refuse(in, "rounds in a way that PTX does not have for its type");
  }
  std::vector<Value*> out;
  for (size_t i = 1; i <= n; ++i) {
    TRY(Value * v, e.Read(in, in.operands[i], t));
    if (in.Has(Mod::kFtz)) v = e.Flush(v, t);
    out.push_back(v);
  }
  return out;
}

Status Finish(Emitter& e, const Instruction& in, Type t, Value* v) {
  if (in.Has(Mod::kFtz)) v = e.Flush(v, t);
  if (in.Has(Mod::kRelu)) {
    Value* zero = llvm::Constant::getNullValue(v->getType());
    if (t == Type::kBf16 || t == Type::kBf16x2) {
      // Negative and not NaN becomes zero; the type is an integer here.
      Value* f = e.HalfToFloat(v, t);
      v = e.ir.CreateSelect(e.ir.CreateFCmpOLT(f, llvm::Constant::getNullValue(f->getType())), zero, v);
    } else {
      v = e.ir.CreateSelect(e.ir.CreateFCmpOLT(v, zero), zero, v);
    }
  }
  if (in.Has(Mod::kSat)) {
    if (t == Type::kF16x2 || t == Type::kBf16 || t == Type::kBf16x2) {
      v = e.FloatToHalf(e.Saturate(e.HalfToFloat(v, t)), t);
    } else {
      v = e.Saturate(v);
    }
  }
  return e.Write(in, in.operands[0], v, IsSigned(t));
}

enum class Binary { kAdd, kSub, kMul };

/// Does the two elements of vectors one by one.
template <typename F>
Value* EachOfTwo(Emitter& e, llvm::Type* type, F&& element) {
  Value* v = llvm::PoisonValue::get(type);
  for (uint64_t i = 0; i < 2; ++i) v = e.ir.CreateInsertElement(v, element(i), i);
  return v;
}

Value* FloatBinary(Emitter& e, const Instruction& in, Type t, Binary op, Value* a, Value* b) {
  const char* suffix = RoundingSuffix(in);
  if (*suffix && t == Type::kF32x2) {
    return EachOfTwo(e, a->getType(), [&](uint64_t i) {
      return FloatBinary(e, in, Type::kF32, op, e.ir.CreateExtractElement(a, i),
                         e.ir.CreateExtractElement(b, i));
    });
  }
  if (*suffix && (t == Type::kF32 || t == Type::kF64)) {
    static constexpr const char* kNames[] = {"cuplex_add", "cuplex_sub", "cuplex_mul"};
    return e.CallPure(
        std::string(kNames[static_cast<int>(op)]) + suffix + (t == Type::kF32 ? "_f32" : "_f64"),
        a->getType(), {a, b});
  }
  bool brain = t == Type::kBf16 || t == Type::kBf16x2;
  if (brain) {
    a = e.HalfToFloat(a, t);
    b = e.HalfToFloat(b, t);
  }
  Value* v = op == Binary::kAdd   ? e.ir.CreateFAdd(a, b)
             : op == Binary::kSub ? e.ir.CreateFSub(a, b)
                                  : e.ir.CreateFMul(a, b);
  // Both halves have fewer than half of a float's digits, so rounding twice is rounding once.
  return brain ? e.FloatToHalf(v, t) : v;
}

Status EmitAddSub(Emitter& e, const Instruction& in, bool subtract) {
  Type t = in.TypeAt();
  if (IsFloat(t)) {
    if (in.Has(Mod::kCc)) return e.Refuse(in, "carries on a float");
    TRY(auto s, Sources(e, in, t, 2));
    return Finish(e, in, t, FloatBinary(e, in, t, subtract ? Binary::kSub : Binary::kAdd, s[0], s[1]));
  }
  if (!IsInteger(t) && t != Type::kB32) return e.Refuse(in, "has a type that softcuda does not add");
  TRY(auto s, Sources(e, in, t, 2));
  bool carries_in = in.opcode == Opcode::kAddc || in.opcode == Opcode::kSubc;
  if (IsPair(t) && (in.Has(Mod::kCc) || carries_in)) return e.Refuse(in, "carries on a pair");
  if (in.Has(Mod::kCc) || carries_in) {
    // One bit more than the type: the carry out, or the borrow. As in the devices themselves, what stays
    // after a subtraction is that nothing was borrowed: an addition that goes on from it then adds 1.
    auto held = [&](Value* bit) { return subtract ? e.ir.CreateNot(bit) : bit; };
    unsigned bits = ptx::BitsOf(t);
    auto* wide = e.Int(bits + 1);
    Value* a = e.ir.CreateZExt(s[0], wide);
    Value* b = e.ir.CreateZExt(s[1], wide);
    Value* v = subtract ? e.ir.CreateSub(a, b) : e.ir.CreateAdd(a, b);
    if (carries_in) {
      Value* c = e.ir.CreateZExt(held(e.ir.CreateLoad(e.Int(1), e.carry_slot())), wide);
      v = subtract ? e.ir.CreateSub(v, c) : e.ir.CreateAdd(v, c);
    }
    if (in.Has(Mod::kCc)) {
      e.ir.CreateStore(held(e.ir.CreateTrunc(e.ir.CreateLShr(v, bits), e.Int(1))), e.carry_slot());
    }
    return e.Write(in, in.operands[0], e.ir.CreateTrunc(v, e.Int(bits)), IsSigned(t));
  }
  if (in.Has(Mod::kSat)) {
    auto id = subtract ? llvm::Intrinsic::ssub_sat : llvm::Intrinsic::sadd_sat;
    return e.Write(in, in.operands[0], e.ir.CreateBinaryIntrinsic(id, s[0], s[1]), true);
  }
  Value* v = subtract ? e.ir.CreateSub(s[0], s[1]) : e.ir.CreateAdd(s[0], s[1]);
  return e.Write(in, in.operands[0], v, IsSigned(t));
}

/// The product an integer mul or mad asks for: .lo, .hi or .wide.
Value* Product(Emitter& e, const Instruction& in, Type t, Value* a, Value* b) {
  bool is_signed = IsSigned(t);
  unsigned bits = ptx::BitsOf(t);
  if (!in.Has(Mod::kHi) && !in.Has(Mod::kWide)) return e.ir.CreateMul(a, b);
  auto* wide = e.Int(2 * bits);
  a = is_signed ? e.ir.CreateSExt(a, wide) : e.ir.CreateZExt(a, wide);
  b = is_signed ? e.ir.CreateSExt(b, wide) : e.ir.CreateZExt(b, wide);
  Value* v = e.ir.CreateMul(a, b);
  return in.Has(Mod::kWide) ? v : e.ir.CreateTrunc(e.ir.CreateLShr(v, bits), e.Int(bits));
}

Value* FusedMultiplyAdd(Emitter& e, const Instruction& in, Type t, Value* a, Value* b, Value* c) {
  const char* suffix = RoundingSuffix(in);
  if (*suffix && t == Type::kF32x2) {
    return EachOfTwo(e, a->getType(), [&](uint64_t i) {
      return FusedMultiplyAdd(e, in, Type::kF32, e.ir.CreateExtractElement(a, i),
                              e.ir.CreateExtractElement(b, i), e.ir.CreateExtractElement(c, i));
    });
  }
  if (*suffix && (t == Type::kF32 || t == Type::kF64)) {
    return e.CallPure(std::string("cuplex_fma") + suffix + (t == Type::kF32 ? "_f32" : "_f64"), a->getType(),
                      {a, b, c});
  }
  if (!IsHalf(t)) return e.ir.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
  bool pair = t == Type::kF16x2 || t == Type::kBf16x2;
  Type one = t == Type::kF16x2 ? Type::kF16 : t == Type::kBf16x2 ? Type::kBf16 : t;
  const char* name = one == Type::kF16 ? "cuplex_fma_half" : "cuplex_fma_brain";
  auto single = [&](Value* x, Value* y, Value* z) {
    Value* odd = e.CallPure(name, e.ir.getFloatTy(),
                            {e.HalfToFloat(x, one), e.HalfToFloat(y, one), e.HalfToFloat(z, one)});
    return e.FloatToHalf(odd, one);
  };
  if (!pair) return single(a, b, c);
  Value* v = llvm::PoisonValue::get(a->getType());
  for (uint64_t i = 0; i < 2; ++i) {
    Value* r = single(e.ir.CreateExtractElement(a, i), e.ir.CreateExtractElement(b, i),
                      e.ir.CreateExtractElement(c, i));
    v = e.ir.CreateInsertElement(v, r, i);
  }
  return v;
}

/// min or max of floats (scalars or pairs): numbers win over NaN unless .NaN, and -0 is less than +0.
Value* FloatMinMax(Emitter& e, const Instruction& in, bool max, Value* a, Value* b) {
  llvm::Type* t = a->getType();
  llvm::Type* scalar = t->getScalarType();
  unsigned bits = static_cast<unsigned>(scalar->getPrimitiveSizeInBits());
  llvm::Type* ints = t->isVectorTy() ? static_cast<llvm::Type*>(llvm::FixedVectorType::get(e.Int(bits), 2))
                                     : static_cast<llvm::Type*>(e.Int(bits));
  Value* ia = e.ir.CreateBitCast(a, ints);
  Value* ib = e.ir.CreateBitCast(b, ints);
  // Equal values differ in the sign of zero at most.
  Value* same = e.ir.CreateBitCast(max ? e.ir.CreateAnd(ia, ib) : e.ir.CreateOr(ia, ib), t);
  Value* first = max ? e.ir.CreateFCmpOGT(a, b) : e.ir.CreateFCmpOLT(a, b);
  Value* v = e.ir.CreateSelect(first, a, b);
  v = e.ir.CreateSelect(e.ir.CreateFCmpOEQ(a, b), same, v);
  Value* a_nan = e.ir.CreateFCmpUNO(a, a);
  Value* b_nan = e.ir.CreateFCmpUNO(b, b);
  if (in.Has(Mod::kNan)) {
    Value* nan = llvm::ConstantExpr::getBitCast(
        llvm::ConstantInt::get(ints, llvm::APInt::getLowBitsSet(bits, bits - 1)), t);
    return e.ir.CreateSelect(e.ir.CreateOr(a_nan, b_nan), nan, v);
  }
  return e.ir.CreateSelect(a_nan, b, e.ir.CreateSelect(b_nan, a, v));
}

}  // namespace

Status EmitAdd(Emitter& e, const Instruction& in) { return EmitAddSub(e, in, false); }
Status EmitSub(Emitter& e, const Instruction& in) { return EmitAddSub(e, in, true); }

Status EmitMul(Emitter& e, const Instruction& in) {
  Type t = in.TypeAt();
  if (IsFloat(t)) {
    TRY(auto s, Sources(e, in, t, 2));
    return Finish(e, in, t, FloatBinary(e, in, t, Binary::kMul, s[0], s[1]));
  }
  if (!IsInteger(t) || IsPair(t)) return e.Refuse(in, "has a type that softcuda does not multiply");
  TRY(auto s, Sources(e, in, t, 2));
  return e.Write(in, in.operands[0], Product(e, in, t, s[0], s[1]), IsSigned(t));
}

Status EmitMad(Emitter& e, const Instruction& in) {
  Type t = in.TypeAt();
  if (IsFloat(t)) return EmitFma(e, in);
  if (!IsInteger(t) || IsPair(t)) return e.Refuse(in, "has a type that softcuda does not multiply");
  if (in.operands.size() != 4) return e.Refuse(in, "takes 4 operands");
  TRY(auto s, Sources(e, in, t, 2));
  Value* product = Product(e, in, t, s[0], s[1]);
  unsigned bits = static_cast<unsigned>(product->getType()->getIntegerBitWidth());
  bool wide = in.Has(Mod::kWide);
  if (wide && bits > 64) return e.Refuse(in, "has a type that PTX does not give it");
  Type of_c = !wide        ? t
              : bits == 64 ? (IsSigned(t) ? Type::kS64 : Type::kU64)
                           : (IsSigned(t) ? Type::kS32 : Type::kU32);
  TRY(Value * c, e.Read(in, in.operands[3], of_c));
  bool carries_in = in.opcode == Opcode::kMadc;
  if (in.Has(Mod::kCc) || carries_in) {
    auto* more = e.Int(bits + 1);
    Value* v = e.ir.CreateAdd(e.ir.CreateZExt(product, more), e.ir.CreateZExt(c, more));
    if (carries_in) v = e.ir.CreateAdd(v, e.ir.CreateZExt(e.ir.CreateLoad(e.Int(1), e.carry_slot()), more));
    if (in.Has(Mod::kCc)) {
      e.ir.CreateStore(e.ir.CreateTrunc(e.ir.CreateLShr(v, bits), e.Int(1)), e.carry_slot());
    }
    return e.Write(in, in.operands[0], e.ir.CreateTrunc(v, e.Int(bits)), IsSigned(t));
  }
  if (in.Has(Mod::kSat)) {  // mad.hi.sat.s32
    return e.Write(in, in.operands[0], e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, product, c),
                   true);
  }
  return e.Write(in, in.operands[0], e.ir.CreateAdd(product, c), IsSigned(t));
}

Status EmitMad24(Emitter& e, const Instruction& in) {
  Type t = in.TypeAt();
  if (t != Type::kU32 && t != Type::kS32) return e.Refuse(in, "has a type that PTX does not give it");
  bool is_signed = t == Type::kS32;
  TRY(auto s, Sources(e, in, t, 2));
  Value* v[2];
  for (int i = 0; i < 2; ++i) {
    Value* low = e.ir.CreateTrunc(s[i], e.Int(24));
    v[i] = is_signed ? e.ir.CreateSExt(low, e.Int(64)) : e.ir.CreateZExt(low, e.Int(64));
  }
  Value* product = e.ir.CreateMul(v[0], v[1]);
  if (in.Has(Mod::kHi)) product = e.ir.CreateLShr(product, 16);
  product = e.ir.CreateTrunc(product, e.Int(32));
  if (in.opcode == Opcode::kMad24) {
    if (in.operands.size() != 4) return e.Refuse(in, "takes 4 operands");
    TRY(Value * c, e.Read(in, in.operands[3], t));
    product = in.Has(Mod::kSat) ? e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, product, c)
                                : e.ir.CreateAdd(product, c);
  }
  return e.Write(in, in.operands[0], product, is_signed);
}

Status EmitFma(Emitter& e, const Instruction& in) {
  Type t = in.TypeAt();
  if (!IsFloat(t)) return e.Refuse(in, "has a type that softcuda does not multiply");
  TRY(auto s, Sources(e, in, t, 3));
  return Finish(e, in, t, FusedMultiplyAdd(e, in, t, s[0], s[1], s[2]));
}

Status EmitDiv(Emitter& e, const Instruction& in) {
  Type t = in.TypeAt();
  TRY(auto s, Sources(e, in, t, 2));
  if (t == Type::kF32 || t == Type::kF64) {
    if (in.opcode == Opcode::kRem) return e.Refuse(in, "has a type that PTX does not give it");
    const char* suffix = RoundingSuffix(in);
    Value* v = *suffix ? e.CallPure(std::string("cuplex_div") + suffix + (t == Type::kF32 ? "_f32" : "_f64"),
                                    s[0]->getType(), {s[0], s[1]})
                       : e.ir.CreateFDiv(s[0], s[1]);
    return Finish(e, in, t, v);
  }
  if (!IsInteger(t) || IsPair(t)) {
    return e.Refuse(in, "has a type that softcuda does not divide");
  }
  // Division by zero gives all ones, and the remainder its dividend; -2^n / -1 wraps.
  bool rem = in.opcode == Opcode::kRem;
  Value* zero = llvm::ConstantInt::get(s[1]->getType(), 0);
  Value* one = llvm::ConstantInt::get(s[1]->getType(), 1);
  Value* by_zero = e.ir.CreateICmpEQ(s[1], zero);
  Value* divisor = e.ir.CreateSelect(by_zero, one, s[1]);
  Value* v = nullptr;
  if (IsSigned(t)) {
    Value* minus = e.ir.CreateICmpEQ(s[1], llvm::Constant::getAllOnesValue(s[1]->getType()));
    divisor = e.ir.CreateSelect(minus, one, divisor);
    v = rem ? e.ir.CreateSRem(s[0], divisor) : e.ir.CreateSDiv(s[0], divisor);
    v = e.ir.CreateSelect(minus, rem ? zero : e.ir.CreateNeg(s[0]), v);
  } else {
    v = rem ? e.ir.CreateURem(s[0], divisor) : e.ir.CreateUDiv(s[0], divisor);
  }
  v = e.ir.CreateSelect(by_zero, rem ? s[0] : llvm::Constant::getAllOnesValue(v->getType()), v);
  return e.Write(in, in.operands[0], v, IsSigned(t));
}

Status EmitMinMax(Emitter& e, const Instruction& in) {
  Type t = in.TypeAt();
  bool max = in.opcode == Opcode::kMax;
  size_t n = in.operands.size() == 4 ? 3 : 2;
  TRY(auto s, Sources(e, in, t, n));
  if (IsInteger(t)) {
    if (n != 2) return e.Refuse(in, "takes 3 operands");
    auto id = IsSigned(t) ? (max ? llvm::Intrinsic::smax : llvm::Intrinsic::smin)
                          : (max ? llvm::Intrinsic::umax : llvm::Intrinsic::umin);
    Value* v = e.ir.CreateBinaryIntrinsic(id, s[0], s[1]);
    if (in.Has(Mod::kRelu)) {
      v = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, v, llvm::Constant::getNullValue(v->getType()));
    }
    return e.Write(in, in.operands[0], v, IsSigned(t));
  }
  if (!IsFloat(t)) return e.Refuse(in, "has a type that softcuda does not compare");
  bool brain = t == Type::kBf16 || t == Type::kBf16x2;
  if (brain) {
    for (Value*& v : s) v = e.HalfToFloat(v, t);
  }
  // .xorsign.abs: of the magnitudes, with the sign that the product would have.
  Value* sign = nullptr;
  if (in.Has(Mod::kXorsign)) {
    Value* one = llvm::ConstantFP::get(s[0]->getType(), 1.0);
    sign = e.ir.CreateFMul(e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, one, s[0]),
                           e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, one, s[1]));
  }
  if (in.Has(Mod::kAbs)) {
    for (Value*& v : s) v = e.ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v);
  }
  Value* v = FloatMinMax(e, in, max, s[0], s[1]);
  if (n == 3) v = FloatMinMax(e, in, max, v, s[2]);
  if (sign) v = e.ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, v, sign);
  if (brain) v = e.FloatToHalf(v, t);
  return Finish(e, in, t, v);
}

Status EmitAbs(Emitter& e, const Instruction& in) {
  Type t = in.TypeAt();
  TRY(auto s, Sources(e, in, t, 1));
  if (IsInteger(t)) {
    return e.Write(in, in.operands[0],
                   e.ir.CreateIntrinsic(llvm::Intrinsic::abs, {s[0]->getType()}, {s[0], e.ir.getFalse()}),
                   true);
  }
  if (t == Type::kBf16 || t == Type::kBf16x2) {
    return e.Write(in, in.operands[0], e.ir.CreateAnd(s[0], llvm::ConstantInt::get(s[0]->getType(), 0x7fff)));
  }
  if (!IsFloat(t)) return e.Refuse(in, "has a type that softcuda does not support");
  return Finish(e, in, t, e.ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, s[0]));
}

Status EmitNeg(Emitter& e, const Instruction& in) {
  Type t = in.TypeAt();
  TRY(auto s, Sources(e, in, t, 1));
  if (IsInteger(t)) return e.Write(in, in.operands[0], e.ir.CreateNeg(s[0]), true);
  if (t == Type::kBf16 || t == Type::kBf16x2) {
    return e.Write(in, in.operands[0], e.ir.CreateXor(s[0], llvm::ConstantInt::get(s[0]->getType(), 0x8000)));
  }
  if (!IsFloat(t)) return e.Refuse(in, "has a type that softcuda does not support");
  return Finish(e, in, t, e.ir.CreateFNeg(s[0]));
}

Status EmitSad(Emitter& e, const Instruction& in) {
  Type t = in.TypeAt();
  if (!IsInteger(t)) return e.Refuse(in, "has a type that PTX does not give it");
  TRY(auto s, Sources(e, in, t, 3));
  Value* less = IsSigned(t) ? e.ir.CreateICmpSLT(s[0], s[1]) : e.ir.CreateICmpULT(s[0], s[1]);
  Value* d = e.ir.CreateSelect(less, e.ir.CreateSub(s[1], s[0]), e.ir.CreateSub(s[0], s[1]));
  return e.Write(in, in.operands[0], e.ir.CreateAdd(s[2], d), IsSigned(t));
}

Status EmitDotProduct(Emitter& e, const Instruction& in) {
  if (in.TypeCount() != 2 || in.operands.size() != 4) return e.Refuse(in, "takes two types and 4 operands");
  bool a_signed = in.TypeAt(0) == Type::kS32, b_signed = in.TypeAt(1) == Type::kS32;
  bool two = in.opcode == Opcode::kDp2a;
  TRY(auto s, Sources(e, in, Type::kB32, 3));
  if (e.lockstep() && !two) {
    Value* sum = e.Mark(marker::kDotProduct, e.Int(32),
                        {s[0], s[1], s[2], e.ir.getInt1(a_signed), e.ir.getInt1(b_signed)}, true);
    return e.Write(in, in.operands[0], sum, a_signed || b_signed);
  }
  Value* sum = s[2];
  for (unsigned i = 0; i < (two ? 2u : 4u); ++i) {
    unsigned width = two ? 16 : 8;
    unsigned at = two && in.Has(Mod::kHi) ? i + 2 : i;
    Value* a = e.ir.CreateTrunc(e.ir.CreateLShr(s[0], i * width), e.Int(width));
    Value* b = e.ir.CreateTrunc(e.ir.CreateLShr(s[1], at * 8), e.Int(8));
    a = a_signed ? e.ir.CreateSExt(a, e.Int(32)) : e.ir.CreateZExt(a, e.Int(32));
    b = b_signed ? e.ir.CreateSExt(b, e.Int(32)) : e.ir.CreateZExt(b, e.Int(32));
    sum = e.ir.CreateAdd(sum, e.ir.CreateMul(a, b));
  }
  return e.Write(in, in.operands[0], sum, a_signed || b_signed);
}

}  // namespace cuplex::softcuda
