#include "client/allocation.h"

#include <algorithm>
#include <mutex>

#include <sys/mman.h>

namespace cuplex::client {

void AllocationTable::Insert(Allocation a) {
  std::unique_lock lock(mutex_);
  a.id = next_id_++;
  by_base_[a.base] = a;
}

std::optional<Allocation> AllocationTable::Find(uint64_t address) const {
  std::shared_lock lock(mutex_);
  auto it = by_base_.upper_bound(address);
  if (it == by_base_.begin()) return std::nullopt;
  --it;
  if (address - it->second.base >= it->second.bytes) return std::nullopt;
  return it->second;
}

bool AllocationTable::Holds(uint64_t address, uint64_t bytes) const {
  std::shared_lock lock(mutex_);
  auto it = by_base_.upper_bound(address);
  if (it == by_base_.begin()) return false;
  --it;
  return AddressRange{it->second.base, it->second.bytes}.Contains(address, bytes);
}

std::optional<Allocation> AllocationTable::Take(uint64_t base,
                                                std::initializer_list<Allocation::Kind> kinds) {
  std::unique_lock lock(mutex_);
  auto it = by_base_.find(base);
  if (it == by_base_.end() || std::ranges::find(kinds, it->second.kind) == kinds.end()) return std::nullopt;
  const Allocation a = it->second;
  by_base_.erase(it);
  return a;
}

void AllocationTable::Forget(uint32_t context) {
  std::unique_lock lock(mutex_);
  std::erase_if(by_base_, [&](const auto& entry) {
    const Allocation& a = entry.second;
    if (a.context != context) return false;
    if (a.in_host_window()) UnmapHostMemory(a.base, a.mapped_bytes);
    return true;
  });
}

void AllocationTable::ForgetModule(Handle module) {
  std::unique_lock lock(mutex_);
  std::erase_if(by_base_, [&](const auto& entry) {
    return entry.second.kind == Allocation::kGlobal && entry.second.module == module;
  });
}

void UnmapHostMemory(uint64_t address, uint64_t bytes) {
  mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

}  // namespace cuplex::client
