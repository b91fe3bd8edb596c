#include "policies/presets.h"

#include <algorithm>

#include <fmt/format.h>

#include "policies/quantity.h"

namespace cuplex::policies {
namespace {

constexpr auto kTurns = DeviceMode::kTimeslice, kTogether = DeviceMode::kConcurrent;
constexpr uint64_t kUsual = kDefaultMaxSliceNs, kLong = 10 * kDefaultMaxSliceNs;
constexpr uint8_t kNothing = 0, kAnyShare = kNoGuarantee | kNoLimit;

// clang-format off
constexpr Preset kPresets[] = {
  //                                                                  what tenants                   memory may  also of
  // name                mode       share            equal parts            must not say        slice   be absent  tenants  instead
  // Alibaba cGPU, policies 0 to 5
  {"average",            kTurns,    Share::kEqual,   Parts::kTenantsOrSaid, kNothing,           kUsual, false,     false,   ""},
  {"preemptive",         kTurns,    Share::kFree,    Parts::kNone,          kNoWeight,          kUsual, false,     false,   "the preset weighted"},
  {"weighted",           kTurns,    Share::kFree,    Parts::kNone,          kNothing,           kUsual, false,     false,   ""},
  {"fixed",              kTurns,    Share::kOwn,     Parts::kNone,          kNothing,           kUsual, false,     true,    ""},
  {"weak",               kTurns,    Share::kFree,    Parts::kNone,          kNoWeight,          kLong,  false,     false,   "the preset weighted"},
  {"native",             kTogether, Share::kFree,    Parts::kNone,          kAnyShare | kNoWeight | kNoPriority,
                                                                                                kUsual, true,      false,   "the mode concurrent without a preset"},
  // Tencent qGPU, Volcengine mGPU
  {"best-effort",        kTurns,    Share::kFree,    Parts::kNone,          kNoGuarantee,       kUsual, false,     true,    "the preset burst-share"},
  {"fixed-share",        kTurns,    Share::kOwn,     Parts::kNone,          kNothing,           kUsual, false,     true,    ""},
  {"burst-share",        kTurns,    Share::kAtLeast, Parts::kNone,          kNothing,           kUsual, false,     true,    ""},
  // NVIDIA vGPU
  {"vgpu-best-effort",   kTurns,    Share::kFree,    Parts::kNone,          kNoGuarantee | kNoWeight,
                                                                                                kUsual, false,     false,   "the preset burst-share"},
  {"vgpu-equal-share",   kTurns,    Share::kEqual,   Parts::kTenants,       kNoWeight,          kUsual, false,     false,   "the preset weighted"},
  {"vgpu-fixed-share",   kTurns,    Share::kEqual,   Parts::kSaid,          kNoWeight,          kUsual, false,     false,   "the preset fixed-share"},
  // Kubernetes
  {"time-slicing",       kTurns,    Share::kFree,    Parts::kNone,          kNoGuarantee | kNoWeight,
                                                                                                kUsual, true,      false,   "no preset"},
};
// clang-format on

constexpr double kEpsilon = 1e-9;

std::string DeviceOf(const DeviceRules& rules) {
  return fmt::format("of the device {}", PrintDeviceName(rules.device->name));
}

/// The key of `own` that is among `refused`, as the file writes it; empty: none.
std::string_view Refused(const WrittenTerms& own, uint8_t refused) {
  if (refused & kNoGuarantee && own.guarantee) return "guarantee";
  if (refused & kNoLimit && own.limit) return "limit";
  if (refused & kNoWeight && own.weight) return "weight";
  if (refused & kNoPriority && own.priority) return "priority";
  return {};
}

/// Guarantee and limit, by the preset in force.
Status TakeShare(std::string_view tenant, const WrittenTerms& own, const Preset* preset,
                 const std::string& whose, uint32_t parts, Terms& terms) {
  terms.guarantee = own.guarantee.value_or(0);
  terms.limit = own.limit.value_or(1);
  if (!preset) return {};
  switch (preset->share) {
    case Share::kFree:
      break;
    case Share::kEqual:
      terms.guarantee = own.guarantee.value_or(1.0 / parts);
      terms.limit = own.limit.value_or(std::max(terms.guarantee, 1.0 / parts));
      if (!own.guarantee) terms.guarantee = std::min(terms.guarantee, terms.limit);
      break;
    case Share::kOwn:
      if (own.guarantee && own.limit && *own.guarantee != *own.limit)
        return Fail(
            Blame::kCaller,
            "The tenant \"{}\" has a `guarantee` of {} and a `limit` of {}, which the preset \"{}\" {} makes "
            "one share; the same for both, or one of them, was expected.",
            tenant, PrintShare(*own.guarantee), PrintShare(*own.limit), preset->name, whose);
      if (!own.guarantee && !own.limit)
        return Fail(
            Blame::kCaller,
            "The tenant \"{}\" has no share, which the preset \"{}\" {} needs; a `guarantee` or a `limit` "
            "such as 30% was expected.",
            tenant, preset->name, whose);
      terms.guarantee = terms.limit = own.guarantee ? *own.guarantee : *own.limit;
      break;
    case Share::kAtLeast:
      if (!own.guarantee)
        return Fail(
            Blame::kCaller,
            "The tenant \"{}\" has no share, which the preset \"{}\" {} needs; a `guarantee` such as 30% was "
            "expected.",
            tenant, preset->name, whose);
      break;
  }
  return {};
}

}  // namespace

std::span<const Preset> Presets() { return kPresets; }

const Preset* FindPreset(std::string_view name) {
  const auto at = std::find_if(std::begin(kPresets), std::end(kPresets),
                               [&](const Preset& preset) { return preset.name == name; });
  return at == std::end(kPresets) ? nullptr : at;
}

WrittenTerms WrittenTerms::Over(const WrittenTerms& general) const {
  WrittenTerms all = *this;
  const auto take = [](auto& to, const auto& from) {
    if (!to) to = from;
  };
  take(all.memory_bytes, general.memory_bytes);
  take(all.guarantee, general.guarantee);
  take(all.limit, general.limit);
  take(all.weight, general.weight);
  take(all.priority, general.priority);
  take(all.part, general.part);
  take(all.preset, general.preset);
  all.at_fault |= general.at_fault;
  return all;
}

Result<DeviceTerms> Expand(std::string_view tenant, const WrittenTerms& own, const DeviceRules& rules) {
  if (own.at_fault) return DeviceTerms{};  // whatever else it lacks, the file is refused
  const bool partition = rules.device && rules.device->mode == DeviceMode::kPartition;
  DeviceTerms terms;
  terms.time.weight = own.weight.value_or(kDefaultWeight);
  terms.time.priority = own.priority.value_or(0);
  if (partition) {
    // Who has multiprocessors of its own takes no turns; only a limit says something of it.
    terms.time.limit = own.limit.value_or(1);
    if (!own.part)
      return Fail(Blame::kCaller,
                  "The tenant \"{}\" has no `partition`, and the mode {} is partition; {} was expected.",
                  tenant, DeviceOf(rules), kPartForm);
    terms.part = *own.part;
  } else {
    for (const Preset* preset : {own.preset, rules.preset}) {
      if (!preset) continue;
      const std::string whose = preset == own.preset ? "of its own" : DeviceOf(rules);
      if (std::string_view key = Refused(own, preset->refuses); !key.empty())
        return Fail(
            Blame::kCaller,
            "The tenant \"{}\" says `{}`, for which the preset \"{}\" {} leaves no room; {} or no `{}` was "
            "expected.",
            tenant, key, preset->name, whose, preset->instead, key);
    }
    if (own.preset && rules.preset && own.preset != rules.preset && rules.preset->refuses & kNoLimit)
      return Fail(Blame::kCaller,
                  "The preset \"{}\" of the tenant \"{}\" and the preset \"{}\" {} contradict each other; "
                  "one of them "
                  "was expected.",
                  own.preset->name, tenant, rules.preset->name, DeviceOf(rules));
    const Preset* preset = own.preset ? own.preset : rules.preset;
    TRY(TakeShare(tenant, own, preset,
                  own.preset     ? "of its own"
                  : rules.device ? DeviceOf(rules)
                                 : "",
                  rules.parts, terms.time));
    if (terms.time.guarantee > terms.time.limit + kEpsilon)
      return Fail(
          Blame::kCaller,
          "The tenant's `guarantee` is {} and its `limit` {}; a guarantee not above the limit was expected.",
          PrintShare(terms.time.guarantee), PrintShare(terms.time.limit));
  }
  const bool may_lack = rules.preset && rules.preset->all_memory;
  const auto memory = own.memory_bytes ? own.memory_bytes : rules.memory_bytes;
  if (!memory && !may_lack)
    return Fail(Blame::kCaller, "The tenant has no `memory`, itself or by its profile; {} was expected.",
                kSizeForm);
  terms.memory_bytes = memory.value_or(kAllMemory);
  return terms;
}

std::string PrintShare(double share) { return fmt::format("{:.4g}%", share * 100); }

std::string_view PrintMode(DeviceMode mode) {
  switch (mode) {
    case DeviceMode::kTimeslice:
      return "timeslice";
    case DeviceMode::kConcurrent:
      return "concurrent";
    case DeviceMode::kPartition:
      return "partition";
  }
  return "";
}

}  // namespace cuplex::policies
