// What machine code and scheduler share: the context of a running block, the record of one of its threads,
// and the ways a thread can give up the processor. Byte layouts are those of the structs; the emitter takes
// them by offsetof.
//
// One thread at a time: a block runs on one worker, its threads one after another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cuplex::softcuda {

/// Why a thread returned from its step.
enum class Step : uint32_t {
  kDone,        // ran to its end
  kYield,       // wants others to run first: it waits for memory to change
  kBarrier,     // waits at Lane::op = barrier number for Lane::count threads (0: all of the block)
  kCollective,  // waits until the lanes of Lane::mask are at the same collective
  kConverge,    // a collective of those lanes of the warp that happen to get here
};

/// A collective of a warp, Lane::op for kCollective and kConverge.
enum class Collective : uint32_t {
  kSync,
  kShflUp,  // value, b: delta or lane, c: clamp and segment mask, as PTX packs them
  kShflDown,
  kShflBfly,
  kShflIdx,
  kVoteAll,  // value: the predicate
  kVoteAny,
  kVoteUni,
  kVoteBallot,
  kMatchAny32,
  kMatchAny64,
  kMatchAll32,
  kMatchAll64,
  kReduxAdd,
  kReduxAnd,
  kReduxOr,
  kReduxXor,
  kReduxMinS,
  kReduxMinU,
  kReduxMaxS,
  kReduxMaxU,
  kReduxMinF,  // b: whether a NaN wins
  kReduxMaxF,
  kElect,
  kActivemask,
  kMatrix,  // value: a packed MatrixOp (matrix.h), b: where in the record its words lie
};

/// Barriers that a program numbers; the cluster's, which is its one block's, comes after them.
inline constexpr uint32_t kNumberedBarriers = 16;
inline constexpr uint32_t kClusterBarrier = kNumberedBarriers;

/// What a barrier computes of its threads' predicates, Lane::b for kBarrier.
enum class BarrierVote : uint32_t { kNone, kPopc, kAnd, kOr };

/// A thread. Registers that live across a suspension follow, Code::lane_bytes in all.
struct alignas(16) Lane {
  uint32_t resume = 0;  // where to go on; 0 is the kernel's start
  uint32_t op = 0;
  uint32_t mask = 0;
  uint32_t count = 0;
  uint64_t value = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint64_t result = 0;
  uint32_t result_predicate = 0;
  uint32_t linear = 0;  // number in the block
  uint32_t tid[3] = {};
  uint32_t cluster_phase = 0;  // of the cluster's barrier, when the thread arrived there
  uint64_t local = 0;          // address of the thread's local memory
  uint32_t stack = 0;          // local address at which the next alloca finds room
};
static_assert(sizeof(Lane) % 16 == 0);

/// Bytes of address space that belong to a block's shared memory and to its parameters.
inline constexpr uint64_t kSharedWindow = 256u << 10;
inline constexpr uint64_t kParamWindow = 32u << 10;

/// A block, as machine code sees it.
struct BlockContext {
  uint32_t ntid[3] = {};
  uint32_t nctaid[3] = {};
  uint32_t ctaid[3] = {};
  uint32_t threads = 0;       // ntid multiplied out
  uint32_t shared_bytes = 0;  // static + dynamic, rounded up to 16
  uint32_t dynamic_shared = 0;
  uint32_t local_bytes = 0;  // per thread, a multiple of 16
  uint32_t smid = 0;
  uint32_t nsmid = 0;
  uint32_t envreg1 = 0;
  uint32_t envreg2 = 0;
  uint32_t reserved = 0;
  uint64_t grid_id = 0;
  uint64_t shared = 0;           // address
  uint64_t params = 0;           // address; inside the aperture
  const void* window = nullptr;  // AddressWindow
};

/// The thread's index on three axes.
inline std::array<uint32_t, 3> ThreadOf(const BlockContext& block, const Lane& lane) {
  return {lane.linear % block.ntid[0], lane.linear / block.ntid[0] % block.ntid[1],
          lane.linear / block.ntid[0] / block.ntid[1]};
}

/// Machine code has no marks in front of it that tell its type, and perhaps no memory either; so its callers
/// must not look.
#define CUPLEX_CALLS_MACHINE_CODE [[clang::no_sanitize("function")]]

/// Code of kernels whose threads never wait: runs all threads of the block, `lane` is scratch.
using LoopCode = void (*)(BlockContext* block, Lane* lane);
/// Code of kernels whose threads wait: runs one thread up to its next suspension.
using StepCode = uint32_t (*)(BlockContext* block, Lane* lane);

}  // namespace cuplex::softcuda
