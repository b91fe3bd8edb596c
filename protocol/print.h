// The text of a call, for traces: "wireLaunch(function=..., ...)". Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace cuplex {

/// `args` are the bytes behind a frame's header; short or unknown calls are said to be so.
std::string PrintCall(uint16_t op, std::span<const std::byte> args);

}  // namespace cuplex
