// MemoryMap: what lies at which address. It places and unmaps all memory that programs ask for, keeps the
// addresses that they reserve and what they map there, and is the only way in which the driver itself touches
// that memory. Any thread.
//
// Kernels and copies run in this process, so the addresses are real ones: a block is mapped while it lives
// and its addresses fault before and after. Fresh memory is zero because it comes from the kernel each time.
//
//     device range   | reservations, from below up ... | ... blocks of device memory, from above down |
//     host range     | pinned and managed blocks |
//
// Memory that a program registers (cuMemHostRegister) keeps its own address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "base/unique_fd.h"
#include "cuda/driver_types.h"
#include "softcuda/address_ranges.h"
#include "softcuda/handles.h"
#include "softcuda/window.h"

namespace cuplex::softcuda {

class Context;
class Device;
class Driver;
class Pool;

inline constexpr size_t kPage = 4096;
inline constexpr size_t kMappingUnit = size_t{2} << 20;  // granularity of the virtual memory calls

/// One piece of memory that is mapped while it lives.
struct Block {
  enum class Kind : uint8_t {
    kDevice,      // cuMemAlloc
    kPool,        // cuMemAllocAsync
    kModule,      // variables of modules, and the driver's own
    kPinned,      // cuMemHostAlloc
    kManaged,     // cuMemAllocManaged
    kRegistered,  // cuMemHostRegister: the program's own memory
    kArray,       // of arrays, which programs name by handle
  };

  Kind kind = Kind::kDevice;
  uintptr_t base = 0;
  size_t size = 0;    // as asked for
  size_t mapped = 0;  // whole pages; what is charged, if anything is
  Device* device = nullptr;
  Context* context = nullptr;
  unsigned flags = 0;  // of the call that made it
  uint64_t id = 0;
  Ref<Pool> pool;

  bool on_host() const { return kind == Kind::kPinned || kind == Kind::kRegistered; }
  bool charged() const { return !on_host(); }
};

/// Memory without an address: what cuMemCreate makes and cuMemMap maps. Fields after `imported` are guarded
/// by the map's lock.
class Physical {
 public:
  Physical(Device& device, size_t size, const CUmemAllocationProp& prop)
      : device(device), size(size), prop(prop) {}
  ~Physical();
  Physical(const Physical&) = delete;

  Device& device;
  const size_t size;
  const CUmemAllocationProp prop;
  UniqueFd file;          // the whole file is this memory, sealed in size
  bool imported = false;  // another process's budget holds it

  unsigned handles = 1;   // how often cuMemRelease is due
  unsigned mappings = 0;  // the handle is void when both are 0
};

/// What softcuda knows about an address.
struct Located {
  std::optional<Block> block;
  // Where no block is: a mapping, or a reservation without one.
  uintptr_t base = 0;  // of the reservation
  size_t size = 0;
  uintptr_t mapping_base = 0;
  size_t mapping_size = 0;  // 0: nothing is mapped there
  CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  Ref<Physical> physical;
};

/// A box of bytes in linear memory: `depth` planes of `height` rows of `width` bytes.
struct Box {
  size_t width = 0, height = 1, depth = 1;

  bool empty() const { return !width || !height || !depth; }
};
struct BoxAt {
  uintptr_t base = 0;
  size_t row_pitch = 0, plane_pitch = 0;  // bytes from one row, or plane, to the next
};
/// What a row is filled with: `unit` bytes of `value`, again and again; unit is 1, 2 or 4.
struct Pattern {
  uint32_t value = 0;
  unsigned unit = 1;
};

class MemoryMap {
 public:
  explicit MemoryMap(Driver& driver);

  // ------------------------------------------------------------------------------------------- blocks
  /// Maps fresh memory for `want` (kind, size, context, flags, pool) and charges the device.
  CUresult Allocate(Block want, uintptr_t* base);
  /// Takes the block that starts at `base` out, unmaps it and refunds the device. `kinds` is a mask of 1 <<
  /// kind.
  CUresult Free(uintptr_t base, unsigned kinds);
  /// Frees all blocks of a context.
  void FreeAll(Context& context);
  CUresult Register(Block want);
  CUresult Unregister(uintptr_t base);
  Located Find(uintptr_t address) const;
  /// The block that starts exactly there.
  std::optional<Block> BlockAt(uintptr_t base) const;

  // --------------------------------------------------------------------------- reservations, mappings
  CUresult Reserve(size_t size, size_t alignment, uintptr_t hint, uintptr_t* base);
  CUresult Unreserve(uintptr_t base, size_t size);
  CUresult Map(uintptr_t base, size_t size, size_t offset, const Ref<Physical>& physical);
  /// The range must be made of whole mappings, with nothing missing; so in the next.
  CUresult Unmap(uintptr_t base, size_t size);
  CUresult SetAccess(uintptr_t base, size_t size, CUmemAccess_flags access);

  CUresult Create(Device& device, size_t size, const CUmemAllocationProp& prop, Ref<Physical>* made);
  CUresult Import(Device& device, int fd, Ref<Physical>* made);
  CUresult Release(const Ref<Physical>& physical);
  /// One more cuMemRelease is due: for memory that is mapped.
  bool Retain(const Ref<Physical>& physical);

  // ------------------------------------------------------------------------------------------- access
  enum class Side { kDevice, kHost, kNowhere };
  /// Which memory a pointer means: the device's (all of `bytes` is there to be accessed so), the program's,
  /// or addresses of the window where nothing lies.
  Side SideOf(uintptr_t address, size_t bytes, bool write) const;
  /// Whether the range is pinned or registered host memory, or managed.
  bool IsPinned(uintptr_t address, size_t bytes) const;

  /// Copies, or fills, unless part of the range in the window is no longer there: then false. Ranges may
  /// overlap only where Box is one row.
  bool Copy(BoxAt to, BoxAt from, Box box) const;
  bool Fill(BoxAt to, Pattern pattern, Box box) const;

 private:
  struct Mapping {
    size_t size;
    size_t offset;
    CUmemAccess_flags access;
    Ref<Physical> physical;
  };
  struct Reservation {
    size_t size;
  };

  // All under lock_.
  const Block* BlockAround(uintptr_t address) const;
  bool Accessible(uintptr_t address, size_t bytes, bool write) const;
  bool InWindow(uintptr_t address) const;
  bool Reserved(uintptr_t base, size_t size) const;
  void Remove(std::map<uintptr_t, Block>::iterator it);

  Driver& driver_;
  mutable std::shared_mutex lock_;
  AddressRanges device_addresses_;
  AddressRanges host_addresses_;
  std::map<uintptr_t, Block> blocks_;
  std::map<uintptr_t, Reservation> reservations_;
  std::map<uintptr_t, Mapping> mappings_;
};

}  // namespace cuplex::softcuda
