// cvt to and from floats of 4, 6 and 8 bits and tf32, cvt.pack, and what else rounds to few digits. The
// references look for the nearest of all numbers that a format has.
#include <algorithm>
#include <bit>
#include <cmath>

#include "softcuda/jit/instruction_rig.h"

namespace cuplex::softcuda {
namespace {

struct Format {
  const char* name;
  unsigned exponent, fraction;
  unsigned numbers;  // codes below it are numbers, positive
  uint32_t nan;
};
// Bias 2^(exponent - 1) - 1; e4m3 ends at 448, e5m2 at 57344, and the others use every code for a number.
constexpr Format kFormats[] = {{"e4m3x2", 4, 3, 0x7f, 0x7f},
                               {"e5m2x2", 5, 2, 0x7c, 0x7f},
                               {"e3m2x2", 3, 2, 0x20, 0x1f},
                               {"e2m3x2", 2, 3, 0x20, 0x1f},
                               {"e2m1x2", 2, 1, 0x08, 0x07}};

double ValueOf(const Format& f, uint32_t code) {
  uint32_t exponent = code >> f.fraction, fraction = code & ((1u << f.fraction) - 1);
  int bias = (1 << (f.exponent - 1)) - 1;
  double mantissa = static_cast<double>(fraction) / (1 << f.fraction) + (exponent ? 1 : 0);
  return mantissa * std::pow(2.0, static_cast<int>(exponent ? exponent : 1) - bias);
}

/// The nearest number's code; of two as near the even one.
uint32_t Nearest(const Format& f, float value) {
  if (std::isnan(value)) return f.nan;
  // Beyond twice the largest, distances would be lost in their own last places.
  double magnitude = std::min(std::fabs(static_cast<double>(value)), 2 * ValueOf(f, f.numbers - 1));
  uint32_t best = 0;
  for (uint32_t code = 1; code < f.numbers; ++code) {
    double now = std::fabs(ValueOf(f, code) - magnitude), then = std::fabs(ValueOf(f, best) - magnitude);
    if (now < then || (now == then && code % 2 == 0)) best = code;
  }
  return best | (std::signbit(value) ? 1u << (f.exponent + f.fraction) : 0);
}

std::vector<float> Samples() {
  std::vector<float> v = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-40f, -1e-40f, 3e38f};
  for (const Format& f : kFormats) {
    for (uint32_t code = 0; code + 1 < f.numbers; ++code) {
      double middle = (ValueOf(f, code) + ValueOf(f, code + 1)) / 2;
      for (double x : {ValueOf(f, code), middle, std::nextafter(middle, 0), std::nextafter(middle, 1e9)}) {
        v.push_back(static_cast<float>(x));
        v.push_back(-static_cast<float>(x));
      }
      v.push_back(std::nextafterf(static_cast<float>(middle), 0));
      v.push_back(std::nextafterf(static_cast<float>(middle), 1e9f));
    }
    double last = ValueOf(f, f.numbers - 1);
    v.push_back(static_cast<float>(last * 1.03));
    v.push_back(static_cast<float>(last * -2.5));
  }
  v.resize(std::min<size_t>(v.size(), 1024));
  return v;
}

class SmallFloats : public InstructionRig {};

TEST_F(SmallFloats, NearestNumberOfEachFormat) {
  std::vector<float> a = Samples();
  std::vector<float> b(a.rbegin(), a.rend());
  for (const Format& f : kFormats) {
    unsigned place = f.numbers == 8 ? 4 : 8;
    std::string reg = place == 4 ? ".reg .b8 %n; " : "";
    for (bool relu : {false, true}) {
      std::string code = fmt::format("{}cvt.rn.satfinite{}.{}.f32 {}, %a, %b; ", reg, relu ? ".relu" : "",
                                     f.name, place == 4 ? "%n" : "%d");
      if (place == 4) code += "cvt.u16.u8 %d, %n;";
      auto got = Each<uint16_t>(code, a, b);
      ASSERT_EQ(got.size(), a.size());
      for (size_t i = 0; i < a.size(); ++i) {
        auto one = [&](float x) {
          if (relu && x < 0) return 0u;
          uint32_t code = Nearest(f, x);
          return relu && x == 0 ? code & 0x7f : code;
        };
        uint32_t mask = (1u << place) - 1, sign = relu ? ~(1u << (f.exponent + f.fraction)) : ~0u;
        uint32_t upper = got[i] >> place & mask & sign, lower = got[i] & mask & sign;
        EXPECT_EQ(upper, one(a[i]) & sign) << f.name << " of " << a[i];
        EXPECT_EQ(lower, one(b[i]) & sign) << f.name << " of " << b[i];
      }
    }
  }
}

TEST_F(SmallFloats, ComeBackAsHalves) {
  for (const Format& f : kFormats) {
    unsigned bits = 1 + f.exponent + f.fraction, place = f.numbers == 8 ? 4 : 8;
    std::vector<uint16_t> a;
    for (uint32_t x = 0; x < (1u << bits); ++x)
      a.push_back(static_cast<uint16_t>(x | ((1u << bits) - 1 - x) << place));
    std::string code = place == 4 ? ".reg .b8 %n; cvt.u8.u16 %n, %a; cvt.rn.f16x2.e2m1x2 %d, %n;"
                                  : fmt::format("cvt.rn.f16x2.{} %d, %a;", f.name);
    auto got = Each<uint32_t>(code, a);
    for (size_t i = 0; i < a.size(); ++i) {
      for (unsigned k = 0; k < 2; ++k) {
        uint32_t x = a[i] >> k * place & ((1u << bits) - 1), magnitude = x & ((1u << (bits - 1)) - 1);
        uint16_t half = static_cast<uint16_t>(got[i] >> 16 * k);
        auto value = static_cast<double>(std::bit_cast<_Float16>(half));
        if (magnitude < f.numbers) {
          EXPECT_EQ(value, ValueOf(f, magnitude) * (x >> (bits - 1) ? -1 : 1)) << f.name << " " << x;
          EXPECT_EQ(std::signbit(value), x >> (bits - 1) != 0);
        } else if (std::string(f.name) == "e5m2x2" && magnitude == 0x7c) {
          EXPECT_TRUE(std::isinf(value));
        } else {
          EXPECT_TRUE(std::isnan(value));
        }
      }
    }
  }
}

TEST_F(SmallFloats, FromPairsOfHalves) {
  std::vector<uint32_t> a = {0x3c004000, 0xc5007bff, 0x7c00fc00, 0x7e000001, 0x5f01bc80};
  auto four = Each<uint16_t>("cvt.rn.satfinite.e4m3x2.f16x2 %d, %a;", a);
  auto five = Each<uint16_t>("cvt.rn.satfinite.relu.e5m2x2.f16x2 %d, %a;", a);
  for (size_t i = 0; i < a.size(); ++i) {
    for (unsigned k = 0; k < 2; ++k) {
      float x = static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(a[i] >> 16 * k)));
      EXPECT_EQ(four[i] >> 8 * k & 255, Nearest(kFormats[0], x));
      EXPECT_EQ(five[i] >> 8 * k & 255, Nearest(kFormats[1], x < 0 ? 0 : x));
    }
  }
}

TEST_F(SmallFloats, Tf32InEveryRounding) {
  // Bits below the thirteenth: none, less than half, half of an even and an odd number, more.
  std::vector<uint32_t> a = {0x3f800000, 0x3f800fff, 0x3f801000, 0x3f803000, 0x3f801001,
                             0xbf803000, 0x7f7fffff, 0xff7ff000, 0x7f800000, 0xff800000,
                             0x7fc12345, 0x00001000, 0x80003000};
  using Words = std::vector<uint32_t>;
  std::string to = " %d, %f0;", from = ".reg .f32 %f0; mov.b32 %f0, %a; ";
  EXPECT_EQ(Each<uint32_t>(from + "cvt.rna.tf32.f32" + to, a),
            (Words{0x3f800000, 0x3f800000, 0x3f802000, 0x3f804000, 0x3f802000, 0xbf804000, 0x7f800000,
                   0xff800000, 0x7f800000, 0xff800000, 0x7fffffff, 0x00002000, 0x80004000}));
  EXPECT_EQ(Each<uint32_t>(from + "cvt.rn.tf32.f32" + to, a),
            (Words{0x3f800000, 0x3f800000, 0x3f800000, 0x3f804000, 0x3f802000, 0xbf804000, 0x7f800000,
                   0xff800000, 0x7f800000, 0xff800000, 0x7fffffff, 0x00000000, 0x80004000}));
  EXPECT_EQ(Each<uint32_t>(from + "cvt.rz.relu.tf32.f32" + to, a),
            (Words{0x3f800000, 0x3f800000, 0x3f800000, 0x3f802000, 0x3f800000, 0, 0x7f7fe000, 0, 0x7f800000,
                   0, 0x7fffffff, 0x00000000, 0}));
  EXPECT_EQ(Each<uint32_t>(from + "cvt.rna.satfinite.tf32.f32" + to, a),
            (Words{0x3f800000, 0x3f800000, 0x3f802000, 0x3f804000, 0x3f802000, 0xbf804000, 0x7f7fe000,
                   0xff7fe000, 0x7f7fe000, 0xff7fe000, 0x7fffffff, 0x00002000, 0x80004000}));
}

TEST_F(SmallFloats, HalvesThatStayFinite) {
  std::vector<float> a = {65519.0f, 65520.0f, -70000.0f, INFINITY, -INFINITY, NAN, 1.0f};
  EXPECT_EQ((Each<uint16_t>("cvt.rn.satfinite.f16.f32 %d, %a;", a)),
            (std::vector<uint16_t>{0x7bff, 0x7bff, 0xfbff, 0x7bff, 0xfbff, 0x7fff, 0x3c00}));
  EXPECT_EQ((Each<uint16_t>("cvt.rn.relu.satfinite.bf16.f32 %d, %a;",
                            std::vector<float>{3.4e38f, INFINITY, -5.0f, NAN})),
            (std::vector<uint16_t>{0x7f7f, 0x7f7f, 0, 0x7fff}));
  EXPECT_EQ((Each<uint32_t>("cvt.rn.relu.satfinite.f16x2.f32 %d, %a, %b;", std::vector<float>{1e9f, -1.0f},
                            std::vector<float>{-1e9f, 2.0f})),
            (std::vector<uint32_t>{0x7bff0000, 0x00004000}));
}

TEST_F(SmallFloats, Packs) {
  using Words = std::vector<uint32_t>;
  Words a = {5, static_cast<uint32_t>(-7), 100000}, b = {static_cast<uint32_t>(-100000), 70000, 300};
  Words c = {0x11112222, 0x33334444, 0x55556666};
  EXPECT_EQ(Each<uint32_t>("cvt.pack.sat.s16.s32 %d, %a, %b;", a, b, c),
            (Words{0x00058000, 0xfff97fff, 0x7fff012c}));
  EXPECT_EQ(Each<uint32_t>("cvt.pack.sat.u16.s32 %d, %a, %b;", a, b, c),
            (Words{0x00050000, 0x0000ffff, 0xffff012c}));
  EXPECT_EQ(Each<uint32_t>("cvt.pack.sat.u8.s32.b32 %d, %a, %b, %c;", a, b, c),
            (Words{0x22220500, 0x444400ff, 0x6666ffff}));
  EXPECT_EQ(Each<uint32_t>("cvt.pack.sat.s8.s32.b32 %d, %a, %b, %c;", a, b, c),
            (Words{0x22220580, 0x4444f97f, 0x66667f7f}));
}

TEST_F(SmallFloats, MinAndMaxOfMagnitudes) {
  std::vector<float> v = {0.0f, -0.0f, 1.0f, -1.0f, 2.5f, -2.5f, INFINITY, -INFINITY};
  auto [a, b] = Pairs(v);
  auto least = Each<float>("min.xorsign.abs.f32 %d, %a, %b;", a, b);
  auto most = Each<float>("max.NaN.xorsign.abs.f32 %d, %a, %b;", a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    float sign = std::signbit(a[i]) != std::signbit(b[i]) ? -1.0f : 1.0f;
    float small = std::copysign(std::min(std::fabs(a[i]), std::fabs(b[i])), sign);
    float large = std::copysign(std::max(std::fabs(a[i]), std::fabs(b[i])), sign);
    EXPECT_EQ(std::bit_cast<uint32_t>(least[i]), std::bit_cast<uint32_t>(small)) << a[i] << " " << b[i];
    EXPECT_EQ(std::bit_cast<uint32_t>(most[i]), std::bit_cast<uint32_t>(large)) << a[i] << " " << b[i];
  }
  auto halves = Each<uint32_t>("min.xorsign.abs.f16x2 %d, %a, %b;", std::vector<uint32_t>{0xbc004000},
                               std::vector<uint32_t>{0x3800c200});
  EXPECT_EQ(halves, (std::vector<uint32_t>{0xb800c000}));
  auto brains = Each<uint16_t>("max.xorsign.abs.bf16 %d, %a, %b;", std::vector<uint16_t>{0xbf80, 0x4000},
                               std::vector<uint16_t>{0xc000, 0xbf80});
  EXPECT_EQ(brains, (std::vector<uint16_t>{0x4000, 0xc000}));
}

}  // namespace
}  // namespace cuplex::softcuda
