// Whichever driver call fails, once or from then on: the server goes on, the ledger says what is true, and a
// client that hangs up leaves nothing but what the driver would not take back.
#include "protocol/link_request.h"
#include "server/test_house.h"

namespace cuplex::server {
namespace {

class FailAt final : public CallHook {
 public:
  CUresult Before(const char*) override {
    if (!armed) return CUDA_SUCCESS;
    ++calls;
    return calls == at || (stays && calls > at) ? code : CUDA_SUCCESS;
  }
  bool armed = false, stays = false;
  int calls = 0, at = 0;
  CUresult code = CUDA_ERROR_UNKNOWN;
};

constexpr Handle kModule = MakeHandle(20, 0), kKernel = MakeHandle(21, 0), kStream = MakeHandle(30, 0),
                 kEvent = MakeHandle(40, 0);

/// A bit of everything. Its results do not matter, as long as there are some.
void Program(TestHouse& test, TestClient& client) {
  uint64_t big = 0, small = 0;
  (void)client.Begin(1);
  (void)client.Alloc(4 * kMiB, &big);
  (void)client.Alloc(100, &small);
  (void)client.Load(
      ".version 7.0\n.target sm_70\n.address_size 64\n.global .b8 v[5000];\n"
      ".visible .entry kernel(.param .u64 a, .param .u32 b)\n{\n  ret;\n}\n",
      kModule, kKernel);
  std::string link;
  EncodeLinkOptions({}, &link);
  EncodeLinkInput(CU_JIT_INPUT_PTX, "a", std::as_bytes(std::span("text", 4)), {}, &link);
  const ImageKey key = HashImage(std::as_bytes(std::span(link)));
  (void)client.Call(Op::wireImageOffer, wire::wireImageOfferArgs(key.low, key.high, link.size()));
  client.OneWay(Op::wireImageWrite,
                wire::wireImageWriteArgs(key.low, key.high, 0, static_cast<uint32_t>(link.size())),
                std::as_bytes(std::span(link)));
  (void)client.Call(Op::wireLink, wire::wireLinkArgs(MakeHandle(60, 0), key.low, key.high, 100));
  client.OneWay(Op::wireStreamCreate, wire::wireStreamCreateArgs(kStream, 0, 0));
  client.OneWay(Op::wireEventCreate, wire::wireEventCreateArgs(kEvent, 0));
  client.OneWay(Op::wireCopy, wire::wireCopyArgs(big, 0, 4096, kStream, 1));
  client.Launch(kKernel, kStream);
  client.OneWay(Op::cuEventRecord, wire::cuEventRecordArgs(kEvent, kStream));
  client.OneWay(Op::cuStreamWaitEvent, wire::cuStreamWaitEventArgs(kLegacyStream, kEvent, 0));
  client.Launch(kKernel, kLegacyStream);
  client.OneWay(Op::wireFill, wire::wireFillArgs(big, 0, 4096, 1, kLegacyStream, 0, 1));
  client.OneWay(Op::wireHostFunc, wire::wireHostFuncArgs(kStream, 9));
  test.Settle();
  client.OneWay(Op::wireHostFuncDone, wire::wireHostFuncDoneArgs(9));
  (void)client.Synchronize();
  (void)client.Call(Op::wireHostAlloc, wire::wireHostAllocArgs(8192, 0));
  client.OneWay(Op::wireFreeAsync, wire::wireFreeAsyncArgs(big, kStream));
  client.Free(small);
  uint64_t free = 0, total = 0;
  (void)client.Info(&free, &total);
  (void)client.Call(Op::cuCtxSetLimit, wire::cuCtxSetLimitArgs(kMiB, CU_LIMIT_MALLOC_HEAP_SIZE));
  client.OneWay(Op::wireModuleUnload, wire::wireModuleUnloadArgs(kModule));
  client.OneWay(Op::cuStreamDestroy_v2, wire::cuStreamDestroy_v2Args(kStream));
  (void)client.Call(Op::wireContextDestroy, wire::wireContextDestroyArgs(1));
  (void)client.Begin(2);
  (void)client.Alloc(4 * kMiB, &big);
}

/// Runs the program with the n-th driver call failing; returns how many calls there were.
int RunWith(int n, bool stays, CUresult code) {
  SCOPED_TRACE(
      fmt::format("call {} answers {}{}", n, static_cast<int>(code), stays ? ", and all after it" : ""));
  FailAt fail;
  fail.at = n;
  fail.stays = stays;
  fail.code = code;
  TestHouse test(&fail);
  Tenant& tenant = test.AddTenant("a", 64 * kMiB);
  Holding& holding = *tenant.holdings[0];
  {
    TestClient client(test, tenant);
    fail.armed = true;
    Program(test, client);
    EXPECT_FALSE(client.refused);
    // The budget is what is mapped, to the byte, at every moment between two calls.
    EXPECT_EQ(holding.used() - holding.lost, client.session->memory_used());
    EXPECT_GE(holding.used(), test.driver.physical_bytes());
    EXPECT_TRUE(client.HangUp());
    EXPECT_TRUE(client.session->Empty());
    EXPECT_EQ(holding.used(), holding.lost) << "what the driver kept is all that is charged";
    EXPECT_EQ(tenant.host_used, 0u);
    EXPECT_EQ(tenant.link_bytes, 0u);
    fail.armed = false;
  }
  if (!stays) EXPECT_LE(holding.lost, 4 * kMiB) << "one failure loses one piece at most";
  // The next client is served as if nothing had been.
  TestClient next(test, tenant);
  uint64_t address = 0;
  EXPECT_EQ(next.Begin(1), CUDA_SUCCESS);
  EXPECT_EQ(next.Alloc(4 * kMiB, &address), CUDA_SUCCESS);
  EXPECT_TRUE(next.HangUp());
  return fail.calls;
}

TEST(DriverFault, AnyCallMayFailOnce) {
  const int calls = RunWith(0, false, CUDA_SUCCESS);
  ASSERT_GT(calls, 50);
  for (CUresult code : {CUDA_ERROR_UNKNOWN, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_ILLEGAL_ADDRESS})
    for (int n = 1; n <= calls; ++n) RunWith(n, false, code);
}

TEST(DriverFault, ADriverMayStopWorkingAtAnyCall) {
  const int calls = RunWith(0, false, CUDA_SUCCESS);
  for (int n = 1; n <= calls; ++n) RunWith(n, true, CUDA_ERROR_SYSTEM_NOT_READY);
}

}  // namespace
}  // namespace cuplex::server
