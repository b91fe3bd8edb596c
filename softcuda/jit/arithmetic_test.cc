#include <algorithm>
#include <bit>
#include <cfenv>
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

class Arithmetic : public InstructionRig {};

const Words kWords = {0,   1,          2,          3,          31,         32,         33,
                      255, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0x12345678};
constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

bool Same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}
bool Same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

TEST_F(Arithmetic, DivisionAndRemainder) {
  auto [a, b] = Pairs(kWords);
  auto udiv = Each<uint32_t>("div.u32 %d, %a, %b;", a, b);
  auto urem = Each<uint32_t>("rem.u32 %d, %a, %b;", a, b);
  auto sdiv = Each<uint32_t>("div.s32 %d, %a, %b;", a, b);
  auto srem = Each<uint32_t>("rem.s32 %d, %a, %b;", a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t x = static_cast<int32_t>(a[i]), y = static_cast<int32_t>(b[i]);
    EXPECT_EQ(udiv[i], b[i] ? a[i] / b[i] : ~0u) << a[i] << " / " << b[i];
    EXPECT_EQ(urem[i], b[i] ? a[i] % b[i] : a[i]) << a[i] << " % " << b[i];
    EXPECT_EQ(sdiv[i], y ? static_cast<uint32_t>(x / y) : ~0u) << x << " / " << y;
    EXPECT_EQ(srem[i], y ? static_cast<uint32_t>(x % y) : a[i]) << x << " % " << y;
  }
}

TEST_F(Arithmetic, ProductsHaveTwoHalves) {
  auto [a, b] = Pairs(kWords);
  auto hi = Each<uint32_t>("mul.hi.s32 %d, %a, %b;", a, b);
  auto uhi = Each<uint32_t>("mul.hi.u32 %d, %a, %b;", a, b);
  auto wide = Each<uint64_t>("mul.wide.s32 %d, %a, %b;", a, b);
  auto mad = Each<uint64_t, uint32_t, uint32_t, uint64_t>("mad.wide.u32 %d, %a, %b, %c;", a, b,
                                                          Longs(a.size(), 0xfffffffffffffff0));
  auto madhi = Each<uint32_t>("mad.hi.s32 %d, %a, %b, %c;", a, b, Words(a.size(), 7));
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t s = int64_t{static_cast<int32_t>(a[i])} * static_cast<int32_t>(b[i]);
    uint64_t u = uint64_t{a[i]} * b[i];
    EXPECT_EQ(hi[i], static_cast<uint32_t>(s >> 32));
    EXPECT_EQ(uhi[i], static_cast<uint32_t>(u >> 32));
    EXPECT_EQ(wide[i], static_cast<uint64_t>(s));
    EXPECT_EQ(mad[i], u + 0xfffffffffffffff0);
    EXPECT_EQ(madhi[i], static_cast<uint32_t>(s >> 32) + 7);
  }
}

TEST_F(Arithmetic, CarriesThroughFourWords) {
  // 64 x 64 -> 128 bits out of 32-bit pieces, as compilers write it.
  Longs a = {0xffffffffffffffff, 0x123456789abcdef0, 1, 0x8000000000000000};
  Longs b = {0xffffffffffffffff, 0xfedcba9876543210, 0xffffffffffffffff, 2};
  auto high = Each<uint64_t>(R"(
    .reg .b32 %al, %ah, %bl, %bh, %r0, %r1, %r2, %r3;
    mov.b64 {%al, %ah}, %a; mov.b64 {%bl, %bh}, %b;
    mul.lo.u32 %r0, %al, %bl;
    mul.hi.u32 %r1, %al, %bl;
    mad.lo.cc.u32 %r1, %al, %bh, %r1;
    madc.hi.u32 %r2, %al, %bh, 0;
    mad.lo.cc.u32 %r1, %ah, %bl, %r1;
    madc.hi.cc.u32 %r2, %ah, %bl, %r2;
    addc.u32 %r3, 0, 0;
    mad.lo.cc.u32 %r2, %ah, %bh, %r2;
    madc.hi.u32 %r3, %ah, %bh, %r3;
    mov.b64 %d, {%r2, %r3};)",
                             a, b);
  auto diff = Each<uint64_t>(R"(
    .reg .b32 %al, %ah, %bl, %bh, %r0, %r1;
    mov.b64 {%al, %ah}, %a; mov.b64 {%bl, %bh}, %b;
    sub.cc.u32 %r0, %al, %bl; subc.u32 %r1, %ah, %bh;
    mov.b64 %d, {%r0, %r1};)",
                             a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(high[i], static_cast<uint64_t>((static_cast<unsigned __int128>(a[i]) * b[i]) >> 64)) << i;
    EXPECT_EQ(diff[i], a[i] - b[i]) << i;
  }
}

TEST_F(Arithmetic, ASumThatGoesOnFromADifferenceAddsWhatWasNotBorrowed) {
  auto got = Each<uint64_t>(R"(
    .reg .b32 %al, %ah, %bl, %bh, %r0, %r1;
    mov.b64 {%al, %ah}, %a; mov.b64 {%bl, %bh}, %b;
    sub.cc.u32 %r0, %al, %bl; addc.u32 %r1, %ah, %bh;
    mov.b64 %d, {%r0, %r1};)",
                            Longs{0x10'00000005, 0x10'00000005, 0x10'00000005},
                            Longs{0x3'00000004, 0x3'00000005, 0x3'00000006});
  EXPECT_EQ(got, (std::vector<uint64_t>{0x14'00000001, 0x14'00000000, 0x13'ffffffff}));
}

TEST_F(Arithmetic, Saturates) {
  auto [a, b] = Pairs(kWords);
  auto add = Each<uint32_t>("add.sat.s32 %d, %a, %b;", a, b);
  auto sub = Each<uint32_t>("sub.sat.s32 %d, %a, %b;", a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t x = static_cast<int32_t>(a[i]), y = static_cast<int32_t>(b[i]);
    auto clamp = [](int64_t v) {
      return static_cast<uint32_t>(std::clamp<int64_t>(v, INT32_MIN, INT32_MAX));
    };
    EXPECT_EQ(add[i], clamp(x + y));
    EXPECT_EQ(sub[i], clamp(x - y));
  }
  auto f = Each<float>("add.sat.f32 %d, %a, 0f00000000;", Floats{-1, 0.5f, 2, kNan, kInf, -0.0f});
  EXPECT_EQ(f, (Floats{0, 0.5f, 1, 0, 1, 0}));
}

TEST_F(Arithmetic, SmallIntegers) {
  std::vector<uint16_t> a = {0, 1, 0x7fff, 0x8000, 0xffff}, b = {5, 0xffff, 2, 0xffff, 3};
  auto add = Each<uint16_t>("add.s16 %d, %a, %b;", a, b);
  auto div = Each<uint16_t>("div.s16 %d, %a, %b;", a, b);
  auto wide = Each<uint32_t>("mul.wide.s16 %d, %a, %b;", a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    int x = static_cast<int16_t>(a[i]), y = static_cast<int16_t>(b[i]);
    EXPECT_EQ(add[i], static_cast<uint16_t>(x + y));
    EXPECT_EQ(div[i], static_cast<uint16_t>(x / y));
    EXPECT_EQ(wide[i], static_cast<uint32_t>(x * y));
  }
}

TEST_F(Arithmetic, DotProducts) {
  Words a = {0x80ff7f01, 0x01020304}, b = {0x7f80ff02, 0xfffefdfc}, c = {10, 0};
  auto ss = Each<uint32_t>("dp4a.s32.s32 %d, %a, %b, %c;", a, b, c);
  auto uu = Each<uint32_t>("dp4a.u32.u32 %d, %a, %b, %c;", a, b, c);
  auto lo = Each<uint32_t>("dp2a.lo.s32.u32 %d, %a, %b, %c;", a, b, c);
  for (size_t i = 0; i < a.size(); ++i) {
    int32_t s = static_cast<int32_t>(c[i]), l = s;
    uint32_t u = c[i];
    for (int k = 0; k < 4; ++k) {
      s += static_cast<int8_t>(a[i] >> 8 * k) * static_cast<int8_t>(b[i] >> 8 * k);
      u += (a[i] >> 8 * k & 255) * (b[i] >> 8 * k & 255);
    }
    for (int k = 0; k < 2; ++k)
      l += static_cast<int16_t>(a[i] >> 16 * k) * static_cast<int>(b[i] >> 8 * k & 255);
    EXPECT_EQ(ss[i], static_cast<uint32_t>(s));
    EXPECT_EQ(uu[i], u);
    EXPECT_EQ(lo[i], static_cast<uint32_t>(l));
  }
}

TEST_F(Arithmetic, MinMaxOfNumbersNansAndZeros) {
  auto [a, b] = Pairs(Floats{0.0f, -0.0f, 1, -1, kNan, kInf, -kInf});
  auto min = Each<float>("min.f32 %d, %a, %b;", a, b);
  auto max = Each<float>("max.f32 %d, %a, %b;", a, b);
  auto nan = Each<uint32_t, float>("max.NaN.f32 %d, %a, %b;", a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i])) {
      EXPECT_TRUE(Same(min[i], std::isnan(a[i]) ? b[i] : a[i]));
      EXPECT_TRUE(Same(max[i], std::isnan(a[i]) ? b[i] : a[i]));
      EXPECT_EQ(nan[i], 0x7fffffffu);
      continue;
    }
    bool a_less = a[i] < b[i] || (a[i] == b[i] && std::signbit(a[i]));
    EXPECT_TRUE(Same(min[i], a_less ? a[i] : b[i])) << a[i] << " " << b[i];
    EXPECT_TRUE(Same(max[i], a_less ? b[i] : a[i])) << a[i] << " " << b[i];
  }
}

TEST_F(Arithmetic, FlushesSubnormals) {
  float tiny = 1e-40f;
  EXPECT_EQ(Each<float>("add.f32 %d, %a, %b;", Floats{tiny}, Floats{0})[0], tiny);
  EXPECT_EQ(Each<float>("add.ftz.f32 %d, %a, %b;", Floats{tiny}, Floats{tiny})[0], 0);
  EXPECT_TRUE(Same(Each<float>("mul.ftz.f32 %d, %a, %b;", Floats{-1e-30f}, Floats{1e-10f})[0], -0.0f));
  EXPECT_EQ(Each<float>("mul.f32 %d, %a, %b;", Floats{-1e-30f}, Floats{1e-10f})[0], -1e-40f);
}

int FenvOf(const std::string& mode) {
  return mode == "rz" ? FE_TOWARDZERO : mode == "rm" ? FE_DOWNWARD : mode == "rp" ? FE_UPWARD : FE_TONEAREST;
}

template <typename T>
struct Samples {
  std::vector<T> a, b, c;
};
template <typename T>
Samples<T> Sample() {
  std::mt19937_64 random(7);
  Samples<T> s;
  std::vector<T> special = {0,
                            -T(0),
                            1,
                            -1,
                            std::numeric_limits<T>::max(),
                            -std::numeric_limits<T>::max(),
                            std::numeric_limits<T>::denorm_min(),
                            std::numeric_limits<T>::min(),
                            T(kInf),
                            T(-kInf),
                            T(kNan)};
  for (int i = 0; i < 1024; ++i) {
    auto pick = [&]() -> T {
      if (random() % 8 == 0) return special[random() % special.size()];
      double m = std::ldexp(1.0 + static_cast<double>(random() >> 11) * 0x1p-53,
                            static_cast<int>(random() % 40) - 20);
      return static_cast<T>(random() & 1 ? m : -m);
    };
    s.a.push_back(pick());
    s.b.push_back(pick());
    s.c.push_back(random() % 4 ? pick() : -s.a.back());
  }
  return s;
}

template <typename T, typename F>
T Rounded(const std::string& mode, F f) {
  fesetround(FenvOf(mode));
  volatile T v = f();
  fesetround(FE_TONEAREST);
  return v;
}

template <typename T, typename Rig>
void CheckRoundings(Rig&& each, const std::string& type) {
  Samples<T> s = Sample<T>();
  for (std::string mode : {"rn", "rz", "rm", "rp"}) {
    auto add = each("add." + mode + type + " %d, %a, %b;", s);
    auto sub = each("sub." + mode + type + " %d, %a, %c;", s);
    auto mul = each("mul." + mode + type + " %d, %a, %b;", s);
    auto div = each("div." + mode + type + " %d, %a, %b;", s);
    auto fma = each("fma." + mode + type + " %d, %a, %b, %c;", s);
    auto root = each("sqrt." + mode + type + " %d, %a;", s);
    auto rcp = each("rcp." + mode + type + " %d, %a;", s);
    for (size_t i = 0; i < s.a.size(); ++i) {
      volatile T a = s.a[i], b = s.b[i], c = s.c[i];
      EXPECT_TRUE(Same(add[i], Rounded<T>(mode, [&] { return a + b; })))
          << mode << " " << a << " + " << b << " = " << add[i];
      EXPECT_TRUE(Same(sub[i], Rounded<T>(mode, [&] { return a - c; })))
          << mode << " " << a << " - " << c << " = " << sub[i];
      EXPECT_TRUE(Same(mul[i], Rounded<T>(mode, [&] { return a * b; })))
          << mode << " " << a << " * " << b << " = " << mul[i];
      EXPECT_TRUE(Same(div[i], Rounded<T>(mode, [&] { return a / b; })))
          << mode << " " << a << " / " << b << " = " << div[i];
      EXPECT_TRUE(Same(fma[i], Rounded<T>(mode, [&] { return std::fma(T(a), T(b), T(c)); })))
          << mode << " " << a << " * " << b << " + " << c << " = " << fma[i];
      EXPECT_TRUE(Same(root[i], Rounded<T>(mode, [&] { return std::sqrt(T(a)); }))) << mode << " sqrt " << a;
      EXPECT_TRUE(Same(rcp[i], Rounded<T>(mode, [&] { return T(1) / a; }))) << mode << " 1 / " << a;
    }
  }
}

TEST_F(Arithmetic, RoundsF32EveryWay) {
  CheckRoundings<float>(
      [&](const std::string& code, const Samples<float>& s) { return Each<float>(code, s.a, s.b, s.c); },
      ".f32");
}
TEST_F(Arithmetic, RoundsF64EveryWay) {
  CheckRoundings<double>(
      [&](const std::string& code, const Samples<double>& s) { return Each<double>(code, s.a, s.b, s.c); },
      ".f64");
}

TEST_F(Arithmetic, HalvesRoundOnce) {
  using H = uint16_t;
  auto value = [](H h) { return static_cast<double>(std::bit_cast<_Float16>(h)); };
  std::mt19937 random(3);
  std::vector<H> a, b, c;
  for (int i = 0; i < 1024; ++i) {
    a.push_back(static_cast<H>(random()));
    b.push_back(static_cast<H>(random()));
    c.push_back(static_cast<H>(random()));
  }
  auto add = Each<H>("add.f16 %d, %a, %b;", a, b);
  auto fma = Each<H>("fma.rn.f16 %d, %a, %b, %c;", a, b, c);
  for (size_t i = 0; i < a.size(); ++i) {
    double x = value(a[i]), y = value(b[i]), z = value(c[i]);
    // Nearest of all halves, ties to even, found by looking at the neighbours of what came out.
    auto nearest = [&](H got, long double exact) {
      if (std::isnan(exact)) return std::isnan(value(got));
      if (std::isinf(exact)) return value(got) == static_cast<double>(exact);
      if (std::isinf(value(got))) return std::fabs(exact) >= 65520.0L;
      long double error = std::fabs(exact - value(got));
      for (H n : {static_cast<H>(got + 1), static_cast<H>(got - 1)}) {
        if ((n ^ got) & 0x8000 || std::isnan(value(n)) || std::isinf(value(n))) continue;
        long double other = std::fabs(exact - value(n));
        if (other < error || (other == error && (got & 1) && !(n & 1))) return false;
      }
      return true;
    };
    EXPECT_TRUE(nearest(add[i], static_cast<long double>(x) + y))
        << x << " + " << y << " = " << value(add[i]);
    // A product of halves has 22 bits and reaches 2^-48; the sum fits the 64 bits of a long double but for
    // far-apart terms.
    long double exact = static_cast<long double>(x) * y + z;
    EXPECT_TRUE(nearest(fma[i], exact)) << x << " * " << y << " + " << z << " = " << value(fma[i]);
  }
}

TEST_F(Arithmetic, BrainFloats) {
  using H = uint16_t;
  std::vector<H> a = {0x3f80, 0x3f80, 0x7f7f, 0x0001}, b = {0x3b80, 0x3c00, 0x7f7f, 0x0001};
  auto add = Each<H>("add.rn.bf16 %d, %a, %b;", a, b);
  // 1 + 2^-8 ties to even 1; 1 + 2^-7 is the next one; max + max overflows; subnormals add.
  EXPECT_EQ(add, (std::vector<H>{0x3f80, 0x3f81, 0x7f80, 0x0002}));
}

TEST_F(Arithmetic, PairsOfHalves) {
  Words a = {0x3c004000}, b = {0x40003c00}, c = {0x00003c00};
  EXPECT_EQ(Each<uint32_t>("add.f16x2 %d, %a, %b;", a, b)[0], 0x42004200u);
  EXPECT_EQ(Each<uint32_t>("fma.rn.f16x2 %d, %a, %b, %c;", a, b, c)[0], 0x40004200u);
  EXPECT_EQ(Each<uint32_t>("neg.f16x2 %d, %a;", a)[0], 0xbc00c000u);
}

TEST_F(Arithmetic, Bits) {
  auto [a, n] = Pairs(Words{0, 1, 5, 31, 32, 33, 255, 0x80000000, 0xdeadbeef, 0xffffffff});
  auto shl = Each<uint32_t>("shl.b32 %d, %a, %b;", a, n);
  auto shr = Each<uint32_t>("shr.u32 %d, %a, %b;", a, n);
  auto sar = Each<uint32_t>("shr.s32 %d, %a, %b;", a, n);
  auto left = Each<uint32_t>("shf.l.wrap.b32 %d, %a, 0x12345678, %b;", a, n);
  auto right = Each<uint32_t>("shf.r.clamp.b32 %d, %a, 0x12345678, %b;", a, n);
  auto mask = Each<uint32_t>("bmsk.clamp.b32 %d, %a, %b;", a, n);
  for (size_t i = 0; i < a.size(); ++i) {
    uint32_t x = a[i], k = n[i];
    EXPECT_EQ(shl[i], k > 31 ? 0 : x << k);
    EXPECT_EQ(shr[i], k > 31 ? 0 : x >> k);
    EXPECT_EQ(sar[i], static_cast<uint32_t>(static_cast<int32_t>(x) >> std::min(k, 31u)));
    unsigned __int128 both = (uint64_t{0x12345678} << 32) | x;
    EXPECT_EQ(left[i], static_cast<uint32_t>((both << (k & 31)) >> 32));
    EXPECT_EQ(right[i], static_cast<uint32_t>(both >> std::min(k, 32u)));
    uint32_t want = 0;
    for (uint64_t bit = x; bit < uint64_t{x} + k && bit < 32; ++bit) want |= 1u << bit;
    EXPECT_EQ(mask[i], want) << x << " " << k;
  }
}

TEST_F(Arithmetic, BitFields) {
  std::mt19937 random(5);
  Words a, b, pos, len;
  for (int i = 0; i < 512; ++i) {
    a.push_back(random());
    b.push_back(random());
    pos.push_back(random() % 40);
    len.push_back(random() % 40);
  }
  Words where(512);
  for (size_t i = 0; i < 512; ++i) where[i] = pos[i] | len[i] << 8;
  std::string unpack = "and.b32 %t0, %b, 255; shr.u32 %t1, %b, 8;";
  auto ubfe = Each<uint32_t>(unpack + "bfe.u32 %d, %a, %t0, %t1;", a, where);
  auto sbfe = Each<uint32_t>(unpack + "bfe.s32 %d, %a, %t0, %t1;", a, where);
  auto bfi = Each<uint32_t>(unpack + "bfi.b32 %d, %a, %c, %t0, %t1;", a, where, b);
  for (size_t i = 0; i < 512; ++i) {
    uint32_t u = 0, s = 0, f = b[i];
    uint32_t sign = len[i] ? a[i] >> std::min(pos[i] + len[i] - 1, 31u) & 1 : 0;
    for (uint32_t k = 0; k < 32; ++k) {
      bool taken = k < len[i] && pos[i] + k <= 31;
      u |= (taken ? a[i] >> (pos[i] + k) & 1 : 0) << k;
      s |= (taken ? a[i] >> (pos[i] + k) & 1 : sign) << k;
      if (taken) f = (f & ~(1u << (pos[i] + k))) | (a[i] >> k & 1) << (pos[i] + k);
    }
    EXPECT_EQ(ubfe[i], u) << pos[i] << " " << len[i];
    EXPECT_EQ(sbfe[i], s) << pos[i] << " " << len[i];
    EXPECT_EQ(bfi[i], f) << pos[i] << " " << len[i];
  }
}

TEST_F(Arithmetic, CountsAndPermutes) {
  Words a = {0, 1, 0x80000000, 0x00f00000, 0xffffffff, 0x7fffffff};
  EXPECT_EQ(Each<uint32_t>("clz.b32 %d, %a;", a), (Words{32, 31, 0, 8, 0, 1}));
  EXPECT_EQ(Each<uint32_t>("popc.b32 %d, %a;", a), (Words{0, 1, 1, 4, 32, 31}));
  EXPECT_EQ(Each<uint32_t>("brev.b32 %d, %a;", a),
            (Words{0, 0x80000000, 1, 0x00000f00, 0xffffffff, 0xfffffffe}));
  EXPECT_EQ(Each<uint32_t>("bfind.u32 %d, %a;", a), (Words{~0u, 0, 31, 23, 31, 30}));
  EXPECT_EQ(Each<uint32_t>("bfind.s32 %d, %a;", a), (Words{~0u, 0, 30, 23, ~0u, 30}));
  EXPECT_EQ(Each<uint32_t>("bfind.shiftamt.u32 %d, %a;", a), (Words{~0u, 31, 0, 8, 0, 1}));
  EXPECT_EQ(Each<uint32_t>("prmt.b32 %d, %a, 0x80706050, 0x7f20;", Words{0x44332211})[0], 0x80ff3311u);
  EXPECT_EQ(Each<uint32_t>("prmt.b32.b4e %d, %a, 0x88776655, 1;", Words{0x44332211})[0], 0x77881122u);
  EXPECT_EQ(Each<uint32_t>("lop3.b32 %d, %a, %b, %c, 0xe8;", Words{0xf0f0}, Words{0xcccc}, Words{0xaaaa})[0],
            (0xf0f0u & 0xccccu) | (0xf0f0u & 0xaaaau) | (0xccccu & 0xaaaau));
  EXPECT_EQ(Each<uint32_t>("cnot.b32 %d, %a;", Words{0, 5}), (Words{1, 0}));
  EXPECT_EQ(Each<uint32_t>("sad.s32 %d, %a, %b, 3;", Words{5, static_cast<uint32_t>(-5)}, Words{7, 7}),
            (Words{5, 15}));
  EXPECT_EQ(Each<uint32_t>("mul24.lo.s32 %d, %a, %b;", Words{0x00ffffff}, Words{3})[0],
            static_cast<uint32_t>(-3));
}

TEST_F(Arithmetic, BytesAndHalvesOfWords) {
  Words a = {0x01ff7f80, 0x10203040}, b = {0x02018001, 0xf0e0d0c0}, c = {5, 6};
  auto sad = Each<uint32_t>("vabsdiff4.u32.u32.u32.add %d, %a, %b, %c;", a, b, c);
  auto dif = Each<uint32_t>("vabsdiff4.u32.s32.s32 %d, %a, %b, %c;", a, b, c);
  auto add = Each<uint32_t>("vadd4.s32.s32.s32.sat %d, %a, %b, %c;", a, b, c);
  auto max = Each<uint32_t>("vmax2.s32.s32.s32 %d, %a, %b, %c;", a, b, c);
  for (size_t i = 0; i < a.size(); ++i) {
    uint32_t s = c[i], d = 0, p = 0, m = 0;
    for (int k = 0; k < 32; k += 8) {
      int x = static_cast<int8_t>(a[i] >> k), y = static_cast<int8_t>(b[i] >> k);
      s += static_cast<uint32_t>(std::abs(static_cast<uint8_t>(x) - static_cast<uint8_t>(y)));
      d |= (static_cast<uint32_t>(std::abs(x - y)) & 255) << k;
      p |= (static_cast<uint32_t>(std::clamp(x + y, -128, 127)) & 255) << k;
    }
    for (int k = 0; k < 32; k += 16) {
      m |= static_cast<uint32_t>(static_cast<uint16_t>(
               std::max(static_cast<int16_t>(a[i] >> k), static_cast<int16_t>(b[i] >> k))))
           << k;
    }
    EXPECT_EQ(sad[i], s);
    EXPECT_EQ(dif[i], d);
    EXPECT_EQ(add[i], p);
    EXPECT_EQ(max[i], m);
  }
}

TEST_F(Arithmetic, ComparesAndChooses) {
  auto [a, b] = Pairs(Floats{0, -0.0f, 1, kNan, kInf});
  auto test = [&](const std::string& op, auto reference) {
    auto got = Each<uint32_t, float>("setp." + op + ".f32 %p, %a, %b; selp.u32 %d, 1, 0, %p;", a, b);
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_EQ(got[i], reference(a[i], b[i])) << a[i] << " " << op << " " << b[i];
  };
  test("eq", [](float x, float y) { return x == y; });
  test("ne", [](float x, float y) { return x < y || x > y; });
  test("neu", [](float x, float y) { return x != y; });
  test("ltu", [](float x, float y) { return !(x >= y); });
  test("ge", [](float x, float y) { return x >= y; });
  test("num", [](float x, float y) { return !std::isnan(x) && !std::isnan(y); });
  test("nan", [](float x, float y) { return std::isnan(x) || std::isnan(y); });
  auto [u, v] = Pairs(kWords);
  auto both = Each<uint32_t>(
      "setp.lt.s32 %p|%q, %a, %b; selp.u32 %t0, 1, 0, %p; selp.u32 %t1, 2, 0, %q; or.b32 %d, %t0, %t1;", u,
      v);
  auto joined =
      Each<uint32_t>("setp.ne.u32 %q, %a, 0; setp.hi.and.u32 %p, %a, %b, !%q; selp.u32 %d, 1, 0, %p;", u, v);
  auto set = Each<uint32_t>("set.gt.u32.s32 %d, %a, %b;", u, v);
  for (size_t i = 0; i < u.size(); ++i) {
    bool less = static_cast<int32_t>(u[i]) < static_cast<int32_t>(v[i]);
    EXPECT_EQ(both[i], less ? 1u : 2u);
    EXPECT_EQ(joined[i], u[i] > v[i] && u[i] == 0 ? 1u : 0u);
    EXPECT_EQ(set[i], static_cast<int32_t>(u[i]) > static_cast<int32_t>(v[i]) ? ~0u : 0u);
  }
}

TEST_F(Arithmetic, MathWithinItsError) {
  Floats x;
  for (int i = -500; i < 500; ++i) x.push_back(0.0062f * static_cast<float>(i));
  auto sin = Each<float>("sin.approx.f32 %d, %a;", x);
  auto cos = Each<float>("cos.approx.f32 %d, %a;", x);
  auto ex2 = Each<float>("ex2.approx.f32 %d, %a;", x);
  auto tanh = Each<float>("tanh.approx.f32 %d, %a;", x);
  for (size_t i = 0; i < x.size(); ++i) {
    double v = x[i];
    EXPECT_NEAR(sin[i], std::sin(v), 0x1p-20);
    EXPECT_NEAR(cos[i], std::cos(v), 0x1p-20);
    EXPECT_NEAR(ex2[i], std::exp2(v), std::exp2(v) * 0x1p-22);
    EXPECT_NEAR(tanh[i], std::tanh(v), 0x1p-11);
  }
  Floats y = {1e-38f, 0.25f, 1, 3, 1e30f};
  auto lg2 = Each<float>("lg2.approx.f32 %d, %a;", y);
  auto rsqrt = Each<float>("rsqrt.approx.f32 %d, %a;", y);
  for (size_t i = 0; i < y.size(); ++i) {
    EXPECT_NEAR(lg2[i], std::log2(double{y[i]}), 0x1p-22 * std::max(1.0, std::fabs(std::log2(double{y[i]}))));
    EXPECT_NEAR(rsqrt[i], 1 / std::sqrt(double{y[i]}), 0x1p-22 / std::sqrt(double{y[i]}));
  }
  EXPECT_EQ(Each<float>("copysign.f32 %d, %a, %b;", Floats{-1, 1}, Floats{3, -4}), (Floats{-3, 4}));
  EXPECT_EQ(Each<uint32_t>("testp.subnormal.f32 %p, %a; selp.u32 %d, 1, 0, %p;", Floats{0, 1, 1e-40f, kInf}),
            (Words{0, 0, 1, 0}));
}

}  // namespace
}  // namespace cuplex::softcuda
