// Families: the names, help texts and values of every series, from the counters. Any thread.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <memory>
#include <string>
#include <vector>

#include "metrics/metrics.h"

namespace cuplex::metrics {

struct ServerFacts {
  const std::string& version;
  const std::string& driver;
};

/// All series as they stand. Each counter is read once; two of them may be a moment apart.
std::vector<prometheus::MetricFamily> Gather(
    const ServerFacts& facts, const std::vector<DeviceFacts>& devices, const ServerCounters& server,
    const std::vector<std::shared_ptr<const TenantCounters>>& tenants);

}  // namespace cuplex::metrics
