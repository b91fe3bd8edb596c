// Markers: functions that the code of one thread calls to say what lockstep.h must know: values that depend
// on the thread, checks of addresses, places where threads meet. Nobody defines them; widening replaces every
// call.
#pragma once

namespace cuplex::softcuda::marker {

// Pure, of the calling thread.
inline constexpr const char* kTid[3] = {"thread.tid.x", "thread.tid.y", "thread.tid.z"};  // i32
inline constexpr const char* kLinear = "thread.linear";                                   // i32, in the block
inline constexpr const char* kLaneid = "thread.laneid";                                   // i32
inline constexpr const char* kWarpid = "thread.warpid";                                   // i32
inline constexpr const char* kLocal = "thread.local";  // i64, address of its local memory

/// i32(i32 a, i32 b, i32 c, i1, i1): the sum of c and the products of the four bytes of a and b, signed or
/// not. Pure.
inline constexpr const char* kDotProduct = "thread.dp4a";

/// i64(i32): an offset in a state space smaller than 2 GiB, extended; bounds are checked afterwards.
inline constexpr const char* kOffset = "thread.offset";

/// void(i64 address, i64 low, i64 high, i32 alignment, i32 bytes): bytes low .. high around the address are
/// about to be touched, `bytes` at a time, aligned to `alignment`, and must lie in the window.
inline constexpr const char* kCheckWindow = "thread.check.window";
/// void(i64 offset, i64 limit, i64 low, i64 high, i32 alignment, i32 bytes, i32 zone): the same in a state
/// space of `limit` bytes.
inline constexpr const char* kCheckBounds = "thread.check.bounds";

/// i32(i32 id, i32 count, i32 vote, i32 arrives, i1 predicate): a barrier; the arguments as in lane.h.
inline constexpr const char* kBarrier = "thread.barrier";
/// {i32, i1}(i32 op, i32 sync, iN value, i32 b, i32 c, i32 mask): a Collective.
inline constexpr const char* kCollective = "thread.collective.32";
inline constexpr const char* kCollective64 = "thread.collective.64";

/// {iW...}(i64 op, ...): a packed MatrixOp (matrix.h) of the warp. Of loads and stores the address and the
/// stride in elements follow, of tiles the address; then the lane's registers, and those that it gets come
/// back, of 32 bits or 64 as the op has them. What kind of call it is follows in the name.
inline constexpr const char* kMatrix = "thread.matrix.";

}  // namespace cuplex::softcuda::marker
