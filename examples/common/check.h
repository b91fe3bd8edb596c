// Comparing what the device gave with what the CPU expects, and saying so. Pure but for Report, which prints.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace cuplex::examples {

/// The first element that is not as expected, in words.
struct Difference {
  std::size_t index;
  std::string got;
  std::string expected;
};

/// `value` with all the digits that tell it from its neighbours.
template <typename T>
std::string Digits(T value) {
  std::ostringstream text;
  text.precision(sizeof(T) > 4 ? 17 : 9);
  text << +value;
  return text.str();
}

/// Equal, element by element. A size that differs is a difference at the end of the shorter one.
template <typename T>
std::optional<Difference> FirstDifference(const std::vector<T>& got, const std::vector<T>& expected) {
  for (std::size_t i = 0; i < got.size() && i < expected.size(); ++i) {
    if (!(got[i] == expected[i])) return Difference{i, Digits(got[i]), Digits(expected[i])};
  }
  if (got.size() != expected.size()) {
    return Difference{std::min(got.size(), expected.size()), Digits(got.size()) + " elements",
                      Digits(expected.size()) + " elements"};
  }
  return std::nullopt;
}

/// Within `absolute` + `relative` * |expected|, element by element. A NaN is never within.
template <typename T, typename U>
std::optional<Difference> FirstFar(const std::vector<T>& got, const std::vector<U>& expected, double relative,
                                   double absolute) {
  for (std::size_t i = 0; i < got.size() && i < expected.size(); ++i) {
    const double distance = std::abs(double(got[i]) - double(expected[i]));
    if (!(distance <= absolute + relative * std::abs(double(expected[i])))) {
      return Difference{i, Digits(got[i]), Digits(expected[i])};
    }
  }
  if (got.size() != expected.size()) {
    return Difference{std::min(got.size(), expected.size()), Digits(got.size()) + " elements",
                      Digits(expected.size()) + " elements"};
  }
  return std::nullopt;
}

/// FNV-1a over 64 bits: it tells two outputs apart, and guards against nothing worse.
std::uint64_t Checksum(std::span<const std::byte> bytes);

/// Prints the machine line (see program.h) and gives whether there was no difference. `what` names the array.
bool Report(const char* name, const char* what, const std::optional<Difference>& difference,
            std::span<const std::byte> bytes, std::size_t elements);

template <typename T>
bool Report(const char* name, const char* what, const std::optional<Difference>& difference,
            const std::vector<T>& result) {
  return Report(name, what, difference, std::as_bytes(std::span<const T>(result)), result.size());
}

}  // namespace cuplex::examples
