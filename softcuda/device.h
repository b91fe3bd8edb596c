// Device: one device that softcuda reports: its memory budget, the threads that run its streams and kernels,
// its primary context. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cuda/driver_types.h"
#include "softcuda/handles.h"
#include "softcuda/jit/workers.h"
#include "softcuda/partition.h"
#include "softcuda/settings.h"

namespace cuplex::softcuda {

class Context;
class Pool;
struct Resources;

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
  /// All of it.
  Partition& whole() { return *whole_; }
  /// These multiprocessors, which all who name the same share. It stays.
  Result<Partition*> Part(const Partition::Set& which);
  /// So many of its own for somebody, who gives them back once nothing runs there. Which ones is not said:
  /// where the device has not so many left, they are others' as well.
  Result<Partition*> TakePart(unsigned count);
  void GivePart(Partition* part);

  /// The `%gridid` of another launch.
  uint64_t NextGrid() { return grids_.fetch_add(1, std::memory_order_relaxed) + 1; }

  /// The one object for these multiprocessors; null where there are too many.
  Ref<Resources> Describe(HandleTable<Resources>& table, const Partition::Set& set);

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
  Result<std::unique_ptr<Partition>> MakePart(unsigned count) const;

  std::mutex start_lock_;
  AddressWindow* window_ = nullptr;
  std::unique_ptr<Partition> whole_;
  std::mutex parts_lock_;
  std::vector<Ref<Resources>> described_;                                           // under parts_lock_
  std::vector<std::pair<Partition::Set, std::unique_ptr<Partition>>> named_parts_;  // under parts_lock_
  std::vector<std::unique_ptr<Partition>> own_parts_, free_parts_;                  // likewise
};

}  // namespace cuplex::softcuda
