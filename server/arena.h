// Arena: one tenant's device addresses on one device, and the mapping of physical memory into them.
//
// An arena is a power of two of addresses, aligned to its size, reserved once and kept as long as the tenant
// is known. Pieces of whole granules are placed in it on the reactor's thread; MapPiece and UnmapPiece call
// the driver and may run on any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "cuda/driver_table.h"
#include "server/address_space.h"
#include "server/device.h"

namespace cuplex::server {

inline constexpr uint64_t kLeastArena = uint64_t{4} << 30;
/// Arenas are this much larger than the limit, so that holes between allocations never stand in the way.
inline constexpr uint64_t kArenaOverLimit = 4;

class Arena {
 public:
  /// Reserves the range for a tenant that may hold `limit_bytes`.
  static Result<std::unique_ptr<Arena>> Reserve(const DriverTable& cu, const Device& device,
                                                uint64_t limit_bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  uint64_t base() const { return space_.base(); }
  uint64_t bytes() const { return space_.bytes(); }
  /// Where pieces lie.
  AddressSpace& space() { return space_; }

 private:
  Arena(const DriverTable& cu, AddressSpace space) : cu_(cu), space_(std::move(space)) {}

  const DriverTable& cu_;
  AddressSpace space_;
};

/// Physical memory, mapped.
struct Piece {
  uint64_t base = 0;
  uint64_t bytes = 0;
  CUmemGenericAllocationHandle handle = 0;
};

/// Makes memory of `bytes` (whole granules) and maps it at `base` in an arena. Where `zero_in` is a context,
/// it is filled with zeros there before anyone can see it. Where a step fails, those before it are taken
/// back; `kept` says that the driver would not, and then addresses and memory stay counted as with
/// UnmapPiece.
Result<Piece> MapPiece(const DriverTable& cu, const Device& device, uint64_t base, uint64_t bytes,
                       CUcontext zero_in, bool* kept);

/// Unmaps a piece and gives its memory back. An error leaves the memory with the driver: whoever counts
/// memory must go on counting it.
Status UnmapPiece(const DriverTable& cu, const Piece& piece);

}  // namespace cuplex::server
