// Any bytes as what a client left in its ring: taken out, checked, decoded and printed as the server does it.
//
//     input = bytes of the ring, frames one after the other (docs/wire.md)
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "protocol/decode.h"
#include "protocol/print.h"
#include "protocol/ring.h"
#include "protocol/segment.h"
#include "protocol/uniform_call_handler.h"

namespace cuplex {
namespace {

void Check(bool promise) {
  if (!promise) std::abort();
}

/// Reads all it is given, and says more than fits.
struct Reader final : UniformCallHandler {
  Outcome Any(const CallFrame& frame, std::span<const std::byte> args, std::span<const std::byte> in,
              std::string* out) override {
    Check(args.size() == frame.row->args_bytes);
    for (std::byte b : args) sum += std::to_integer<unsigned>(b);
    for (std::byte b : in) sum += std::to_integer<unsigned>(b);
    if (out) out->assign(300, 'x');
    return CUDA_SUCCESS;
  }
  unsigned sum = 0;
};

Segment MakeRing() {
  SegmentGeometry sizes;
  sizes.ring_bytes = 1 << 18;
  sizes.block_count = 1;
  auto segment = Segment::Create(sizes.Laid());
  Check(segment.ok());
  return *std::move(segment);
}

void Drain(std::span<const std::byte> bytes) {
  static const Segment segment = MakeRing();
  bytes = bytes.first(std::min<size_t>(bytes.size(), segment.geometry().ring_bytes));
  memcpy(segment.ring(), bytes.data(), bytes.size());
  segment.header()->ring_tail = bytes.size();
  RingReader ring(segment);
  Reader reader;
  while (true) {
    auto frame = ring.Next();
    if (!frame.ok() || !*frame) return;
    FrameHeader header;
    memcpy(&header, (*frame)->data(), sizeof(header));
    auto call = CheckHeader(header, 64);
    if (!call.ok()) {
      Check(!call.error().sentence.empty());
      return;
    }
    const auto body = (*frame)->subspan(sizeof(header));
    CallReply reply;
    const Status decoded = DecodeCall(*call, body, reader, &reply);
    Check(!PrintCall(header.op, body).empty());
    if (!decoded.ok()) return;
    Check(call->row->oneway ? reply.payload.empty() : reply.payload.size() >= call->row->reply_bytes);
    ring.Release();
  }
}

}  // namespace
}  // namespace cuplex

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cuplex::Drain(std::as_bytes(std::span(data, size)));
  return 0;
}
