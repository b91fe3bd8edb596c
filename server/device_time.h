// DeviceTime: how much of a device's time each tenant used, so that no moment is counted twice. Pure; one
// thread at a time.
//
// A batch of work is an interval [begin, end) of the device's timeline, known when it has ended. Where
// intervals of several tenants overlap, the time is split evenly among these tenants; where several of one
// tenant do, it counts once. A moment is settled when no interval can still begin before it; settled time is
// charged and never changes again.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace cuplex::server {

class DeviceTime {
 public:
  struct Interval {
    uint32_t tenant = 0;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
  };
  using Charge = std::function<void(uint32_t tenant, uint64_t ns)>;

  /// An interval has ended. What of it lies before settled_ns() was settled without it and is not counted.
  void Finish(Interval interval);

  /// Settles all time before `until_ns`: charges what finished intervals, and those in `running`, cover of
  /// it. `running` are taken to go on at least to `until_ns`.
  void Settle(int64_t until_ns, std::span<const Interval> running, const Charge& charge);

  int64_t settled_ns() const { return settled_ns_; }
  /// The end of the last finished interval that is not settled; settled_ns() where there is none.
  int64_t last_end_ns() const;
  bool HasUnsettled() const { return !finished_.empty(); }
  /// The length of a tenant's finished intervals that is not settled; where they overlap, each counts.
  uint64_t unsettled_ns(uint32_t tenant) const;

 private:
  int64_t settled_ns_ = 0;
  std::vector<Interval> finished_;
  std::vector<int64_t> edges_;  // kept to allocate nothing in the long run
  std::vector<Interval> covering_;
  std::vector<uint32_t> tenants_;
};

}  // namespace cuplex::server
