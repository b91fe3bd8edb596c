#include "softcuda/settings.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "softcuda/jit/code_cache.h"

namespace cuplex::softcuda {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// A whole number, decimal or 0x; nullopt where anything else is in the text.
std::optional<uint64_t> Number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// "4GiB", "512 MiB", "1048576": bytes.
std::optional<uint64_t> Bytes(std::string_view text) {
  size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  auto value = Number(text.substr(0, digits));
  std::string_view unit = text.substr(digits);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  int shift = unit.empty() || unit == "B" ? 0
              : unit == "KiB"             ? 10
              : unit == "MiB"             ? 20
              : unit == "GiB"             ? 30
              : unit == "TiB"             ? 40
                                          : -1;
  if (!value || shift < 0 || *value > UINT64_MAX >> shift) return std::nullopt;
  return *value << shift;
}

}  // namespace

Result<Settings> ReadSettings(const std::function<const char*(const char*)>& get, unsigned processors,
                              uint64_t ram_bytes) {
  Settings settings;
  auto whole = [&](const char* name, unsigned low, unsigned high, unsigned* out) -> Status {
    const char* text = get(name);
    if (!text || !*text) return {};
    auto value = Number(text);
    if (!value || *value < low || *value > high) {
      return Fail(Blame::kCaller, "{} is \"{}\"; a whole number from {} to {} was expected", name, text, low,
                  high);
    }
    *out = static_cast<unsigned>(*value);
    return {};
  };
  TRY(whole("SOFTCUDA_DEVICES", 1, 16, &settings.devices));
  settings.workers = std::clamp(processors, 1u, 256u);
  TRY(whole("SOFTCUDA_WORKERS", 1, 256, &settings.workers));
  settings.multiprocessors = settings.workers;
  TRY(whole("SOFTCUDA_MULTIPROCESSORS", 1, 1024, &settings.multiprocessors));

  settings.memory_bytes = std::max(ram_bytes / 2 / settings.devices / (64 * kMiB) * (64 * kMiB), 64 * kMiB);
  if (const char* text = get("SOFTCUDA_MEMORY"); text && *text) {
    auto bytes = Bytes(text);
    if (!bytes || *bytes < 2 * kMiB || *bytes > uint64_t{1} << 40 || *bytes % (2 * kMiB)) {
      return Fail(
          Blame::kCaller,
          "SOFTCUDA_MEMORY is \"{}\"; a size such as 512MiB or 8GiB, a multiple of 2MiB up to 1TiB, was "
          "expected",
          text);
    }
    settings.memory_bytes = *bytes;
  }

  if (const char* text = get("SOFTCUDA_COMPUTE_CAPABILITY"); text && *text) {
    std::string_view given = text;
    size_t dot = given.find('.');
    auto major = Number(given.substr(0, dot));
    auto minor = dot == given.npos ? std::nullopt : Number(given.substr(dot + 1));
    if (!major || !minor || *major < 5 || *major > 99 || *minor > 9) {
      return Fail(Blame::kCaller,
                  "SOFTCUDA_COMPUTE_CAPABILITY is \"{}\"; two numbers such as 9.0 or 12.1 were expected",
                  text);
    }
    settings.capability_major = static_cast<unsigned>(*major);
    settings.capability_minor = static_cast<unsigned>(*minor);
  }

  if (const char* text = get("SOFTCUDA_WINDOW_BASE"); text && *text) {
    auto base = Number(text);
    if (!base || !*base || *base % (2 * kMiB) || *base >= uint64_t{1} << 47) {
      return Fail(
          Blame::kCaller,
          "SOFTCUDA_WINDOW_BASE is \"{}\"; an address below 0x800000000000 that 2MiB divides, such as "
          "0x200000000000, was expected",
          text);
    }
    settings.window_base = *base;
  }

  const char* folder = get("SOFTCUDA_CACHE_DIR");
  settings.cache_folder_given = folder && *folder;
  settings.cache_folder = CodeCache::DefaultFolder(folder, get("XDG_CACHE_HOME"), get("HOME"));
  if (!settings.cache_folder.empty() && settings.cache_folder[0] != '/') {
    return Fail(Blame::kCaller, "SOFTCUDA_CACHE_DIR is \"{}\"; an absolute path, or \"off\", was expected",
                folder);
  }
  if (const char* text = get("SOFTCUDA_CACHE_SIZE"); text && *text) {
    auto bytes = Bytes(text);
    if (!bytes || *bytes < kMiB || *bytes > uint64_t{1} << 40) {
      return Fail(Blame::kCaller,
                  "SOFTCUDA_CACHE_SIZE is \"{}\"; a size such as 512MiB, from 1MiB to 1TiB, was expected",
                  text);
    }
    settings.cache_bytes = *bytes;
  }
  return settings;
}

}  // namespace cuplex::softcuda
