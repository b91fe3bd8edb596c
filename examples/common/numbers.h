// The examples' inputs: pseudo-random, the same on every machine and every run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace cuplex::examples {

class Numbers {
 public:
  explicit Numbers(std::uint32_t seed) : engine_(seed) {}

  std::uint32_t Bits() { return engine_(); }
  /// From 0 to `limit` - 1; the slight preference for small values does not matter here.
  std::uint32_t Below(std::uint32_t limit) { return engine_() % limit; }
  /// In [low, high), in steps of 2^-24 of the range.
  float Between(float low, float high) {
    return low + (high - low) * (static_cast<float>(engine_() >> 8) * 0x1p-24f);
  }
  /// A multiple of 1/8 from -1 to 1: sums of some thousand products of these are exact in a float.
  float Eighths() { return (static_cast<float>(Below(17)) - 8.0f) / 8.0f; }

 private:
  std::mt19937 engine_;
};

}  // namespace cuplex::examples
