// Floating-point arithmetic in integers: the reference that the corpus holds results against. Every value is
// an exact mantissa times a power of two; rounding happens once, where it is packed. Uses no floating-point
// unit. Pure; any thread.
#pragma once

#include <cstdint>

namespace cuplex::corpus {

using Wide = unsigned __int128;

/// A binary format: sign, exponent, fraction.
struct Format {
  int fraction_bits = 23;
  int exponent_bits = 8;
  bool infinities = true;  // without: the top exponent is for numbers, and all ones alone is NaN

  int Bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int Bits() const { return 1 + exponent_bits + fraction_bits; }
};
inline constexpr Format kF16{10, 5}, kBf16{7, 8}, kTf32{10, 8}, kF32{23, 8}, kF64{52, 11}, kE5m2{2, 5},
    kE4m3{3, 4, false};

enum class Round { kNearestEven, kZero, kDown, kUp, kNearestAway };

/// mantissa * 2^exponent, and a little more where `sticky`.
struct Number {
  enum class Kind { kFinite, kInfinite, kNan } kind = Kind::kFinite;
  bool negative = false;
  int exponent = 0;
  Wide mantissa = 0;
  bool sticky = false;

  bool IsZero() const { return kind == Kind::kFinite && !mantissa && !sticky; }
  bool IsNan() const { return kind == Kind::kNan; }
  bool IsInfinite() const { return kind == Kind::kInfinite; }
};

struct Packing {
  Round round = Round::kNearestEven;
  bool flush = false;     // subnormal results become zeros of their sign
  bool saturate = false;  // to [0, 1], NaN to 0
  bool finite = false;    // what is too large becomes the largest number
  bool relu = false;      // negatives become 0
};

Number Unpack(uint64_t bits, Format format, bool flush = false);
/// NaN becomes the format's canonical one: sign 0, all other bits 1.
uint64_t Pack(const Number& number, Format format, Packing packing = {});

Number Negated(Number number);
/// Exact but for far smaller addends, which become sticky. `round` decides the sign of a zero alone.
Number Add(const Number& a, const Number& b, Round round = Round::kNearestEven);
Number Multiply(const Number& a, const Number& b);
Number Divide(const Number& a, const Number& b);
Number SquareRoot(const Number& a);
Number FromInteger(__int128 value);

/// To an integer in floating point, by `round`.
Number ToIntegral(const Number& number, Round round);
/// To an integer of `bits` bits, out-of-range values to the nearest one, NaN to 0.
uint64_t ToInteger(const Number& number, Round round, int bits, bool is_signed);

/// -1, 0, 1; NaNs are the caller's business.
int Compare(const Number& a, const Number& b);

}  // namespace cuplex::corpus
