// cvt: every pair of types with every way to round, saturate and flush; packed and narrow floats.
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "tests/conformance/ptx/corpus.h"
#include "tests/conformance/ptx/soft_float.h"

namespace cuplex::corpus {
namespace {

template <typename T>
std::string Name() {
  if constexpr (std::is_same_v<T, float>) return "f32";
  if constexpr (std::is_same_v<T, double>) return "f64";
  if constexpr (std::is_same_v<T, F16>) return "f16";
  if constexpr (std::is_same_v<T, Bf16>) return "bf16";
  return fmt::format("{}{}", std::is_signed_v<T> ? "s" : "u", sizeof(T) * 8);
}
template <typename T>
constexpr Format FormatOf() {
  if constexpr (std::is_same_v<T, float>) return kF32;
  if constexpr (std::is_same_v<T, double>) return kF64;
  if constexpr (std::is_same_v<T, F16>) return kF16;
  return corpus::kBf16;
}

struct Mode {
  const char* text;
  Round round;
};
constexpr Mode kModes[] = {
    {"rn", Round::kNearestEven}, {"rz", Round::kZero}, {"rm", Round::kDown}, {"rp", Round::kUp}};

template <typename D, typename S>
void IntegerToInteger(Family& f) {
  using Limits = std::numeric_limits<D>;
  const std::string types = Name<D>() + "." + Name<S>() + " %d, %a;";
  f.Add("cvt." + types, [](S a) { return static_cast<D>(a); });
  if (std::cmp_greater_equal(std::numeric_limits<S>::min(), Limits::min()) &&
      std::cmp_less_equal(std::numeric_limits<S>::max(), Limits::max())) {
    return;  // nothing to saturate, and no such form
  }
  f.Add("cvt.sat." + types, [](S a) {
    const __int128 v = a;
    return v < Limits::min() ? Limits::min() : v > Limits::max() ? Limits::max() : static_cast<D>(v);
  });
}
template <typename S>
void IntegerToIntegers(Family& f) {
  IntegerToInteger<uint8_t, S>(f);
  IntegerToInteger<int8_t, S>(f);
  IntegerToInteger<uint16_t, S>(f);
  IntegerToInteger<int16_t, S>(f);
  IntegerToInteger<uint32_t, S>(f);
  IntegerToInteger<int32_t, S>(f);
  IntegerToInteger<uint64_t, S>(f);
  IntegerToInteger<int64_t, S>(f);
}

template <typename D, typename S>
void IntegerToFloat(Family& f) {
  for (const Mode& mode : kModes) {
    const Round round = mode.round;
    f.Add(fmt::format("cvt.{}.{}.{} %d, %a;", mode.text, Name<D>(), Name<S>()),
          [=](S a) { return FromWord<D>(Pack(FromInteger(a), FormatOf<D>(), {round})); });
  }
  f.Add(fmt::format("cvt.rn.sat.{}.{} %d, %a;", Name<D>(), Name<S>()),
        [=](S a) { return FromWord<D>(Pack(FromInteger(a), FormatOf<D>(), {.saturate = true})); });
}
template <typename S>
void IntegerToFloats(Family& f) {
  IntegerToFloat<float, S>(f);
  IntegerToFloat<double, S>(f);
  IntegerToFloat<F16, S>(f);
}

template <typename D, typename S>
void FloatToInteger(Family& f) {
  constexpr bool kWide = std::is_same_v<S, double> || sizeof(D) == 8;
  for (const Mode& mode : kModes) {
    for (bool ftz : {false, true}) {
      if (ftz && !std::is_same_v<S, float>) continue;
      for (bool sat : {false, true}) {
        const Round round = mode.round;
        f.Add(fmt::format("cvt.{}i{}{}.{}.{} %d, %a;", mode.text, ftz ? ".ftz" : "", sat ? ".sat" : "",
                          Name<D>(), Name<S>()),
              [=](S a) {
                const Number n = Unpack(ToWord(a), FormatOf<S>(), ftz);
                // A NaN is zero, but the middle of the range where the source is f64 or the destination has
                // 64 bits.
                if (n.IsNan()) return kWide ? static_cast<D>(uint64_t{1} << (sizeof(D) * 8 - 1)) : D{0};
                return static_cast<D>(ToInteger(n, round, sizeof(D) * 8, std::is_signed_v<D>));
              });
      }
    }
  }
}
template <typename S>
void FloatToIntegers(Family& f) {
  FloatToInteger<uint8_t, S>(f);
  FloatToInteger<int8_t, S>(f);
  FloatToInteger<uint16_t, S>(f);
  FloatToInteger<int16_t, S>(f);
  FloatToInteger<uint32_t, S>(f);
  FloatToInteger<int32_t, S>(f);
  FloatToInteger<uint64_t, S>(f);
  FloatToInteger<int64_t, S>(f);
}

/// To the same format: to an integer in floating point. To a wider one: exact. To a narrower one: rounded.
template <typename D, typename S>
void FloatToFloat(Family& f) {
  const bool single = std::is_same_v<D, float> || std::is_same_v<S, float>;
  const bool flush_source = std::is_same_v<S, float>, flush_result = std::is_same_v<D, float>;
  const bool same = std::is_same_v<D, S>, widens = sizeof(D) > sizeof(S);
  for (bool ftz : {false, true}) {
    if (ftz && !single) continue;
    for (bool sat : {false, true}) {
      const std::string rest =
          fmt::format("{}{}.{}.{} %d, %a;", ftz ? ".ftz" : "", sat ? ".sat" : "", Name<D>(), Name<S>());
      auto open = [=](S a) { return Unpack(ToWord(a), FormatOf<S>(), ftz && flush_source); };
      if (same || widens) {
        const Packing how{Round::kNearestEven, ftz && flush_result, sat};
        auto& form = f.Add("cvt" + rest, [=](S a) { return FromWord<D>(Pack(open(a), FormatOf<D>(), how)); });
        if (sat) form.AnyZero();
      }
      if (widens) continue;
      for (const Mode& mode : kModes) {
        const Round round = mode.round;
        const Packing how{round, ftz && flush_result, sat};
        auto& form = f.Add(fmt::format("cvt.{}{}{}", mode.text, same ? "i" : "", rest), [=](S a) {
          const Number n = open(a);
          return FromWord<D>(Pack(same ? ToIntegral(n, round) : n, FormatOf<D>(), how));
        });
        if (sat) form.AnyZero();
      }
    }
  }
}

uint32_t Halves(uint64_t lo, uint64_t hi) { return static_cast<uint32_t>(lo | hi << 16); }

void Packed(Family& f) {
  f.Target(80, "8.1");
  for (bool brain : {false, true}) {
    const Format format = brain ? corpus::kBf16 : kF16;
    const std::string name = brain ? "bf16" : "f16";
    for (const Mode& mode : {kModes[0], kModes[1]}) {
      for (bool relu : {false, true}) {
        const Packing how{.round = mode.round, .relu = relu};
        auto one = [=](float a) { return Pack(Unpack(ToWord(a), kF32), format, how); };
        const std::string m = fmt::format("cvt.{}{}.{}", mode.text, relu ? ".relu" : "", name);
        // The first source goes to the upper half.
        if (brain) {
          f.Add(m + "x2.f32 %d, %a, %b;", [=](float a, float b) {
             return FromWord<Bf16x2>(Halves(one(b), one(a)));
           }).AnyZero(relu);
          f.Add(m + ".f32 %d, %a;", [=](float a) { return FromWord<Bf16>(one(a)); }).AnyZero(relu);
        } else {
          f.Add(m + "x2.f32 %d, %a, %b;", [=](float a, float b) {
             return FromWord<F16x2>(Halves(one(b), one(a)));
           }).AnyZero(relu);
          if (relu) f.Add(m + ".f32 %d, %a;", [=](float a) { return FromWord<F16>(one(a)); }).AnyZero(relu);
        }
      }
    }
  }
  f.Target(90, "8.1");
  f.Add("cvt.f32.bf16 %d, %a;", [](Bf16 a) { return FromWord<float>(uint32_t{a.bits} << 16); }).Every();
  f.Add("cvt.rn.bf16.f16 %d, %a;", [](F16 a) {
     return FromWord<Bf16>(Pack(Unpack(a.bits, kF16), corpus::kBf16));
   }).Every();
  f.Add("cvt.rn.f16.bf16 %d, %a;", [](Bf16 a) {
     return FromWord<F16>(Pack(Unpack(a.bits, corpus::kBf16), kF16));
   }).Every();
  f.Add("cvt.rn.bf16.f64 %d, %a;",
        [](double a) { return FromWord<Bf16>(Pack(Unpack(ToWord(a), kF64), corpus::kBf16)); });
  f.Add("cvt.f64.bf16 %d, %a;", [](Bf16 a) {
     return FromWord<double>(Pack(Unpack(a.bits, corpus::kBf16), kF64));
   }).Every();
  f.Add("cvt.rn.bf16.s32 %d, %a;",
        [](int32_t a) { return FromWord<Bf16>(Pack(FromInteger(a), corpus::kBf16)); });
  f.Add("cvt.rn.bf16.u64 %d, %a;",
        [](uint64_t a) { return FromWord<Bf16>(Pack(FromInteger(a), corpus::kBf16)); });
  f.Add("cvt.rzi.s32.bf16 %d, %a;", [](Bf16 a) {
     return static_cast<int32_t>(ToInteger(Unpack(a.bits, corpus::kBf16), Round::kZero, 32, true));
   }).Every();
  f.Add("cvt.rni.u16.bf16 %d, %a;", [](Bf16 a) {
     return static_cast<uint16_t>(ToInteger(Unpack(a.bits, corpus::kBf16), Round::kNearestEven, 16, false));
   }).Every();
}

/// tf32: f32 with ten bits of fraction, in the upper 19 bits of 32.
void Tf32(Family& f) {
  f.Target(80, "7.8");
  auto tf32 = [](uint32_t a, Packing how) {
    return static_cast<uint32_t>(Pack(Unpack(a, kF32), kTf32, how) << 13);
  };
  auto nan = [](const Word* row) { return Unpack(row[0], kF32).IsNan(); };  // its lower bits are open
  f.Add("cvt.rna.tf32.f32 %d, %a; and.b32 %d, %d, 0xffffe000;",
        [=](uint32_t a) { return tf32(a, {.round = Round::kNearestAway}); })
      .Operand(0, EdgesOf(Type::kF32))
      .Unless(nan);
  f.Target(90, "7.8");
  for (bool relu : {false, true}) {
    const std::string r = relu ? ".relu" : "";
    auto open = [=](const Word* row) { return nan(row) || (relu && row[0] == 0x80000000); };  // or its sign
    f.Add("cvt.rn" + r + ".tf32.f32 %d, %a; and.b32 %d, %d, 0xffffe000;",
          [=](uint32_t a) { return tf32(a, {.relu = relu}); })
        .Operand(0, EdgesOf(Type::kF32))
        .Unless(open);
    f.Add("cvt.rz" + r + ".tf32.f32 %d, %a; and.b32 %d, %d, 0xffffe000;",
          [=](uint32_t a) { return tf32(a, {.round = Round::kZero, .relu = relu}); })
        .Operand(0, EdgesOf(Type::kF32))
        .Unless(open);
  }
}

void Fp8(Family& f) {
  f.Target(89, "8.1");
  struct Narrow {
    const char* name;
    Format format;
  };
  for (const Narrow& narrow : {Narrow{"e4m3x2", kE4m3}, Narrow{"e5m2x2", kE5m2}}) {
    const Format format = narrow.format;
    for (bool relu : {false, true}) {
      const Packing how{.finite = true, .relu = relu};
      const std::string r = relu ? ".relu" : "";
      // A NaN stays a NaN: the canonical one. Where negatives become zero, the sign of a zero is open.
      f.Add(fmt::format("cvt.rn.satfinite{}.{}.f32 %d, %a, %b;", r, narrow.name), [=](float a, float b) {
         return static_cast<uint16_t>(Pack(Unpack(ToWord(b), kF32), format, how) |
                                      Pack(Unpack(ToWord(a), kF32), format, how) << 8);
       }).Unless([=](const Word* row) { return relu && (row[0] == 0x80000000 || row[1] == 0x80000000); });
      f.Add(fmt::format("cvt.rn.satfinite{}.{}.f16x2 %d, %a;", r, narrow.name), [=](F16x2 a) {
         return static_cast<uint16_t>(Pack(Unpack(a.lo.bits, kF16), format, how) |
                                      Pack(Unpack(a.hi.bits, kF16), format, how) << 8);
       }).Unless([=](const Word* row) {
        return relu && (row[0] >> 16 == 0x8000 || (row[0] & 0xffff) == 0x8000);
      });
      f.Add(fmt::format("cvt.rn{}.f16x2.{} %d, %a;", r, narrow.name),
            [=](uint16_t a) {
              const Packing plain{.relu = relu};
              return FromWord<F16x2>(Halves(Pack(Unpack(a & 0xff, format), kF16, plain),
                                            Pack(Unpack(a >> 8, format), kF16, plain)));
            })
          .Every()
          .AnyZero(relu);
    }
  }
}

}  // namespace

void FillConvertIntegers(Family& f) {
  IntegerToIntegers<uint8_t>(f);
  IntegerToIntegers<int8_t>(f);
  IntegerToIntegers<uint16_t>(f);
  IntegerToIntegers<int16_t>(f);
  IntegerToIntegers<uint32_t>(f);
  IntegerToIntegers<int32_t>(f);
  IntegerToIntegers<uint64_t>(f);
  IntegerToIntegers<int64_t>(f);
  // Narrow results fill their wider registers by their sign.
  f.Add("cvt.s8.s32 %t0, %a; mov.b32 %d, %t0;", [](int32_t a) {
     return int32_t{static_cast<int8_t>(a)};
   }).Named("cvt.s8.s32 in a register of 32 bits");
  f.Add("cvt.u8.s32 %t0, %a; mov.b32 %d, %t0;", [](int32_t a) {
     return uint32_t{static_cast<uint8_t>(a)};
   }).Named("cvt.u8.s32 in a register of 32 bits");
  f.Add("cvt.s16.u64 %t0, %a; mov.b32 %d, %t0;", [](uint64_t a) {
     return int32_t{static_cast<int16_t>(a)};
   }).Named("cvt.s16.u64 in a register of 32 bits");
  f.Add("cvt.sat.u8.s32 %t0, %a; mov.b32 %d, %t0;", [](int32_t a) {
     return a < 0 ? 0u : a > 255 ? 255u : static_cast<uint32_t>(a);
   }).Named("cvt.sat.u8.s32 in a register of 32 bits");
  // And wide registers are read as narrow values.
  f.Add("cvt.s32.s8 %d, %a;", [](uint32_t a) {
     return int32_t{static_cast<int8_t>(a)};
   }).Named("cvt.s32.s8 out of a register of 32 bits");
  f.Add("cvt.u64.u16 %d, %a;", [](uint32_t a) {
     return uint64_t{static_cast<uint16_t>(a)};
   }).Named("cvt.u64.u16 out of a register of 32 bits");
}

void FillConvertToFloat(Family& f) {
  IntegerToFloats<uint8_t>(f);
  IntegerToFloats<int8_t>(f);
  IntegerToFloats<uint16_t>(f);
  IntegerToFloats<int16_t>(f);
  IntegerToFloats<uint32_t>(f);
  IntegerToFloats<int32_t>(f);
  IntegerToFloats<uint64_t>(f);
  IntegerToFloats<int64_t>(f);
}

void FillConvertFromFloat(Family& f) {
  FloatToIntegers<float>(f);
  FloatToIntegers<double>(f);
  FloatToIntegers<F16>(f);
}

void FillConvertFloats(Family& f) {
  FloatToFloat<float, float>(f);
  FloatToFloat<double, double>(f);
  FloatToFloat<F16, F16>(f);
  FloatToFloat<float, double>(f);
  FloatToFloat<double, float>(f);
  FloatToFloat<F16, float>(f);
  FloatToFloat<float, F16>(f);
  FloatToFloat<F16, double>(f);
  FloatToFloat<double, F16>(f);
  Packed(f);
  Tf32(f);
  Fp8(f);
}

}  // namespace cuplex::corpus
