// f16 and bf16 as bits, to and from float. Plain arithmetic that compilers vectorise; any thread.
#pragma once

#include <bit>
#include <cstdint>

namespace cuplex::softcuda {

inline float FloatFromHalf(uint16_t h) {
  uint32_t bits = static_cast<uint32_t>(h & 0x7fff) << 13;
  auto scaled = std::bit_cast<uint32_t>(std::bit_cast<float>(bits) * 0x1p112f);
  if (bits >= 0x0f800000) scaled |= 0x7f800000;  // infinities and NaNs
  return std::bit_cast<float>(scaled | static_cast<uint32_t>(h & 0x8000) << 16);
}

/// To nearest even.
inline uint16_t HalfFromFloat(float f) {
  auto bits = std::bit_cast<uint32_t>(f);
  uint32_t sign = bits >> 16 & 0x8000;
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) return 0x7fff;
  if (bits >= 0x47800000) return static_cast<uint16_t>(sign | 0x7c00);
  if (bits < 0x38800000) {  // subnormal: the last place of 0.5 is that of the smallest half
    float shifted = std::bit_cast<float>(bits) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f)));
  }
  bits += 0xc8000fff + (bits >> 13 & 1);
  return static_cast<uint16_t>(sign | bits >> 13);
}

inline float FloatFromBrain(uint16_t b) { return std::bit_cast<float>(static_cast<uint32_t>(b) << 16); }

/// To nearest even.
inline uint16_t BrainFromFloat(float f) {
  auto bits = std::bit_cast<uint32_t>(f);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace cuplex::softcuda
