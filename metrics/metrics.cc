#include "metrics/metrics.h"

#include <map>
#include <utility>

#include "metrics/families.h"

namespace cuplex::metrics {

/// Holds what a scrape reads. The exporter keeps it only while it reads.
class Metrics::Reader final : public prometheus::Collectable {
 public:
  Reader(std::string version, std::string driver, std::vector<DeviceFacts> devices)
      : version_(std::move(version)), driver_(std::move(driver)), devices_(std::move(devices)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    return Gather({version_, driver_}, devices_, server, Tenants());
  }

  Result<std::shared_ptr<TenantCounters>> Tenant(const std::string& name, const std::vector<size_t>& sees) {
    for (size_t index : sees) {
      if (index < devices_.size()) continue;
      return Fail(Blame::kOurs, "Metrics of device {} were asked for, but only {} devices are known.", index,
                  devices_.size());
    }
    std::lock_guard lock(mutex_);
    std::weak_ptr<TenantCounters>& kept = tenants_[name];
    std::shared_ptr<TenantCounters> tenant = kept.lock();
    if (!tenant) kept = tenant = std::make_shared<TenantCounters>(name, devices_.size());
    for (size_t i = 0; i < devices_.size(); ++i) tenant->Show(i, false);
    for (size_t index : sees) tenant->Show(index, true);
    return tenant;
  }

  ServerCounters server;

 private:
  /// Those that somebody holds, in order of name.
  std::vector<std::shared_ptr<const TenantCounters>> Tenants() const {
    std::vector<std::shared_ptr<const TenantCounters>> held;
    std::lock_guard lock(mutex_);
    for (auto at = tenants_.begin(); at != tenants_.end();) {
      if (auto tenant = at->second.lock()) {
        held.push_back(std::move(tenant));
        ++at;
      } else {
        at = tenants_.erase(at);
      }
    }
    return held;
  }

  const std::string version_;
  const std::string driver_;
  const std::vector<DeviceFacts> devices_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::weak_ptr<TenantCounters>> tenants_;
};

Metrics::Metrics(std::string version, std::string driver, std::vector<DeviceFacts> devices)
    : reader_(std::make_shared<Reader>(std::move(version), std::move(driver), std::move(devices))) {}

Metrics::~Metrics() = default;

ServerCounters& Metrics::server() { return reader_->server; }

Result<std::shared_ptr<TenantCounters>> Metrics::Tenant(const std::string& name,
                                                        const std::vector<size_t>& sees) {
  return reader_->Tenant(name, sees);
}

std::shared_ptr<prometheus::Collectable> Metrics::collectable() const { return reader_; }

}  // namespace cuplex::metrics
