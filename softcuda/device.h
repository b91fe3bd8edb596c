// Device: one device that softcuda reports: its memory budget, the threads that run its streams and kernels,
// its primary context. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "cuda/driver_types.h"
#include "softcuda/handles.h"
#include "softcuda/jit/workers.h"
#include "softcuda/settings.h"
#include "softcuda/stream_pool.h"

namespace cuplex::softcuda {

class Context;
class Pool;

class Device {
 public:
  Device(int ordinal, const Settings& settings);

  const int ordinal;
  const std::string name;
  const unsigned capability_major, capability_minor;
  const unsigned multiprocessors;
  const uint64_t memory_bytes;
  const std::array<char, 16> uuid;

  /// The attribute's value; nullopt for a number that is no attribute.
  std::optional<int> Attribute(CUdevice_attribute attribute) const;
  /// Shared memory a block can have when it opts in, in bytes.
  uint32_t MaxSharedOptIn() const;
  uint32_t SharedPerMultiprocessor() const;
  uint32_t ThreadsPerMultiprocessor() const;
  uint32_t BlocksPerMultiprocessor() const;
  /// "0000:01:00.0"
  std::string PciBusId() const;

  /// Takes `bytes` of the device's memory, or nothing and false where fewer are left.
  bool Charge(uint64_t bytes);
  void Refund(uint64_t bytes);
  uint64_t used_bytes() const { return used_.load(std::memory_order_relaxed); }

  /// Starts the threads, once; an Error where the machine refuses.
  Status Start(AddressWindow& window);
  StreamPool& streams() { return *streams_; }
  Workers& workers() { return *workers_; }

  /// The `%gridid` of another launch.
  uint64_t NextGrid() { return grids_.fetch_add(1, std::memory_order_relaxed) + 1; }

  std::mutex lock;  // guards what follows
  Ref<Context> primary;
  unsigned primary_users = 0;
  unsigned primary_flags = 0;
  Ref<Pool> default_pool;
  Ref<Pool> current_pool;

 private:
  const unsigned threads_;
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> grids_{0};
  std::mutex start_lock_;
  std::unique_ptr<StreamPool> streams_;
  std::unique_ptr<Workers> workers_;
};

}  // namespace cuplex::softcuda
