// DeviceHeap: the memory that kernels get from malloc and give back with free. Who lies where is written
// outside of that memory, since kernels may write anything into it. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

namespace cuplex::softcuda {

class DeviceHeap {
 public:
  static constexpr size_t kAlignment = 16;

  /// `base` is aligned to a page; the memory is the caller's and outlives the heap.
  DeviceHeap(uintptr_t base, size_t size);

  /// 0 where no piece is long enough.
  uintptr_t Allocate(uint64_t bytes);
  /// False for what Allocate did not give, or what is free already. 0 is nothing to free.
  bool Free(uintptr_t address);

  uintptr_t base() const { return base_; }
  size_t size() const { return size_; }
  size_t used() const;

 private:
  const uintptr_t base_;
  const size_t size_;
  mutable std::mutex lock_;
  std::map<uintptr_t, size_t> free_;               // by address; neighbours are one
  std::multimap<size_t, uintptr_t> free_by_size_;  // the same
  std::unordered_map<uintptr_t, size_t> taken_;
  size_t used_ = 0;

  void AddFree(uintptr_t at, size_t bytes);
  void RemoveFree(std::map<uintptr_t, size_t>::iterator it);
};

}  // namespace cuplex::softcuda
