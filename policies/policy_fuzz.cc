// Any bytes as a policy file: read or refused, and what is taken keeps the promises of policies/policy.h.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>

#include "policies/policy.h"
#include "policies/policy_table.h"

namespace cuplex::policies {
namespace {

class FixedAccounts final : public Accounts {
 public:
  std::optional<uint32_t> Uid(const std::string& user) const override { return Known(user); }
  std::optional<uint32_t> Gid(const std::string& group) const override { return Known(group); }

 private:
  static std::optional<uint32_t> Known(const std::string& name) {
    return name.size() % 2 ? std::optional(static_cast<uint32_t>(name.size())) : std::nullopt;
  }
};

void Check(bool promise) {
  if (!promise) std::abort();
}

void CheckTerms(const DeviceTerms& terms) {
  Check(terms.memory_bytes == kAllMemory ||
        (terms.memory_bytes >= (uint64_t{1} << 20) && terms.memory_bytes <= (uint64_t{1} << 50)));
  Check(terms.time.weight >= 1 && terms.time.weight <= 10000);
  Check(terms.time.priority >= -10 && terms.time.priority <= 10);
  Check(terms.time.guarantee >= 0 && terms.time.guarantee <= terms.time.limit + 1e-9 &&
        terms.time.limit <= 1);
  Check(terms.part.parts <= terms.part.of && terms.part.of <= kMostParts);
}

/// On each device guarantees and parts are at most all there is.
void CheckDevice(const Policy& policy, const Device& device) {
  double guarantees = 0;
  uint32_t parts = 0, of = 0;
  for (const Tenant& tenant : policy.tenants) {
    if (!tenant.Sees(device.name)) continue;
    const DeviceTerms& terms = tenant.On([&](const DeviceName& name) { return name == device.name; });
    Check(bool(terms.part) == (device.mode == DeviceMode::kPartition));
    guarantees += terms.time.guarantee;
    parts += terms.part.parts;
    of = terms.part.of;
  }
  Check(guarantees <= 1 + 1e-6 && parts <= of);
}

void CheckPolicy(const Policy& policy) {
  std::set<std::string> names, paths = {policy.server.socket};
  Check(!policy.tenants.empty());
  for (const Tenant& tenant : policy.tenants) {
    Check(!tenant.name.empty() && tenant.name.size() <= 63 && names.insert(tenant.name).second);
    Check(tenant.socket.path.starts_with('/') && tenant.socket.path.size() <= 107);
    Check(paths.insert(tenant.socket.path).second && tenant.socket.mode <= 0777);
    CheckTerms(tenant.terms);
    Check(tenant.on.size() == tenant.devices.size());
    for (const auto& [device, terms] : tenant.on) {
      Check(tenant.Sees(device));
      CheckTerms(terms);
    }
    for (const Match& match : tenant.matches) {
      Check(!match.uids.empty() || !match.gids.empty() || !match.cgroups.empty());
    }
  }
  for (const Device& device : policy.devices) CheckDevice(policy, device);
  Check(!PrintPolicy(policy).empty());
  Check(!policy.default_tenant || policy.Find(*policy.default_tenant) != nullptr);
}

}  // namespace
}  // namespace cuplex::policies

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cuplex::policies;
  auto policy = ParsePolicy({reinterpret_cast<const char*>(data), size}, "p", FixedAccounts());
  if (policy.ok()) {
    CheckPolicy(*policy);
  } else {
    Check(policy.error().sentence.starts_with("p:"));
  }
  return 0;
}
