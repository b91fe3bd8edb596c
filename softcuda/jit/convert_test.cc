#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "softcuda/jit/instruction_rig.h"

namespace cuplex::softcuda {
namespace {

using Words = std::vector<uint32_t>;
using Longs = std::vector<uint64_t>;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

class Convert : public InstructionRig {};

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

TEST_F(Convert, IntegersWidenAndCut) {
  Words a = {0, 0x7f, 0x80, 0xff, 0x8000, 0xffff, 0x12345678, 0xffffffff};
  auto s8 = Each<uint32_t>("cvt.s32.s8 %d, %a;", a);
  auto u8 = Each<uint32_t>("cvt.u32.u8 %d, %a;", a);
  auto s64 = Each<uint64_t, uint32_t>("cvt.s64.s32 %d, %a;", a);
  auto sat = Each<uint32_t>("cvt.sat.s8.s32 %d, %a;", a);
  auto usat = Each<uint32_t>("cvt.sat.u8.s32 %d, %a;", a);
  for (size_t i = 0; i < a.size(); ++i) {
    int32_t v = static_cast<int32_t>(a[i]);
    EXPECT_EQ(s8[i], static_cast<uint32_t>(static_cast<int8_t>(a[i])));
    EXPECT_EQ(u8[i], a[i] & 255);
    EXPECT_EQ(s64[i], static_cast<uint64_t>(int64_t{v}));
    EXPECT_EQ(sat[i], static_cast<uint32_t>(std::clamp(v, -128, 127)));
    EXPECT_EQ(usat[i], static_cast<uint32_t>(std::clamp(v, 0, 255)));
  }
}

TEST_F(Convert, FloatsToIntegersSaturate) {
  Floats a = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 1e10f, -1e10f, kInf, -kInf, kNan, 3.99f, -3.99f};
  auto check = [&](const std::string& mode, auto round) {
    auto s = Each<uint32_t, float>("cvt." + mode + ".s32.f32 %d, %a;", a);
    auto u = Each<uint32_t, float>("cvt." + mode + ".u32.f32 %d, %a;", a);
    auto l = Each<uint64_t, float>("cvt." + mode + ".s64.f32 %d, %a;", a);
    for (size_t i = 0; i < a.size(); ++i) {
      double r = round(double{a[i]});
      EXPECT_EQ(static_cast<int32_t>(s[i]),
                std::isnan(r) ? 0 : static_cast<int32_t>(std::clamp(r, -2147483648.0, 2147483647.0)))
          << mode << a[i];
      EXPECT_EQ(u[i], std::isnan(r) ? 0 : static_cast<uint32_t>(std::clamp(r, 0.0, 4294967295.0)))
          << mode << a[i];
      if (std::fabs(r) < 1e18) EXPECT_EQ(static_cast<int64_t>(l[i]), static_cast<int64_t>(r)) << mode << a[i];
    }
    EXPECT_EQ(l[7], uint64_t{INT64_MAX});
    EXPECT_EQ(l[9], uint64_t{1} << 63);  // what PTX makes of NaN where there are 64 bits
  };
  check("rni", [](double v) { return std::nearbyint(v); });
  check("rzi", [](double v) { return std::trunc(v); });
  check("rmi", [](double v) { return std::floor(v); });
  check("rpi", [](double v) { return std::ceil(v); });
}

TEST_F(Convert, RoundsToIntegralFloats) {
  Floats a = {0.5f, 1.5f, -2.5f, 1e10f, -0.2f};
  EXPECT_EQ(Each<float>("cvt.rni.f32.f32 %d, %a;", a), (Floats{0, 2, -2, 1e10f, -0.0f}));
  EXPECT_EQ(Each<float>("cvt.rmi.f32.f32 %d, %a;", a), (Floats{0, 1, -3, 1e10f, -1}));
}

/// Which way a directed rounding must fall: never past the exact value, and no representable value between.
template <typename T, typename E>
void ExpectDirected(const std::string& mode, T got, E exact, T up, T down) {
  if (mode == "rp") {
    EXPECT_GE(static_cast<E>(got), exact);
    EXPECT_LT(static_cast<E>(down), exact);
  } else if (mode == "rm") {
    EXPECT_LE(static_cast<E>(got), exact);
    EXPECT_GT(static_cast<E>(up), exact);
  } else if (mode == "rz") {
    EXPECT_LE(std::fabs(static_cast<E>(got)), std::fabs(exact));
    EXPECT_GT(std::fabs(static_cast<E>(exact > 0 ? up : down)), std::fabs(exact));
  } else {
    EXPECT_LE(std::fabs(static_cast<E>(got) - exact), std::fabs(static_cast<E>(up) - exact));
    EXPECT_LE(std::fabs(static_cast<E>(got) - exact), std::fabs(static_cast<E>(down) - exact));
  }
}

TEST_F(Convert, IntegersToFloatsEveryWay) {
  std::mt19937_64 random(11);
  Longs a;
  for (int i = 0; i < 256; ++i) a.push_back(random() >> random() % 64);
  a.insert(a.end(), {0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff, (1ull << 53) + 1,
                     (1ull << 24) + 1, 1});
  for (std::string mode : {"rn", "rz", "rm", "rp"}) {
    auto s = Each<float, uint64_t>("cvt." + mode + ".f32.s64 %d, %a;", a);
    auto u = Each<float, uint64_t>("cvt." + mode + ".f32.u64 %d, %a;", a);
    auto d = Each<double, uint64_t>("cvt." + mode + ".f64.s64 %d, %a;", a);
    for (size_t i = 0; i < a.size(); ++i) {
      auto v = static_cast<long double>(static_cast<int64_t>(a[i]));
      ExpectDirected(mode, s[i], v, std::nextafter(s[i], kInf), std::nextafter(s[i], -kInf));
      ExpectDirected(mode, u[i], static_cast<long double>(a[i]), std::nextafter(u[i], kInf),
                     std::nextafter(u[i], -kInf));
      ExpectDirected(mode, d[i], v, std::nextafter(d[i], double{kInf}), std::nextafter(d[i], -double{kInf}));
    }
  }
}

TEST_F(Convert, DoublesToFloatsEveryWay) {
  std::mt19937_64 random(13);
  Doubles a;
  for (int i = 0; i < 512; ++i) {
    double m = std::ldexp(1.0 + static_cast<double>(random() >> 11) * 0x1p-53,
                          static_cast<int>(random() % 200) - 140);
    a.push_back(random() & 1 ? m : -m);
  }
  for (std::string mode : {"rn", "rz", "rm", "rp"}) {
    auto f = Each<float, double>("cvt." + mode + ".f32.f64 %d, %a;", a);
    for (size_t i = 0; i < a.size(); ++i) {
      ExpectDirected(mode, f[i], a[i], std::nextafter(f[i], kInf), std::nextafter(f[i], -kInf));
    }
  }
}

TEST_F(Convert, HalvesThereAndBack) {
  std::vector<uint16_t> all;
  for (uint32_t h = 0; h < 0x10000; h += 97) all.push_back(static_cast<uint16_t>(h));
  auto wide = Each<float, uint16_t>("cvt.f32.f16 %d, %a;", all);
  for (size_t i = 0; i < all.size(); ++i) {
    uint32_t h = all[i];
    int exponent = h >> 10 & 31;
    double fraction = (h & 0x3ff) / 1024.0;
    double want = exponent == 31 ? (h & 0x3ff ? NAN : INFINITY)
                  : exponent     ? std::ldexp(1 + fraction, exponent - 15)
                                 : std::ldexp(fraction, -14);
    if (h & 0x8000) want = -want;
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(wide[i]));
    } else {
      EXPECT_EQ(wide[i], want) << h;
    }
  }
  Floats a = {1.0f, 65519.0f, 65520.0f, 1e-8f, 1.0f + 0x1p-11f, 1.0f + 0x1.8p-10f, -2.0f};
  EXPECT_EQ((Each<uint16_t, float>("cvt.rn.f16.f32 %d, %a;", a)),
            (std::vector<uint16_t>{0x3c00, 0x7bff, 0x7c00, 0, 0x3c00, 0x3c02, 0xc000}));
  EXPECT_EQ((Each<uint16_t, float>("cvt.rz.f16.f32 %d, %a;", a)),
            (std::vector<uint16_t>{0x3c00, 0x7bff, 0x7bff, 0, 0x3c00, 0x3c01, 0xc000}));
  EXPECT_EQ(
      (Each<uint16_t, float>("cvt.rn.bf16.f32 %d, %a;", Floats{1.0f, 1.0f + 0x1p-8f, 1.0f + 0x1.8p-7f})),
      (std::vector<uint16_t>{0x3f80, 0x3f80, 0x3f82}));
  EXPECT_EQ((Each<uint32_t, float>("cvt.rn.f16x2.f32 %d, %a, %b;", Floats{1}, Floats{-2})),
            (Words{0x3c00c000}));
  EXPECT_EQ((Each<uint16_t, double>("cvt.rn.f16.f64 %d, %a;", Doubles{1.0 + 0x1p-11 + 0x1p-40})),
            (std::vector<uint16_t>{0x3c01}));
}

TEST_F(Convert, SaturatedFloats) {
  EXPECT_EQ(Each<float>("cvt.sat.f32.f32 %d, %a;", Floats{-1, 0.25f, 7, kNan}), (Floats{0, 0.25f, 1, 0}));
}

}  // namespace
}  // namespace cuplex::softcuda
