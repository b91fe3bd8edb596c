#include "policies/policy_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "policies/presets.h"
#include "policies/quantity.h"

namespace cuplex::policies {
namespace {

constexpr std::string_view kRow = "  {:<24} {:>10} {:>10} {:>8} {:>8} {:>9} {:>8}\n";

std::string Line(const Tenant& tenant, const DeviceTerms& terms, bool partition) {
  const Terms& time = terms.time;
  return fmt::format(
      fmt::runtime(kRow), tenant.name,
      terms.memory_bytes == kAllMemory ? "all" : PrintSize(terms.memory_bytes),
      time.guarantee > 0 ? PrintShare(time.guarantee) : "-", time.limit < 1 ? PrintShare(time.limit) : "-",
      partition ? "-" : fmt::format("{:g}", time.weight), partition ? "-" : fmt::format("{}", time.priority),
      terms.part ? PrintPart(terms.part) : "-");
}

template <typename Sees, typename Is>
std::string Lines(const Policy& policy, bool partition, Sees sees, Is is) {
  std::string out =
      fmt::format(fmt::runtime(kRow), "tenant", "memory", "guarantee", "limit", "weight", "priority", "part");
  for (const Tenant& tenant : policy.tenants)
    if (sees(tenant)) out += Line(tenant, tenant.On(is), partition);
  return out;
}

}  // namespace

std::string PrintPolicy(const Policy& policy) {
  std::string out;
  std::vector<DeviceName> others;  // that tenants name and the file does not describe
  for (const Tenant& tenant : policy.tenants)
    for (const DeviceName& name : tenant.devices)
      if (policy.devices.empty() && std::find(others.begin(), others.end(), name) == others.end())
        others.push_back(name);
  const auto paragraph = [&](const DeviceName& name, DeviceMode mode) {
    out += Lines(
        policy, mode == DeviceMode::kPartition, [&](const Tenant& tenant) { return tenant.Sees(name); },
        [&](const DeviceName& device) { return device == name; });
  };
  for (const Device& device : policy.devices) {
    out += fmt::format("device {}: {}", PrintDeviceName(device.name), PrintMode(device.mode));
    if (device.mode != DeviceMode::kPartition)
      out += fmt::format(", slices of {}{}",
                         device.min_slice_ns ? PrintDuration(device.min_slice_ns) + " to " : "",
                         PrintDuration(device.max_slice_ns));
    if (!device.preset.empty()) out += fmt::format(", preset {}", device.preset);
    out += "\n";
    paragraph(device.name, device.mode);
  }
  for (const DeviceName& name : others) {
    out += fmt::format("device {}: timeslice, slices of {}\n", PrintDeviceName(name),
                       PrintDuration(kDefaultMaxSliceNs));
    paragraph(name, DeviceMode::kTimeslice);
  }
  if (!policy.devices.empty()) return out;
  out += fmt::format("{}: timeslice, slices of {}\n", others.empty() ? "every device" : "every other device",
                     PrintDuration(kDefaultMaxSliceNs));
  return out + Lines(
                   policy, false, [](const Tenant& tenant) { return tenant.devices.empty(); },
                   [](const DeviceName&) { return false; });
}

}  // namespace cuplex::policies
