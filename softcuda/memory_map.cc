#include "softcuda/memory_map.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "softcuda/context.h"
#include "softcuda/device.h"
#include "softcuda/driver.h"
#include "softcuda/pool.h"

namespace cuplex::softcuda {
namespace {

constexpr size_t kHugeFrom = size_t{4} << 20;  // from here on blocks lie so that huge pages can back them
constexpr size_t kPiece = size_t{4} << 20;     // bytes copied before others may change the map
// Addresses left free after a block. Small ones lie side by side: the kernel then sees one mapping, of which
// a process can have a limited number.
size_t GuardOf(size_t mapped) { return mapped >= size_t{64} << 10 ? kPage : 0; }

size_t PagesOf(size_t bytes) { return (bytes + kPage - 1) & ~(kPage - 1); }

// Takes the memory away and leaves the addresses reserved. False where the kernel cannot, being at its limit
// of mappings: then the memory is gone all the same, but the addresses do not fault and must not be used
// again.
bool Unback(uintptr_t base, size_t size) {
  void* got = mmap(reinterpret_cast<void*>(base), size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (got != MAP_FAILED) return true;
  madvise(reinterpret_cast<void*>(base), size, MADV_DONTNEED);
  return false;
}

// The bytes from the first to the last that the box touches; false where they do not fit the address space.
bool SpanOf(BoxAt at, Box box, size_t* bytes) {
  size_t rows = 0, planes = 0, sum = 0;
  return !__builtin_mul_overflow(box.height - 1, at.row_pitch, &rows) &&
         !__builtin_mul_overflow(box.depth - 1, at.plane_pitch, &planes) &&
         !__builtin_add_overflow(rows, planes, &sum) && !__builtin_add_overflow(sum, box.width, bytes) &&
         at.base + *bytes >= at.base;
}

void FillRow(std::byte* to, Pattern pattern, size_t bytes) {
  switch (pattern.unit) {
    case 1:
      std::memset(to, static_cast<int>(pattern.value), bytes);
      break;
    case 2:
      std::fill_n(reinterpret_cast<uint16_t*>(to), bytes / 2, static_cast<uint16_t>(pattern.value));
      break;
    default:
      std::fill_n(reinterpret_cast<uint32_t*>(to), bytes / 4, pattern.value);
  }
}

}  // namespace

MemoryMap::MemoryMap(Driver& driver)
    : driver_(driver),
      device_addresses_(driver.window->device().base, driver.window->device().size),
      host_addresses_(driver.window->host().base, driver.window->host().size) {}

CUresult MemoryMap::Allocate(Block want, uintptr_t* base) {
  if (want.size > driver_.window->device().size) return CUDA_ERROR_OUT_OF_MEMORY;
  want.mapped = PagesOf(want.size);
  if (want.charged() && !want.device->Charge(want.mapped)) return CUDA_ERROR_OUT_OF_MEMORY;
  bool huge = want.mapped >= kHugeFrom;
  size_t alignment = huge ? kMappingUnit : kPage;
  bool in_host_range = want.kind == Block::Kind::kPinned || want.kind == Block::Kind::kManaged;
  AddressRanges& addresses = in_host_range ? host_addresses_ : device_addresses_;

  std::unique_lock lock(lock_);
  auto fail = [&](CUresult code) {
    if (want.charged()) want.device->Refund(want.mapped);
    return code;
  };
  if (want.context->dead()) return fail(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  size_t taken = want.mapped + GuardOf(want.mapped);
  auto at = in_host_range ? addresses.TakeLow(taken, alignment) : addresses.TakeHigh(taken, alignment);
  if (!at) return fail(CUDA_ERROR_OUT_OF_MEMORY);
  void* got = mmap(reinterpret_cast<void*>(*at), want.mapped, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (got == MAP_FAILED) {
    if (Unback(*at, want.mapped)) addresses.Give(*at, taken);
    return fail(CUDA_ERROR_OUT_OF_MEMORY);
  }
  if (huge) madvise(got, want.mapped, MADV_HUGEPAGE);
  want.base = *base = *at;
  want.id = driver_.NextId();
  if (want.pool) want.pool->Add(want.mapped);
  blocks_.emplace(*at, std::move(want));
  return CUDA_SUCCESS;
}

void MemoryMap::Remove(std::map<uintptr_t, Block>::iterator it) {
  Block& block = it->second;
  if (block.kind == Block::Kind::kRegistered) {
    driver_.window->ForgetHostRange(block.base);
  } else {
    bool in_host_range = driver_.window->host().Contains(block.base);
    if (Unback(block.base, block.mapped)) {
      (in_host_range ? host_addresses_ : device_addresses_)
          .Give(block.base, block.mapped + GuardOf(block.mapped));
    }
  }
  if (block.charged()) block.device->Refund(block.mapped);
  if (block.pool) block.pool->Remove(block.mapped);
  blocks_.erase(it);
}

CUresult MemoryMap::Free(uintptr_t base, unsigned kinds) {
  std::unique_lock lock(lock_);
  auto it = blocks_.find(base);
  if (it == blocks_.end() || !(kinds & (1u << static_cast<unsigned>(it->second.kind)))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Remove(it);
  return CUDA_SUCCESS;
}

void MemoryMap::FreeAll(Context& context) {
  std::unique_lock lock(lock_);
  for (auto it = blocks_.begin(); it != blocks_.end();) {
    auto next = std::next(it);
    if (it->second.context == &context) Remove(it);
    it = next;
  }
}

CUresult MemoryMap::Register(Block want) {
  std::unique_lock lock(lock_);
  if (want.context->dead()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  uintptr_t end = want.base + want.size;
  if (end < want.base || InWindow(want.base) || InWindow(end - 1)) return CUDA_ERROR_INVALID_VALUE;
  if (!driver_.window->RegisterHostRange(want.base, end).ok())
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  want.kind = Block::Kind::kRegistered;
  want.mapped = want.size;
  want.id = driver_.NextId();
  blocks_.emplace(want.base, std::move(want));
  return CUDA_SUCCESS;
}

CUresult MemoryMap::Unregister(uintptr_t base) {
  std::unique_lock lock(lock_);
  auto it = blocks_.find(base);
  if (it == blocks_.end() || it->second.kind != Block::Kind::kRegistered) {
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  Remove(it);
  return CUDA_SUCCESS;
}

const Block* MemoryMap::BlockAround(uintptr_t address) const {
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return nullptr;
  const Block& block = std::prev(after)->second;
  return address - block.base < block.size ? &block : nullptr;
}

std::optional<Block> MemoryMap::BlockAt(uintptr_t base) const {
  std::shared_lock lock(lock_);
  auto it = blocks_.find(base);
  return it == blocks_.end() ? std::nullopt : std::optional<Block>(it->second);
}

Located MemoryMap::Find(uintptr_t address) const {
  std::shared_lock lock(lock_);
  Located located;
  if (const Block* block = BlockAround(address)) {
    located.block = *block;
    return located;
  }
  auto reserved = reservations_.upper_bound(address);
  if (reserved == reservations_.begin()) return located;
  --reserved;
  if (address - reserved->first >= reserved->second.size) return located;
  located.base = reserved->first;
  located.size = reserved->second.size;
  auto mapped = mappings_.upper_bound(address);
  if (mapped == mappings_.begin()) return located;
  --mapped;
  if (address - mapped->first >= mapped->second.size) return located;
  located.mapping_base = mapped->first;
  located.mapping_size = mapped->second.size;
  located.access = mapped->second.access;
  located.physical = mapped->second.physical;
  return located;
}

bool MemoryMap::InWindow(uintptr_t address) const {
  const Window& all = driver_.window->all();
  return address >= all.base - AddressWindow::kGuardBytes && address < all.end() + AddressWindow::kGuardBytes;
}

bool MemoryMap::Accessible(uintptr_t address, size_t bytes, bool write) const {
  if (const Block* block = BlockAround(address)) return bytes <= block->base + block->size - address;
  auto it = mappings_.upper_bound(address);
  if (it == mappings_.begin()) return false;
  for (--it; it != mappings_.end() && it->first <= address; ++it) {
    size_t inside = address - it->first;
    if (inside >= it->second.size || !(it->second.access & CU_MEM_ACCESS_FLAGS_PROT_READ) ||
        (write && it->second.access != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)) {
      return false;
    }
    size_t here = std::min(bytes, it->second.size - inside);
    address += here;
    bytes -= here;
    if (!bytes) return true;
  }
  return false;
}

MemoryMap::Side MemoryMap::SideOf(uintptr_t address, size_t bytes, bool write) const {
  uintptr_t last = address + bytes - 1;
  if (!bytes || last < address || !address) return Side::kNowhere;
  if (!InWindow(address) && !InWindow(last)) return Side::kHost;
  std::shared_lock lock(lock_);
  if (!Accessible(address, bytes, write)) return Side::kNowhere;
  const Block* block = BlockAround(address);
  return block && block->on_host() ? Side::kHost : Side::kDevice;
}

bool MemoryMap::IsPinned(uintptr_t address, size_t bytes) const {
  std::shared_lock lock(lock_);
  const Block* block = BlockAround(address);
  return block && bytes <= block->base + block->size - address &&
         (block->on_host() || block->kind == Block::Kind::kManaged);
}

bool MemoryMap::Copy(BoxAt to, BoxAt from, Box box) const {
  size_t to_span, from_span;
  if (!SpanOf(to, box, &to_span) || !SpanOf(from, box, &from_span)) return false;
  bool check_to = InWindow(to.base), check_from = InWindow(from.base);
  std::shared_lock lock(lock_);
  auto there = [&] {
    return (!check_to || Accessible(to.base, to_span, true)) &&
           (!check_from || Accessible(from.base, from_span, false));
  };
  if (!there()) return false;
  if (box.height == 1 && box.depth == 1 && to.base < from.base + box.width &&
      from.base < to.base + box.width) {
    std::memmove(reinterpret_cast<void*>(to.base), reinterpret_cast<void*>(from.base), box.width);
    return true;
  }
  size_t since = 0;
  for (size_t z = 0; z < box.depth; ++z) {
    for (size_t y = 0; y < box.height; ++y) {
      uintptr_t t = to.base + z * to.plane_pitch + y * to.row_pitch;
      uintptr_t f = from.base + z * from.plane_pitch + y * from.row_pitch;
      for (size_t left = box.width; left;) {
        size_t piece = std::min(left, kPiece);
        if (since + piece > kPiece) {  // let those in who wait to change the map, and look again
          lock.unlock();
          lock.lock();
          if (!there()) return false;
          since = 0;
        }
        std::memcpy(reinterpret_cast<void*>(t), reinterpret_cast<void*>(f), piece);
        since += piece;
        t += piece;
        f += piece;
        left -= piece;
      }
    }
  }
  return true;
}

bool MemoryMap::Fill(BoxAt to, Pattern pattern, Box box) const {
  size_t span;
  if (!SpanOf(to, box, &span)) return false;
  bool check = InWindow(to.base);
  std::shared_lock lock(lock_);
  if (check && !Accessible(to.base, span, true)) return false;
  size_t since = 0;
  for (size_t z = 0; z < box.depth; ++z) {
    for (size_t y = 0; y < box.height; ++y) {
      uintptr_t t = to.base + z * to.plane_pitch + y * to.row_pitch;
      for (size_t left = box.width; left;) {
        size_t piece = std::min(left, kPiece);
        if (since + piece > kPiece) {
          lock.unlock();
          lock.lock();
          if (check && !Accessible(to.base, span, true)) return false;
          since = 0;
        }
        FillRow(reinterpret_cast<std::byte*>(t), pattern, piece);
        since += piece;
        t += piece;
        left -= piece;
      }
    }
  }
  return true;
}

}  // namespace cuplex::softcuda
