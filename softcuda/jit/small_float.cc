#include "softcuda/jit/small_float.h"

#include <algorithm>
#include <cmath>

namespace cuplex::softcuda {
namespace {

struct Format {
  int exponent = 0, fraction = 0;  // bits
  uint32_t largest = 0;            // code of the largest number
  uint32_t nan = 0;                // what becomes of a NaN
};

constexpr Format kFormats[] = {
    {4, 3, 0x7e, 0x7f},  // e4m3: one code of each sign is a NaN, none infinity
    {5, 2, 0x7b, 0x7f},  // e5m2: both as IEEE has them
    {3, 2, 0x1f, 0x1f},  // e3m2, e2m3, e2m1: neither
    {2, 3, 0x1f, 0x1f}, {2, 1, 0x07, 0x07},
};

const Format& FormatOf(uint32_t kind) { return kFormats[std::min<uint32_t>(kind, 4)]; }

}  // namespace

uint32_t EncodeSmallFloat(float value, uint32_t kind) {
  const Format& f = FormatOf(kind);
  if (std::isnan(value)) return f.nan;
  uint32_t sign = std::signbit(value) ? 1u << (f.exponent + f.fraction) : 0;
  double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude == 0) return sign;
  int bias = (1 << (f.exponent - 1)) - 1;
  if (magnitude >= std::ldexp(1.0, (1 << f.exponent) - bias)) return sign | f.largest;
  int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  // In steps of the last place; a carry into the exponent is what the addition makes of it.
  auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, f.fraction - exponent)));
  uint32_t code = (static_cast<uint32_t>(exponent + bias - 1) << f.fraction) + steps;
  return sign | std::min(code, f.largest);
}

float DecodeSmallFloat(uint32_t code, uint32_t kind) {
  const Format& f = FormatOf(kind);
  bool negative = code >> (f.exponent + f.fraction) & 1;
  uint32_t magnitude = code & ((1u << (f.exponent + f.fraction)) - 1);
  float v = 0;
  if (magnitude > f.largest) {
    v = magnitude < f.nan && magnitude == f.largest + 1 ? INFINITY : NAN;
  } else {
    int bias = (1 << (f.exponent - 1)) - 1;
    auto exponent = static_cast<int>(magnitude >> f.fraction);
    uint32_t fraction = magnitude & ((1u << f.fraction) - 1);
    if (exponent) fraction |= 1u << f.fraction;
    v = std::ldexp(static_cast<float>(fraction), std::max(exponent, 1) - bias - f.fraction);
  }
  return negative ? -v : v;
}

}  // namespace cuplex::softcuda
