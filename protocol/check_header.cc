#include "protocol/decode.h"

namespace cuplex {

Result<CallFrame> CheckHeader(const FrameHeader& h, uint32_t slot_count) {
  if (h.version != kProtocolVersion)
    return Fail(Blame::kCaller, "a frame has protocol version {}, {} was expected.", h.version,
                kProtocolVersion);
  if (h.bytes < sizeof(FrameHeader) || h.bytes > kMaxFrameBytes || h.bytes % 8 != 0)
    return Fail(Blame::kCaller, "a frame says it has {} bytes, a multiple of 8 from {} to {} was expected.",
                h.bytes, sizeof(FrameHeader), kMaxFrameBytes);
  const OpRow* row = FindOp(h.op);
  if (!row) return Fail(Blame::kCaller, "call {:#06x} is unknown.", h.op);
  if (h.flags != 0) return Fail(Blame::kCaller, "{} has flags {:#x}, 0 was expected.", row->name, h.flags);
  if (row->oneway != (h.slot == kNoSlot))
    return Fail(Blame::kCaller, "{} has completion slot {:#x}, which is wrong for a {} call.", row->name,
                h.slot, row->oneway ? "one-way" : "replying");
  if (!row->oneway && h.slot >= slot_count)
    return Fail(Blame::kCaller, "{} has completion slot {}, 0 to {} were expected.", row->name, h.slot,
                slot_count - 1);
  return CallFrame{row, h.slot, h.context};
}

}  // namespace cuplex
