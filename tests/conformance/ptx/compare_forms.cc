// Comparisons and choices: setp, set, selp, slct over all types and operators, with their boolean second
// halves.
#include <functional>

#include <fmt/format.h>

#include "tests/conformance/ptx/corpus.h"
#include "tests/conformance/ptx/soft_float.h"

namespace cuplex::corpus {
namespace {

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
template <>
std::string Name<float>() {
  return "f32";
}
template <>
std::string Name<double>() {
  return "f64";
}
template <>
std::string Name<F16>() {
  return "f16";
}
template <>
std::string Name<Bf16>() {
  return "bf16";
}

template <typename T>
constexpr bool kReal = !std::is_integral_v<T>;
template <typename T>
constexpr Format FormatOf() {
  if constexpr (std::is_same_v<T, float>) return kF32;
  if constexpr (std::is_same_v<T, double>) return kF64;
  if constexpr (std::is_same_v<T, F16>) return kF16;
  return kBf16;
}

/// Less, equal, greater or unordered.
enum Outcome { kLess = 1, kEqual = 2, kGreater = 4, kUnordered = 8 };
template <typename T>
Outcome Compared(T a, T b, bool ftz) {
  if constexpr (kReal<T>) {
    const Number x = Unpack(ToWord(a), FormatOf<T>(), ftz), y = Unpack(ToWord(b), FormatOf<T>(), ftz);
    if (x.IsNan() || y.IsNan()) return kUnordered;
    const int order = Compare(x, y);
    return order < 0 ? kLess : order ? kGreater : kEqual;
  } else {
    return a < b ? kLess : a == b ? kEqual : kGreater;
  }
}

struct Operator {
  const char* name;
  int outcomes;
};
const std::vector<Operator> kSigned = {{"eq", kEqual},   {"ne", kLess | kGreater},
                                       {"lt", kLess},    {"le", kLess | kEqual},
                                       {"gt", kGreater}, {"ge", kGreater | kEqual}};
const std::vector<Operator> kUnsigned = {
    {"lo", kLess}, {"ls", kLess | kEqual}, {"hi", kGreater}, {"hs", kGreater | kEqual}};
const std::vector<Operator> kUnorderedToo = {
    {"equ", kEqual | kUnordered},       {"neu", kLess | kGreater | kUnordered},
    {"ltu", kLess | kUnordered},        {"leu", kLess | kEqual | kUnordered},
    {"gtu", kGreater | kUnordered},     {"geu", kGreater | kEqual | kUnordered},
    {"num", kLess | kEqual | kGreater}, {"nan", kUnordered}};

template <typename T>
std::vector<Operator> OperatorsOf() {
  std::vector<Operator> all = kSigned;
  if (std::is_unsigned_v<T>) all.insert(all.end(), kUnsigned.begin(), kUnsigned.end());
  if (kReal<T>) all.insert(all.end(), kUnorderedToo.begin(), kUnorderedToo.end());
  return all;
}

template <typename T>
void OneType(Family& f, int target = 75) {
  const std::string t = Name<T>();
  const bool can_flush = std::is_same_v<T, float> || std::is_same_v<T, F16>;
  for (bool ftz : {false, true}) {
    if (ftz && !can_flush) continue;
    const std::string z = ftz ? ".ftz" : "";
    for (const Operator& op : OperatorsOf<T>()) {
      const int outcomes = op.outcomes;
      auto holds = [=](T a, T b) { return (Compared<T>(a, b, ftz) & outcomes) != 0; };
      f.Add(fmt::format("setp.{}{}.{} %d, %a, %b;", op.name, z, t), holds).Target(target);
      f.Add(fmt::format("set.{}{}.u32.{} %d, %a, %b;", op.name, z, t), [=](T a, T b) {
         return holds(a, b) ? 0xffffffffu : 0u;
       }).Target(target);
    }
    auto less = [=](T a, T b) { return Compared<T>(a, b, ftz) == kLess; };
    f.Add(fmt::format("set.lt{}.s32.{} %d, %a, %b;", z, t), [=](T a, T b) {
       return less(a, b) ? int32_t{-1} : int32_t{0};
     }).Target(target);
    if (!std::is_same_v<T, F16> && !std::is_same_v<T, Bf16>)
      f.Add(fmt::format("set.lt{}.f32.{} %d, %a, %b;", z, t), [=](T a, T b) {
         return less(a, b) ? 1.0f : 0.0f;
       }).Target(target);
    if (!std::is_same_v<T, Bf16>)
      f.Add(fmt::format("set.lt{}.f16.{} %d, %a, %b;", z, t), [=](T a, T b) {
         return F16{less(a, b) ? uint16_t{0x3c00} : uint16_t{0}};
       }).Target(target);
    if (!std::is_same_v<T, F16> && !ftz)
      f.Add(fmt::format("set.lt{}.bf16.{} %d, %a, %b;", z, t), [=](T a, T b) {
         return Bf16{less(a, b) ? uint16_t{0x3f80} : uint16_t{0}};
       }).Target(90);
    if (std::is_same_v<T, F16> || std::is_same_v<T, Bf16>)
      f.Add(fmt::format("set.lt{}.u16.{} %d, %a, %b;", z, t), [=](T a, T b) {
         return less(a, b) ? uint16_t{0xffff} : uint16_t{0};
       }).Target(target);
    struct Boolean {
      const char* name;
      std::function<bool(bool, bool)> of;
    };
    for (const Boolean& boolean : {Boolean{"and", std::logical_and<>()}, Boolean{"or", std::logical_or<>()},
                                   Boolean{"xor", std::not_equal_to<>()}}) {
      auto of = boolean.of;
      if constexpr (!std::is_same_v<T, F16> && !std::is_same_v<T, Bf16>) {  // which give one predicate alone
        f.Add(
             fmt::format("setp.lt.{}{}.{} %p|%q, %a, %b, %c; selp.u16 %h0, 1, 0, %p; selp.u16 %h1, 2, 0, %q; "
                         "or.b16 %d, %h0, %h1;",
                         boolean.name, z, t),
             [=](T a, T b, bool c) {
               return static_cast<uint16_t>(of(less(a, b), c) | of(!less(a, b), c) << 1);
             })
            .Target(target);
      }
      f.Add(fmt::format("setp.lt.{}{}.{} %d, %a, %b, !%c;", boolean.name, z, t),
            [=](T a, T b, bool c) { return of(less(a, b), !c); })
          .Named(fmt::format("setp.lt.{}{}.{} with a negated predicate", boolean.name, z, t))
          .Target(target);
      f.Add(fmt::format("set.lt.{}{}.u32.{} %d, %a, %b, %c;", boolean.name, z, t), [=](T a, T b, bool c) {
         return of(less(a, b), c) ? 0xffffffffu : 0u;
       }).Target(target);
    }
  }
}

template <typename T>
void Bits(Family& f) {
  const std::string t = fmt::format("b{}", sizeof(T) * 8);
  f.Add("setp.eq." + t + " %d, %a, %b;", [](T a, T b) { return a == b; });
  f.Add("setp.ne." + t + " %d, %a, %b;", [](T a, T b) { return a != b; });
  f.Add("setp.eq." + t + " %d, %a, 10;", [](T a) {
     return a == 10;
   }).Named("setp.eq." + t + " with a constant");
  f.Add("set.eq.u32." + t + " %d, %a, %b;", [](T a, T b) { return a == b ? 0xffffffffu : 0u; });
  for (const char* kind : {"b", "u", "s"})
    f.Add(fmt::format("selp.{}{} %d, %a, %b, %c;", kind, sizeof(T) * 8),
          [](T a, T b, bool c) { return c ? a : b; });
}

template <typename T>
void Slct(Family& f, const std::string& type) {
  f.Add("slct." + type + ".s32 %d, %a, %b, %c;", [](T a, T b, int32_t c) { return c >= 0 ? a : b; });
  f.Add("slct." + type + ".f32 %d, %a, %b, %c;", [](T a, T b, float c) { return c >= 0 ? a : b; });
  f.Add("slct.ftz." + type + ".f32 %d, %a, %b, %c;", [](T a, T b, float c) {
    const Number n = Unpack(ToWord(c), kF32, true);
    return !n.IsNan() && Compare(n, {}) >= 0 ? a : b;
  });
}

/// Two comparisons at once, each with its own predicate.
template <typename P>
void Packed(Family& f, const std::string& type, int target) {
  using H = decltype(P::lo);
  for (const Operator& op : OperatorsOf<H>()) {
    const int outcomes = op.outcomes;
    f.Add(
         fmt::format(
             "setp.{}.{} %p|%q, %a, %b; selp.u16 %h0, 1, 0, %p; selp.u16 %h1, 2, 0, %q; or.b16 %d, %h0, %h1;",
             op.name, type),
         [=](P a, P b) {
           return static_cast<uint16_t>(((Compared<H>(a.lo, b.lo, false) & outcomes) != 0) |
                                        ((Compared<H>(a.hi, b.hi, false) & outcomes) != 0) << 1);
         })
        .Target(target);
  }
  // A mask, or a number, in each half.
  for (bool ftz : {false, true}) {
    if (ftz && !std::is_same_v<H, F16>) continue;
    const std::string z = ftz ? ".ftz" : "";
    for (const Operator& op : OperatorsOf<H>()) {
      const int outcomes = op.outcomes;
      auto low = [=](P a, P b) { return (Compared<H>(a.lo, b.lo, ftz) & outcomes) != 0; };
      auto high = [=](P a, P b) { return (Compared<H>(a.hi, b.hi, ftz) & outcomes) != 0; };
      auto masks = [](bool lo, bool hi) { return (lo ? 0xffffu : 0u) | (hi ? 0xffff0000u : 0u); };
      f.Add(fmt::format("set.{}{}.u32.{} %d, %a, %b;", op.name, z, type), [=](P a, P b) {
         return masks(low(a, b), high(a, b));
       }).Target(target);
      const uint16_t one = std::is_same_v<H, F16> ? 0x3c00 : 0x3f80;
      f.Add(fmt::format("set.{}{}.{}.{} %d, %a, %b;", op.name, z, type, type), [=](P a, P b) {
         return P{H{low(a, b) ? one : uint16_t{0}}, H{high(a, b) ? one : uint16_t{0}}};
       }).Target(target);
    }
    auto lo = [=](P a, P b) { return Compared<H>(a.lo, b.lo, ftz) == kLess; };
    auto hi = [=](P a, P b) { return Compared<H>(a.hi, b.hi, ftz) == kLess; };
    f.Add(fmt::format("set.lt{}.s32.{} %d, %a, %b;", z, type), [=](P a, P b) {
       return (lo(a, b) ? 0xffffu : 0u) | (hi(a, b) ? 0xffff0000u : 0u);
     }).Target(target);
    f.Add(fmt::format("set.lt.and{}.u32.{} %d, %a, %b, %c;", z, type), [=](P a, P b, bool c) {
       return (lo(a, b) && c ? 0xffffu : 0u) | (hi(a, b) && c ? 0xffff0000u : 0u);
     }).Target(target);
    f.Add(fmt::format("set.lt.xor{}.s32.{} %d, %a, %b, !%c;", z, type), [=](P a, P b, bool c) {
       return (lo(a, b) != !c ? 0xffffu : 0u) | (hi(a, b) != !c ? 0xffff0000u : 0u);
     }).Target(target);
  }
}

}  // namespace

void FillCompare(Family& f) {
  OneType<uint16_t>(f);
  OneType<int16_t>(f);
  OneType<uint32_t>(f);
  OneType<int32_t>(f);
  OneType<uint64_t>(f);
  OneType<int64_t>(f);
  Bits<uint16_t>(f);
  Bits<uint32_t>(f);
  Bits<uint64_t>(f);
  f.Add("selp.f32 %d, %a, %b, %c;", [](float a, float b, bool c) { return c ? a : b; }).ExactNan();
  f.Add("selp.f64 %d, %a, %b, %c;", [](double a, double b, bool c) { return c ? a : b; }).ExactNan();
  Slct<uint16_t>(f, "u16");
  Slct<int32_t>(f, "s32");
  Slct<uint32_t>(f, "b32");
  Slct<uint64_t>(f, "u64");
  Slct<uint64_t>(f, "b64");
}

void FillCompareFloat(Family& f) {
  OneType<float>(f);
  OneType<double>(f);
  OneType<F16>(f);
  OneType<Bf16>(f, 90);
  Packed<F16x2>(f, "f16x2", 75);
  Packed<Bf16x2>(f, "bf16x2", 90);
}

}  // namespace cuplex::corpus
