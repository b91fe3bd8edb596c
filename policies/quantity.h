// Quantities as a policy writes them: text to number and back. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cuplex::policies {

/// What ParseSize accepts, for sentences.
inline constexpr std::string_view kSizeForm =
    "a size such as 512MiB or 8GiB (a whole number of KiB, MiB, GiB or TiB)";

/// Bytes of "512MiB" or "512 MiB". Units are powers of 1024 and spelled as here; a number without a unit, a
/// fraction and the decimal MB and GB are refused, since readers differ about what they mean. nullopt also
/// above 2^64-1.
std::optional<uint64_t> ParseSize(std::string_view text);

/// The shortest text that ParseSize reads as `bytes`; "N bytes" where there is none.
std::string PrintSize(uint64_t bytes);

inline constexpr std::string_view kPercentForm = "a whole percentage such as 30%";
/// 1 to 100 of "30%" or "30 %". A bare number is refused: it might mean a part of 1.
std::optional<uint32_t> ParsePercent(std::string_view text);

inline constexpr std::string_view kDurationForm =
    "a time such as 500us, 2ms, 10s or 5min (a whole number of us, ms, s, min or h)";
/// Nanoseconds of "2ms" or "2 ms". A number without a unit is refused. nullopt also above 2^63-1.
std::optional<uint64_t> ParseDuration(std::string_view text);
/// The shortest text that ParseDuration reads as `ns`; "N ns" where there is none.
std::string PrintDuration(uint64_t ns);

/// The whole of `text` as a decimal integer with at most a leading '-'.
std::optional<int64_t> ParseInteger(std::string_view text);

/// "0640" or "640": three octal digits, after any zero.
std::optional<uint32_t> ParsePermissions(std::string_view text);

}  // namespace cuplex::policies
