#include "softcuda/jit/approximations.h"

#include <initializer_list>
#include <limits>

#include <llvm/IR/Intrinsics.h>

namespace cuplex::softcuda {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

namespace {

using Ir = llvm::IRBuilder<>;

Value* F(Ir& ir, double c) { return llvm::ConstantFP::get(ir.getFloatTy(), c); }
Value* D(Ir& ir, double c) { return llvm::ConstantFP::get(ir.getDoubleTy(), c); }
Value* I(Ir& ir, uint32_t c) { return ir.getInt32(c); }

Value* Fma(Ir& ir, Value* a, Value* b, Value* c) {
  return ir.CreateIntrinsic(Intrinsic::fma, {a->getType()}, {a, b, c});
}
Value* Round(Ir& ir, Value* v) { return ir.CreateUnaryIntrinsic(Intrinsic::roundeven, v); }
Value* Magnitude(Ir& ir, Value* v) { return ir.CreateUnaryIntrinsic(Intrinsic::fabs, v); }
Value* Bits(Ir& ir, Value* f) { return ir.CreateBitCast(f, ir.getInt32Ty()); }
Value* FromBits(Ir& ir, Value* bits) { return ir.CreateBitCast(bits, ir.getFloatTy()); }

/// Coefficients from the highest power down to the constant.
Value* Polynomial(Ir& ir, Value* t, std::initializer_list<double> coefficients) {
  auto c = coefficients.begin();
  Value* v = F(ir, *c);
  for (++c; c != coefficients.end(); ++c) v = Fma(ir, v, t, F(ir, *c));
  return v;
}

/// 2^n for n from -126 to 127.
Value* PowerOfTwo(Ir& ir, Value* n) {
  return FromBits(ir, ir.CreateShl(ir.CreateAdd(n, I(ir, 127)), I(ir, 23)));
}

Value* Quarter(Ir& ir, Value* x, Value*& quadrant) {
  // In double, x less a multiple of pi/2 is right to the last place of a float.
  Value* finite = ir.CreateFCmpOLT(Magnitude(ir, x), F(ir, std::numeric_limits<double>::infinity()));
  Value* wide = ir.CreateFPExt(ir.CreateSelect(finite, x, F(ir, 0)), ir.getDoubleTy());
  Value* n = Round(ir, ir.CreateFMul(wide, D(ir, 0.63661977236758134308)));
  Value* rest = Fma(ir, n, D(ir, -1.57079632679489661923), wide);
  rest = Fma(ir, n, D(ir, -6.12323399573676603587e-17), rest);
  // The number of quarters modulo 4, also where it fits no integer.
  Value* fours = ir.CreateUnaryIntrinsic(Intrinsic::floor, ir.CreateFMul(n, D(ir, 0.25)));
  quadrant = ir.CreateFPToSI(Fma(ir, fours, D(ir, -4.0), n), ir.getInt32Ty());
  return ir.CreateFPTrunc(rest, ir.getFloatTy());
}

/// The sine of x + quarters * pi/2.
Value* Circle(Ir& ir, Value* x, uint32_t quarters) {
  Value* quadrant = nullptr;
  Value* r = Quarter(ir, x, quadrant);
  if (quarters) quadrant = ir.CreateAdd(quadrant, I(ir, quarters));
  Value* u = ir.CreateFMul(r, r);
  Value* sine = Polynomial(ir, u, {-0.000195814395, 0.008332718027, -0.166666645});
  sine = Fma(ir, ir.CreateFMul(r, u), sine, r);
  Value* cosine = Polynomial(ir, u, {2.454147685e-05, -0.001388827273, 0.0416666645, -0.5, 1.0});
  Value* odd = ir.CreateICmpNE(ir.CreateAnd(quadrant, I(ir, 1)), I(ir, 0));
  Value* v = ir.CreateSelect(odd, cosine, sine);
  Value* sign = ir.CreateShl(ir.CreateAnd(quadrant, I(ir, 2)), I(ir, 30));
  v = FromBits(ir, ir.CreateXor(Bits(ir, v), sign));
  Value* finite = ir.CreateFCmpOLT(Magnitude(ir, x), F(ir, std::numeric_limits<double>::infinity()));
  return ir.CreateSelect(finite, v, FromBits(ir, I(ir, 0x7fffffff)));
}

Value* KeepZero(Ir& ir, Value* x, Value* v) { return ir.CreateSelect(ir.CreateFCmpOEQ(x, F(ir, 0.0)), x, v); }

}  // namespace

Value* ExpTwo(Ir& ir, Value* x) {
  // Beyond these the result is infinite or zero anyway. The comparisons turn NaN into a number.
  Value* bounded = ir.CreateSelect(ir.CreateFCmpOGT(x, F(ir, -151.0)), x, F(ir, -151.0));
  bounded = ir.CreateSelect(ir.CreateFCmpOLT(bounded, F(ir, 129.0)), bounded, F(ir, 129.0));
  Value* whole = Round(ir, bounded);
  Value* t = ir.CreateFSub(bounded, whole);
  Value* p = Polynomial(
      ir, t,
      {0.0001545316294, 0.001339086336, 0.009618082557, 0.05550357114, 0.2402265076, 0.693147188, 1.0});
  Value* n = ir.CreateFPToSI(whole, ir.getInt32Ty());
  // In two factors, since the result may be subnormal.
  Value* half = ir.CreateAShr(n, I(ir, 1));
  Value* v = ir.CreateFMul(ir.CreateFMul(p, PowerOfTwo(ir, half)), PowerOfTwo(ir, ir.CreateSub(n, half)));
  return ir.CreateSelect(ir.CreateFCmpUNO(x, x), x, v);
}

Value* LogTwo(Ir& ir, Value* x) {
  Value* tiny = ir.CreateFCmpOLT(x, F(ir, 0x1p-126));
  Value* normal = ir.CreateSelect(tiny, ir.CreateFMul(x, F(ir, 0x1p23)), x);
  // The mantissa between sqrt(1/2) and sqrt(2), whose bits are 0x3f3504f3.
  Value* bits = ir.CreateSub(Bits(ir, normal), I(ir, 0x3f3504f3));
  Value* exponent = ir.CreateAShr(bits, I(ir, 23));
  Value* mantissa = FromBits(ir, ir.CreateAdd(ir.CreateAnd(bits, I(ir, 0x7fffff)), I(ir, 0x3f3504f3)));
  Value* t = ir.CreateFSub(mantissa, F(ir, 1.0));
  Value* p = Polynomial(ir, t,
                        {-0.1074978966, 0.1847603351, -0.1913883762, 0.2048576475, -0.2396081219,
                         0.2885525615, -0.3606965418, 0.4808985203, -0.7213473545, 1.44269504});
  Value* e = ir.CreateFSub(ir.CreateSIToFP(exponent, ir.getFloatTy()),
                           ir.CreateSelect(tiny, F(ir, 23.0), F(ir, 0.0)));
  Value* v = Fma(ir, t, p, e);
  Value* infinity = F(ir, std::numeric_limits<double>::infinity());
  v = ir.CreateSelect(ir.CreateFCmpOEQ(x, infinity), x, v);
  v = ir.CreateSelect(ir.CreateFCmpOEQ(x, F(ir, 0.0)), ir.CreateFNeg(infinity), v);
  return ir.CreateSelect(ir.CreateFCmpULT(x, F(ir, 0.0)), FromBits(ir, I(ir, 0x7fffffff)), v);
}

Value* Sine(Ir& ir, Value* x) { return KeepZero(ir, x, Circle(ir, x, 0)); }
Value* Cosine(Ir& ir, Value* x) { return Circle(ir, x, 1); }

Value* HyperbolicTangent(Ir& ir, Value* x) {
  Value* magnitude = Magnitude(ir, x);
  Value* u = ir.CreateFMul(x, x);
  Value* small =
      Polynomial(ir, u, {-0.006269119728, 0.02111095906, -0.05387394885, 0.1333291537, -0.3333333033});
  small = Fma(ir, ir.CreateFMul(x, u), small, x);
  // 1 - 2 / (e^(2 |x|) + 1)
  Value* power = ExpTwo(ir, ir.CreateFMul(magnitude, F(ir, 2.88539008177792681472)));
  Value* large = ir.CreateFSub(F(ir, 1.0), ir.CreateFDiv(F(ir, 2.0), ir.CreateFAdd(power, F(ir, 1.0))));
  large = ir.CreateBinaryIntrinsic(Intrinsic::copysign, large, x);
  Value* v = ir.CreateSelect(ir.CreateFCmpOLT(magnitude, F(ir, 0.6)), small, large);
  return KeepZero(ir, x, ir.CreateSelect(ir.CreateFCmpUNO(x, x), x, v));
}

}  // namespace cuplex::softcuda
