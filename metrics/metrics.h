// Metrics: what the server counts, and what a scrape reads of it.
//
// The server bumps counters from its own threads: a relaxed atomic each, no lock, no allocation. A scrape
// reads them on the exporter's thread. Adding a tenant takes a lock and allocates; counting never does.
// docs/metrics.md lists every series.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace prometheus {
class Collectable;
}

namespace cuplex::metrics {

/// Only ever rises. Any thread.
class Count {
 public:
  void Add(uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

/// Rises and falls. Any thread. Set it from the ledger rather than keeping a second account by Add.
class Level {
 public:
  void Set(uint64_t to) { value_.store(to, std::memory_order_relaxed); }
  void Add(uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  void Subtract(uint64_t n = 1) { value_.fetch_sub(n, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

/// Counts of things that have names, the first few of them; all others count together, under "others". One
/// thread adds, any reads. A name is never forgotten.
class NamedCounts {
 public:
  static constexpr size_t kMost = 32;
  struct Named {
    std::string name;
    Count count;
  };

  void Add(std::string_view name) {
    const size_t size = size_.load(std::memory_order_relaxed);
    for (size_t i = 0; i < size; ++i)
      if (rows_[i].name == name || rows_[i].name == kOthers) return rows_[i].count.Add();
    rows_[size].name = size + 1 < kMost ? std::string(name) : std::string(kOthers);
    rows_[size].count.Add();
    size_.store(size + 1, std::memory_order_release);
  }
  template <typename F>
  void ForEach(F f) const {
    for (size_t i = 0, n = size_.load(std::memory_order_acquire); i < n; ++i)
      f(rows_[i].name, rows_[i].count);
  }

 private:
  static constexpr std::string_view kOthers = "others";
  std::atomic<size_t> size_{0};
  std::array<Named, kMost> rows_;
};

/// Label `direction`.
enum class Direction { kHostToDevice, kDeviceToHost, kDeviceToDevice };
inline constexpr std::array<std::string_view, 3> kDirectionLabels = {"host_to_device", "device_to_host",
                                                                     "device_to_device"};

/// Label `reason` of a tenant's refused calls.
enum class Refusal {
  kHandle,       // a handle the tenant does not own
  kArgument,     // an argument outside what the call accepts
  kUnsupported,  // a call or module that is not carried
  kFrame,        // bytes that are no message
  kLimit,        // a limit of the server other than memory: sessions, streams, modules
};
inline constexpr std::array<std::string_view, 5> kRefusalLabels = {"handle", "argument", "unsupported",
                                                                   "frame", "limit"};

/// Label `reason` of clients turned away before they were anybody's.
enum class Rejection {
  kUnknown,   // no tenant matches
  kProtocol,  // not our protocol, or no version in common
  kBusy,      // the server has no room for another session
};
inline constexpr std::array<std::string_view, 3> kRejectionLabels = {"unknown", "protocol", "busy"};

/// One tenant on one device.
struct TenantDeviceCounters {
  Level memory_used_bytes;
  Level memory_limit_bytes;
  Level queue_depth;          // calls taken from clients and not yet given to the device
  Count device_ns;            // as device events measure it
  Count launches;             // kernels given to the device
  Count out_of_memory;        // allocations answered with out-of-memory
  Count kernel_faults;        // kernels that ended in an error
  Count kernel_timeouts;      // of these, for having run longer than the policy lets them
  Count slices;               // parts of kernels given to the device
  Count throttled_ns;         // there was work, and the tenant's own limit held it back
  NamedCounts whole_kernels;  // launches longer than a slice that could not be cut, by kernel
  std::array<Count, kDirectionLabels.size()> copies;
  std::array<Count, kDirectionLabels.size()> copied_bytes;

  void Copy(Direction direction, uint64_t bytes) {
    copies[static_cast<size_t>(direction)].Add();
    copied_bytes[static_cast<size_t>(direction)].Add(bytes);
  }
};

/// One tenant. Kept alive by whoever holds the pointer; its series are shown as long as somebody does.
class TenantCounters {
 public:
  TenantCounters(std::string name, size_t devices) : name_(std::move(name)), slots_(devices) {}

  Level sessions;  // client processes attached
  std::array<Count, kRefusalLabels.size()> refusals;

  void Refuse(Refusal reason) { refusals[static_cast<size_t>(reason)].Add(); }

  /// The counters on device `index`, an index into the devices given to Metrics.
  TenantDeviceCounters& device(size_t index) { return slots_[index].counters; }
  const TenantDeviceCounters& device(size_t index) const { return slots_[index].counters; }
  /// Whether a scrape shows the tenant's series on that device. Off at first.
  void Show(size_t index, bool shown) { slots_[index].shown.store(shown, std::memory_order_relaxed); }
  bool shown(size_t index) const { return slots_[index].shown.load(std::memory_order_relaxed); }

  const std::string& name() const { return name_; }
  size_t devices() const { return slots_.size(); }

 private:
  struct Slot {
    TenantDeviceCounters counters;
    std::atomic<bool> shown{false};
  };
  std::string name_;
  std::vector<Slot> slots_;  // never resized: the atomics stay where they are
};

/// What belongs to the server and to no tenant.
struct ServerCounters {
  std::array<Count, kRejectionLabels.size()> rejections;
  Count policy_loads;          // policy files taken, the first included
  Count policy_load_failures;  // policy files refused while running

  void Reject(Rejection reason) { rejections[static_cast<size_t>(reason)].Add(); }
};

struct DeviceFacts {
  std::string label;  // label `device` of all its series: the index as the operator knows it, "0"
  std::string uuid;   // "GPU-..."
  std::string name;   // as the driver names it
  uint64_t memory_bytes = 0;
};

class Metrics {
 public:
  /// `driver`: which driver runs the work, for people ("softcuda", "nvidia 580.95").
  Metrics(std::string version, std::string driver, std::vector<DeviceFacts> devices);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  ServerCounters& server();

  /// The counters of the tenant `name`, which `sees` the devices of these indices (others are out of range:
  /// Blame::kOurs). A tenant that somebody still holds is handed out again with its counts, now seeing these
  /// devices. Any thread; takes a lock.
  Result<std::shared_ptr<TenantCounters>> Tenant(const std::string& name, const std::vector<size_t>& sees);

  /// What the exporter reads. Lives as long as this object.
  std::shared_ptr<prometheus::Collectable> collectable() const;

 private:
  class Reader;
  std::shared_ptr<Reader> reader_;
};

}  // namespace cuplex::metrics
