#include "protocol/decode.h"

#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/print.h"

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
  struct Nothing : CallHandler {
#define CUPLEX_UNEXPECTED                              \
  override {                                           \
    ADD_FAILURE() << "called with half its arguments"; \
    return CUDA_SUCCESS;                               \
  }
    using F = const CallFrame&;
    using S = std::span<const std::byte>;
    Outcome wireContextCreate(F, const wire::wireContextCreateArgs&,
                              wire::wireContextCreateReply*) CUPLEX_UNEXPECTED Outcome
        wireContextDestroy(F, const wire::wireContextDestroyArgs&,
                           wire::wireContextDestroyReply*) CUPLEX_UNEXPECTED Outcome
        cuCtxSynchronize(F, const wire::cuCtxSynchronizeArgs&,
                         wire::cuCtxSynchronizeReply*) CUPLEX_UNEXPECTED Outcome
        cuCtxSetLimit(F, const wire::cuCtxSetLimitArgs&, wire::cuCtxSetLimitReply*) CUPLEX_UNEXPECTED Outcome
        cuCtxGetLimit(F, const wire::cuCtxGetLimitArgs&, wire::cuCtxGetLimitReply*) CUPLEX_UNEXPECTED Outcome
        wireImageOffer(F, const wire::wireImageOfferArgs&,
                       wire::wireImageOfferReply*) CUPLEX_UNEXPECTED Outcome
        wireImageWrite(F, const wire::wireImageWriteArgs&, S) CUPLEX_UNEXPECTED Outcome
        wireModuleLoad(F, const wire::wireModuleLoadArgs&, wire::wireModuleLoadReply*,
                       std::string*) CUPLEX_UNEXPECTED Outcome
        wireModuleUnload(F, const wire::wireModuleUnloadArgs&) CUPLEX_UNEXPECTED Outcome
        wireModuleFunction(F, const wire::wireModuleFunctionArgs&, S, wire::wireModuleFunctionReply*,
                           std::string*) CUPLEX_UNEXPECTED Outcome
        wireModuleGlobal(F, const wire::wireModuleGlobalArgs&, S,
                         wire::wireModuleGlobalReply*) CUPLEX_UNEXPECTED Outcome
        wireModuleFunctionName(F, const wire::wireModuleFunctionNameArgs&, wire::wireModuleFunctionNameReply*,
                               std::string*) CUPLEX_UNEXPECTED Outcome
        cuFuncSetAttribute(F, const wire::cuFuncSetAttributeArgs&,
                           wire::cuFuncSetAttributeReply*) CUPLEX_UNEXPECTED Outcome
        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            F, const wire::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlagsArgs&,
            wire::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlagsReply*) CUPLEX_UNEXPECTED Outcome
        cuMemAlloc_v2(F, const wire::cuMemAlloc_v2Args&, wire::cuMemAlloc_v2Reply*) CUPLEX_UNEXPECTED Outcome
        cuMemFree_v2(F, const wire::cuMemFree_v2Args&) CUPLEX_UNEXPECTED Outcome
        cuMemGetInfo_v2(F, const wire::cuMemGetInfo_v2Args&,
                        wire::cuMemGetInfo_v2Reply*) CUPLEX_UNEXPECTED Outcome
        wireHostAlloc(F, const wire::wireHostAllocArgs&, wire::wireHostAllocReply*) CUPLEX_UNEXPECTED Outcome
        wireHostFree(F, const wire::wireHostFreeArgs&, wire::wireHostFreeReply*) CUPLEX_UNEXPECTED Outcome
        wireCopy(F, const wire::wireCopyArgs&) CUPLEX_UNEXPECTED Outcome
        wireCopyBox(F, const wire::wireCopyBoxArgs&) CUPLEX_UNEXPECTED Outcome
        wireFill(F, const wire::wireFillArgs&) CUPLEX_UNEXPECTED Outcome
        wireFreeAsync(F, const wire::wireFreeAsyncArgs&) CUPLEX_UNEXPECTED Outcome
        wireStreamCreate(F, const wire::wireStreamCreateArgs&) CUPLEX_UNEXPECTED Outcome
        cuStreamDestroy_v2(F, const wire::cuStreamDestroy_v2Args&) CUPLEX_UNEXPECTED Outcome
        cuStreamSynchronize(F, const wire::cuStreamSynchronizeArgs&,
                            wire::cuStreamSynchronizeReply*) CUPLEX_UNEXPECTED Outcome
        cuStreamQuery(F, const wire::cuStreamQueryArgs&, wire::cuStreamQueryReply*) CUPLEX_UNEXPECTED Outcome
        cuStreamWaitEvent(F, const wire::cuStreamWaitEventArgs&) CUPLEX_UNEXPECTED Outcome
        wireHostFunc(F, const wire::wireHostFuncArgs&) CUPLEX_UNEXPECTED Outcome
        wireHostFuncDone(F, const wire::wireHostFuncDoneArgs&) CUPLEX_UNEXPECTED Outcome
        wireEventCreate(F, const wire::wireEventCreateArgs&) CUPLEX_UNEXPECTED Outcome
        cuEventDestroy_v2(F, const wire::cuEventDestroy_v2Args&) CUPLEX_UNEXPECTED Outcome
        cuEventRecord(F, const wire::cuEventRecordArgs&) CUPLEX_UNEXPECTED Outcome
        cuEventQuery(F, const wire::cuEventQueryArgs&, wire::cuEventQueryReply*) CUPLEX_UNEXPECTED Outcome
        cuEventSynchronize(F, const wire::cuEventSynchronizeArgs&,
                           wire::cuEventSynchronizeReply*) CUPLEX_UNEXPECTED Outcome
        cuEventElapsedTime_v2(F, const wire::cuEventElapsedTime_v2Args&,
                              wire::cuEventElapsedTime_v2Reply*) CUPLEX_UNEXPECTED Outcome
        wireLaunch(F, const wire::wireLaunchArgs&, S) CUPLEX_UNEXPECTED
#undef CUPLEX_UNEXPECTED
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
