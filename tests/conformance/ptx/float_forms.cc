// f32 and f64: IEEE operations in every rounding mode, flushed and saturated; min, max, signs and classes;
// the approximate ones within the error that PTX documents.
#include <cmath>

#include <fmt/format.h>

#include "tests/conformance/ptx/corpus.h"
#include "tests/conformance/ptx/soft_float.h"

namespace cuplex::corpus {
namespace {

struct Mode {
  const char* text;
  Round round;
};
constexpr Mode kModes[] = {
    {".rn", Round::kNearestEven}, {".rz", Round::kZero}, {".rm", Round::kDown}, {".rp", Round::kUp}};

template <typename T>
constexpr Format kFormat = sizeof(T) == 4 ? kF32 : kF64;
template <typename T>
T Packed(const Number& n, Packing how) {
  return FromWord<T>(Pack(n, kFormat<T>, how));
}
template <typename T>
Number Open(T value, bool flush) {
  return Unpack(ToWord(value), kFormat<T>, flush);
}

template <typename T>
void Operations(Family& f, const std::string& type) {
  for (const Mode& mode : kModes) {
    for (int variant = 0; variant < (sizeof(T) == 4 ? 4 : 1); ++variant) {
      const bool ftz = variant & 1, sat = variant & 2;
      const Packing how{mode.round, ftz, sat};
      const std::string t =
          std::string(mode.text) + (ftz ? ".ftz" : "") + (sat ? ".sat" : "") + type + " %d, %a, ";
      const Round round = mode.round;
      f.Add("add" + t + "%b;",
            [=](T a, T b) { return Packed<T>(Add(Open(a, ftz), Open(b, ftz), round), how); });
      f.Add("sub" + t + "%b;",
            [=](T a, T b) { return Packed<T>(Add(Open(a, ftz), Negated(Open(b, ftz)), round), how); });
      f.Add("mul" + t + "%b;",
            [=](T a, T b) { return Packed<T>(Multiply(Open(a, ftz), Open(b, ftz)), how); });
      for (const char* name : {"fma", "mad"})
        f.Add(name + t + "%b, %c;", [=](T a, T b, T c) {
          return Packed<T>(Add(Multiply(Open(a, ftz), Open(b, ftz)), Open(c, ftz), round), how);
        });
      if (sat) continue;
      f.Add("div" + t + "%b;", [=](T a, T b) { return Packed<T>(Divide(Open(a, ftz), Open(b, ftz)), how); });
      const std::string one = std::string(mode.text) + (ftz ? ".ftz" : "") + type + " %d, %a;";
      f.Add("rcp" + one, [=](T a) { return Packed<T>(Divide(FromInteger(1), Open(a, ftz)), how); });
      f.Add("sqrt" + one, [=](T a) { return Packed<T>(SquareRoot(Open(a, ftz)), how); });
    }
  }
  // Without a mode it is the nearest, and the compiler may contract; by itself it cannot.
  f.Add("add" + type + " %d, %a, %b;",
        [](T a, T b) { return Packed<T>(Add(Open(a, false), Open(b, false)), {}); });
  f.Add("sub" + type + " %d, %a, %b;",
        [](T a, T b) { return Packed<T>(Add(Open(a, false), Negated(Open(b, false))), {}); });
  f.Add("mul" + type + " %d, %a, %b;",
        [](T a, T b) { return Packed<T>(Multiply(Open(a, false), Open(b, false)), {}); });
}

/// `order` says which of two numbers it is: -1 the lesser. Zeros are ordered by sign.
template <typename T>
T Extreme(T a, T b, bool ftz, int order, bool nan) {
  const Number x = Open(a, ftz), y = Open(b, ftz);
  if ((nan && (x.IsNan() || y.IsNan())) || (x.IsNan() && y.IsNan()))
    return Packed<T>({Number::Kind::kNan}, {});
  if (x.IsNan()) return Packed<T>(y, {});
  if (y.IsNan()) return Packed<T>(x, {});
  int compared = Compare(x, y);
  if (!compared && x.negative != y.negative) compared = x.negative ? -1 : 1;
  return Packed<T>(compared * order >= 0 ? x : y, {});
}

template <typename T>
T XorSigned(T a, T b, bool ftz, int order, bool nan) {
  const Word sign = Word{1} << (sizeof(T) * 8 - 1);
  const T best = Extreme<T>(FromWord<T>(ToWord(a) & ~sign), FromWord<T>(ToWord(b) & ~sign), ftz, order, nan);
  if (std::isnan(best)) return best;
  return FromWord<T>(ToWord(best) | ((ToWord(a) ^ ToWord(b)) & sign));
}

template <typename T>
void Signs(Family& f, const std::string& type) {
  const Word sign = Word{1} << (sizeof(T) * 8 - 1);
  for (bool ftz : {false, true}) {
    if (ftz && sizeof(T) == 8) continue;
    const std::string z = ftz ? ".ftz" : "";
    f.Add("abs" + z + type + " %d, %a;", [=](T a) {
      Number n = Open(a, ftz);
      n.negative = false;
      return Packed<T>(n, {});
    });
    f.Add("neg" + z + type + " %d, %a;", [=](T a) { return Packed<T>(Negated(Open(a, ftz)), {}); });
    for (int order : {-1, 1}) {
      const std::string name = order < 0 ? "min" : "max";
      f.Add(name + z + type + " %d, %a, %b;", [=](T a, T b) { return Extreme<T>(a, b, ftz, order, false); });
      if (sizeof(T) == 8) continue;
      f.Add(name + z + ".NaN" + type + " %d, %a, %b;",
            [=](T a, T b) { return Extreme<T>(a, b, ftz, order, true); })
          .Target(80)
          .ExactNan();
      f.Add(name + z + ".xorsign.abs" + type + " %d, %a, %b;", [=](T a, T b) {
         return XorSigned<T>(a, b, ftz, order, false);
       }).Target(86);
      f.Add(name + z + ".NaN.xorsign.abs" + type + " %d, %a, %b;", [=](T a, T b) {
         return XorSigned<T>(a, b, ftz, order, true);
       }).Target(86);
      f.Add(name + z + type + " %d, %a, %b, %c;",
            [=](T a, T b, T c) {
              return Extreme<T>(Extreme<T>(a, b, ftz, order, false), c, ftz, order, false);
            })
          .Named(name + z + type + " of three")
          .Target(100)
          .Version("8.8");
    }
  }
  f.Add("copysign" + type + " %d, %a, %b;", [=](T a, T b) {
     return FromWord<T>((ToWord(a) & sign) | (ToWord(b) & ~sign));
   }).ExactNan();
  const Format format = kFormat<T>;
  auto magnitude = [=](T a) { return ToWord(a) & ~sign; };
  const Word infinity = ((Word{1} << format.exponent_bits) - 1) << format.fraction_bits,
             least = Word{1} << format.fraction_bits;
  f.Add("testp.finite" + type + " %d, %a;", [=](T a) { return magnitude(a) < infinity; });
  f.Add("testp.infinite" + type + " %d, %a;", [=](T a) { return magnitude(a) == infinity; });
  f.Add("testp.number" + type + " %d, %a;", [=](T a) { return magnitude(a) <= infinity; });
  f.Add("testp.notanumber" + type + " %d, %a;", [=](T a) { return magnitude(a) > infinity; });
  f.Add("testp.normal" + type + " %d, %a;", [=](T a) {
    return !magnitude(a) || (magnitude(a) >= least && magnitude(a) < infinity);
  });  // zeros count
  f.Add("testp.subnormal" + type + " %d, %a;", [=](T a) { return magnitude(a) && magnitude(a) < least; });
}

float Flushed(float a) { return std::fpclassify(a) == FP_SUBNORMAL ? std::copysign(0.0f, a) : a; }
bool Subnormal(const Word* row) { return std::fpclassify(FromWord<float>(row[0])) == FP_SUBNORMAL; }
double Power(double exponent) { return std::exp2(exponent); }

std::vector<Word> Between(float from, float to, int count) {
  std::vector<Word> values;
  for (int i = 0; i <= count; ++i)
    values.push_back(ToWord(from + (to - from) * static_cast<float>(i) / static_cast<float>(count)));
  return values;
}

void Approximations(Family& f) {
  const std::vector<Word> circle = Between(-6.2831853f, 6.2831853f, 1500),
                          turns = Between(-314.15926f, 314.15926f, 1500);
  for (bool ftz : {false, true}) {
    const std::string z = std::string(ftz ? ".ftz" : "") + ".f32 %d, %a;";
    const bool flushed = true;
    auto in = [ftz](float a) -> Real { return ftz ? Flushed(a) : a; };
    auto& s = f.Approximate<float>("sin.approx" + z, {.absolute = Power(-20.5), .flushed = flushed},
                                   [=](float a) { return std::sin(in(a)); });
    s.Operand(0, circle).Random(0);
    f.Approximate<float>("cos.approx" + z, {.absolute = Power(-20.5), .flushed = flushed},
                         [=](float a) { return std::cos(in(a)); })
        .Operand(0, circle)
        .Random(0);
    f.Approximate<float>("sin.approx" + z, {.absolute = Power(-14.7), .flushed = flushed},
                         [=](float a) { return std::sin(in(a)); })
        .Named("sin.approx" + std::string(ftz ? ".ftz" : "") + ".f32 over many turns")
        .Operand(0, turns)
        .Random(0);
    f.Approximate<float>("cos.approx" + z, {.absolute = Power(-14.7), .flushed = flushed},
                         [=](float a) { return std::cos(in(a)); })
        .Named("cos.approx" + std::string(ftz ? ".ftz" : "") + ".f32 over many turns")
        .Operand(0, turns)
        .Random(0);
    f.Approximate<float>("sin.approx" + z, {},
                         [=](float a) -> Real { return std::isfinite(a) ? Real{in(a)} : NAN; })
        .Named("sin.approx" + std::string(ftz ? ".ftz" : "") + ".f32 of zeros, infinities and NaNs")
        .Operand(0, {0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000})
        .Random(0);
    f.Approximate<float>("cos.approx" + z, {}, [=](float a) -> Real { return std::isfinite(a) ? 1 : NAN; })
        .Named("cos.approx" + std::string(ftz ? ".ftz" : "") + ".f32 of zeros, infinities and NaNs")
        .Operand(0, {0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 1})
        .Random(0);
    f.Approximate<float>("ex2.approx" + z, {.ulps = 2, .flushed = ftz}, [=](float a) {
       return std::exp2(in(a));
     }).Unless([](const Word* r) {
      const float a = FromWord<float>(r[0]);
      return std::isfinite(a) && std::fabs(a) > 200;
    });
    f.Approximate<float>("ex2.approx" + z, {.ulps = 2, .flushed = ftz},
                         [=](float a) { return std::exp2(in(a)); })
        .Named("ex2.approx" + std::string(ftz ? ".ftz" : "") + ".f32 over its range")
        .Operand(0, Between(-150, 129, 1500))
        .Random(0);
    f.Approximate<float>("lg2.approx" + z, {.absolute = Power(-22)},
                         [=](float a) { return std::log2(in(a)); })
        .Named("lg2.approx" + std::string(ftz ? ".ftz" : "") + ".f32 about one")
        .Operand(0, Between(0.5f, 2, 1500))
        .Random(0);
    f.Approximate<float>("lg2.approx" + z, {.absolute = Power(-22), .relative = Power(-22)},
                         [=](float a) { return std::log2(in(a)); });
    f.Approximate<float>("rcp.approx" + z, {.ulps = 1, .flushed = ftz}, [=](float a) { return 1 / in(a); });
    f.Approximate<float>("sqrt.approx" + z, {.relative = Power(-23)},
                         [=](float a) { return std::sqrt(in(a)); });
    f.Approximate<float>("rsqrt.approx" + z, {.relative = Power(-22.9)},
                         [=](float a) { return 1 / std::sqrt(in(a)); });
    const std::string two = std::string(ftz ? ".ftz" : "") + ".f32 %d, %a, %b;";
    f.Approximate<float>("div.full" + two, {.ulps = 2, .flushed = ftz},
                         [=](float a, float b) { return in(a) / in(b); });
    f.Approximate<float>("div.approx" + two, {.ulps = 2, .flushed = ftz}, [=](float a, float b) {
       return in(a) / in(b);
     }).Unless([](const Word* r) {
      const float b = std::fabs(FromWord<float>(r[1]));
      return std::isfinite(b) && b != 0 && (b > 0x1p126f || b < 0x1p-126f);
    });
  }
  f.Approximate<float>("tanh.approx.f32 %d, %a;", {.relative = Power(-10.9)}, [](float a) {
     return std::tanh(Real{a});
   }).Unless(Subnormal);
  f.Approximate<double>(
      "rcp.approx.ftz.f64 %d, %a;", {.relative = Power(-19), .flushed = true},
      [](double a) { return 1 / Real{std::fpclassify(a) == FP_SUBNORMAL ? std::copysign(0.0, a) : a}; });
  f.Approximate<double>(
      "rsqrt.approx.ftz.f64 %d, %a;", {.relative = Power(-19), .flushed = true}, [](double a) {
        return 1 / std::sqrt(Real{std::fpclassify(a) == FP_SUBNORMAL ? std::copysign(0.0, a) : a});
      });
  for (const char* name : {"rcp", "rsqrt"})
    f.Add(std::string(name) + ".approx.ftz.f64 %u0, %a; mov.b64 {%d, %t0}, %u0;", [](double) {
       return uint32_t{0};
     }).Named(std::string(name) + ".approx.ftz.f64 has a lower word of zeros");
  f.Approximate<double>("rsqrt.approx.f64 %d, %a;", {.relative = Power(-30)},
                        [](double a) { return 1 / std::sqrt(Real{a}); });
}

/// Two f32 in a 64-bit register, operated on one by one.
void Pairs(Family& f) {
  f.Target(100, "8.6");
  for (const Mode& mode : kModes) {
    for (bool ftz : {false, true}) {
      const Packing how{mode.round, ftz};
      const Round round = mode.round;
      const std::string t = std::string(mode.text) + (ftz ? ".ftz" : "") + ".f32x2 %d, %a, ";
      auto each = [=](uint64_t a, uint64_t b, uint64_t c, auto op) {
        auto half = [&](int shift) {
          return Pack(
              op(Unpack(a >> shift & 0xffffffff, kF32, ftz), Unpack(b >> shift & 0xffffffff, kF32, ftz),
                 Unpack(c >> shift & 0xffffffff, kF32, ftz)),
              kF32, how);
        };
        return half(0) | half(32) << 32;
      };
      std::vector<Word> values;  // without NaNs, whose bits are open
      const auto& edges = EdgesOf(Type::kF32);
      for (Word x : edges)
        for (size_t i = 0; i < edges.size(); i += 3) values.push_back(x | edges[i] << 32);
      auto nan = [=](const Word* row) {
        for (int i = 0; i < 2; ++i)
          for (int shift : {0, 32})
            if (Unpack(row[i] >> shift & 0xffffffff, kF32).kind != Number::Kind::kFinite) return true;
        return false;
      };
      auto nan3 = [=](const Word* row) { return nan(row) || nan(row + 1); };
      f.Add("add" + t + "%b;",
            [=](uint64_t a, uint64_t b) {
              return each(a, b, 0, [=](auto x, auto y, auto) { return Add(x, y, round); });
            })
          .Operand(0, values)
          .Operand(1, values)
          .Unless(nan);
      f.Add("mul" + t + "%b;",
            [=](uint64_t a, uint64_t b) {
              return each(a, b, 0, [=](auto x, auto y, auto) { return Multiply(x, y); });
            })
          .Operand(0, values)
          .Operand(1, values)
          .Unless(nan);
      f.Add("fma" + t + "%b, %c;",
            [=](uint64_t a, uint64_t b, uint64_t c) {
              return each(a, b, c, [=](auto x, auto y, auto z) { return Add(Multiply(x, y), z, round); });
            })
          .Operand(0, values)
          .Operand(1, values)
          .Operand(2, values)
          .Unless(nan3);
    }
  }
}

}  // namespace

void FillFloat(Family& f) {
  Operations<float>(f, ".f32");
  Signs<float>(f, ".f32");
  Pairs(f);
}

void FillDouble(Family& f) {
  Operations<double>(f, ".f64");
  Signs<double>(f, ".f64");
}

void FillMath(Family& f) { Approximations(f); }

}  // namespace cuplex::corpus
