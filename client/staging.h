// Staging: pageable memory on its way through the staging blocks, several in flight so that this process's
// copying and the server's overlap. Any thread.
#pragma once

#include <array>
#include <cstdint>

#include "client/process.h"
#include "client/staging_area.h"

namespace cuplex::client {

/// Blocks that one copy keeps in flight: enough that neither side waits for the other, few enough to stay in
/// caches.
inline constexpr uint64_t kBlocksInFlight = 6;

/// A copy to the device in `pieces`: fill(piece, bytes of a block) reads the program's memory, submit(piece,
/// offset of the block) posts the copy; both in order. Returns when all is staged.
template <typename Fill, typename Submit>
CUresult StageIn(const Caller& caller, uint64_t pieces, Fill fill, Submit submit) {
  StagingArea& staging = caller.session->staging();
  std::array<uint32_t, kBlocksInFlight> blocks;
  for (uint64_t piece = 0; piece < pieces; ++piece) {
    if (piece >= kBlocksInFlight && !staging.AwaitSettled(blocks[piece % kBlocksInFlight]))
      return kServerGone;
    const auto block = staging.Claim();
    if (!block) return kServerGone;
    blocks[piece % kBlocksInFlight] = *block;
    fill(piece, staging.Bytes(*block));
    if (CUresult r = submit(piece, staging.Offset(*block))) {
      staging.Release(*block);
      return r;
    }
  }
  return CUDA_SUCCESS;
}

/// A copy from the device in `pieces`: submit(piece, offset of the block) posts the copy, empty(piece, bytes
/// of the block) writes the program's memory; each in order. Returns when all has arrived.
template <typename Submit, typename Empty>
CUresult StageOut(const Caller& caller, uint64_t pieces, Submit submit, Empty empty) {
  StagingArea& staging = caller.session->staging();
  // Half of the blocks, so that two threads that copy do not starve each other.
  const uint64_t most = std::clamp<uint64_t>(staging.block_count() / 2, 1, kBlocksInFlight);
  std::array<uint32_t, kBlocksInFlight> blocks;
  CUresult result = CUDA_SUCCESS;
  uint64_t begun = 0;
  for (uint64_t ended = 0; ended < begun || begun < pieces;) {
    while (begun < pieces && begun - ended < most) {
      const auto block = begun == ended ? staging.Claim() : staging.TryClaim();
      if (!block && begun == ended) return kServerGone;
      if (!block) break;
      if (CUresult r = submit(begun, staging.Offset(*block))) {
        staging.Release(*block);
        if (!result) result = r;
        pieces = begun;  // what is in flight is still waited for
        break;
      }
      blocks[begun++ % kBlocksInFlight] = *block;
    }
    if (ended == begun) break;
    const uint32_t block = blocks[ended % kBlocksInFlight];
    const CUresult r = staging.AwaitFilled(block);
    if (r == kServerGone) return r;
    if (!result) result = r;
    if (!r) empty(ended, staging.Bytes(block));
    staging.Release(block);
    ++ended;
  }
  caller.session->submission().PrintText();
  return result;
}

}  // namespace cuplex::client
