#include "policies/resolve.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace cuplex::policies {
namespace {

constexpr double kAll = 1 + 1e-9;  // of a device's time, where thirds are added up

class Resolver {
 public:
  Resolver(std::vector<Draft>& drafts, const std::vector<DescribedDevice>& described, Policy& policy,
           Faults& faults)
      : drafts_(drafts), described_(described), policy_(policy), faults_(faults) {}

  void Resolve(Mark tenants_at) {
    for (Draft& draft : drafts_) {
      if (draft.devices.empty())
        for (const Device& device : policy_.devices) draft.devices.push_back({device.name, {}, draft.at});
      for (const Seen& seen : draft.devices) draft.tenant.devices.push_back(seen.name);
    }
    for (Draft& draft : drafts_) ResolveTenant(draft);
    for (Draft& draft : drafts_) policy_.tenants.push_back(std::move(draft.tenant));
    CheckGuarantees(tenants_at);
    CheckPartitions(tenants_at);
  }

 private:
  DeviceRules RulesOf(const DeviceName& name) const {
    DeviceRules rules;
    for (size_t d = 0; d < policy_.devices.size(); ++d) {
      if (policy_.devices[d].name != name) continue;
      const DescribedDevice& described = described_[d];
      const auto tenants = std::count_if(drafts_.begin(), drafts_.end(),
                                         [&](const Draft& draft) { return draft.tenant.Sees(name); });
      rules = {&policy_.devices[d], described.preset,
               described.shares.value_or(static_cast<uint32_t>(std::max<std::ptrdiff_t>(1, tenants))),
               described.memory_bytes};
    }
    return rules;
  }

  void ResolveTenant(Draft& draft) {
    Tenant& tenant = draft.tenant;
    bool may_part = draft.devices.empty() && !draft.terms.part;
    std::set<std::string> told;
    const auto expand = [&](const WrittenTerms& terms, const DeviceRules& rules, Mark at) {
      auto expanded = Expand(tenant.name, terms, rules);
      if (!expanded.ok() && told.insert(expanded.error().sentence).second)
        faults_.Add(at, expanded.error().sentence);
      return expanded.ok() ? *expanded : DeviceTerms{};
    };
    if (draft.devices.empty()) tenant.terms = expand(draft.terms, {}, draft.at);
    for (const Seen& seen : draft.devices) {
      const DeviceRules rules = RulesOf(seen.name);
      const bool partition = rules.device && rules.device->mode == DeviceMode::kPartition;
      may_part |= partition || !draft.terms.part;
      if (seen.terms.part && !partition)
        faults_.Add(
            seen.at,
            fmt::format("The tenant \"{}\" has the `partition` {} of the device {}, whose mode is {}; "
                        "the mode partition was expected.",
                        tenant.name, PrintPart(*seen.terms.part), PrintDeviceName(seen.name),
                        PrintMode(rules.device ? rules.device->mode : DeviceMode::kTimeslice)));
      if (partition && (seen.terms.guarantee || seen.terms.weight || seen.terms.priority))
        faults_.Add(seen.at,
                    fmt::format("The tenant \"{}\" has a `{}` of the device {}, whose mode is partition and "
                                "which it has a part of all the time; none was expected.",
                                tenant.name,
                                seen.terms.guarantee ? "guarantee"
                                : seen.terms.weight  ? "weight"
                                                     : "priority",
                                PrintDeviceName(seen.name)));
      tenant.on.emplace_back(seen.name, expand(seen.terms.Over(draft.terms), rules, seen.at));
    }
    if (!may_part)
      faults_.Add(
          draft.at,
          fmt::format("The tenant \"{}\" has the `partition` {} and sees no device in mode partition; "
                      "one under `devices` was expected.",
                      tenant.name, PrintPart(*draft.terms.part)));
  }

  std::set<DeviceName> NamedDevices() const {
    std::set<DeviceName> names;
    for (const Device& device : policy_.devices) names.insert(device.name);
    for (const Tenant& tenant : policy_.tenants) names.insert(tenant.devices.begin(), tenant.devices.end());
    if (names.empty()) names.insert(0);
    return names;
  }

  /// A device cannot promise more than there is of its time. Tenants that name devices differently, or see
  /// all of them, count on each that they may see.
  void CheckGuarantees(Mark at) {
    for (const DeviceName& name : NamedDevices()) {
      double sum = 0;
      std::string terms;
      for (const Tenant& tenant : policy_.tenants) {
        const double guarantee =
            tenant.On([&](const DeviceName& device) { return device == name; }).time.guarantee;
        if (guarantee == 0 || !tenant.Sees(name)) continue;
        sum += guarantee;
        terms += fmt::format("{}{} {}", terms.empty() ? "" : ", ", tenant.name, PrintShare(guarantee));
      }
      if (sum <= kAll) continue;
      faults_.Add(
          at, fmt::format("The guarantees on the device {} are {} together ({}); at most 100% was expected.",
                          PrintDeviceName(name), PrintShare(sum), terms));
      return;
    }
  }

  void CheckPartitions(Mark at) {
    for (const Device& device : policy_.devices) {
      if (device.mode != DeviceMode::kPartition) continue;
      std::vector<PartitionTenant> tenants;
      for (const Tenant& tenant : policy_.tenants) {
        const Part part = tenant.On([&](const DeviceName& name) { return name == device.name; }).part;
        if (part) tenants.push_back({tenant.name, part});
      }
      if (Status status = CheckParts(tenants); !status.ok())
        faults_.Add(at, fmt::format("The device {} cannot be divided so. {}", PrintDeviceName(device.name),
                                    status.error().sentence));
    }
  }

  std::vector<Draft>& drafts_;
  const std::vector<DescribedDevice>& described_;
  Policy& policy_;
  Faults& faults_;
};

}  // namespace

void ResolveTerms(std::vector<Draft>& drafts, const std::vector<DescribedDevice>& described, Mark tenants_at,
                  Policy& policy, Faults& faults) {
  Resolver(drafts, described, policy, faults).Resolve(tenants_at);
}

}  // namespace cuplex::policies
