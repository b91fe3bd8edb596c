// Segment: the shared memory between one client process and the server.
//
// The server makes it, sealed against resizing, and passes it over the session's socket. Each side keeps its
// own copy of the geometry and never reads it back from the memory. The server treats every byte as hostile:
// the other side may change anything at any time.
//
//     segment = header slots blocks staging ring
//     header  = SegmentHeader, one page
//     slots   = slot_count x { SlotHeader payload }          replies, protocol/slot.h
//     blocks  = block_count x StagingBlock                   who has which staging block, protocol/staging.h
//     staging = block_count x block_bytes                    bulk bytes
//     ring    = ring_bytes of frames, mapped twice in a row  calls, protocol/ring.h
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "base/unique_fd.h"

namespace cuplex {

/// Offsets and sizes in bytes; offsets and ring_bytes are multiples of the page size.
struct SegmentGeometry {
  uint64_t slot_offset = 0;
  uint64_t block_offset = 0;
  uint64_t staging_offset = 0;
  uint64_t ring_offset = 0;
  uint32_t ring_bytes = 1 << 20;  // a power of two
  uint32_t slot_count = 64;
  uint32_t slot_bytes = 8192;
  uint32_t block_count = 64;
  uint32_t block_bytes = 256 << 10;

  /// The same sizes with offsets filled in.
  SegmentGeometry Laid() const;
  uint64_t total_bytes() const { return ring_offset + ring_bytes; }
  /// The sizes are sane and the offsets are those of Laid().
  bool Valid() const;
};

inline constexpr uint32_t kInboxCount = 256;  // entries, a power of two

struct alignas(64) SegmentHeader {
  static constexpr uint32_t kAsleep = 1, kNaps = 2;

  // client writes
  alignas(64) std::atomic<uint64_t> ring_tail;   // bytes ever written
  alignas(64) std::atomic<uint64_t> inbox_head;  // callbacks ever taken
  // server writes
  alignas(64) std::atomic<uint64_t> ring_head;   // bytes ever taken
  alignas(64) std::atomic<uint64_t> inbox_tail;  // callbacks ever given
  alignas(64) std::atomic<uint32_t> inbox_bell;  // futex: changes with inbox_tail
  /// kAsleep: ring the doorbell after writing; kNaps: only for what cannot wait until the server wakes by
  /// itself, soon. Whoever rings clears it.
  alignas(64) std::atomic<uint32_t> server_asleep;
  alignas(64) std::atomic<uint32_t> space_wanted;  // futex: 1 while a client waits for ring space; server
                                                   // clears and wakes
  // both write
  alignas(64) std::atomic<int32_t> sticky_error;  // CUresult of a fault: every call of the process answers it
  std::atomic<int32_t>
      deferred_error;  // CUresult of a one-way call: reported once, then cleared by the client
  // server writes: 1 where kernels have printed what the client has not taken (wireTakeText)
  std::atomic<uint32_t> text_waiting;
  alignas(64) std::atomic<uint64_t> inbox[kInboxCount];  // cookies of host functions to run
};
static_assert(sizeof(SegmentHeader) <= 4096);

class Segment {
 public:
  /// Makes a segment and maps it (server).
  static Result<Segment> Create(const SegmentGeometry& sizes);
  /// Maps one that was received (client). Fails where the descriptor does not hold what `geometry` says.
  static Result<Segment> Map(UniqueFd fd, const SegmentGeometry& geometry);

  Segment() = default;
  Segment(Segment&& o) noexcept;
  Segment& operator=(Segment&& o) noexcept;
  ~Segment();

  int fd() const { return fd_.get(); }
  const SegmentGeometry& geometry() const { return geometry_; }
  SegmentHeader* header() const { return reinterpret_cast<SegmentHeader*>(base_); }
  std::byte* slots() const { return base_ + geometry_.slot_offset; }
  std::byte* blocks() const { return base_ + geometry_.block_offset; }
  std::byte* staging() const { return base_ + geometry_.staging_offset; }
  uint64_t staging_bytes() const {
    return static_cast<uint64_t>(geometry_.block_count) * geometry_.block_bytes;
  }
  /// ring_bytes, and the same again behind: a frame never wraps.
  std::byte* ring() const { return base_ + geometry_.ring_offset; }

 private:
  UniqueFd fd_;
  SegmentGeometry geometry_;
  std::byte* base_ = nullptr;
};

/// A memfd of `bytes` that can be neither grown nor shrunk; zero-filled.
Result<UniqueFd> MakeSealedMemory(const char* name, uint64_t bytes);

}  // namespace cuplex
