// The virtual-memory half of MemoryMap: reservations, physical memory and mappings.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <mutex>

#include "softcuda/device.h"
#include "softcuda/driver.h"
#include "softcuda/memory_map.h"

namespace cuplex::softcuda {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

int ProtectionOf(CUmemAccess_flags access) {
  return (access & CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ : 0) |
         (access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? PROT_WRITE : 0);
}

bool WholeUnits(uintptr_t base, size_t size) {
  return size && base % kMappingUnit == 0 && size % kMappingUnit == 0 && base + size > base;
}

}  // namespace

Physical::~Physical() {
  if (!imported) device.Refund(size);
}

CUresult MemoryMap::Reserve(size_t size, size_t alignment, uintptr_t hint, uintptr_t* base) {
  if (!size || size % kMappingUnit || (alignment && !std::has_single_bit(alignment))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  alignment = std::max(alignment, kMappingUnit);
  std::unique_lock lock(lock_);
  std::optional<uintptr_t> at;
  if (hint && hint % alignment == 0 && device_addresses_.TakeAt(hint, size)) at = hint;
  if (!at) at = device_addresses_.TakeLow(size, alignment);
  if (!at) return CUDA_ERROR_OUT_OF_MEMORY;
  reservations_.emplace(*at, Reservation{size});
  *base = *at;
  return CUDA_SUCCESS;
}

CUresult MemoryMap::Unreserve(uintptr_t base, size_t size) {
  std::unique_lock lock(lock_);
  auto it = reservations_.find(base);
  if (it == reservations_.end() || it->second.size != size) return CUDA_ERROR_INVALID_VALUE;
  auto mapped = mappings_.lower_bound(base);
  if (mapped != mappings_.end() && mapped->first < base + size) return CUDA_ERROR_INVALID_VALUE;
  reservations_.erase(it);
  device_addresses_.Give(base, size);
  return CUDA_SUCCESS;
}

bool MemoryMap::Reserved(uintptr_t base, size_t size) const {
  auto it = reservations_.upper_bound(base);
  if (it == reservations_.begin()) return false;
  --it;
  size_t inside = base - it->first;
  return inside < it->second.size && size <= it->second.size - inside;
}

CUresult MemoryMap::Map(uintptr_t base, size_t size, size_t offset, const Ref<Physical>& physical) {
  if (!WholeUnits(base, size) || offset % kMappingUnit || offset > physical->size ||
      size > physical->size - offset) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::unique_lock lock(lock_);
  if (!physical->handles || !Reserved(base, size)) return CUDA_ERROR_INVALID_VALUE;
  auto after = mappings_.lower_bound(base);
  if (after != mappings_.end() && after->first < base + size) return CUDA_ERROR_INVALID_VALUE;
  if (after != mappings_.begin()) {
    auto& [before, mapping] = *std::prev(after);
    if (before + mapping.size > base) return CUDA_ERROR_INVALID_VALUE;
  }
  void* got = mmap(reinterpret_cast<void*>(base), size, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
                   physical->file.get(), static_cast<off_t>(offset));
  if (got == MAP_FAILED) {
    mmap(reinterpret_cast<void*>(base), size, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  mappings_.emplace(base, Mapping{size, offset, CU_MEM_ACCESS_FLAGS_PROT_NONE, physical});
  ++physical->mappings;
  return CUDA_SUCCESS;
}

CUresult MemoryMap::Unmap(uintptr_t base, size_t size) {
  if (!WholeUnits(base, size)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Ref<Physical>> released;  // may be destroyed, which is done after the lock
  std::unique_lock lock(lock_);
  auto first = mappings_.find(base);
  auto it = first;
  uintptr_t at = base;
  for (; it != mappings_.end() && it->first == at && at < base + size; ++it) at += it->second.size;
  if (at != base + size) return CUDA_ERROR_INVALID_VALUE;
  void* got = mmap(reinterpret_cast<void*>(base), size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (got == MAP_FAILED) return CUDA_ERROR_UNMAP_FAILED;
  for (auto m = first; m != it; ++m) {
    Ref<Physical>& physical = m->second.physical;
    if (--physical->mappings == 0 && !physical->handles) HandleTable<Physical>::Retire(physical.get());
    released.push_back(std::move(physical));
  }
  mappings_.erase(first, it);
  lock.unlock();
  return CUDA_SUCCESS;
}

CUresult MemoryMap::SetAccess(uintptr_t base, size_t size, CUmemAccess_flags access) {
  if (!WholeUnits(base, size)) return CUDA_ERROR_INVALID_VALUE;
  std::unique_lock lock(lock_);
  auto first = mappings_.find(base);
  auto it = first;
  uintptr_t at = base;
  for (; it != mappings_.end() && it->first == at && at < base + size; ++it) at += it->second.size;
  if (at != base + size) return CUDA_ERROR_INVALID_VALUE;
  if (mprotect(reinterpret_cast<void*>(base), size, ProtectionOf(access))) {
    return errno == ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_OPERATING_SYSTEM;
  }
  for (auto m = first; m != it; ++m) m->second.access = access;
  return CUDA_SUCCESS;
}

CUresult MemoryMap::Create(Device& device, size_t size, const CUmemAllocationProp& prop,
                           Ref<Physical>* made) {
  if (!size || size % kMappingUnit) return CUDA_ERROR_INVALID_VALUE;
  if (!device.Charge(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  UniqueFd file(memfd_create("softcuda", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ftruncate(file.get(), static_cast<off_t>(size)) || fcntl(file.get(), F_ADD_SEALS, kSeals)) {
    device.Refund(size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Ref<Physical> physical = driver_.physicals.Make(nullptr, device, size, prop);
  if (!physical) {
    device.Refund(size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  physical->file = std::move(file);
  *made = std::move(physical);
  return CUDA_SUCCESS;
}

CUresult MemoryMap::Import(Device& device, int fd, Ref<Physical>* made) {
  struct stat status;
  int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(fd, &status) || !status.st_size ||
      static_cast<size_t>(status.st_size) % kMappingUnit) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  UniqueFd file(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!file) return CUDA_ERROR_OPERATING_SYSTEM;
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.ordinal};
  Ref<Physical> physical = driver_.physicals.Make(nullptr, device, static_cast<size_t>(status.st_size), prop);
  if (!physical) return CUDA_ERROR_OUT_OF_MEMORY;
  physical->imported = true;
  physical->file = std::move(file);
  *made = std::move(physical);
  return CUDA_SUCCESS;
}

CUresult MemoryMap::Release(const Ref<Physical>& physical) {
  std::unique_lock lock(lock_);
  if (!physical->handles) return CUDA_ERROR_INVALID_VALUE;
  if (--physical->handles == 0 && !physical->mappings) HandleTable<Physical>::Retire(physical.get());
  return CUDA_SUCCESS;
}

bool MemoryMap::Retain(const Ref<Physical>& physical) {
  std::unique_lock lock(lock_);
  if (!physical->mappings) return false;  // unmapped since the caller looked
  ++physical->handles;
  return true;
}

}  // namespace cuplex::softcuda
