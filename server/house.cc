#include "server/house.h"

#include <utility>

namespace cuplex::server {

House::House(const DriverTable& cu, const Clock& clock, std::unique_ptr<Jobs> jobs,
             std::vector<Device> devices, metrics::Metrics& metrics)
    : cu(cu),
      clock(clock),
      devices(std::move(devices)),
      metrics(metrics),
      current(cu),
      zero_in(this->devices.size()),
      jobs(std::move(jobs)) {
  for (size_t i = 0; i < this->devices.size(); ++i)
    queues.push_back(std::make_unique<DeviceQueue>(clock, current));
}

Result<Tenant*> House::TenantFor(const policies::Tenant& terms) {
  if (Tenant* known = ledger.Find(terms.name)) return known;
  std::vector<size_t> sees;
  for (size_t d = 0; d < devices.size(); ++d) {
    bool seen = terms.devices.empty();
    for (const policies::DeviceName& name : terms.devices) seen |= devices[d].Is(name);
    if (seen) sees.push_back(d);
  }
  TRY(auto counters, metrics.Tenant(terms.name, sees));
  return &ledger.Add(std::make_unique<Tenant>(ledger.NextId(), terms, devices, std::move(counters)));
}

void House::MayForget(Tenant& tenant) {
  if (!tenant.leaving || !tenant.sessions.empty()) return;
  for (auto& queue : queues) queue->Remove(tenant);
  ledger.Remove(tenant);
}

}  // namespace cuplex::server
