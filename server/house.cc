#include "server/house.h"

#include <algorithm>
#include <utility>

namespace cuplex::server {

House::House(const DriverTable& cu, const Clock& clock, std::unique_ptr<Jobs> jobs,
             std::vector<Device> devices, metrics::Metrics& metrics)
    : cu(cu),
      clock(clock),
      devices(std::move(devices)),
      metrics(metrics),
      current(cu),
      bounds(this->devices.size()),
      divided(this->devices.size()),
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

unsigned House::MultiprocessorsOf(const Tenant& tenant, size_t device) const {
  auto at = divided[device].find(tenant.name);
  return at == divided[device].end() ? 0 : at->second;
}

QueueBounds House::BoundsOf(const Part& part) const {
  QueueBounds its = bounds[part.device];
  auto at = divided[part.device].find(part.tenant);
  if (at != divided[part.device].end()) its.multiprocessors = at->second;
  its.alone_slice_ns = UINT64_MAX;  // nobody can come
  return its;
}

DeviceQueue& House::QueueFor(const Tenant& tenant, size_t device) {
  if (!MultiprocessorsOf(tenant, device)) return *queues[device];
  for (Part& part : parts_)
    if (part.device == device && part.tenant == tenant.name) return *part.queue;
  auto spare =
      std::ranges::find_if(parts_, [&](const Part& p) { return p.device == device && p.tenant.empty(); });
  if (spare == parts_.end()) {
    queues.push_back(std::make_unique<DeviceQueue>(clock, current));
    parts_.push_back({device, {}, queues.back().get()});
    spare = parts_.end() - 1;
  }
  spare->tenant = tenant.name;
  spare->queue->SetBounds(BoundsOf(*spare));
  return *spare->queue;
}

void House::SetBounds() {
  for (size_t d = 0; d < devices.size(); ++d) queues[d]->SetBounds(bounds[d]);
  for (const Part& part : parts_)
    if (!part.tenant.empty()) part.queue->SetBounds(BoundsOf(part));
}

size_t House::Queued(const Tenant& tenant, size_t device) const {
  size_t queued = queues[device]->Queued(tenant);
  for (const Part& part : parts_)
    if (part.device == device) queued += part.queue->Queued(tenant);
  return queued;
}

void House::MayForget(Tenant& tenant) {
  if (!tenant.leaving || !tenant.sessions.empty()) return;
  for (auto& queue : queues) queue->Remove(tenant);
  for (Part& part : parts_)
    if (part.tenant == tenant.name) part.tenant.clear();
  ledger.Remove(tenant);
}

}  // namespace cuplex::server
