// Floats of 4, 6 and 8 bits, as cvt makes and reads them: e4m3 e5m2 e3m2 e2m3 e2m1. Pure; any thread.
#pragma once

#include <cstdint>

namespace cuplex::softcuda {

enum class SmallFloat : uint32_t { kE4m3, kE5m2, kE3m2, kE2m3, kE2m1 };

// `kind` is a SmallFloat; the sign is the bit above exponent and fraction.

/// To nearest even, as .satfinite has it: what is larger than the largest number becomes that, and NaN the
/// format's NaN, or, where it has none, its largest number.
uint32_t EncodeSmallFloat(float value, uint32_t kind);
float DecodeSmallFloat(uint32_t code, uint32_t kind);

}  // namespace cuplex::softcuda
