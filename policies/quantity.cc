#include "policies/quantity.h"

#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace cuplex::policies {
namespace {

constexpr std::array<std::pair<std::string_view, int>, 4> kUnits = {
    {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}}};

}  // namespace

std::optional<uint64_t> ParseSize(std::string_view text) {
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  for (auto [name, shift] : kUnits) {
    if (unit != name) continue;
    if (number > (UINT64_MAX >> shift)) return std::nullopt;
    return number << shift;
  }
  return std::nullopt;
}

std::string PrintSize(uint64_t bytes) {
  for (auto [name, shift] : kUnits) {
    if (bytes != 0 && bytes % (uint64_t{1} << shift) == 0) return fmt::format("{}{}", bytes >> shift, name);
  }
  return bytes == 0 ? "0KiB" : fmt::format("{} bytes", bytes);
}

namespace {

/// A whole number, and what follows it after at most one space.
std::optional<std::pair<uint64_t, std::string_view>> NumberAndUnit(std::string_view text) {
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  return std::pair(number, unit);
}

constexpr std::pair<std::string_view, uint64_t> kTimeUnits[] = {{"h", 3'600'000'000'000},
                                                                {"min", 60'000'000'000},
                                                                {"s", 1'000'000'000},
                                                                {"ms", 1'000'000},
                                                                {"us", 1'000}};

}  // namespace

std::optional<uint32_t> ParsePercent(std::string_view text) {
  auto read = NumberAndUnit(text);
  if (!read || read->second != "%" || read->first < 1 || read->first > 100) return std::nullopt;
  return static_cast<uint32_t>(read->first);
}

std::optional<uint64_t> ParseDuration(std::string_view text) {
  auto read = NumberAndUnit(text);
  if (!read) return std::nullopt;
  for (auto [name, ns] : kTimeUnits) {
    if (read->second != name) continue;
    if (read->first > INT64_MAX / ns) return std::nullopt;
    return read->first * ns;
  }
  return std::nullopt;
}

std::string PrintDuration(uint64_t ns) {
  for (auto [name, unit] : kTimeUnits) {
    if (ns != 0 && ns % unit == 0) return fmt::format("{}{}", ns / unit, name);
  }
  return ns == 0 ? "0s" : fmt::format("{} ns", ns);
}

std::optional<int64_t> ParseInteger(std::string_view text) {
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<uint32_t> ParsePermissions(std::string_view text) {
  if (text.size() == 4 && text[0] == '0') text.remove_prefix(1);
  uint32_t mode = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (text.size() != 3 || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return mode;
}

}  // namespace cuplex::policies
