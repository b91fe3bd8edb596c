// Bulk copies between a block's shared memory and global memory, and copies that combine with what is there.
// Called by machine code, on a thread that is Running.
#pragma once

#include <cstdint>

namespace cuplex::softcuda {

struct Lane;

enum class BulkReduction : uint32_t { kAdd, kMin, kMax, kInc, kDec, kAnd, kOr, kXor };
enum class BulkType : uint32_t { kU32, kS32, kU64, kS64, kF16, kBf16, kF32, kF64 };

// How a copy is to be done: kPlainBulk or PackBulk, with the flags.
inline constexpr uint32_t kPlainBulk = 0;
inline constexpr uint32_t kBulkToShared = 1u << 16;  // the address is an offset in shared memory
inline constexpr uint32_t kBulkFromShared = 1u << 17;
constexpr uint32_t PackBulk(BulkReduction operation, BulkType type) {
  return 1 + (static_cast<uint32_t>(operation) << 4 | static_cast<uint32_t>(type));
}

/// Whether PTX has the operation for the type.
bool BulkHas(BulkReduction operation, BulkType type);

/// `size` bytes; all three must be multiples of 16. Elements are combined one by one, each atomically.
void BulkCopy(Lane* lane, uint64_t to, uint64_t from, uint32_t size, uint32_t how);

/// st.bulk: zeros; address and size must be multiples of 8.
void BulkZero(Lane* lane, uint64_t to, uint64_t size, uint32_t shared);

/// The first `bytes` of `size` (4, 8 or 16), and zeros for the rest; `to` is checked, `from` a global
/// address.
void CopyPart(Lane* lane, void* to, uint64_t from, uint32_t size, uint32_t bytes);

}  // namespace cuplex::softcuda
