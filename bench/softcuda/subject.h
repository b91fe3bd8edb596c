// What is measured: a kernel as a CUDA programmer writes it, and the same algorithm in plain C++ for one
// thread.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "bench/softcuda/device.h"

namespace cuplex::bench {

/// A subject with its inputs, on both sides.
class Case {
 public:
  virtual ~Case() = default;
  /// Puts the kernel's launches into the stream, from the inputs to the whole result; may be called again and
  /// again.
  virtual void Launch() = 0;
  /// The same result, on this thread.
  virtual void Native() = 0;
  /// After one of each: what differs, in words.
  virtual std::optional<std::string> Compare() = 0;
};

struct Subject {
  const char* name;
  const char* ptx;
  bool wide;  // every launch that matters has blocks enough for several workers
  std::unique_ptr<Case> (*make)(const Module& module);
};

template <typename T>
std::unique_ptr<Case> Make(const Module& module) {
  return std::make_unique<T>(module);
}

/// All of them, in the order in which they are reported.
std::span<const Subject* const> Subjects();

/// The inputs: pseudo-random, the same on every machine and in every run.
inline std::vector<std::uint32_t> Words(std::size_t count, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<std::uint32_t> words(count);
  for (std::uint32_t& word : words) word = engine();
  return words;
}

/// In [low, high).
inline std::vector<float> Floats(std::size_t count, std::uint32_t seed, float low = -1, float high = 1) {
  std::mt19937 engine(seed);
  std::vector<float> floats(count);
  for (float& f : floats) f = low + (high - low) * (static_cast<float>(engine() >> 8) * 0x1p-24f);
  return floats;
}

inline std::string Differs(std::size_t at, const std::string& got, const std::string& expected) {
  return "element " + std::to_string(at) + " is " + got + ", " + expected + " was expected";
}

template <typename T>
std::optional<std::string> Unequal(const std::vector<T>& got, const std::vector<T>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (got.at(i) != expected[i]) return Differs(i, std::to_string(got[i]), std::to_string(expected[i]));
  }
  return std::nullopt;
}

/// Farther than `tolerance` * (1 + |expected|). A NaN is always far.
inline std::optional<std::string> Far(const std::vector<float>& got, const std::vector<float>& expected,
                                      float tolerance) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!(std::abs(got.at(i) - expected[i]) <= tolerance * (1 + std::abs(expected[i])))) {
      return Differs(i, std::to_string(got[i]), std::to_string(expected[i]));
    }
  }
  return std::nullopt;
}

}  // namespace cuplex::bench
