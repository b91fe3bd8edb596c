// StagingArea: the client's side of the staging blocks (protocol/staging.h). Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "cuda/driver_types.h"
#include "protocol/segment.h"
#include "protocol/staging.h"

namespace cuplex::client {

class StagingArea {
 public:
  StagingArea(const Segment& segment, const std::atomic<bool>& gone);

  uint32_t block_bytes() const { return segment_.geometry().block_bytes; }
  uint32_t block_count() const { return segment_.geometry().block_count; }

  /// Takes a free block, which is then in flight. nullopt where there is none.
  std::optional<uint32_t> TryClaim();
  /// Waits for one; nullopt once the server is gone. Not to be called by who holds blocks that only it can
  /// release.
  std::optional<uint32_t> Claim();
  /// Waits until a block is not in flight, whoever has it by now; false where the server is gone.
  bool AwaitSettled(uint32_t block);
  /// Waits until the server has filled a block; the code of the copy that did, or kServerGone.
  CUresult AwaitFilled(uint32_t block);
  void Release(uint32_t block);

  std::byte* Bytes(uint32_t block) const { return segment_.staging() + Offset(block); }
  /// What wireCopy calls it: bytes from the start of the area.
  uint64_t Offset(uint32_t block) const { return uint64_t{block} * block_bytes(); }

 private:
  const Segment& segment_;
  const std::atomic<bool>& gone_;
  std::atomic<uint32_t> next_{0};
};

}  // namespace cuplex::client
