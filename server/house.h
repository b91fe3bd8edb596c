// House: what all parts of the server work with. `main` (or a test) furnishes it once; reactor's thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cuda/driver_table.h"
#include "metrics/metrics.h"
#include "policies/partition.h"
#include "server/budget_waits.h"
#include "server/device.h"
#include "server/device_text.h"
#include "server/jobs.h"
#include "server/ledger.h"
#include "server/load_record.h"
#include "server/queue.h"

namespace cuplex::server {

struct House {
  House(const DriverTable& cu, const Clock& clock, std::unique_ptr<Jobs> jobs, std::vector<Device> devices,
        metrics::Metrics& metrics);

  const DriverTable& cu;
  const Clock& clock;
  const std::vector<Device> devices;
  metrics::Metrics& metrics;
  Ledger ledger;
  CurrentContext current;
  DeviceTexts texts;
  BudgetWaits budget_waits;
  LoadRecord load_record;
  /// The devices' first, in their order, then those of tenants that have a part of one to themselves. Grows
  /// while contexts are made.
  std::vector<std::unique_ptr<DeviceQueue>> queues;
  std::vector<QueueBounds> bounds;             // by device
  std::vector<policies::Partition> divisions;  // by device, of those in mode partition
  /// A multiprocessor of the driver's devices runs one block at a time, whatever it calls resident: softcuda.
  bool block_at_a_time = false;
  /// Contexts of the server's own in which fresh memory is filled with zeros, by device; null where the
  /// driver gives memory that is zero already.
  std::vector<CUcontext> zero_in;
  std::unique_ptr<Jobs> jobs;  // ends first: its threads use the rest

  /// The tenant by its terms: known already, or new in the ledger.
  Result<Tenant*> TenantFor(const policies::Tenant& terms);
  /// So many of the device's multiprocessors are the tenant's alone; 0: it takes turns with others on all.
  unsigned MultiprocessorsOf(const Tenant& tenant, size_t device) const;
  /// Where the work of a new context goes.
  DeviceQueue& QueueFor(const Tenant& tenant, size_t device);
  /// How a policy divides the devices. Error: one cannot be divided so.
  Result<std::vector<policies::Partition>> Divide(const policies::Policy& policy);
  /// What `bounds` and `divisions` say holds from here on.
  void SetBounds();
  /// Operations of the tenant that wait for the device.
  size_t Queued(const Tenant& tenant, size_t device) const;
  /// Forgets a tenant that the policy no longer knows, once it has no session.
  void MayForget(Tenant& tenant);

 private:
  struct Part {
    size_t device;
    std::string tenant;  // empty: nobody's at the moment
    DeviceQueue* queue;
  };
  QueueBounds BoundsOf(const Part& part) const;
  /// Makes a confined context and ends it, once a device: a driver that could confine one may still refuse.
  Status TryConfining(size_t device);
  std::vector<Part> parts_;
  std::vector<bool> confined_;  // by device: it has been tried
};

}  // namespace cuplex::server
