// The frame: how one call lies in the submission ring, and what a handler says of it. Data: any thread.
//
//     frame  = header args { span pad } pad8
//     header = bytes:u32      whole frame, header included, a multiple of 8
//              op:u16         number of the call, protocol/ops.h
//              version:u8     kProtocolVersion
//              flags:u8       0
//              slot:u32       completion slot that takes the reply, kNoSlot for one-way calls
//              context:u32    the calling thread's context, 0 where it has none
//     args   = FlatBuffers struct of the call
//     span   = bytes, their count in args, in the order of the parameters; no padding between them
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cuda/driver_types.h"

namespace cuplex {

struct OpRow;

inline constexpr uint8_t kProtocolVersion = 1;
inline constexpr uint32_t kNoSlot = 0xffffffff;
/// The longest frame a client may send, in bytes.
inline constexpr uint32_t kMaxFrameBytes = 128 * 1024;

struct FrameHeader {
  uint32_t bytes = 0;
  uint16_t op = 0;
  uint8_t version = kProtocolVersion;
  uint8_t flags = 0;
  uint32_t slot = kNoSlot;
  uint32_t context = 0;
};
static_assert(sizeof(FrameHeader) == 16);

/// A frame whose header has been checked: the op is known, and it has a slot exactly if it is not one-way.
struct CallFrame {
  const OpRow* row = nullptr;
  uint32_t slot = kNoSlot;
  uint32_t context = 0;
};

/// What a handler says: a code now, or that the reply comes later (never for one-way calls).
struct Outcome {
  CUresult result = CUDA_SUCCESS;
  bool later = false;

  Outcome(CUresult r) : result(r) {}  // NOLINT: implicit on purpose
  static Outcome Later() {
    Outcome o(CUDA_SUCCESS);
    o.later = true;
    return o;
  }
};

/// A reply being put together: the code, then the payload.
struct CallReply {
  Outcome outcome = CUDA_SUCCESS;
  std::string payload;

  void Append(const void* data, size_t bytes) { payload.append(static_cast<const char*>(data), bytes); }
};

}  // namespace cuplex
