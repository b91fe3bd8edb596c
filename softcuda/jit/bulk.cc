#include "softcuda/jit/bulk.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "softcuda/jit/half.h"
#include "softcuda/jit/reach.h"
#include "softcuda/jit/running.h"

namespace cuplex::softcuda {
namespace {

template <typename T>
T Combine(BulkReduction operation, T a, T b) {
  switch (operation) {
    case BulkReduction::kAdd:
      return static_cast<T>(a + b);
    case BulkReduction::kMin:
      return std::min(a, b);
    case BulkReduction::kMax:
      return std::max(a, b);
    case BulkReduction::kInc:
      return a >= b ? 0 : a + 1;
    case BulkReduction::kDec:
      return a == 0 || a > b ? b : a - 1;
    case BulkReduction::kAnd:
      return a & b;
    case BulkReduction::kOr:
      return a | b;
    default:
      return a ^ b;
  }
}

/// Numbers win over NaN, and -0 is less than +0.
float CombineFloats(BulkReduction operation, float a, float b) {
  if (operation == BulkReduction::kAdd) return a + b;
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  bool less = a < b || (a == b && std::signbit(a));
  return (operation == BulkReduction::kMin) == less ? a : b;
}

/// `Bits` in memory, `combine` what becomes of them.
template <typename Bits, typename F>
void Each(std::byte* to, const std::byte* from, uint32_t size, F&& combine) {
  for (uint32_t i = 0; i < size; i += sizeof(Bits)) {
    auto* at = reinterpret_cast<Bits*>(to + i);
    Bits b;
    std::memcpy(&b, from + i, sizeof(b));
    Bits old = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(at, &old, static_cast<Bits>(combine(old, b)), true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
  }
}

void Reduce(BulkReduction operation, BulkType type, std::byte* to, const std::byte* from, uint32_t size) {
  switch (type) {
    case BulkType::kU32:
      return Each<uint32_t>(to, from, size, [&](uint32_t a, uint32_t b) { return Combine(operation, a, b); });
    case BulkType::kU64:
      return Each<uint64_t>(to, from, size, [&](uint64_t a, uint64_t b) { return Combine(operation, a, b); });
    case BulkType::kS32:
    case BulkType::kS64:
      if (operation == BulkReduction::kAdd) {
        return Reduce(operation, type == BulkType::kS32 ? BulkType::kU32 : BulkType::kU64, to, from, size);
      }
      if (type == BulkType::kS32) {
        return Each<int32_t>(to, from, size, [&](int32_t a, int32_t b) {
          return operation == BulkReduction::kMin ? std::min(a, b) : std::max(a, b);
        });
      }
      return Each<int64_t>(to, from, size, [&](int64_t a, int64_t b) {
        return operation == BulkReduction::kMin ? std::min(a, b) : std::max(a, b);
      });
    case BulkType::kF16:
      return Each<uint16_t>(to, from, size, [&](uint16_t a, uint16_t b) {
        return HalfFromFloat(CombineFloats(operation, FloatFromHalf(a), FloatFromHalf(b)));
      });
    case BulkType::kBf16:
      return Each<uint16_t>(to, from, size, [&](uint16_t a, uint16_t b) {
        return BrainFromFloat(CombineFloats(operation, FloatFromBrain(a), FloatFromBrain(b)));
      });
    case BulkType::kF32:
      return Each<uint32_t>(to, from, size, [](uint32_t a, uint32_t b) {
        return std::bit_cast<uint32_t>(std::bit_cast<float>(a) + std::bit_cast<float>(b));
      });
    case BulkType::kF64:
      return Each<uint64_t>(to, from, size, [](uint64_t a, uint64_t b) {
        return std::bit_cast<uint64_t>(std::bit_cast<double>(a) + std::bit_cast<double>(b));
      });
  }
}

}  // namespace

bool BulkHas(BulkReduction operation, BulkType type) {
  bool is_float = type >= BulkType::kF16;
  switch (operation) {
    case BulkReduction::kAdd:
      return true;
    case BulkReduction::kMin:
    case BulkReduction::kMax:
      return type <= BulkType::kBf16;
    case BulkReduction::kInc:
    case BulkReduction::kDec:
      return type == BulkType::kU32;
    default:
      return !is_float;
  }
}

void BulkCopy(Lane* lane, uint64_t to, uint64_t from, uint32_t size, uint32_t how) {
  Running& running = *CurrentRunning();
  running.lane = lane;
  if (size % 16) {
    RaiseFault(running, Fault::Kind::kMisalignedAddress, to,
               "a bulk copy of a size that is no multiple of 16");
  }
  if (!size) return;
  const std::byte* source = Reach(running, how & kBulkFromShared, from, size, 16);
  std::byte* target = Reach(running, how & kBulkToShared, to, size, 16);
  how &= kBulkToShared - 1;
  if (how == kPlainBulk) {
    std::memmove(target, source, size);
  } else {
    Reduce(static_cast<BulkReduction>((how - 1) >> 4), static_cast<BulkType>((how - 1) & 15), target, source,
           size);
  }
}

void BulkZero(Lane* lane, uint64_t to, uint64_t size, uint32_t shared) {
  Running& running = *CurrentRunning();
  running.lane = lane;
  if (size % 8) {
    RaiseFault(running, Fault::Kind::kMisalignedAddress, to,
               "a bulk store of a size that is no multiple of 8");
  }
  if (size) std::memset(Reach(running, shared, to, size, 8), 0, size);
}

void CopyPart(Lane* lane, void* to, uint64_t from, uint32_t size, uint32_t bytes) {
  Running& running = *CurrentRunning();
  running.lane = lane;
  std::byte whole[16] = {};
  if (bytes) std::memcpy(whole, Reach(running, false, from, bytes, size), bytes);
  std::memcpy(to, whole, size);
}

}  // namespace cuplex::softcuda
