#include "protocol/decode.h"

#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/print.h"
#include "protocol/uniform_call_handler.h"

namespace cuplex {
namespace {

FrameHeader Header(Op op, uint32_t bytes, uint32_t slot) {
  FrameHeader h;
  h.bytes = bytes;
  h.op = static_cast<uint16_t>(op);
  h.slot = slot;
  return h;
}

TEST(CheckHeader, TakesGoodOnesAndNamesWhatIsWrong) {
  auto good = CheckHeader(Header(Op::cuMemGetInfo_v2, 24, 3), 64);
  ASSERT_TRUE(good.ok());
  EXPECT_STREQ(good->row->name, "cuMemGetInfo_v2");
  EXPECT_EQ(good->slot, 3u);

  auto says = [](FrameHeader h, const char* part) {
    auto r = CheckHeader(h, 64);
    ASSERT_FALSE(r.ok()) << part;
    EXPECT_THAT(r.error().sentence, testing::HasSubstr(part));
    EXPECT_EQ(r.error().blame, Blame::kCaller);
  };
  FrameHeader h = Header(Op::cuMemGetInfo_v2, 24, 3);
  h.version = 9;
  says(h, "protocol version 9, 1 was expected");
  h = Header(Op::cuMemGetInfo_v2, 24, 3);
  h.flags = 4;
  says(h, "flags 0x4");
  says(Header(static_cast<Op>(0x7777), 24, 3), "call 0x7777 is unknown");
  says(Header(Op::cuMemGetInfo_v2, 25, 3), "25 bytes");
  says(Header(Op::cuMemGetInfo_v2, 0, 3), "0 bytes");
  says(Header(Op::cuMemGetInfo_v2, kMaxFrameBytes + 8, 3), "bytes");
  says(Header(Op::cuMemGetInfo_v2, 24, kNoSlot), "wrong for a replying call");
  says(Header(Op::cuMemGetInfo_v2, 24, 64), "0 to 63 were expected");
  says(Header(Op::wireLaunch, 24, 3), "wrong for a one-way call");
}

// Every call cut short at every length is refused, and none reads past what it was given (ASan watches).
TEST(DecodeCall, RefusesHalfACall) {
  struct Nothing : UniformCallHandler {
    Outcome Any(const CallFrame& frame, std::span<const std::byte>, std::span<const std::byte>,
                std::string*) override {
      ADD_FAILURE() << frame.row->name << " was called with half its arguments";
      return CUDA_SUCCESS;
    }
  } nothing;
  for (const OpRow& row : kOps) {
    for (size_t bytes = 0; bytes < row.args_bytes; ++bytes) {
      std::vector<std::byte> args(bytes, std::byte{0xff});
      CallReply reply;
      auto status = DecodeCall(CallFrame{&row, 0, 0}, args, nothing, &reply);
      ASSERT_FALSE(status.ok()) << row.name << " " << bytes;
      EXPECT_THAT(status.error().sentence, testing::HasSubstr(row.name));
    }
  }
  // A span that claims more than is there.
  wire::wireLaunchArgs launch(1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 100);
  std::vector<std::byte> args(sizeof(launch) + 99);
  std::memcpy(args.data(), &launch, sizeof(launch));
  CallReply reply;
  EXPECT_FALSE(
      DecodeCall(CallFrame{FindOp(static_cast<uint16_t>(Op::wireLaunch)), kNoSlot, 0}, args, nothing, &reply)
          .ok());
}

TEST(PrintCall, NamesArgumentsAndAdmitsWhatItCannotRead) {
  wire::cuCtxSetLimitArgs args(4096, CU_LIMIT_STACK_SIZE);
  EXPECT_EQ(PrintCall(0x0104, std::as_bytes(std::span(&args, 1))), "cuCtxSetLimit(value=4096, limit=0)");
  EXPECT_EQ(PrintCall(0x0104, {}), "cuCtxSetLimit (short: 0 bytes)");
  EXPECT_EQ(PrintCall(0xbeef, {}), "call 0xbeef (unknown)");
}

}  // namespace
}  // namespace cuplex
