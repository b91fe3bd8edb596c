// Fuzz target: whatever a client may write into its ring. The input is a row of frames, each led by its
// length; they go through the checks, the decoder and the session's handlers, in front of a driver that only
// keeps books. At the end the client hangs up, and nothing may be left.
#include <cstdlib>

#include "base/span_reader.h"
#include "server/test_house.h"

using namespace cuplex;
using namespace cuplex::server;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  TestHouse test;
  Tenant& tenant = test.AddTenant("a", 64 * kMiB);
  TestClient client(test, tenant);
  (void)client.Begin(1);
  SpanReader input({reinterpret_cast<const std::byte*>(data), size});
  for (int frames = 0; frames < 200; ++frames) {
    auto length = input.Read<uint16_t>();
    auto bytes = length ? input.Bytes(*length % 1024) : std::nullopt;
    if (!bytes) break;
    // The version, the frame's length and a slot are right more often than chance would have it.
    std::vector<std::byte> frame(bytes->begin(), bytes->end());
    FrameHeader header;
    if (frame.size() >= sizeof(header) && (*length & 0x8000)) {
      std::memcpy(&header, frame.data(), sizeof(header));
      frame.resize((frame.size() + 7) / 8 * 8);
      header.bytes = static_cast<uint32_t>(frame.size());
      header.version = kProtocolVersion;
      header.flags = 0;
      const OpRow* row = &kOps[header.op % std::size(kOps)];
      header.op = static_cast<uint16_t>(row->op);
      header.slot = row->oneway ? kNoSlot : header.slot % 64;
      std::memcpy(frame.data(), &header, sizeof(header));
    }
    if (!client.session->Handle(frame).ok()) break;
    if (*length & 0x4000) test.Settle();
  }
  if (!client.HangUp() || !client.session->Empty() || tenant.holdings[0]->used() != 0 ||
      test.driver.physical_bytes() != 0 || !test.driver.contexts.empty())
    std::abort();
  return 0;
}
