// Presets: names that users know from other systems, each a way of writing mode, guarantee, limit, weight and
// priority; and what terms come of what a file says. Pure; any thread. docs/policies.md explains each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "policies/policy.h"

namespace cuplex::policies {

/// What a preset makes of guarantee and limit.
enum class Share : uint8_t {
  kFree,     // as the tenant says; none unless it does
  kEqual,    // one of N equal parts, as guarantee and as limit
  kOwn,      // the tenant's own, as guarantee and as limit
  kAtLeast,  // the tenant's own, as guarantee
};

/// How many equal parts there are.
enum class Parts : uint8_t {
  kNone,
  kTenants,        // as many as tenants of the file see the device
  kTenantsOrSaid,  // the same, unless the device says `shares`
  kSaid,           // the device must say `shares`
};

/// Keys that a preset leaves no room for, as bits.
inline constexpr uint8_t kNoGuarantee = 1, kNoLimit = 2, kNoWeight = 4, kNoPriority = 8;

struct Preset {
  std::string_view name;
  DeviceMode mode;
  Share share;
  Parts parts;
  uint8_t refuses;           // of the tenants' keys
  uint64_t max_slice_ns;     // unless the device says it
  bool all_memory;           // for tenants that say nothing of it
  bool of_tenants;           // a tenant may name it too, not only a device
  std::string_view instead;  // what does leave room for a refused key
};

/// All there are, in the order of the documentation.
std::span<const Preset> Presets();
/// nullptr where there is none of this name.
const Preset* FindPreset(std::string_view name);

/// Terms as a file writes them; what it does not say is absent. The more special goes before the more
/// general.
struct WrittenTerms {
  std::optional<uint64_t> memory_bytes;
  std::optional<double> guarantee;
  std::optional<double> limit;
  std::optional<uint32_t> weight;
  std::optional<int> priority;
  std::optional<Part> part;
  const Preset* preset = nullptr;
  bool at_fault = false;  // something of it could not be read

  /// What this does not say is as `general` says.
  WrittenTerms Over(const WrittenTerms& general) const;
};

/// A device as the file describes it, for Expand.
struct DeviceRules {
  const Device* device = nullptr;  // nullptr: one that the file does not describe
  const Preset* preset = nullptr;
  uint32_t parts = 0;                    // of a preset that needs them
  std::optional<uint64_t> memory_bytes;  // for tenants that say nothing of it
};

/// What a tenant has of a device: its own terms (the tenant's own preset in them) on top of the device's
/// preset.
/// Error (Blame::kCaller), naming the two that contradict each other, or what is missing.
Result<DeviceTerms> Expand(std::string_view tenant, const WrittenTerms& own, const DeviceRules& rules);

/// "33.33%".
std::string PrintShare(double share);
std::string_view PrintMode(DeviceMode mode);

}  // namespace cuplex::policies
