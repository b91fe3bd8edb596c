#include "metrics/families.h"

#include <functional>
#include <utility>

namespace cuplex::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

/// A family that is filled series by series.
class Family {
 public:
  Family(std::string name, std::string help, MetricType type) {
    family_.name = std::move(name);
    family_.help = std::move(help);
    family_.type = type;
  }

  void Add(Labels labels, double value) {
    ClientMetric metric;
    metric.label = std::move(labels);
    if (family_.type == MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
    family_.metric.push_back(std::move(metric));
  }

  /// A family without series is left out, its HELP and TYPE too.
  void MoveTo(std::vector<MetricFamily>& families) {
    if (!family_.metric.empty()) families.push_back(std::move(family_));
  }

 private:
  MetricFamily family_;
};

Family Gauge(std::string name, std::string help) {
  return {std::move(name), std::move(help), MetricType::Gauge};
}
Family Counter(std::string name, std::string help) {
  return {std::move(name), std::move(help), MetricType::Counter};
}

double Seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }
double Value(const Count& count) { return static_cast<double>(count.value()); }
double Value(const Level& level) { return static_cast<double>(level.value()); }

/// Adds the series of a family for every tenant on every device it sees.
template <typename AddSeries>
void ForEachTenantDevice(const std::vector<DeviceFacts>& devices,
                         const std::vector<std::shared_ptr<const TenantCounters>>& tenants, AddSeries add) {
  for (const auto& tenant : tenants) {
    for (size_t i = 0; i < devices.size(); ++i) {
      if (!tenant->shown(i)) continue;
      add(Labels{{"tenant", tenant->name()}, {"device", devices[i].label}}, tenant->device(i));
    }
  }
}

/// Adds one more series for each value of a label.
template <size_t N>
void AddEach(Family& family, const Labels& labels, const std::string& name,
             const std::array<std::string_view, N>& values, const std::array<Count, N>& counts) {
  for (size_t i = 0; i < N; ++i) {
    Labels with = labels;
    with.push_back({name, std::string(values[i])});
    family.Add(std::move(with), Value(counts[i]));
  }
}

}  // namespace

std::vector<MetricFamily> Gather(const ServerFacts& facts, const std::vector<DeviceFacts>& devices,
                                 const ServerCounters& server,
                                 const std::vector<std::shared_ptr<const TenantCounters>>& tenants) {
  std::vector<MetricFamily> families;

  auto info =
      Gauge("cuplex_server_info", "Always 1; the labels say which server and driver these series are from.");
  info.Add({{"version", facts.version}, {"driver", facts.driver}}, 1);
  info.MoveTo(families);

  auto rejected =
      Counter("cuplex_server_rejected_clients_total", "Clients turned away before they had a tenant.");
  AddEach(rejected, {}, "reason", kRejectionLabels, server.rejections);
  rejected.MoveTo(families);

  auto loads = Counter("cuplex_server_policy_loads_total", "Policy files read, by whether they were taken.");
  loads.Add({{"result", "taken"}}, Value(server.policy_loads));
  loads.Add({{"result", "refused"}}, Value(server.policy_load_failures));
  loads.MoveTo(families);

  auto device_info = Gauge("cuplex_device_info", "Always 1; the labels say which device the index is.");
  auto device_memory = Gauge("cuplex_device_memory_bytes", "Memory of the device as the driver reports it.");
  for (const DeviceFacts& device : devices) {
    device_info.Add({{"device", device.label}, {"uuid", device.uuid}, {"name", device.name}}, 1);
    device_memory.Add({{"device", device.label}}, static_cast<double>(device.memory_bytes));
  }
  device_info.MoveTo(families);
  device_memory.MoveTo(families);

  auto sessions = Gauge("cuplex_tenant_sessions", "Client processes of the tenant that are attached.");
  auto refusals = Counter("cuplex_tenant_refusals_total", "Calls of the tenant that the server refused.");
  for (const auto& tenant : tenants) {
    sessions.Add({{"tenant", tenant->name()}}, Value(tenant->sessions));
    AddEach(refusals, {{"tenant", tenant->name()}}, "reason", kRefusalLabels, tenant->refusals);
  }
  sessions.MoveTo(families);
  refusals.MoveTo(families);

  auto used = Gauge("cuplex_tenant_memory_used_bytes", "Device memory that the tenant holds.");
  auto limit = Gauge("cuplex_tenant_memory_limit_bytes", "Device memory that the tenant may hold at most.");
  auto depth =
      Gauge("cuplex_tenant_queue_depth", "Calls taken from the tenant and not yet given to the device.");
  auto time = Counter("cuplex_tenant_device_seconds_total", "Device time that the tenant's work took.");
  auto launches = Counter("cuplex_tenant_launches_total", "Kernels of the tenant given to the device.");
  auto copies = Counter("cuplex_tenant_copies_total", "Copies of the tenant given to the device.");
  auto copied = Counter("cuplex_tenant_copied_bytes_total", "Bytes that the tenant's copies moved.");
  auto oom =
      Counter("cuplex_tenant_out_of_memory_total", "Allocations of the tenant answered with out of memory.");
  auto faults = Counter("cuplex_tenant_kernel_faults_total", "Kernels of the tenant that ended in an error.");
  auto timeouts = Counter("cuplex_tenant_kernel_timeouts_total",
                          "Kernels of the tenant ended for running longer than its policy lets them.");
  auto slices =
      Counter("cuplex_tenant_slices_total", "Parts of the tenant's long kernels given to the device.");
  auto throttled = Counter("cuplex_tenant_throttled_seconds_total",
                           "Time in which the tenant had work and its own limit held it back.");
  auto whole = Counter("cuplex_tenant_whole_kernels_total",
                       "Launches of the tenant's kernels that are longer than a slice and cannot be cut.");
  ForEachTenantDevice(devices, tenants, [&](const Labels& labels, const TenantDeviceCounters& counters) {
    used.Add(labels, Value(counters.memory_used_bytes));
    limit.Add(labels, Value(counters.memory_limit_bytes));
    depth.Add(labels, Value(counters.queue_depth));
    time.Add(labels, Seconds(counters.device_ns.value()));
    launches.Add(labels, Value(counters.launches));
    AddEach(copies, labels, "direction", kDirectionLabels, counters.copies);
    AddEach(copied, labels, "direction", kDirectionLabels, counters.copied_bytes);
    oom.Add(labels, Value(counters.out_of_memory));
    faults.Add(labels, Value(counters.kernel_faults));
    timeouts.Add(labels, Value(counters.kernel_timeouts));
    slices.Add(labels, Value(counters.slices));
    throttled.Add(labels, Seconds(counters.throttled_ns.value()));
    counters.whole_kernels.ForEach([&](const std::string& kernel, const Count& count) {
      Labels with = labels;
      with.push_back({"kernel", kernel});
      whole.Add(std::move(with), Value(count));
    });
  });
  for (Family* family : {&used, &limit, &depth, &time, &launches, &copies, &copied, &oom, &faults, &timeouts,
                         &slices, &throttled, &whole}) {
    family->MoveTo(families);
  }
  return families;
}

}  // namespace cuplex::metrics
