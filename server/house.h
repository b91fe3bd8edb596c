// House: what all parts of the server work with. `main` (or a test) furnishes it once; reactor's thread.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "cuda/driver_table.h"
#include "metrics/metrics.h"
#include "server/budget_waits.h"
#include "server/device.h"
#include "server/device_text.h"
#include "server/jobs.h"
#include "server/ledger.h"
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
  std::vector<std::unique_ptr<DeviceQueue>> queues;  // by device
  /// A multiprocessor of the driver's devices runs one block at a time, whatever it calls resident: softcuda.
  bool block_at_a_time = false;
  /// Contexts of the server's own in which fresh memory is filled with zeros, by device; null where the
  /// driver gives memory that is zero already.
  std::vector<CUcontext> zero_in;
  std::unique_ptr<Jobs> jobs;  // ends first: its threads use the rest

  /// The tenant by its terms: known already, or new in the ledger.
  Result<Tenant*> TenantFor(const policies::Tenant& terms);
  /// Forgets a tenant that the policy no longer knows, once it has no session.
  void MayForget(Tenant& tenant);
};

}  // namespace cuplex::server
