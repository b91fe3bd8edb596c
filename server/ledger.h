// Ledger: who owns what. Tenants, what they hold on each device, and their sessions. Reactor's thread.
//
// There is no second account: limits are checked against these numbers, metrics and the control socket read
// them, and the clean-up of a session returns to them what the session took.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cuda/driver_table.h"
#include "metrics/metrics.h"
#include "policies/policy.h"
#include "policies/scheduler.h"
#include "server/arena.h"
#include "server/device.h"
#include "server/image_store.h"
#include "server/sliced_texts.h"

namespace cuplex::server {

class Session;

using TenantId = uint32_t;

/// What one tenant has on one device. All sizes in bytes.
class Holding {
 public:
  Holding(size_t device, uint64_t limit, metrics::TenantDeviceCounters* counters);

  const size_t device;           // index into the server's devices
  std::unique_ptr<Arena> arena;  // from the first session on

  uint64_t limit() const { return limit_; }
  uint64_t used() const { return used_; }
  /// What another allocation may take.
  uint64_t free() const { return used_ < limit_ ? limit_ - used_ : 0; }
  void SetLimit(uint64_t bytes);  // may lie below used(): then nothing more is given until it is below

  /// Takes `bytes` from the budget; false, and counted as out of memory, where it does not have them.
  [[nodiscard]] bool Charge(uint64_t bytes);
  void Refund(uint64_t bytes);

  /// Memory that the driver would not take back. It stays charged, and its addresses are used no more.
  uint64_t lost = 0;
  metrics::TenantDeviceCounters& counters() { return *counters_; }

 private:
  uint64_t limit_;
  uint64_t used_ = 0;
  metrics::TenantDeviceCounters* counters_;
};

class Tenant {
 public:
  /// `devices` outlive it.
  Tenant(TenantId id, const policies::Tenant& terms, const std::vector<Device>& devices,
         std::shared_ptr<metrics::TenantCounters> counters);

  const TenantId id;
  const std::string name;
  policies::Tenant terms;
  std::shared_ptr<metrics::TenantCounters> counters;
  std::vector<std::unique_ptr<Holding>> holdings;  // by device; null where the tenant does not see it
  std::vector<size_t> sees;                        // devices in the order its programs number them
  std::vector<Session*> sessions;
  ImageStore images;
  SlicedTexts sliced;
  /// Bytes of the requests that are being linked for it, and of linked images that its programs have not
  /// fetched.
  uint64_t link_bytes = 0;

  /// Pinned host memory has a budget of its own, as large as the largest of its memory limits.
  uint64_t host_used = 0;
  uint64_t host_limit() const;

  /// What the policy gives it of a device, an index into the server's devices.
  const policies::DeviceTerms& On(size_t device) const;
  /// Takes the terms of a new policy. The devices it sees do not change while it has sessions.
  void Take(const policies::Tenant& terms);
  /// The policy no longer knows it: it ends when its last session does.
  bool leaving = false;

 private:
  uint64_t MemoryOn(size_t device) const;

  const std::vector<Device>& devices_;
};

class Ledger {
 public:
  Tenant* Find(const std::string& name);
  Tenant& Add(std::unique_ptr<Tenant> tenant);
  void Remove(Tenant& tenant);
  TenantId NextId() { return ++last_id_; }
  template <typename F>
  void ForEach(F f) {
    for (auto& [name, tenant] : tenants_) f(*tenant);
  }

 private:
  TenantId last_id_ = 0;
  std::map<std::string, std::unique_ptr<Tenant>> tenants_;
};

}  // namespace cuplex::server
