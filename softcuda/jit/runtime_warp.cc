// Functions that the code of a warp in lockstep calls for what is too rare to be done in it.
#include <algorithm>
#include <bit>

#include "softcuda/jit/lockstep/warp.h"
#include "softcuda/jit/program.h"
#include "softcuda/jit/reach.h"
#include "softcuda/jit/running.h"
#include "softcuda/jit/runtime.h"

namespace cuplex::softcuda {
namespace {

template <typename F>
void EachLane(uint32_t lanes, F&& visit) {
  for (; lanes; lanes &= lanes - 1) visit(static_cast<uint32_t>(std::countr_zero(lanes)));
}

/// Some lane's address may be outside of the window: comes back if those of `lanes` are all right. Bytes low
/// .. high around each address are touched. `list` has the addresses; where it is null `described` has.
void OutsideWindow(BlockContext*, Warp* warp, const WarpAddresses* described, const uint64_t* list,
                   uint32_t lanes, int64_t low, int64_t high, uint32_t alignment) {
  Running& r = *CurrentRunning();
  r.lane = &warp->lane;
  EachLane(lanes, [&](uint32_t i) {
    warp->lane.linear = warp->first + i;
    uint64_t address = list ? list[i] : described->At(i);
    uint64_t at = address + static_cast<uint64_t>(low);
    if (address & (alignment - 1)) RaiseFault(r, Fault::Kind::kMisalignedAddress, at, "");
    if (!MayTouch(r, at, static_cast<size_t>(high - low))) {
      RaiseFault(r, Fault::Kind::kIllegalAddress, at, "");
    }
  });
  warp->lane.linear = warp->first;
}

/// The same for offsets in a state space of `limit` bytes: 0 shared, 1 local, 2 parameters.
void OutOfBounds(BlockContext* block, Warp* warp, const WarpAddresses* described, const uint64_t* list,
                 uint32_t lanes, int64_t low, int64_t high, uint32_t alignment, uint64_t limit,
                 uint32_t zone) {
  Running& r = *CurrentRunning();
  r.lane = &warp->lane;
  auto span = static_cast<uint64_t>(high - low);
  EachLane(lanes, [&](uint32_t i) {
    warp->lane.linear = warp->first + i;
    uint64_t offset = (list ? list[i] : described->At(i)) + static_cast<uint64_t>(low);
    uint64_t base = zone == 0   ? block->shared
                    : zone == 1 ? warp->local + uint64_t{i} * block->local_bytes
                                : block->params;
    if (offset & (alignment - 1)) RaiseFault(r, Fault::Kind::kMisalignedAddress, base + offset, "");
    if (span > limit || offset > limit - span) {
      RaiseFault(r, Fault::Kind::kIllegalAddress, base + offset,
                 "outside of the shared, local or parameter memory there is");
    }
  });
  warp->lane.linear = warp->first;
}

// Lane by lane, for addresses that turned out not to lie in a row: element k of lane i is number
// k * kWarpSize + i of `values`.

template <typename T>
void LoadAs(const WarpAddresses& at, uint32_t lanes, T* values, uint32_t count) {
  EachLane(lanes, [&](uint32_t i) {
    const T* from = reinterpret_cast<const T*>(at.At(i));
    for (uint32_t k = 0; k < count; ++k) values[k * kWarpSize + i] = from[k];
  });
}
template <typename T>
void StoreAs(const WarpAddresses& at, uint32_t lanes, const T* values, uint32_t count) {
  EachLane(lanes, [&](uint32_t i) {
    T* to = reinterpret_cast<T*>(at.At(i));
    for (uint32_t k = 0; k < count; ++k) to[k] = values[k * kWarpSize + i];
  });
}

void Load(const WarpAddresses* at, uint32_t lanes, void* values, uint32_t bytes, uint32_t count) {
  switch (bytes) {
    case 1:
      return LoadAs(*at, lanes, static_cast<uint8_t*>(values), count);
    case 2:
      return LoadAs(*at, lanes, static_cast<uint16_t*>(values), count);
    case 4:
      return LoadAs(*at, lanes, static_cast<uint32_t*>(values), count);
    default:
      return LoadAs(*at, lanes, static_cast<uint64_t*>(values), count);
  }
}

void Store(const WarpAddresses* at, uint32_t lanes, const void* values, uint32_t bytes, uint32_t count) {
  switch (bytes) {
    case 1:
      return StoreAs(*at, lanes, static_cast<const uint8_t*>(values), count);
    case 2:
      return StoreAs(*at, lanes, static_cast<const uint16_t*>(values), count);
    case 4:
      return StoreAs(*at, lanes, static_cast<const uint32_t*>(values), count);
    default:
      return StoreAs(*at, lanes, static_cast<const uint64_t*>(values), count);
  }
}

/// match, and redux whose masks differ between lanes.
void PerformCollective(uint32_t op, uint32_t here, const uint64_t* values, const uint32_t* masks,
                       uint32_t* words, uint32_t* predicates) {
  auto kind = static_cast<Collective>(op);
  EachLane(here, [&](uint32_t i) {
    uint32_t group = masks[i] & here;
    uint32_t word = 0, same = 0;
    bool first = true;
    EachLane(group, [&](uint32_t j) {
      auto v = static_cast<uint32_t>(values[j]);
      same |= values[j] == values[i] ? 1u << j : 0;
      if (first) {
        word = v;
        first = false;
        return;
      }
      auto sv = static_cast<int32_t>(v), sw = static_cast<int32_t>(word);
      switch (kind) {
        case Collective::kReduxAdd:
          word += v;
          break;
        case Collective::kReduxAnd:
          word &= v;
          break;
        case Collective::kReduxOr:
          word |= v;
          break;
        case Collective::kReduxXor:
          word ^= v;
          break;
        case Collective::kReduxMinS:
          word = static_cast<uint32_t>(std::min(sw, sv));
          break;
        case Collective::kReduxMaxS:
          word = static_cast<uint32_t>(std::max(sw, sv));
          break;
        case Collective::kReduxMinU:
          word = std::min(word, v);
          break;
        case Collective::kReduxMaxU:
          word = std::max(word, v);
          break;
        default:
          break;
      }
    });
    predicates[i] = 1;
    switch (kind) {
      case Collective::kMatchAny32:
      case Collective::kMatchAny64:
        words[i] = same;
        break;
      case Collective::kMatchAll32:
      case Collective::kMatchAll64:
        predicates[i] = same == group;
        words[i] = same == group ? group : 0;
        break;
      default:
        words[i] = word;
    }
  });
}

template <typename F>
void* Of(F* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

std::span<const RuntimeSymbol> WarpSymbols() {
  static const RuntimeSymbol symbols[] = {
      {"cuplex_warp_outside_window", Of(&OutsideWindow)},
      {"cuplex_warp_out_of_bounds", Of(&OutOfBounds)},
      {"cuplex_warp_load", Of(&Load)},
      {"cuplex_warp_store", Of(&Store)},
      {"cuplex_warp_collective", Of(&PerformCollective)},
  };
  return symbols;
}

}  // namespace cuplex::softcuda
