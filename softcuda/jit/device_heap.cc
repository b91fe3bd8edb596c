#include "softcuda/jit/device_heap.h"

#include <algorithm>
#include <iterator>

namespace cuplex::softcuda {

DeviceHeap::DeviceHeap(uintptr_t base, size_t size) : base_(base), size_(size / kAlignment * kAlignment) {
  if (size_) AddFree(base_, size_);
}

void DeviceHeap::AddFree(uintptr_t at, size_t bytes) {
  free_.emplace(at, bytes);
  free_by_size_.emplace(bytes, at);
}

void DeviceHeap::RemoveFree(std::map<uintptr_t, size_t>::iterator it) {
  auto [begin, end] = free_by_size_.equal_range(it->second);
  free_by_size_.erase(std::find_if(begin, end, [&](const auto& e) { return e.second == it->first; }));
  free_.erase(it);
}

uintptr_t DeviceHeap::Allocate(uint64_t bytes) {
  if (bytes > size_) return 0;
  size_t take = (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  std::lock_guard hold(lock_);
  auto fits = free_by_size_.lower_bound(take);
  if (fits == free_by_size_.end()) return 0;
  auto [room, at] = *fits;
  free_by_size_.erase(fits);
  free_.erase(at);
  if (room > take) AddFree(at + take, room - take);
  taken_.emplace(at, take);
  used_ += take;
  return at;
}

bool DeviceHeap::Free(uintptr_t address) {
  if (!address) return true;
  std::lock_guard hold(lock_);
  auto it = taken_.find(address);
  if (it == taken_.end()) return false;
  size_t bytes = it->second;
  used_ -= bytes;
  taken_.erase(it);
  auto after = free_.lower_bound(address);
  if (after != free_.end() && after->first == address + bytes) {
    bytes += after->second;
    auto gone = after++;
    RemoveFree(gone);
  }
  if (after != free_.begin()) {
    auto before = std::prev(after);
    if (before->first + before->second == address) {
      address = before->first;
      bytes += before->second;
      RemoveFree(before);
    }
  }
  AddFree(address, bytes);
  return true;
}

size_t DeviceHeap::used() const {
  std::lock_guard hold(lock_);
  return used_;
}

}  // namespace cuplex::softcuda
