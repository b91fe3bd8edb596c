// f16 and bf16, single and packed: rounded once, in integers.
#include <cmath>

#include <fmt/format.h>

#include "tests/conformance/ptx/corpus.h"
#include "tests/conformance/ptx/soft_float.h"

namespace cuplex::corpus {
namespace {

template <typename T>
struct Kind;
template <>
struct Kind<F16> {
  static constexpr Format kFormat = kF16;
  using Pair = F16x2;
  static constexpr const char* kName = "f16";
  static constexpr int kTarget = 75, kArithmetic = 75;
};
template <>
struct Kind<Bf16> {
  static constexpr Format kFormat = corpus::kBf16;
  using Pair = Bf16x2;
  static constexpr const char* kName = "bf16";
  static constexpr int kTarget = 80, kArithmetic = 90;
};

using Op1 = std::function<uint64_t(uint64_t)>;
using Op2 = std::function<uint64_t(uint64_t, uint64_t)>;
using Op3 = std::function<uint64_t(uint64_t, uint64_t, uint64_t)>;

/// The form on one number and on two.
template <typename T>
Form& Both(Family& f, const std::string& mnemonic, Op1 op, int target) {
  using P = typename Kind<T>::Pair;
  auto one = [op](uint16_t a) { return T{static_cast<uint16_t>(op(a))}; };
  f.Add(mnemonic + "." + Kind<T>::kName + " %d, %a;", [one](T a) { return one(a.bits); }).Target(target);
  return f
      .Add(mnemonic + "." + Kind<T>::kName + "x2 %d, %a;",
           [one](P a) { return P{one(a.lo.bits), one(a.hi.bits)}; })
      .Target(target);
}
template <typename T>
void Both(Family& f, const std::string& mnemonic, Op2 op, int target, bool any_zero = false) {
  using P = typename Kind<T>::Pair;
  auto one = [op](uint16_t a, uint16_t b) { return T{static_cast<uint16_t>(op(a, b))}; };
  Form& single = f.Add(mnemonic + "." + Kind<T>::kName + " %d, %a, %b;", [one](T a, T b) {
                    return one(a.bits, b.bits);
                  }).Target(target);
  if (any_zero) single.AnyZero();
  Form& pair = f.Add(mnemonic + "." + Kind<T>::kName + "x2 %d, %a, %b;", [one](P a, P b) {
                  return P{one(a.lo.bits, b.lo.bits), one(a.hi.bits, b.hi.bits)};
                }).Target(target);
  if (any_zero) pair.AnyZero();
}
template <typename T>
void Both(Family& f, const std::string& mnemonic, Op3 op, int target, bool any_zero = false) {
  using P = typename Kind<T>::Pair;
  auto one = [op](uint16_t a, uint16_t b, uint16_t c) { return T{static_cast<uint16_t>(op(a, b, c))}; };
  f.Add(mnemonic + "." + Kind<T>::kName + " %d, %a, %b, %c;",
        [one](T a, T b, T c) { return one(a.bits, b.bits, c.bits); })
      .Target(target)
      .AnyZero(any_zero);
  f.Add(mnemonic + "." + Kind<T>::kName + "x2 %d, %a, %b, %c;",
        [one](P a, P b, P c) {
          return P{one(a.lo.bits, b.lo.bits, c.lo.bits), one(a.hi.bits, b.hi.bits, c.hi.bits)};
        })
      .Target(target)
      .AnyZero(any_zero);
}

uint64_t Extreme(uint64_t a, uint64_t b, Format format, bool ftz, int order, bool nan, bool xorsign) {
  const uint64_t sign = uint64_t{1} << (format.Bits() - 1);
  const uint64_t signs = (a ^ b) & sign;
  if (xorsign) a &= ~sign, b &= ~sign;
  const Number x = Unpack(a, format, ftz), y = Unpack(b, format, ftz);
  Number best;
  if ((nan && (x.IsNan() || y.IsNan())) || (x.IsNan() && y.IsNan())) return sign - 1;
  if (x.IsNan() || y.IsNan()) {
    best = x.IsNan() ? y : x;
  } else {
    int compared = Compare(x, y);
    if (!compared && x.negative != y.negative) compared = x.negative ? -1 : 1;
    best = compared * order >= 0 ? x : y;
  }
  return Pack(best, format) | (xorsign ? signs : 0);
}

template <typename T>
void Arithmetic(Family& f) {
  constexpr Format kFormat = Kind<T>::kFormat;
  const bool brain = kFormat.exponent_bits == 8;
  const int arithmetic = Kind<T>::kArithmetic;
  for (const char* rounding : {"", ".rn"}) {
    for (int variant = 0; variant < (brain ? 1 : 4); ++variant) {
      const bool ftz = variant & 1, sat = variant & 2;
      const std::string m = std::string(rounding) + (ftz ? ".ftz" : "") + (sat ? ".sat" : "");
      const Packing how{Round::kNearestEven, ftz, sat};
      auto open = [=](uint64_t bits) { return Unpack(bits, kFormat, ftz); };
      Both<T>(f, "add" + m,
              Op2([=](uint64_t a, uint64_t b) { return Pack(Add(open(a), open(b)), kFormat, how); }),
              arithmetic, sat);
      Both<T>(f, "sub" + m,
              Op2([=](uint64_t a, uint64_t b) { return Pack(Add(open(a), Negated(open(b))), kFormat, how); }),
              arithmetic, sat);
      Both<T>(f, "mul" + m,
              Op2([=](uint64_t a, uint64_t b) { return Pack(Multiply(open(a), open(b)), kFormat, how); }),
              arithmetic, sat);
    }
  }
  for (int variant = 0; variant < 6; ++variant) {
    const bool ftz = variant & 1, sat = variant == 2 || variant == 3, relu = variant >= 4;
    if (brain && (ftz || sat)) continue;
    const Packing how{Round::kNearestEven, ftz, sat, false, relu};
    auto open = [=](uint64_t bits) { return Unpack(bits, kFormat, ftz); };
    Both<T>(f, std::string("fma.rn") + (ftz ? ".ftz" : "") + (sat ? ".sat" : "") + (relu ? ".relu" : ""),
            Op3([=](uint64_t a, uint64_t b, uint64_t c) {
              return Pack(Add(Multiply(open(a), open(b)), open(c)), kFormat, how);
            }),
            relu ? 80 : Kind<T>::kTarget, sat || relu);
  }
  const uint64_t sign = uint64_t{1} << (kFormat.Bits() - 1);
  for (bool ftz : {false, true}) {
    if (ftz && brain) continue;
    const std::string z = ftz ? ".ftz" : "";
    Both<T>(f, "neg" + z, Op1([=](uint64_t a) { return Pack(Negated(Unpack(a, kFormat, ftz)), kFormat); }),
            brain ? 80 : 75);
    Both<T>(f, "abs" + z, Op1([=](uint64_t a) { return Pack(Unpack(a & ~sign, kFormat, ftz), kFormat); }),
            brain ? 80 : 75);
    for (int order : {-1, 1})
      for (int variant = 0; variant < 4; ++variant) {
        const bool nan = variant & 1, xorsign = variant & 2;
        Both<T>(f,
                std::string(order < 0 ? "min" : "max") + z + (nan ? ".NaN" : "") +
                    (xorsign ? ".xorsign.abs" : ""),
                Op2([=](uint64_t a, uint64_t b) { return Extreme(a, b, kFormat, ftz, order, nan, xorsign); }),
                xorsign ? 86 : 80);
      }
  }
}

double Power(double exponent) { return std::exp2(exponent); }

Real Value(uint64_t bits, Format format) {
  const Number n = Unpack(bits, format);
  if (n.IsNan()) return NAN;
  const Real magnitude = n.IsInfinite()
                             ? Real{INFINITY}
                             : std::ldexp(static_cast<Real>(static_cast<uint64_t>(n.mantissa)), n.exponent);
  return n.negative ? -magnitude : magnitude;
}

void Approximations(Family& f) {
  f.Approximate<F16>("ex2.approx.f16 %d, %a;", {.ulps = 0.5, .relative = Power(-9.9)}, [](F16 a) {
     return std::exp2(Value(a.bits, kF16));
   }).Every();
  f.Approximate<F16>("tanh.approx.f16 %d, %a;", {.absolute = Power(-10.987)}, [](F16 a) {
     return std::tanh(Value(a.bits, kF16));
   }).Every();
  f.Target(90, "8.0");
  f.Approximate<Bf16>("ex2.approx.ftz.bf16 %d, %a;", {.ulps = 1, .relative = Power(-7), .flushed = true},
                      [](Bf16 a) { return std::exp2(Value(a.bits, corpus::kBf16)); })
      .Every()
      .Unless([](const Word* row) {
        const Real v = std::fabs(Value(row[0], corpus::kBf16));
        return std::isfinite(v) && v > 200;
      });
  f.Approximate<Bf16>("tanh.approx.bf16 %d, %a;", {.absolute = Power(-8)}, [](Bf16 a) {
     return std::tanh(Value(a.bits, corpus::kBf16));
   }).Every();
  // Packed: what the halves give by themselves.
  for (const char* form : {"ex2.approx.f16", "tanh.approx.f16", "ex2.approx.ftz.bf16", "tanh.approx.bf16"}) {
    f.Add(fmt::format(".reg .b16 %l, %h, %x, %y; mov.b32 {{%l, %h}}, %a; {0} %x, %l; {0} %y, %h; mov.b32 "
                      "%t0, {{%x, %y}}; {0}x2 %t1, %a; xor.b32 %d, %t0, %t1;",
                      form),
          [](uint32_t) { return uint32_t{0}; })
        .Named(std::string(form) + "x2 is its halves");
  }
}

}  // namespace

void FillHalf(Family& f) {
  Arithmetic<F16>(f);
  Approximations(f);
}

void FillBrain(Family& f) { Arithmetic<Bf16>(f); }

}  // namespace cuplex::corpus
