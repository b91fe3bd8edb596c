// Arithmetic in the roundings that the host's instructions do not offer one by one, and libm's functions
// under the names the emitter calls them by.
//
// Rounding in two steps is right where the first step rounds to odd (the last bit of an inexact result is
// set) and keeps at least two bits more than the second. Rounding a sum towards one side is rounding it to
// nearest and then looking on which side of the exact value (sum plus error, both known exactly) that fell.
#include <bit>
#include <cfenv>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <vector>

#include "softcuda/jit/runtime.h"

#pragma STDC FENV_ACCESS ON

namespace cuplex::softcuda {
namespace {

enum class Way { kZero, kDown, kUp };

int FenvOf(Way way) {
  return way == Way::kZero ? FE_TOWARDZERO : way == Way::kDown ? FE_DOWNWARD : FE_UPWARD;
}

/// Sets the processor's rounding for its lifetime.
class Rounding {
 public:
  explicit Rounding(Way way) : before_(fegetround()) { fesetround(FenvOf(way)); }
  ~Rounding() { fesetround(before_); }

 private:
  int before_;
};

float NextDown(float f) { return std::nextafterf(f, -INFINITY); }
float NextUp(float f) { return std::nextafterf(f, INFINITY); }

/// s + error, exactly, to float; error is smaller than half of s's last bit.
float NarrowExact(double s, double error, Way way) {
  float f = static_cast<float>(s);
  double above = static_cast<double>(f) - s;  // exact: the two are neighbours
  bool greater = above > error, less = above < error;
  if (std::isinf(f) && std::isfinite(s)) greater = f > 0, less = f < 0;
  switch (way) {
    case Way::kZero:
      if (f > 0 && greater) return NextDown(f);
      if (f < 0 && less) return NextUp(f);
      return f;
    case Way::kDown:
      return greater ? NextDown(f) : f;
    default:
      return less ? NextUp(f) : f;
  }
}

/// An exact zero sum of a and b has their sign where they agree, else the sign the rounding gives.
template <typename T>
bool ZeroSum(T a, T b, Way way, float& out) {
  if (a + b != 0) return false;
  bool negative = std::signbit(a) == std::signbit(b) ? std::signbit(a) : way == Way::kDown;
  out = negative ? -0.0f : 0.0f;
  return true;
}

float AddF32(double a, double b, Way way) {
  double s = a + b;
  float zero;
  if (ZeroSum(a, b, way, zero)) return zero;
  double bb = s - a;
  double error = (a - (s - bb)) + (b - bb);
  if (!std::isfinite(s)) error = 0;
  return NarrowExact(s, error, way);
}

template <Way way>
float AddF32(float a, float b) {
  return AddF32(static_cast<double>(a), static_cast<double>(b), way);
}
template <Way way>
float SubF32(float a, float b) {
  return AddF32(static_cast<double>(a), -static_cast<double>(b), way);
}
template <Way way>
float MulF32(float a, float b) {
  return NarrowExact(static_cast<double>(a) * static_cast<double>(b), 0, way);
}
template <Way way>
float FmaF32(float a, float b, float c) {
  return AddF32(static_cast<double>(a) * static_cast<double>(b), static_cast<double>(c), way);
}
template <Way way>
float DivF32(float a, float b) {
  Rounding rounding(way);
  volatile float x = a, y = b;
  volatile float q = x / y;
  return q;
}
template <Way way>
float SqrtF32(float a) {
  Rounding rounding(way);
  volatile float x = a;
  volatile float q = std::sqrt(x);
  return q;
}

#define CUPLEX_F64(name, expression)     \
  template <Way way>                     \
  double name##F64(double a, double b) { \
    Rounding rounding(way);              \
    volatile double x = a, y = b;        \
    volatile double out = expression;    \
    return out;                          \
  }
CUPLEX_F64(Add, x + y)
CUPLEX_F64(Sub, x - y)
CUPLEX_F64(Mul, x* y)
CUPLEX_F64(Div, x / y)
#undef CUPLEX_F64

template <Way way>
double FmaF64(double a, double b, double c) {
  Rounding rounding(way);
  volatile double x = a, y = b, z = c;
  volatile double out = std::fma(x, y, z);
  return out;
}
template <Way way>
double SqrtF64(double a) {
  Rounding rounding(way);
  volatile double x = a;
  volatile double out = std::sqrt(x);
  return out;
}

template <Way way>
float F64ToF32(double d) {
  return NarrowExact(d, 0, way);
}

float F64ToF32Odd(double d) {
  float f = static_cast<float>(d);
  if (static_cast<double>(f) == d || std::isnan(d)) return f;
  if (std::isinf(f)) return std::copysign(FLT_MAX, f);
  if (std::fabs(static_cast<double>(f)) > std::fabs(d)) f = std::nextafterf(f, 0);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(f) | 1);
}

/// a * b + c of halves, rounded to odd. The product of two is exact in double.
float FmaOdd(float a, float b, float c) {
  double p = static_cast<double>(a) * static_cast<double>(b), z = static_cast<double>(c);
  double s = p + z;
  if (std::isfinite(s)) {
    double bb = s - p;
    double error = (p - (s - bb)) + (z - bb);
    if (error != 0 && !(std::bit_cast<uint64_t>(s) & 1))
      s = std::nextafter(s, error > 0 ? INFINITY : -INFINITY);
  }
  return F64ToF32Odd(s);
}

template <Way way, typename T>
double IntegerToF64(T v) {
  double d = static_cast<double>(v);
  if (std::fabs(d) < 0x1p53) return d;
  // d is integral here; 2^64 and 2^63 do not fit the type, but 128 bits hold everything.
  __int128 above = static_cast<__int128>(d) - static_cast<__int128>(v);
  if (way == Way::kDown || (way == Way::kZero && v > 0)) return above > 0 ? std::nextafter(d, -INFINITY) : d;
  return above < 0 ? std::nextafter(d, INFINITY) : d;
}

template <typename T>
double IntegerToF64Odd(T v) {
  double d = IntegerToF64<Way::kZero>(v);
  if (static_cast<__int128>(d) == static_cast<__int128>(v)) return d;
  return std::bit_cast<double>(std::bit_cast<uint64_t>(d) | 1);
}

bool Away(Way way, bool negative) {
  return way == Way::kUp ? !negative : way == Way::kDown ? negative : false;
}

/// Float to half towards zero; `rest` is what was cut off: 0 nothing, 1 less than half a step, 2 half, 3
/// more.
uint16_t HalfTowardsZero(float f, int& rest) {
  uint32_t bits = std::bit_cast<uint32_t>(f);
  uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  int exponent = static_cast<int>(bits >> 23 & 255) - 127;
  uint32_t fraction = bits & 0x7fffff;
  rest = 0;
  if (exponent == 128) return static_cast<uint16_t>(sign | (fraction ? 0x7fff : 0x7c00));
  if (exponent > 15) {
    rest = 3;
    return static_cast<uint16_t>(sign | 0x7bff);
  }
  if (exponent < -14) {  // subnormal, or nothing left
    uint32_t whole = exponent == -127 ? fraction : fraction | 0x800000;
    int shift = 13 + (-14 - (exponent == -127 ? -126 : exponent));
    if (shift > 31) {
      rest = whole ? 1 : 0;
      return sign;
    }
    uint32_t cut = whole & ((uint32_t{1} << shift) - 1), half = uint32_t{1} << (shift - 1);
    rest = cut == 0 ? 0 : cut < half ? 1 : cut == half ? 2 : 3;
    return static_cast<uint16_t>(sign | whole >> shift);
  }
  uint32_t cut = fraction & 0x1fff;
  rest = cut == 0 ? 0 : cut < 0x1000 ? 1 : cut == 0x1000 ? 2 : 3;
  return static_cast<uint16_t>(sign | (exponent + 15) << 10 | fraction >> 13);
}

template <Way way>
uint32_t ToHalf(double d) {
  int rest;
  uint16_t h = HalfTowardsZero(F64ToF32<way>(d), rest);
  return rest && Away(way, std::signbit(d)) ? h + 1u : h;
}

template <Way way>
uint32_t ToBrain(double d) {
  float f = F64ToF32<way>(d);
  if (std::isnan(f)) return 0x7fff;
  uint32_t bits = std::bit_cast<uint32_t>(f);
  return (bits >> 16) + ((bits & 0xffff) && Away(way, std::signbit(f)) ? 1 : 0);
}

_Float16 TruncateToHalf(float f) {
  int rest;
  uint16_t h = HalfTowardsZero(f, rest);
  if (rest == 3 || (rest == 2 && (h & 1))) ++h;
  return std::bit_cast<_Float16>(h);
}
_Float16 TruncateDoubleToHalf(double d) { return TruncateToHalf(F64ToF32Odd(d)); }

float ExtendHalf(_Float16 half) {
  uint16_t h = std::bit_cast<uint16_t>(half);
  uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  float f = static_cast<float>(fraction) * 0x1p-24f;
  return sign ? -f : f;
}

/// Position of the offset-th set bit from base: up for positive offsets, down for negative ones; all ones if
/// none.
uint32_t FindNthSet(uint32_t mask, uint32_t base, uint32_t offset) {
  int32_t n = static_cast<int32_t>(offset);
  if (base > 31) return ~0u;
  if (n == 0) return mask >> base & 1 ? base : ~0u;
  int32_t step = n > 0 ? 1 : -1;
  uint32_t left = n > 0 ? offset : 0u - offset;
  for (int32_t at = static_cast<int32_t>(base); at >= 0 && at < 32; at += step) {
    if (mask >> at & 1 && --left == 0) return static_cast<uint32_t>(at);
  }
  return ~0u;
}

float Fma32(float a, float b, float c) { return std::fma(a, b, c); }
double Fma64(double a, double b, double c) { return std::fma(a, b, c); }

template <typename F>
void* Of(F* f) {
  return reinterpret_cast<void*>(f);
}

}  // namespace

std::span<const RuntimeSymbol> MathSymbols() {
#define CUPLEX_WAYS(name, function)                                                   \
  {name "_rz", Of(&function<Way::kZero>)}, {name "_rm", Of(&function<Way::kDown>)}, { \
    name "_rp", Of(&function<Way::kUp>)                                               \
  }
#define CUPLEX_TYPED(name, type, function)                                                        \
  {name "_rz_" type, Of(&function<Way::kZero>)}, {name "_rm_" type, Of(&function<Way::kDown>)}, { \
    name "_rp_" type, Of(&function<Way::kUp>)                                                     \
  }
  using F2 = float(float, float);
  static const std::vector<RuntimeSymbol> symbols = {
      {"cuplex_add_rz_f32", Of<F2>(&AddF32<Way::kZero>)},
      {"cuplex_add_rm_f32", Of<F2>(&AddF32<Way::kDown>)},
      {"cuplex_add_rp_f32", Of<F2>(&AddF32<Way::kUp>)},
      CUPLEX_TYPED("cuplex_sub", "f32", SubF32),
      CUPLEX_TYPED("cuplex_mul", "f32", MulF32),
      CUPLEX_TYPED("cuplex_div", "f32", DivF32),
      CUPLEX_TYPED("cuplex_fma", "f32", FmaF32),
      CUPLEX_TYPED("cuplex_sqrt", "f32", SqrtF32),
      CUPLEX_TYPED("cuplex_add", "f64", AddF64),
      CUPLEX_TYPED("cuplex_sub", "f64", SubF64),
      CUPLEX_TYPED("cuplex_mul", "f64", MulF64),
      CUPLEX_TYPED("cuplex_div", "f64", DivF64),
      CUPLEX_TYPED("cuplex_fma", "f64", FmaF64),
      CUPLEX_TYPED("cuplex_sqrt", "f64", SqrtF64),
      CUPLEX_WAYS("cuplex_f64_to_f32", F64ToF32),
      CUPLEX_WAYS("cuplex_to_half", ToHalf),
      CUPLEX_WAYS("cuplex_to_brain", ToBrain),
      {"cuplex_s64_to_f64_rz", Of(&IntegerToF64<Way::kZero, int64_t>)},
      {"cuplex_s64_to_f64_rm", Of(&IntegerToF64<Way::kDown, int64_t>)},
      {"cuplex_s64_to_f64_rp", Of(&IntegerToF64<Way::kUp, int64_t>)},
      {"cuplex_u64_to_f64_rz", Of(&IntegerToF64<Way::kZero, uint64_t>)},
      {"cuplex_u64_to_f64_rm", Of(&IntegerToF64<Way::kDown, uint64_t>)},
      {"cuplex_u64_to_f64_rp", Of(&IntegerToF64<Way::kUp, uint64_t>)},
      {"cuplex_s64_to_f64_odd", Of(&IntegerToF64Odd<int64_t>)},
      {"cuplex_u64_to_f64_odd", Of(&IntegerToF64Odd<uint64_t>)},
      {"cuplex_f64_to_f32_odd", Of(&F64ToF32Odd)},
      {"cuplex_fma_half", Of(&FmaOdd)},
      {"cuplex_fma_brain", Of(&FmaOdd)},
      {"cuplex_fns", Of(&FindNthSet)},
      // What LLVM itself calls on hosts without the instructions.
      {"fmaf", Of(&Fma32)},
      {"fma", Of(&Fma64)},
      {"roundevenf", Of<float(float)>(&roundevenf)},
      {"roundeven", Of<double(double)>(&roundeven)},
      {"floorf", Of<float(float)>(&floorf)},
      {"floor", Of<double(double)>(&::floor)},
      {"ceilf", Of<float(float)>(&ceilf)},
      {"ceil", Of<double(double)>(&::ceil)},
      {"truncf", Of<float(float)>(&truncf)},
      {"trunc", Of<double(double)>(&::trunc)},
      {"__truncsfhf2", Of(&TruncateToHalf)},
      {"__truncdfhf2", Of(&TruncateDoubleToHalf)},
      {"__extendhfsf2", Of(&ExtendHalf)},
  };
#undef CUPLEX_WAYS
#undef CUPLEX_TYPED
  return symbols;
}

}  // namespace cuplex::softcuda
