// Memory: what a session's addresses are. Data and look-up; reactor's thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "server/address_space.h"
#include "server/arena.h"

namespace cuplex::server {

/// A piece that small allocations of one context share.
struct Chunk {
  Piece piece;
  AddressSpace space;
  uint32_t context = 0;
};
inline constexpr uint64_t kSmallAlignment = 512;

/// A range of addresses that a session may name.
struct Allocation {
  enum class Kind : uint8_t {
    kPiece,    // device memory with a piece of its own
    kChunk,    // device memory inside a chunk
    kHost,     // pinned host memory
    kManaged,  // the same, charged as device memory
    kGlobal,   // a variable of a module; goes with it
  };
  Kind kind = Kind::kPiece;
  uint64_t base = 0;
  uint64_t bytes = 0;  // as asked for
  uint32_t context = 0;
  Piece piece;             // kPiece; of host memory base and bytes as mapped
  Chunk* chunk = nullptr;  // kChunk
  uint64_t chunk_bytes = 0;

  bool on_host() const { return kind == Kind::kHost || kind == Kind::kManaged; }
};

/// All ranges of a session by address. They never overlap.
class MemoryRanges {
 public:
  void Add(Allocation allocation) { ranges_.emplace(allocation.base, std::move(allocation)); }
  /// The range that begins there, or nullptr.
  Allocation* At(uint64_t base) {
    auto at = ranges_.find(base);
    return at == ranges_.end() ? nullptr : &at->second;
  }
  /// The range that all of [address, address + bytes) lies in, or nullptr. The last one found is looked at
  /// first: programs work on few buffers at a time.
  const Allocation* Around(uint64_t address, uint64_t bytes) {
    if (last_ && Holds(*last_, address, bytes)) return last_;
    auto after = ranges_.upper_bound(address);
    if (after == ranges_.begin()) return nullptr;
    const Allocation& found = std::prev(after)->second;
    if (!Holds(found, address, bytes)) return nullptr;
    return last_ = &found;
  }
  std::optional<Allocation> Take(uint64_t base) {
    auto at = ranges_.find(base);
    if (at == ranges_.end()) return std::nullopt;
    Allocation taken = at->second;
    ranges_.erase(at);
    last_ = nullptr;
    ++taken_;
    return taken;
  }
  size_t size() const { return ranges_.size(); }
  /// How many have ever been taken away: what was found before is still there where this is the same.
  uint64_t taken() const { return taken_; }
  const std::map<uint64_t, Allocation>& all() const { return ranges_; }

 private:
  static bool Holds(const Allocation& a, uint64_t address, uint64_t bytes) {
    return address >= a.base && address - a.base <= a.bytes && bytes <= a.bytes - (address - a.base);
  }
  std::map<uint64_t, Allocation> ranges_;
  const Allocation* last_ = nullptr;
  uint64_t taken_ = 0;
};

}  // namespace cuplex::server
