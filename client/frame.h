// FrameOf: a one-way call as it lies in the ring, for those that travel inside of another. Any thread.
#pragma once

#include <cstring>
#include <string>

#include "protocol/frame.h"
#include "protocol/ops.h"

namespace cuplex::client {

/// `fill(std::byte*)` writes the `data_bytes` bytes of its span.
template <typename Args, typename Fill>
std::string FrameOf(Op op, const Args& args, uint32_t data_bytes, Fill fill) {
  FrameHeader header;
  header.bytes = static_cast<uint32_t>((sizeof(header) + sizeof(args) + data_bytes + 7) & ~size_t{7});
  header.op = static_cast<uint16_t>(op);
  std::string frame(header.bytes, '\0');
  std::memcpy(frame.data(), &header, sizeof(header));
  std::memcpy(frame.data() + sizeof(header), &args, sizeof(args));
  fill(reinterpret_cast<std::byte*>(frame.data()) + sizeof(header) + sizeof(args));
  return frame;
}
template <typename Args>
std::string FrameOf(Op op, const Args& args) {
  return FrameOf(op, args, 0, [](std::byte*) {});
}

}  // namespace cuplex::client
