#include "server/ledger.h"

#include <algorithm>
#include <cassert>

namespace cuplex::server {
namespace {

/// Module images that a tenant's programs have sent, kept so that they need not be sent again.
constexpr uint64_t kImagesPerTenant = uint64_t{512} << 20;
/// And the sliceable forms of their kernels.
constexpr uint64_t kSlicedPerTenant = uint64_t{32} << 20;

}  // namespace

Holding::Holding(size_t device, uint64_t limit, metrics::TenantDeviceCounters* counters)
    : device(device), limit_(limit), counters_(counters) {
  counters_->memory_limit_bytes.Set(limit_);
}

void Holding::SetLimit(uint64_t bytes) {
  limit_ = bytes;
  counters_->memory_limit_bytes.Set(limit_);
}

bool Holding::Charge(uint64_t bytes) {
  if (bytes > free()) {
    counters_->out_of_memory.Add();
    return false;
  }
  used_ += bytes;
  counters_->memory_used_bytes.Set(used_);
  return true;
}

void Holding::Refund(uint64_t bytes) {
  assert(bytes <= used_);
  used_ -= bytes;
  counters_->memory_used_bytes.Set(used_);
}

Tenant::Tenant(TenantId id, const policies::Tenant& terms, const std::vector<Device>& devices,
               std::shared_ptr<metrics::TenantCounters> counters)
    : id(id),
      name(terms.name),
      terms(terms),
      counters(std::move(counters)),
      images(kImagesPerTenant),
      sliced(kSlicedPerTenant),
      devices_(devices) {
  holdings.resize(devices.size());
  auto add = [&](size_t d) {
    if (holdings[d]) return;
    holdings[d] = std::make_unique<Holding>(d, MemoryOn(d), &this->counters->device(d));
    sees.push_back(d);
  };
  if (terms.devices.empty()) {
    for (size_t d = 0; d < devices.size(); ++d) add(d);
  } else {
    for (const policies::DeviceName& wanted : terms.devices)
      for (size_t d = 0; d < devices.size(); ++d)
        if (devices[d].Is(wanted)) add(d);
  }
}

const policies::DeviceTerms& Tenant::On(size_t device) const {
  return terms.On([&](const policies::DeviceName& name) { return devices_[device].Is(name); });
}

uint64_t Tenant::MemoryOn(size_t device) const {
  const uint64_t bytes = On(device).memory_bytes;
  return bytes == policies::kAllMemory ? devices_[device].memory_bytes : bytes;
}

uint64_t Tenant::host_limit() const {
  uint64_t most = 0;
  for (const auto& holding : holdings)
    if (holding) most = std::max(most, holding->limit());
  return most;
}

void Tenant::Take(const policies::Tenant& next) {
  terms = next;
  leaving = false;
  for (auto& holding : holdings)
    if (holding) holding->SetLimit(MemoryOn(holding->device));
}

Tenant* Ledger::Find(const std::string& name) {
  auto at = tenants_.find(name);
  return at == tenants_.end() ? nullptr : at->second.get();
}

Tenant& Ledger::Add(std::unique_ptr<Tenant> tenant) {
  Tenant& added = *tenant;
  tenants_[added.name] = std::move(tenant);
  return added;
}

void Ledger::Remove(Tenant& tenant) {
  assert(tenant.sessions.empty());
  tenants_.erase(std::string(tenant.name));
}

}  // namespace cuplex::server
