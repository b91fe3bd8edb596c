// Any bytes as a policy file: read or refused, and what is taken keeps the promises of policies/policy.h.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>

#include "policies/policy.h"

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

void CheckPolicy(const Policy& policy) {
  std::set<std::string> names, paths = {policy.server.socket};
  Check(!policy.tenants.empty());
  for (const Tenant& tenant : policy.tenants) {
    Check(!tenant.name.empty() && tenant.name.size() <= 63 && names.insert(tenant.name).second);
    Check(tenant.socket.path.starts_with('/') && tenant.socket.path.size() <= 107);
    Check(paths.insert(tenant.socket.path).second && tenant.socket.mode <= 0777);
    Check(tenant.memory_bytes >= (uint64_t{1} << 20) && tenant.memory_bytes <= (uint64_t{1} << 50));
    Check(tenant.weight >= 1 && tenant.weight <= 10000);
    Check(tenant.priority >= -10 && tenant.priority <= 10);
    for (const Match& match : tenant.matches) {
      Check(!match.uids.empty() || !match.gids.empty() || !match.cgroups.empty());
    }
  }
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
