#include "server/device_time.h"

#include <algorithm>

namespace cuplex::server {

void DeviceTime::Finish(Interval interval) {
  interval.begin_ns = std::max(interval.begin_ns, settled_ns_);
  if (interval.end_ns > interval.begin_ns) finished_.push_back(interval);
}

int64_t DeviceTime::last_end_ns() const {
  int64_t last = settled_ns_;
  for (const Interval& interval : finished_) last = std::max(last, interval.end_ns);
  return last;
}

uint64_t DeviceTime::unsettled_ns(uint32_t tenant) const {
  uint64_t sum = 0;
  for (const Interval& interval : finished_)
    if (interval.tenant == tenant)
      sum += static_cast<uint64_t>(interval.end_ns - std::max(interval.begin_ns, settled_ns_));
  return sum;
}

void DeviceTime::Settle(int64_t until_ns, std::span<const Interval> running, const Charge& charge) {
  if (until_ns <= settled_ns_) return;
  covering_.assign(finished_.begin(), finished_.end());
  for (Interval interval : running) {
    interval.end_ns = until_ns;
    covering_.push_back(interval);
  }
  edges_.assign({settled_ns_, until_ns});
  for (Interval& interval : covering_) {
    interval.begin_ns = std::max(interval.begin_ns, settled_ns_);
    interval.end_ns = std::min(interval.end_ns, until_ns);
    if (interval.begin_ns >= interval.end_ns) continue;
    edges_.push_back(interval.begin_ns);
    edges_.push_back(interval.end_ns);
  }
  std::sort(edges_.begin(), edges_.end());
  for (size_t i = 1; i < edges_.size(); ++i) {
    const int64_t begin = edges_[i - 1], end = edges_[i];
    if (begin == end) continue;
    tenants_.clear();
    for (const Interval& interval : covering_)
      if (interval.begin_ns <= begin && interval.end_ns >= end) tenants_.push_back(interval.tenant);
    std::sort(tenants_.begin(), tenants_.end());
    tenants_.erase(std::unique(tenants_.begin(), tenants_.end()), tenants_.end());
    // The remainder of the division goes to the first of them, so that the parts sum to the whole.
    for (size_t t = 0; t < tenants_.size(); ++t) {
      const uint64_t ns = static_cast<uint64_t>(end - begin);
      charge(tenants_[t], ns / tenants_.size() + (t == 0 ? ns % tenants_.size() : 0));
    }
  }
  settled_ns_ = until_ns;
  std::erase_if(finished_, [&](const Interval& interval) { return interval.end_ns <= until_ns; });
}

}  // namespace cuplex::server
