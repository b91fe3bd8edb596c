// Integer arithmetic: add, sub, mul, mad, div, rem, abs, neg, min, max, sad, mul24, mad24, dp4a, dp2a,
// carries. References compute in 128 bits, so that nothing overflows, and cut off at the end.
#include <limits>

#include "tests/conformance/ptx/corpus.h"

namespace cuplex::corpus {
namespace {

using Long = __int128;

template <typename T>
std::string Name();
template <>
std::string Name<uint16_t>() {
  return "u16";
}
template <>
std::string Name<int16_t>() {
  return "s16";
}
template <>
std::string Name<uint32_t>() {
  return "u32";
}
template <>
std::string Name<int32_t>() {
  return "s32";
}
template <>
std::string Name<uint64_t>() {
  return "u64";
}
template <>
std::string Name<int64_t>() {
  return "s64";
}

template <typename T>
constexpr int kBits = sizeof(T) * 8;

/// The upper half of a product; of unsigned 64-bit factors it does not fit Long as a signed value, yet its
/// bits do.
template <typename T>
T High(T a, T b) {
  if constexpr (sizeof(T) == 8 && std::is_unsigned_v<T>)
    return static_cast<T>((unsigned __int128){a} * b >> 64);
  return static_cast<T>(Long{a} * b >> kBits<T>);
}

template <typename T>
T Saturated(Long value) {
  if (value < std::numeric_limits<T>::min()) return std::numeric_limits<T>::min();
  if (value > std::numeric_limits<T>::max()) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

template <typename T>
T Low(unsigned __int128 value) {
  return static_cast<T>(value);
}

template <typename T>
void Basics(Family& f) {
  using U = unsigned __int128;
  const std::string t = "." + Name<T>() + " %d, %a";
  f.Add("add" + t + ", %b;", [](T a, T b) { return Low<T>(U(a) + U(b)); });
  f.Add("sub" + t + ", %b;", [](T a, T b) { return Low<T>(U(a) - U(b)); });
  f.Add("mul.lo" + t + ", %b;", [](T a, T b) { return Low<T>(U(a) * U(b)); });
  f.Add("mul.hi" + t + ", %b;", [](T a, T b) { return High<T>(a, b); });
  f.Add("mad.lo" + t + ", %b, %c;", [](T a, T b, T c) { return Low<T>(U(a) * U(b) + U(c)); });
  f.Add("mad.hi" + t + ", %b, %c;", [](T a, T b, T c) { return Low<T>(U(High<T>(a, b)) + U(c)); });
  // What is left open: division by zero, and the most negative number by -1 (which ptxas's own code wraps).
  auto divides = [](const Word* row) {
    const T a = FromWord<T>(row[0]), b = FromWord<T>(row[1]);
    return b == 0 || (std::is_signed_v<T> && a == std::numeric_limits<T>::min() && Long{b} == -1);
  };
  f.Add("div" + t + ", %b;", [](T a, T b) { return static_cast<T>(Long(a) / Long(b)); }).Unless(divides);
  f.Add("rem" + t + ", %b;", [](T a, T b) { return static_cast<T>(Long(a) % Long(b)); }).Unless(divides);
  f.Add("min" + t + ", %b;", [](T a, T b) { return a < b ? a : b; });
  f.Add("max" + t + ", %b;", [](T a, T b) { return a > b ? a : b; });
  f.Add("sad" + t + ", %b, %c;",
        [](T a, T b, T c) { return Low<T>(U(c) + U(a < b ? Long(b) - Long(a) : Long(a) - Long(b))); });
  if constexpr (std::is_signed_v<T>) {
    f.Add("abs" + t + ";", [](T a) { return Low<T>(U(a < 0 ? -Long(a) : Long(a))); });
    f.Add("neg" + t + ";", [](T a) { return Low<T>(U(-Long(a))); });
  }
  // Constants where they may stand.
  f.Add("add" + t + ", 5;", [](T a) {
     return Low<T>(U(a) + 5);
   }).Named("add." + Name<T>() + " with a constant");
  f.Add("sub." + Name<T>() + " %d, 5, %a;", [](T a) {
     return Low<T>(U(5) - U(a));
   }).Named("sub." + Name<T>() + " from a constant");
  f.Add("div" + t + ", 7;", [](T a) {
     return static_cast<T>(a / T{7});
   }).Named("div." + Name<T>() + " by a constant");
  f.Add("rem" + t + ", 10;", [](T a) {
     return static_cast<T>(a % T{10});
   }).Named("rem." + Name<T>() + " by a constant");
}

template <typename T, typename W>
void Widening(Family& f) {
  const std::string t = "." + Name<T>() + " %d, %a, %b";
  f.Add("mul.wide" + t + ";", [](T a, T b) { return static_cast<W>(Long(a) * b); });
  f.Add("mad.wide" + t + ", %c;",
        [](T a, T b, W c) { return Low<W>((unsigned __int128)(Long(a) * b) + (unsigned __int128)c); });
}

template <typename T>
Long Of24(T a) {
  const Long low = a & 0xffffff;
  return std::is_signed_v<T> && (low & 0x800000) ? low - 0x1000000 : low;
}

template <typename T>
void By24(Family& f) {
  const std::string t = "." + Name<T>() + " %d, %a, %b";
  f.Add("mul24.lo" + t + ";", [](T a, T b) { return static_cast<T>(Of24(a) * Of24(b)); });
  f.Add("mul24.hi" + t + ";", [](T a, T b) { return static_cast<T>(Of24(a) * Of24(b) >> 16); });
  f.Add("mad24.lo" + t + ", %c;",
        [](T a, T b, T c) { return Low<T>((unsigned __int128)(Of24(a) * Of24(b)) + (unsigned __int128)c); });
  f.Add("mad24.hi" + t + ", %c;", [](T a, T b, T c) {
    return Low<T>((unsigned __int128)(Of24(a) * Of24(b) >> 16) + (unsigned __int128)c);
  });
}

Long Part(uint32_t word, int index, int bits, bool is_signed) {
  const uint32_t part = word >> (index * bits) & ((1u << bits) - 1);
  return is_signed && part >> (bits - 1) ? Long{part} - (Long{1} << bits) : Long{part};
}

template <bool kSignedA, bool kSignedB>
void DotProducts(Family& f) {
  using C = std::conditional_t<kSignedA || kSignedB, int32_t, uint32_t>;
  const std::string t =
      std::string(kSignedA ? ".s32" : ".u32") + (kSignedB ? ".s32" : ".u32") + " %d, %a, %b, %c;";
  auto dot = [](uint32_t a, uint32_t b, C c, int parts, int bits_a, int first_b) {
    unsigned __int128 sum = (unsigned __int128)Long{c};
    for (int i = 0; i < parts; ++i)
      sum += (unsigned __int128)(Part(a, i, bits_a, kSignedA) * Part(b, first_b + i, 8, kSignedB));
    return Low<C>(sum);
  };
  f.Add("dp4a" + t, [dot](uint32_t a, uint32_t b, C c) { return dot(a, b, c, 4, 8, 0); });
  f.Add("dp2a.lo" + t, [dot](uint32_t a, uint32_t b, C c) { return dot(a, b, c, 2, 16, 0); });
  f.Add("dp2a.hi" + t, [dot](uint32_t a, uint32_t b, C c) { return dot(a, b, c, 2, 16, 2); });
}

/// 0, 1, 2: carry-in and carry-out through an add or subtraction, the carry shown in the upper word.
void Carries(Family& f) {
  using U = unsigned __int128;
  const std::string out = " mov.b64 %d, {%t0, %t1};";
  f.Add("add.cc.u32 %t0, %a, %b; addc.u32 %t1, 0, 0;" + out,
        [](uint32_t a, uint32_t b) { return uint64_t{a} + b; });
  f.Add("add.cc.s32 %t0, %a, %b; addc.s32 %t1, 0, 0;" + out,
        [](uint32_t a, uint32_t b) { return uint64_t{a} + b; });
  f.Add("sub.cc.u32 %t0, %a, %b; subc.u32 %t1, 0, 0;" + out,
        [](uint32_t a, uint32_t b) { return uint64_t{a} - b; });
  f.Add("sub.cc.s32 %t0, %a, %b; subc.s32 %t1, 0, 0;" + out,
        [](uint32_t a, uint32_t b) { return uint64_t{a} - b; });
  f.Add("add.cc.u64 %u0, %a, %b; addc.u64 %d, %c, %c;",
        [](uint64_t a, uint64_t b, uint64_t c) { return 2 * c + static_cast<uint64_t>((U{a} + b) >> 64); });
  f.Add("sub.cc.u64 %u0, %a, %b; subc.u64 %d, %c, 1;",
        [](uint64_t a, uint64_t b, uint64_t c) { return c - 1 - (a < b); });
  f.Add("add.cc.s64 %u0, %a, %b; addc.s64 %d, %c, 0;",
        [](uint64_t a, uint64_t b, uint64_t c) { return c + static_cast<uint64_t>((U{a} + b) >> 64); });
  f.Add("sub.cc.s64 %u0, %a, %b; subc.s64 %d, %c, 0;",
        [](uint64_t a, uint64_t b, uint64_t c) { return c - (a < b); });
  f.Add("add.cc.u32 %t0, %a, %b; addc.cc.u32 %t1, %c, %e; addc.u32 %t2, 0, 0; add.u32 %t1, %t1, %t2;" + out,
        [](uint32_t a, uint32_t b, uint32_t c, uint32_t e) {
          const uint64_t low = uint64_t{a} + b, high = uint64_t{c} + e + (low >> 32);
          return uint64_t{static_cast<uint32_t>(high + (high >> 32))} << 32 | static_cast<uint32_t>(low);
        })
      .Named("addc.cc.u32");
  f.Add("sub.cc.u32 %t0, %a, %b; subc.cc.u32 %t1, %c, %e; subc.u32 %t2, 0, 0; xor.b32 %t1, %t1, %t2;" + out,
        [](uint32_t a, uint32_t b, uint32_t c, uint32_t e) {
          const uint64_t low = uint64_t{a} - b, high = uint64_t{c} - e - (low >> 63);
          return uint64_t{static_cast<uint32_t>(high) ^ static_cast<uint32_t>(high >> 32)} << 32 |
                 static_cast<uint32_t>(low);
        })
      .Named("subc.cc.u32");
  for (const char* type : {"u32", "s32"}) {
    const bool is_signed = type[0] == 's';
    auto product = [is_signed](uint32_t a, uint32_t b) {
      return is_signed ? static_cast<uint64_t>(int64_t{static_cast<int32_t>(a)} * static_cast<int32_t>(b))
                       : uint64_t{a} * b;
    };
    const std::string t = type;
    f.Add("mad.lo.cc." + t + " %t0, %a, %b, %c; addc.u32 %t1, 0, 0;" + out,
          [product](uint32_t a, uint32_t b, uint32_t c) {
            return uint64_t{static_cast<uint32_t>(product(a, b))} + c;
          });
    f.Add("mad.hi.cc." + t + " %t0, %a, %b, %c; addc.u32 %t1, 0, 0;" + out,
          [product](uint32_t a, uint32_t b, uint32_t c) { return (product(a, b) >> 32) + c; });
    f.Add("add.cc.u32 %t0, %e, %e; madc.lo." + t + " %d, %a, %b, %c;", [product](uint32_t a, uint32_t b,
                                                                                 uint32_t c, uint32_t e) {
       return static_cast<uint32_t>(product(a, b) + c + (e >> 31));
     }).Named("madc.lo." + t);
    f.Add("add.cc.u32 %t0, %e, %e; madc.hi." + t + " %d, %a, %b, %c;", [product](uint32_t a, uint32_t b,
                                                                                 uint32_t c, uint32_t e) {
       return static_cast<uint32_t>((product(a, b) >> 32) + c + (e >> 31));
     }).Named("madc.hi." + t);
    f.Add("add.cc.u32 %t0, %e, %e; madc.lo.cc." + t + " %t0, %a, %b, %c; addc.u32 %t1, 0, 0;" + out,
          [product](uint32_t a, uint32_t b, uint32_t c, uint32_t e) {
            return uint64_t{static_cast<uint32_t>(product(a, b))} + c + (e >> 31);
          })
        .Named("madc.lo.cc." + t);
    f.Add("add.cc.u32 %t0, %e, %e; madc.hi.cc." + t + " %t0, %a, %b, %c; addc.u32 %t1, 0, 0;" + out,
          [product](uint32_t a, uint32_t b, uint32_t c, uint32_t e) {
            return (product(a, b) >> 32) + c + (e >> 31);
          })
        .Named("madc.hi.cc." + t);
  }
  for (const char* type : {"u64", "s64"}) {
    const bool is_signed = type[0] == 's';
    auto high = [is_signed](uint64_t a, uint64_t b) {
      return is_signed ? static_cast<uint64_t>(Long{static_cast<int64_t>(a)} * static_cast<int64_t>(b) >> 64)
                       : static_cast<uint64_t>(U{a} * b >> 64);
    };
    const std::string t = type;
    f.Add("mad.lo.cc." + t + " %u0, %a, %b, %c; addc.u64 %d, 0, 0;",
          [](uint64_t a, uint64_t b, uint64_t c) { return static_cast<uint64_t>((U{a * b} + c) >> 64); });
    f.Add("mad.hi.cc." + t + " %u0, %a, %b, %c; addc.u64 %d, %u0, 0;",
          [high](uint64_t a, uint64_t b, uint64_t c) {
            const U sum = U{high(a, b)} + c;
            return static_cast<uint64_t>(sum) + static_cast<uint64_t>(sum >> 64);
          });
    f.Add("add.cc.u64 %u0, %e, %e; madc.lo." + t + " %d, %a, %b, %c;", [](uint64_t a, uint64_t b, uint64_t c,
                                                                          uint64_t e) {
       return a * b + c + (e >> 63);
     }).Named("madc.lo." + t);
    f.Add("add.cc.u64 %u0, %e, %e; madc.hi." + t + " %d, %a, %b, %c;", [high](uint64_t a, uint64_t b,
                                                                              uint64_t c, uint64_t e) {
       return high(a, b) + c + (e >> 63);
     }).Named("madc.hi." + t);
  }
  // 128-bit numbers of four words: what compilers make of __int128.
  f.Add(R"(.reg .b32 %w<8>; mov.b64 {%w0, %w1}, %a; mov.b64 {%w2, %w3}, %b;
      mul.lo.u32 %w4, %w0, %w2; mul.hi.u32 %w5, %w0, %w2; mul.lo.u32 %w6, %w1, %w3; mul.hi.u32 %w7, %w1, %w3;
      mad.lo.cc.u32 %w5, %w0, %w3, %w5; madc.hi.cc.u32 %w6, %w0, %w3, %w6; addc.u32 %w7, %w7, 0;
      mad.lo.cc.u32 %w5, %w1, %w2, %w5; madc.hi.cc.u32 %w6, %w1, %w2, %w6; addc.u32 %w7, %w7, 0;
      mov.b64 %d, {%w6, %w7};)",
        [](uint64_t a, uint64_t b) { return static_cast<uint64_t>(U{a} * b >> 64); })
      .Named("a product of 128 bits by carries");
}

template <typename T>
void Packed(Family& f, const std::string& type) {
  auto each = [](uint32_t a, uint32_t b, auto op) {
    const uint32_t lo = static_cast<uint16_t>(op(static_cast<T>(a), static_cast<T>(b)));
    const uint32_t hi = static_cast<uint16_t>(op(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
    return hi << 16 | lo;
  };
  f.Add("add." + type + " %d, %a, %b;",
        [each](uint32_t a, uint32_t b) { return each(a, b, [](T x, T y) { return x + y; }); });
  f.Add("min." + type + " %d, %a, %b;",
        [each](uint32_t a, uint32_t b) { return each(a, b, [](T x, T y) { return x < y ? x : y; }); });
  f.Add("max." + type + " %d, %a, %b;",
        [each](uint32_t a, uint32_t b) { return each(a, b, [](T x, T y) { return x < y ? y : x; }); });
}

}  // namespace

void FillInteger(Family& f) {
  Basics<uint16_t>(f);
  Basics<int16_t>(f);
  Basics<uint32_t>(f);
  Basics<int32_t>(f);
  Basics<uint64_t>(f);
  Basics<int64_t>(f);
  f.Add("add.sat.s32 %d, %a, %b;", [](int32_t a, int32_t b) { return Saturated<int32_t>(Long{a} + b); });
  f.Add("sub.sat.s32 %d, %a, %b;", [](int32_t a, int32_t b) { return Saturated<int32_t>(Long{a} - b); });
  f.Add("mad.hi.sat.s32 %d, %a, %b, %c;",
        [](int32_t a, int32_t b, int32_t c) { return Saturated<int32_t>((Long{a} * b >> 32) + c); });
  f.Add("mad24.hi.sat.s32 %d, %a, %b, %c;",
        [](int32_t a, int32_t b, int32_t c) { return Saturated<int32_t>((Of24(a) * Of24(b) >> 16) + c); });
  Widening<uint16_t, uint32_t>(f);
  Widening<int16_t, int32_t>(f);
  Widening<uint32_t, uint64_t>(f);
  Widening<int32_t, int64_t>(f);
  By24<uint32_t>(f);
  By24<int32_t>(f);
  DotProducts<false, false>(f);
  DotProducts<false, true>(f);
  DotProducts<true, false>(f);
  DotProducts<true, true>(f);
  Carries(f);
  f.Target(90, "8.0");
  Packed<uint16_t>(f, "u16x2");
  Packed<int16_t>(f, "s16x2");
  auto relu = [](int32_t v) { return v < 0 ? 0 : v; };
  f.Add("min.relu.s32 %d, %a, %b;", [relu](int32_t a, int32_t b) { return relu(a < b ? a : b); });
  f.Add("max.relu.s32 %d, %a, %b;", [relu](int32_t a, int32_t b) { return relu(a < b ? b : a); });
  auto relu2 = [](uint32_t a, uint32_t b, bool max) {
    uint32_t out = 0;
    for (int shift : {0, 16}) {
      const auto x = static_cast<int16_t>(a >> shift), y = static_cast<int16_t>(b >> shift);
      const int16_t best = (x < y) == max ? y : x;
      out |= uint32_t(best < 0 ? 0 : static_cast<uint16_t>(best)) << shift;
    }
    return out;
  };
  f.Add("min.relu.s16x2 %d, %a, %b;", [relu2](uint32_t a, uint32_t b) { return relu2(a, b, false); });
  f.Add("max.relu.s16x2 %d, %a, %b;", [relu2](uint32_t a, uint32_t b) { return relu2(a, b, true); });
}

}  // namespace cuplex::corpus
