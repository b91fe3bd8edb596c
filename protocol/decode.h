// Checks frames and hands them to a CallHandler. Called by the thread that drains a session's ring.
#pragma once

#include <span>

#include "base/result.h"
#include "protocol/call_handler.h"
#include "protocol/frame.h"

namespace cuplex {

/// Checks a header: version, length, number, slot against `slot_count`. Errors are the sender's fault and end
/// its session.
Result<CallFrame> CheckHeader(const FrameHeader& header, uint32_t slot_count);

/// Decodes the bytes behind a header and calls the handler. `bytes` must be private memory. Where the outcome
/// is `later` the payload is empty and the handler replies itself. Errors: the bytes are not the call's
/// arguments.
Status DecodeCall(const CallFrame& frame, std::span<const std::byte> bytes, CallHandler& handler,
                  CallReply* reply);

}  // namespace cuplex
