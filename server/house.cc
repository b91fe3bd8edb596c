#include "server/house.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "server/context.h"

namespace cuplex::server {

House::House(const DriverTable& cu, const Clock& clock, std::unique_ptr<Jobs> jobs,
             std::vector<Device> devices, metrics::Metrics& metrics)
    : cu(cu),
      clock(clock),
      devices(std::move(devices)),
      metrics(metrics),
      current(cu),
      bounds(this->devices.size()),
      divisions(this->devices.size()),
      zero_in(this->devices.size()),
      jobs(std::move(jobs)),
      confined_(this->devices.size()) {
  for (size_t i = 0; i < this->devices.size(); ++i)
    queues.push_back(std::make_unique<DeviceQueue>(clock, current, &load_record));
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
  const policies::Partition::Place* place = divisions[device].Find(tenant.name);
  return place && !place->whole ? place->multiprocessors : 0;
}

Status House::TryConfining(size_t d) {
  const Device& device = devices[d];
  std::string why = "says that it cannot do it";
  if (device.confines) {
    if (confined_[d]) return {};
    auto made = Context::Make(cu, clock, device.handle, device.multiprocessors.least);
    current.Lost();
    if (made.ok()) {
      TRY(Context::Unmake(cu, made->driver));
      confined_[d] = true;
      return {};
    }
    why = fmt::format("answers {}", made.error().driver_code);
  }
  return Fail(Blame::kUnsupported,
              "device {}: its driver {} when a context is to be confined to some multiprocessors, which mode "
              "partition needs; NVIDIA's can do it where cuplexd runs under MPS.",
              device.index, why);
}

Result<std::vector<policies::Partition>> House::Divide(const policies::Policy& policy) {
  std::vector<policies::Partition> made(devices.size());
  for (size_t d = 0; d < devices.size(); ++d) {
    const Device& device = devices[d];
    const auto is = [&](const policies::DeviceName& name) { return device.Is(name); };
    auto said = std::ranges::find_if(policy.devices, [&](const auto& each) { return is(each.name); });
    if (said == policy.devices.end() || said->mode != policies::DeviceMode::kPartition) continue;
    std::vector<policies::PartitionTenant> tenants;
    for (const policies::Tenant& tenant : policy.tenants) {
      const bool sees = tenant.devices.empty() || std::ranges::any_of(tenant.devices, is);
      if (const policies::Part part = tenant.On(is).part; sees && part)
        tenants.push_back({tenant.name, part});
    }
    TRY(made[d], policies::Divide(device.multiprocessors, tenants, &divisions[d]));
    const bool some = std::ranges::any_of(made[d].places, [](const auto& place) { return !place.whole; });
    if (some) TRY(TryConfining(d));
  }
  return made;
}

QueueBounds House::BoundsOf(const Part& part) const {
  QueueBounds its = bounds[part.device];
  if (const auto* place = divisions[part.device].Find(part.tenant))
    its.multiprocessors = place->multiprocessors;
  its.alone_slice_ns = UINT64_MAX;  // nobody can come
  its.one_context = true;
  return its;
}

DeviceQueue& House::QueueFor(const Tenant& tenant, size_t device) {
  if (!MultiprocessorsOf(tenant, device)) return *queues[device];
  for (Part& part : parts_)
    if (part.device == device && part.tenant == tenant.name) return *part.queue;
  auto spare =
      std::ranges::find_if(parts_, [&](const Part& p) { return p.device == device && p.tenant.empty(); });
  if (spare == parts_.end()) {
    queues.push_back(std::make_unique<DeviceQueue>(clock, current, &load_record));
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
