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
