#include "tests/conformance/ptx/soft_float.h"

#include <algorithm>

namespace cuplex::corpus {
namespace {

using Kind = Number::Kind;

constexpr int kTop = 125;  // where the highest bit of a normalised mantissa stands: one carry fits above it

int BitsIn(Wide value) {
  const auto high = static_cast<uint64_t>(value >> 64);
  const auto low = static_cast<uint64_t>(value);
  if (high) return 128 - __builtin_clzll(high);
  return low ? 64 - __builtin_clzll(low) : 0;
}

Number Nan() { return {Kind::kNan}; }
Number Infinity(bool negative) { return {Kind::kInfinite, negative}; }
Number Zero(bool negative) { return {Kind::kFinite, negative}; }

/// The same value with its highest bit at kTop. Not for zeros.
Number Normalised(Number n) {
  const int up = kTop + 1 - BitsIn(n.mantissa);
  if (up >= 0) {
    n.mantissa <<= up;
  } else {
    n.sticky |= (n.mantissa & ((Wide{1} << -up) - 1)) != 0;
    n.mantissa >>= -up;
  }
  n.exponent -= up;
  return n;
}

/// Drops `count` low bits into the sticky bit.
Number ShiftedDown(Number n, int count) {
  if (count <= 0) return n;
  n.exponent += count;
  if (count > 127) {
    n.sticky |= n.mantissa != 0;
    n.mantissa = 0;
    return n;
  }
  n.sticky |= (n.mantissa & ((Wide{1} << count) - 1)) != 0;
  n.mantissa >>= count;
  return n;
}

/// The mantissa without its `drop` low bits, rounded.
Wide RoundedOff(const Number& n, int drop, Round round) {
  Wide kept = 0;
  bool half = false, rest = n.sticky;
  if (drop > 127) {
    rest |= n.mantissa != 0;
  } else if (drop > 0) {
    kept = n.mantissa >> drop;
    half = n.mantissa >> (drop - 1) & 1;
    rest |= (n.mantissa & ((Wide{1} << (drop - 1)) - 1)) != 0;
  } else {
    kept = n.mantissa << -drop;
  }
  bool up = false;
  switch (round) {
    case Round::kNearestEven:
      up = half && (rest || (kept & 1));
      break;
    case Round::kNearestAway:
      up = half;
      break;
    case Round::kZero:
      break;
    case Round::kDown:
      up = n.negative && (half || rest);
      break;
    case Round::kUp:
      up = !n.negative && (half || rest);
      break;
  }
  return kept + (up ? 1 : 0);
}

}  // namespace

Number Unpack(uint64_t bits, Format format, bool flush) {
  const uint64_t fraction = bits & ((uint64_t{1} << format.fraction_bits) - 1);
  const int all_ones = (1 << format.exponent_bits) - 1;
  const int exponent = static_cast<int>(bits >> format.fraction_bits) & all_ones;
  const bool negative = bits >> (format.Bits() - 1) & 1;
  if (exponent == all_ones) {
    if (format.infinities) return fraction ? Nan() : Infinity(negative);
    if (fraction == (uint64_t{1} << format.fraction_bits) - 1) return Nan();
  }
  const int lowest = 1 - format.Bias() - format.fraction_bits;
  if (!exponent) {
    if (flush || !fraction) return Zero(negative);
    return {Kind::kFinite, negative, lowest, fraction};
  }
  return {Kind::kFinite, negative, lowest + exponent - 1, fraction | uint64_t{1} << format.fraction_bits};
}

uint64_t Pack(const Number& number, Format format, Packing packing) {
  const int fraction = format.fraction_bits;
  const int all_ones = (1 << format.exponent_bits) - 1;
  const uint64_t sign = uint64_t{1} << (format.Bits() - 1);
  const uint64_t canonical = sign - 1;
  const uint64_t largest = format.infinities
                               ? (uint64_t(all_ones) << fraction) - 1
                               : (uint64_t(all_ones) << fraction | ((uint64_t{1} << fraction) - 2));
  const uint64_t infinity = format.infinities ? uint64_t(all_ones) << fraction : canonical;
  if (number.IsNan()) return packing.saturate ? 0 : canonical;
  if ((packing.saturate || packing.relu) && number.negative) return 0;
  const uint64_t signed_zero = number.negative ? sign : 0;
  if (number.IsZero()) return signed_zero;

  uint64_t magnitude;
  if (number.IsInfinite()) {
    magnitude = packing.finite ? largest : infinity;
  } else {
    const Number n = Normalised(number);
    const int lowest = 1 - format.Bias() - fraction;  // exponent of a subnormal's unit
    const int unit = std::max(n.exponent + kTop - fraction, lowest);
    Wide rounded = RoundedOff(n, unit - n.exponent, packing.round);
    int exponent = unit - lowest + 1;  // biased, if the leading bit stands
    if (rounded >> (fraction + 1)) rounded >>= 1, ++exponent;
    if (!(rounded >> fraction)) exponent = 0;  // subnormal
    magnitude = uint64_t(exponent) << fraction | (uint64_t(rounded) & ((uint64_t{1} << fraction) - 1));
    if (exponent > all_ones || magnitude > largest) {
      const bool away = packing.round == Round::kNearestEven || packing.round == Round::kNearestAway ||
                        (packing.round == Round::kUp && !n.negative) ||
                        (packing.round == Round::kDown && n.negative);
      magnitude = packing.finite || !away ? largest : infinity;
    }
    if (packing.flush && !exponent) magnitude = 0;
  }
  const uint64_t one = uint64_t(format.Bias()) << fraction;
  if (packing.saturate) return std::min(magnitude, one);
  return signed_zero | magnitude;
}

Number Negated(Number number) {
  number.negative = !number.negative;
  return number;
}

Number Add(const Number& a, const Number& b, Round round) {
  if (a.IsNan() || b.IsNan()) return Nan();
  if (a.IsInfinite() || b.IsInfinite()) {
    if (a.IsInfinite() && b.IsInfinite() && a.negative != b.negative) return Nan();
    return Infinity(a.IsInfinite() ? a.negative : b.negative);
  }
  if (a.IsZero() && b.IsZero()) {
    return Zero(a.negative == b.negative ? a.negative : round == Round::kDown);
  }
  if (a.IsZero()) return b;
  if (b.IsZero()) return a;
  Number big = Normalised(a), small = Normalised(b);
  if (big.exponent < small.exponent || (big.exponent == small.exponent && big.mantissa < small.mantissa)) {
    std::swap(big, small);
  }
  small = ShiftedDown(small, big.exponent - small.exponent);
  if (big.negative == small.negative) {
    big.mantissa += small.mantissa;
    big.sticky |= small.sticky;
    return big;
  }
  big.mantissa -= small.mantissa;
  if (small.sticky) --big.mantissa, big.sticky = true;
  if (big.IsZero()) return Zero(round == Round::kDown);
  return big;
}

Number Multiply(const Number& a, const Number& b) {
  if (a.IsNan() || b.IsNan()) return Nan();
  const bool negative = a.negative != b.negative;
  if (a.IsInfinite() || b.IsInfinite()) return a.IsZero() || b.IsZero() ? Nan() : Infinity(negative);
  return {Kind::kFinite, negative, a.exponent + b.exponent, a.mantissa * b.mantissa};
}

Number Divide(const Number& a, const Number& b) {
  if (a.IsNan() || b.IsNan()) return Nan();
  const bool negative = a.negative != b.negative;
  if (a.IsInfinite()) return b.IsInfinite() ? Nan() : Infinity(negative);
  if (b.IsInfinite()) return Zero(negative);
  if (b.IsZero()) return a.IsZero() ? Nan() : Infinity(negative);
  if (a.IsZero()) return Zero(negative);
  const Number top = Normalised(a);
  return {Kind::kFinite, negative, top.exponent - b.exponent, top.mantissa / b.mantissa,
          top.mantissa % b.mantissa != 0};
}

Number SquareRoot(const Number& a) {
  if (a.IsNan() || a.IsZero()) return a;
  if (a.negative) return Nan();
  if (a.IsInfinite()) return a;
  Number n = Normalised(a);
  if (n.exponent & 1) n.mantissa >>= 1, ++n.exponent;  // the lowest bit of a normalised mantissa is 0
  Wide root = 0;
  for (Wide bit = Wide{1} << 63; bit; bit >>= 1) {
    if ((root | bit) * (root | bit) <= n.mantissa) root |= bit;
  }
  return {Kind::kFinite, false, n.exponent / 2, root, root * root != n.mantissa};
}

Number FromInteger(__int128 value) {
  return {Kind::kFinite, value < 0, 0, value < 0 ? -static_cast<Wide>(value) : static_cast<Wide>(value)};
}

Number ToIntegral(const Number& number, Round round) {
  if (number.kind != Kind::kFinite || number.IsZero() || number.exponent >= 0) return number;
  return {Kind::kFinite, number.negative, 0, RoundedOff(number, -number.exponent, round)};
}

uint64_t ToInteger(const Number& number, Round round, int bits, bool is_signed) {
  if (number.IsNan()) return 0;
  const Wide mask = (Wide{1} << bits) - 1;
  const Wide most = is_signed ? mask >> 1 : mask;
  const Wide least = is_signed ? (mask >> 1) + 1 : 0;  // magnitude of the lowest value
  const Wide limit = number.negative ? least : most;
  Wide magnitude = limit;
  if (!number.IsInfinite()) {
    const Number n = ToIntegral(number, round);
    if (BitsIn(n.mantissa) + n.exponent <= 66) magnitude = std::min(limit, n.mantissa << n.exponent);
  }
  return static_cast<uint64_t>((number.negative ? -magnitude : magnitude) & mask);
}

int Compare(const Number& a, const Number& b) {
  if (a.IsZero() && b.IsZero()) return 0;
  const int sign_a = a.IsZero() ? 0 : a.negative ? -1 : 1, sign_b = b.IsZero() ? 0 : b.negative ? -1 : 1;
  if (sign_a != sign_b) return sign_a < sign_b ? -1 : 1;
  int larger;  // of the magnitudes
  if (a.IsInfinite() || b.IsInfinite()) {
    larger = int{a.IsInfinite()} - int{b.IsInfinite()};
  } else {
    const Number x = Normalised(a), y = Normalised(b);
    if (x.exponent != y.exponent) {
      larger = x.exponent < y.exponent ? -1 : 1;
    } else {
      larger = x.mantissa == y.mantissa ? 0 : x.mantissa < y.mantissa ? -1 : 1;
    }
  }
  return larger * sign_a;
}

}  // namespace cuplex::corpus
