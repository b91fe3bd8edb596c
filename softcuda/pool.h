// Pool: the memory pool of stream-ordered allocation (cuMemAllocAsync): what it holds and its attributes. Any
// thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace cuplex::softcuda {

class Device;

class Pool {
 public:
  explicit Pool(Device& device) : device(device) {}

  Device& device;
  std::atomic<uint64_t> used{0}, used_high{0};  // bytes, rounded to pages
  std::atomic<uint64_t> release_threshold{0};   // accepted and told back; memory goes back at once
  std::atomic<int> reuse_follow{1}, reuse_opportunistic{1}, reuse_internal{1};

  void Add(uint64_t bytes) {
    uint64_t now = used.fetch_add(bytes) + bytes;
    uint64_t high = used_high.load();
    while (high < now && !used_high.compare_exchange_weak(high, now)) {
    }
  }
  void Remove(uint64_t bytes) { used.fetch_sub(bytes); }
};

}  // namespace cuplex::softcuda
