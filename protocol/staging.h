// Staging blocks: where bulk bytes of pageable memory wait between client and server.
//
// A client claims a block (kFree -> kInFlight), fills it if it is a source, and names it in a wireCopy by its
// offset. The server, when the copy is done, gives a source block back (kFree) and says of a destination
// block that it is filled (kDone, with the copy's result); the client empties it and frees it. A copy lies
// within one block.
#pragma once

#include <atomic>
#include <cstdint>

#include "cuda/driver_types.h"
#include "protocol/segment.h"

namespace cuplex {

struct StagingBlock {
  enum State : uint32_t { kFree = 0, kInFlight = 1, kInFlightAsleep = 2, kDone = 3 };
  std::atomic<uint32_t> state;
  int32_t result;  // CUresult of the copy that filled it
};
static_assert(sizeof(StagingBlock) == 8);

inline StagingBlock* BlockAt(const Segment& s, uint32_t index) {
  return reinterpret_cast<StagingBlock*>(s.blocks()) + index;
}

/// Server: the copy from or to the block is done. `state` is kFree or kDone.
void FinishBlock(const Segment& s, uint32_t index, StagingBlock::State state, CUresult result);

/// Client: waits until a block is no longer in flight. False once `gone` is true and it still is.
bool AwaitBlock(StagingBlock* block, int spins, const std::atomic<bool>& gone);

}  // namespace cuplex
