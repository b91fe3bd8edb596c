#include "server/session.h"

#include "server/test_house.h"

namespace cuplex::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Handle kModule = MakeHandle(20, 0), kKernel = MakeHandle(21, 0);
constexpr Handle kStreamA = MakeHandle(30, 0), kStreamB = MakeHandle(31, 0), kEvent = MakeHandle(40, 0),
                 kOther = MakeHandle(41, 0);
constexpr uint64_t kStagedIn = 1, kStagedOut = 2;

std::string Image(uint64_t bytes = 64) {
  return ".version 7.0\n.target sm_70\n.address_size 64\n.global .align 8 .b8 variable[" +
         std::to_string(bytes) + "];\n.visible .entry kernel(.param .u64 a, .param .u32 b)\n{\n  ret;\n}\n";
}

class SessionTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(client_.Begin(1), CUDA_SUCCESS); }
  void TearDown() override {
    EXPECT_TRUE(client_.HangUp());
    EXPECT_TRUE(client_.session->Empty());
    EXPECT_EQ(holding().used(), 0u);
    EXPECT_EQ(test_.driver.physical_bytes(), 0u);
    EXPECT_TRUE(test_.driver.mapped.empty());
    EXPECT_TRUE(test_.driver.contexts.empty());
    EXPECT_EQ(tenant_.host_used, 0u);
  }
  Holding& holding() { return *tenant_.holdings[0]; }
  /// The launches, copies and waits that reached the driver, by their first number.
  std::vector<std::string> Work() {
    std::vector<std::string> work;
    for (const std::string& line : test_.driver.log)
      if (!line.starts_with("record")) work.push_back(line.substr(0, line.find(" on ")));
    return work;
  }
  void Load() { ASSERT_EQ(client_.Load(Image(), kModule, kKernel), CUDA_SUCCESS); }
  void Stream(Handle handle, uint32_t flags) {
    client_.OneWay(Op::wireStreamCreate, wire::wireStreamCreateArgs(handle, flags, 0));
  }

  TestHouse test_;
  Tenant& tenant_ = test_.AddTenant("a", 64 * kMiB);
  TestClient client_{test_, tenant_};
};

// ------------------------------------------------------------------------------------------- memory

TEST_F(SessionTest, WhatIsFreeCanBeHadAndNoByteMore) {
  uint64_t free = 0, total = 0, all = 0, more = 0, small = 0;
  ASSERT_EQ(client_.Info(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, 64 * kMiB);
  EXPECT_EQ(free, 64 * kMiB);
  ASSERT_EQ(client_.Alloc(free, &all), CUDA_SUCCESS);
  EXPECT_EQ(client_.Alloc(1, &more), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(holding().counters().out_of_memory.value(), 1u);
  client_.Free(all);
  ASSERT_EQ(client_.Alloc(100, &small), CUDA_SUCCESS) << "freed memory is there for the next call";
  ASSERT_EQ(client_.Info(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(free, 62 * kMiB) << "a small allocation takes a granule";
  EXPECT_EQ(client_.Alloc(free + 1, &all), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(client_.Alloc(~uint64_t{0}, &all), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(client_.Alloc(0, &all), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(SessionTest, TheLimitIsTheTenantsAcrossItsProcesses) {
  TestClient other(test_, tenant_);
  ASSERT_EQ(other.Begin(1), CUDA_SUCCESS);
  uint64_t a = 0, b = 0;
  // Both ask before either is answered.
  const uint32_t first = client_.Ask(Op::cuMemAlloc_v2, wire::cuMemAlloc_v2Args(40 * kMiB));
  const uint32_t second = other.Ask(Op::cuMemAlloc_v2, wire::cuMemAlloc_v2Args(40 * kMiB));
  test_.Settle();
  EXPECT_EQ(client_.Answer(first), CUDA_SUCCESS);
  EXPECT_EQ(other.Answer(second), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(other.Alloc(24 * kMiB, &b), CUDA_SUCCESS);
  EXPECT_EQ(client_.Alloc(2 * kMiB, &a), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(other.HangUp());
  EXPECT_EQ(client_.Alloc(24 * kMiB, &a), CUDA_SUCCESS) << "what a dead process had is back";
}

TEST_F(SessionTest, AnAllocationWaitsForTheBudgetOfATenantThatWantsItTo) {
  tenant_.terms.oom_wait_ns = 1'000'000'000;
  TestClient other(test_, tenant_);
  ASSERT_EQ(other.Begin(1), CUDA_SUCCESS);
  uint64_t all = 0, some = 0;
  ASSERT_EQ(other.Alloc(64 * kMiB, &all), CUDA_SUCCESS);
  EXPECT_EQ(client_.Alloc(8 * kMiB, &some), kNoAnswer);
  const uint32_t waiting = client_.last_slot;
  EXPECT_EQ(client_.Alloc(65 * kMiB, &some), CUDA_ERROR_OUT_OF_MEMORY) << "it can never have so much";
  other.Free(all);
  test_.Settle();
  EXPECT_EQ(client_.Answer(waiting), CUDA_SUCCESS);
  EXPECT_EQ(holding().used(), 8 * kMiB);

  EXPECT_EQ(client_.Alloc(60 * kMiB, &some), kNoAnswer);
  test_.clock.Advance(1'000'000'000);
  test_.Settle();
  EXPECT_EQ(client_.Answer(client_.last_slot), CUDA_ERROR_OUT_OF_MEMORY);

  EXPECT_EQ(other.Alloc(60 * kMiB, &all), kNoAnswer);
  EXPECT_TRUE(other.HangUp()) << "and who waits can die";
}

TEST_F(SessionTest, SmallAllocationsShareAGranuleAndGiveItBack) {
  std::vector<uint64_t> at(100);
  for (uint64_t& each : at) {
    ASSERT_EQ(client_.Alloc(1000, &each), CUDA_SUCCESS);
    EXPECT_EQ(each % 256, 0u);
  }
  std::sort(at.begin(), at.end());
  for (size_t i = 1; i < at.size(); ++i) EXPECT_GE(at[i], at[i - 1] + 1000);
  EXPECT_EQ(holding().used(), 2 * kMiB);
  for (uint64_t each : at) client_.Free(each);
  test_.Settle();
  EXPECT_EQ(holding().used(), 0u);
}

TEST_F(SessionTest, FreeingWhatIsNotThereIsToldAndHarmsNobody) {
  uint64_t a = 0;
  ASSERT_EQ(client_.Alloc(4 * kMiB, &a), CUDA_SUCCESS);
  for (uint64_t address : {uint64_t{0xdead}, a + 512, ~uint64_t{0}}) {
    client_.Free(address);
    EXPECT_EQ(client_.Deferred(), CUDA_ERROR_INVALID_VALUE) << address;
  }
  client_.Free(a);
  EXPECT_EQ(client_.Deferred(), CUDA_SUCCESS);
  client_.Free(a);
  EXPECT_EQ(client_.Deferred(), CUDA_ERROR_INVALID_VALUE) << "twice";
  client_.Free(0);
  EXPECT_EQ(client_.Deferred(), CUDA_SUCCESS);
}

TEST_F(SessionTest, MemoryInUseIsFreedWhenTheDeviceIsDoneWithIt) {
  Load();
  uint64_t a = 0;
  ASSERT_EQ(client_.Alloc(60 * kMiB, &a), CUDA_SUCCESS);
  test_.driver.Hold();
  client_.Launch(kKernel, kLegacyStream);
  client_.Free(a);
  test_.Settle();
  EXPECT_GE(holding().used(), 60 * kMiB) << "a kernel may still write there";
  const uint32_t slot = client_.Ask(Op::cuMemAlloc_v2, wire::cuMemAlloc_v2Args(60 * kMiB));
  test_.Settle();
  EXPECT_EQ(client_.Answer(slot), kNoAnswer) << "its own freed memory is what it waits for";
  test_.driver.Release();
  test_.Settle();
  EXPECT_EQ(client_.Answer(slot), CUDA_SUCCESS);
}

TEST_F(SessionTest, VariablesOfAModuleAreCharged) {
  EXPECT_EQ(client_.Load(Image(100 * kMiB), kModule, kKernel), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(holding().used(), 0u);
  ASSERT_EQ(client_.Load(Image(60 * kMiB), kModule, kKernel), CUDA_SUCCESS);
  EXPECT_EQ(holding().used(), 60 * kMiB);
  uint64_t a = 0;
  EXPECT_EQ(client_.Alloc(6 * kMiB, &a), CUDA_ERROR_OUT_OF_MEMORY);
  client_.OneWay(Op::wireModuleUnload, wire::wireModuleUnloadArgs(kModule));
  EXPECT_EQ(client_.Alloc(6 * kMiB, &a), CUDA_SUCCESS);
}

TEST_F(SessionTest, LimitsThatAreMemoryAreCharged) {
  auto set = [&](CUlimit limit, uint64_t value) {
    return client_.Call(Op::cuCtxSetLimit, wire::cuCtxSetLimitArgs(value, static_cast<int>(limit)));
  };
  EXPECT_EQ(set(CU_LIMIT_MALLOC_HEAP_SIZE, 100 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(holding().used(), 0u);
  EXPECT_EQ(set(CU_LIMIT_MALLOC_HEAP_SIZE, 40 * kMiB), CUDA_SUCCESS);
  EXPECT_GT(holding().used(), 39 * kMiB);
  EXPECT_EQ(set(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * kMiB), CUDA_SUCCESS);
  EXPECT_LE(holding().used(), 8 * kMiB);
  EXPECT_EQ(set(CU_LIMIT_STACK_SIZE, kMiB), CUDA_ERROR_OUT_OF_MEMORY) << "for each of many threads";
  EXPECT_EQ(set(CU_LIMIT_PRINTF_FIFO_SIZE, 100 * kMiB), CUDA_SUCCESS);
}

TEST_F(SessionTest, PinnedMemoryHasABudgetAndManagedMemoryIsTheDevices) {
  auto ask = [&](uint64_t bytes, uint32_t flags) {
    return client_.Call(Op::wireHostAlloc, wire::wireHostAllocArgs(bytes, flags));
  };
  ASSERT_EQ(ask(40 * kMiB, 0), CUDA_SUCCESS);
  const uint64_t address = client_.Payload<wire::wireHostAllocReply>(client_.last_slot).address();
  std::memset(reinterpret_cast<void*>(address), 1,
              40 * kMiB);  // mapped here at the address the client is told
  EXPECT_EQ(ask(40 * kMiB, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(ask(40 * kMiB, 1u << 16), CUDA_SUCCESS);
  EXPECT_EQ(holding().used(), 40 * kMiB);
  EXPECT_EQ(client_.Call(Op::wireHostFree, wire::wireHostFreeArgs(address)), CUDA_SUCCESS);
  EXPECT_EQ(client_.Call(Op::wireHostFree, wire::wireHostFreeArgs(address)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(ask(40 * kMiB, 0), CUDA_SUCCESS);
}

// ------------------------------------------------------------------------------------------- copies

TEST_F(SessionTest, ACopyStaysInsideWhatTheClientOwns) {
  TestClient other(test_, test_.AddTenant("b", 64 * kMiB));
  ASSERT_EQ(other.Begin(1), CUDA_SUCCESS);
  uint64_t mine = 0, theirs = 0;
  ASSERT_EQ(client_.Alloc(4096, &mine), CUDA_SUCCESS);
  ASSERT_EQ(other.Alloc(4096, &theirs), CUDA_SUCCESS);
  auto copy = [&](uint64_t dst, uint64_t src, uint64_t bytes, uint32_t staged) {
    client_.OneWay(Op::wireCopy, wire::wireCopyArgs(dst, src, bytes, kLegacyStream, staged));
    test_.Settle();
    return client_.Deferred();
  };
  EXPECT_EQ(copy(mine, 0, 4096, kStagedIn), CUDA_SUCCESS);
  EXPECT_EQ(copy(mine + 2048, mine, 2048, 0), CUDA_SUCCESS);
  EXPECT_EQ(copy(mine + 1, 0, 4096, kStagedIn), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(copy(mine, theirs, 16, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(copy(theirs, mine, 16, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(copy(mine, ~uint64_t{0} - 8, 64, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(copy(mine, mine, ~uint64_t{0}, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(copy(mine, (64 << 10) - 8, 16, kStagedIn), CUDA_ERROR_INVALID_VALUE) << "over a block's end";
  EXPECT_EQ(copy(mine, 4 * (64 << 10), 16, kStagedIn), CUDA_ERROR_INVALID_VALUE) << "behind the staging area";
  EXPECT_EQ(copy(mine, 0, 16, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(copy(0x1234, 0x5678, 0, 0), CUDA_SUCCESS) << "nothing is copied from nowhere";
  EXPECT_TRUE(other.HangUp());
}

TEST_F(SessionTest, ABoxMayNotReachOver) {
  uint64_t mine = 0;
  ASSERT_EQ(client_.Alloc(4096, &mine), CUDA_SUCCESS);
  auto box = [&](uint64_t pitch, uint64_t width, uint64_t height, uint64_t depth, uint64_t slice) {
    client_.OneWay(Op::wireFill, wire::wireFillArgs(mine, pitch, width, height, kLegacyStream, 0, 1));
    const CUresult fill = client_.Deferred();
    client_.OneWay(Op::wireCopyBox, wire::wireCopyBoxArgs(mine, pitch, slice, mine, pitch, slice, width,
                                                          height, depth, kLegacyStream, 0));
    return std::pair(fill, client_.Deferred());
  };
  const auto bad = std::pair(CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(box(64, 64, 64, 1, 0), std::pair(CUDA_SUCCESS, CUDA_SUCCESS));
  EXPECT_EQ(box(64, 64, 65, 1, 0), bad);
  EXPECT_EQ(box(32, 64, 2, 1, 0), bad) << "a pitch below the row";
  EXPECT_EQ(box(uint64_t{1} << 62, 64, 5, 1, 0), bad) << "sums past 2^64";
  EXPECT_EQ(box(64, 64, 2, 3, 64).second, CUDA_ERROR_INVALID_VALUE) << "slices that overlap";
  EXPECT_EQ(box(64, 64, 1, uint64_t{1} << 40, 64).second, CUDA_ERROR_INVALID_VALUE);
  // The test driver fills single rows only and copies no boxes; what it says of them is not looked at.
  test_.Settle();
  client_.Deferred();
}

TEST_F(SessionTest, StagingBlocksComeBack) {
  uint64_t mine = 0;
  ASSERT_EQ(client_.Alloc(4096, &mine), CUDA_SUCCESS);
  const Segment& segment = client_.session->segment();
  for (uint32_t block : {0u, 1u}) BlockAt(segment, block)->state = StagingBlock::kInFlight;
  test_.driver.Hold();
  client_.OneWay(Op::wireCopy, wire::wireCopyArgs(mine, 0, 4096, kLegacyStream, kStagedIn));
  client_.OneWay(Op::wireCopy, wire::wireCopyArgs(64 << 10, mine, 4096, kLegacyStream, kStagedOut));
  test_.Settle();
  EXPECT_EQ(BlockAt(segment, 0)->state, StagingBlock::kInFlight);
  EXPECT_EQ(BlockAt(segment, 1)->state, StagingBlock::kInFlight);
  test_.driver.Release();
  test_.Settle();
  EXPECT_EQ(BlockAt(segment, 0)->state, StagingBlock::kFree);
  EXPECT_EQ(BlockAt(segment, 1)->state, StagingBlock::kDone);
  EXPECT_EQ(BlockAt(segment, 1)->result, CUDA_SUCCESS);
  EXPECT_EQ(segment.staging()[64 << 10], std::byte{0x5a});
  // A refused copy gives its block back too, with the code, and says it once.
  BlockAt(segment, 1)->state = StagingBlock::kInFlight;
  client_.OneWay(Op::wireCopy, wire::wireCopyArgs(64 << 10, 0xdead, 16, kLegacyStream, kStagedOut));
  EXPECT_EQ(BlockAt(segment, 1)->state, StagingBlock::kDone);
  EXPECT_EQ(BlockAt(segment, 1)->result, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(client_.Deferred(), CUDA_SUCCESS);
}

// ------------------------------------------------------------------------------------------- modules

TEST_F(SessionTest, AnImageTravelsOnceAndItsHashIsChecked) {
  Load();
  const std::string image = Image();
  const ImageKey key = HashImage(std::as_bytes(std::span(image)));
  TestClient second(test_, tenant_), stranger(test_, test_.AddTenant("b", kMiB));
  auto known = [&](TestClient& client) {
    EXPECT_EQ(client.Call(Op::wireImageOffer, wire::wireImageOfferArgs(key.low, key.high, image.size())),
              CUDA_SUCCESS);
    return client.Payload<wire::wireImageOfferReply>(client.last_slot).known();
  };
  EXPECT_EQ(known(second), 1u);
  EXPECT_EQ(known(stranger), 0u) << "what others use is nobody's business";
  // Bytes that are not those of the hash.
  const std::string others = Image(65);
  stranger.OneWay(Op::wireImageWrite,
                  wire::wireImageWriteArgs(key.low, key.high, 0, static_cast<uint32_t>(image.size())),
                  std::as_bytes(std::span(others)).first(image.size()));
  EXPECT_EQ(stranger.Deferred(), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(known(stranger), 0u);
  EXPECT_TRUE(second.HangUp() && stranger.HangUp());
}

TEST_F(SessionTest, AModuleThatDoesNotLoadSaysWhy) {
  const std::string image = Image() + "// nonsense\n";
  EXPECT_EQ(client_.Load(image, kModule, kKernel), CUDA_ERROR_INVALID_PTX);
  const auto reply = client_.Payload<wire::wireModuleLoadReply>(client_.last_slot);
  const auto* text = reinterpret_cast<const char*>(
      SlotPayload(SlotAt(client_.session->segment(), client_.last_slot)) + sizeof(reply));
  EXPECT_EQ(std::string(text, reply.text_bytes()), "nonsense is no instruction");
  EXPECT_EQ(holding().used(), 0u);
}

TEST_F(SessionTest, AFunctionsFactsAndVariables) {
  Load();
  const auto* at = SlotPayload(SlotAt(client_.session->segment(), client_.last_slot));
  FunctionFacts facts;
  std::memcpy(&facts, at + sizeof(wire::wireModuleFunctionReply), sizeof(facts));
  EXPECT_EQ(facts.parameter_count, 2u);
  EXPECT_EQ(facts.parameter_bytes, 12u);
  EXPECT_EQ(facts.registers, 100 + CU_FUNC_ATTRIBUTE_NUM_REGS);
  EXPECT_EQ(client_.Call(Op::wireModuleGlobal, wire::wireModuleGlobalArgs(kModule, 8),
                         std::as_bytes(std::span("variable", 8))),
            CUDA_SUCCESS);
  const uint64_t variable = client_.Payload<wire::wireModuleGlobalReply>(client_.last_slot).address();
  client_.OneWay(Op::wireCopy, wire::wireCopyArgs(variable, 0, 64, kLegacyStream, kStagedIn));
  test_.Settle();
  EXPECT_EQ(client_.Deferred(), CUDA_SUCCESS);
  EXPECT_EQ(client_.Call(Op::wireModuleFunction, wire::wireModuleFunctionArgs(kModule, kOther, 5, 1000),
                         std::as_bytes(std::span("other", 5))),
            CUDA_ERROR_NOT_FOUND);
  client_.OneWay(Op::wireModuleUnload, wire::wireModuleUnloadArgs(kModule));
  client_.Launch(kKernel, kLegacyStream);
  EXPECT_EQ(client_.Deferred(), CUDA_ERROR_INVALID_HANDLE) << "its functions went with it";
}

// ------------------------------------------------------------------------------------------- order

TEST_F(SessionTest, ASynchronizeWaitsForItsOwnWorkAlone) {
  Load();
  TestClient other(test_, test_.AddTenant("b", 64 * kMiB));
  ASSERT_EQ(other.Begin(1), CUDA_SUCCESS);
  test_.driver.Hold();
  client_.Launch(kKernel, kLegacyStream);
  const uint32_t slot = client_.Ask(Op::cuCtxSynchronize, wire::cuCtxSynchronizeArgs());
  test_.Settle();
  EXPECT_EQ(client_.Answer(slot), kNoAnswer);
  EXPECT_EQ(other.Synchronize(), CUDA_SUCCESS);
  test_.driver.Finish();
  test_.Settle();
  EXPECT_EQ(client_.Answer(slot), CUDA_SUCCESS);
  test_.driver.Release();
  EXPECT_TRUE(other.HangUp());
}

TEST_F(SessionTest, TheLegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  Load();
  Stream(kStreamA, CU_STREAM_DEFAULT);
  Stream(kStreamB, CU_STREAM_NON_BLOCKING);
  test_.driver.Hold();
  client_.Launch(kKernel, kStreamA, 1);
  client_.Launch(kKernel, kStreamB, 2);
  client_.Launch(kKernel, kLegacyStream, 3);
  client_.Launch(kKernel, kStreamA, 4);
  client_.Launch(kKernel, kStreamB, 5);
  test_.Settle();
  // One wait before 3 (for A), one before 4 (for the legacy stream), none for B.
  std::vector<std::string> work = Work();
  auto at = [&](const char* what) { return std::find(work.begin(), work.end(), what) - work.begin(); };
  EXPECT_LT(at("launch 1"), at("launch 3"));
  EXPECT_LT(at("launch 3"), at("launch 4"));
  EXPECT_EQ(std::count_if(work.begin(), work.end(), [](const auto& w) { return w.starts_with("wait"); }), 2);
  test_.driver.Release();
}

TEST_F(SessionTest, AHostFunctionHoldsItsStreamAndNoOther) {
  Load();
  Stream(kStreamA, CU_STREAM_NON_BLOCKING);
  Stream(kStreamB, CU_STREAM_NON_BLOCKING);
  test_.driver.Hold();
  client_.Launch(kKernel, kStreamA, 1);
  client_.OneWay(Op::wireHostFunc, wire::wireHostFuncArgs(kStreamA, 77));
  client_.Launch(kKernel, kStreamA, 2);
  client_.OneWay(Op::wireEventCreate, wire::wireEventCreateArgs(kEvent, 0));
  client_.OneWay(Op::cuEventRecord, wire::cuEventRecordArgs(kEvent, kStreamA));
  client_.OneWay(Op::cuStreamWaitEvent, wire::cuStreamWaitEventArgs(kStreamB, kEvent, 0));
  client_.Launch(kKernel, kStreamB, 3);
  client_.Launch(kKernel, kLegacyStream, 4);
  test_.Settle();
  SegmentHeader* header = client_.session->segment().header();
  EXPECT_EQ(header->inbox_tail, 0u) << "the kernel before it is not done";
  EXPECT_THAT(Work(), ElementsAre("launch 1", "launch 4"));
  test_.driver.Finish();
  test_.Settle();
  EXPECT_EQ(header->inbox_tail, 1u);
  EXPECT_EQ(header->inbox[0], 77u);
  EXPECT_THAT(Work(), ElementsAre("launch 1", "launch 4"));
  EXPECT_EQ(client_.Call(Op::cuEventQuery, wire::cuEventQueryArgs(kEvent)), CUDA_ERROR_NOT_READY);
  client_.OneWay(Op::wireHostFuncDone, wire::wireHostFuncDoneArgs(77));
  test_.Settle();
  EXPECT_THAT(Work(), ElementsAre("launch 1", "launch 4", "launch 2", HasSubstr("wait"), "launch 3"));
  test_.driver.Release();
  test_.Settle();
  EXPECT_EQ(client_.Call(Op::cuEventQuery, wire::cuEventQueryArgs(kEvent)), CUDA_SUCCESS);
}

TEST_F(SessionTest, EventsMeasureTheDevicesTime) {
  Load();
  test_.driver.kernel_ns = 2'500'000;
  for (Handle h : {kEvent, kOther}) client_.OneWay(Op::wireEventCreate, wire::wireEventCreateArgs(h, 0));
  client_.OneWay(Op::cuEventRecord, wire::cuEventRecordArgs(kEvent, kLegacyStream));
  client_.Launch(kKernel, kLegacyStream);
  client_.OneWay(Op::cuEventRecord, wire::cuEventRecordArgs(kOther, kLegacyStream));
  EXPECT_EQ(client_.Call(Op::cuEventSynchronize, wire::cuEventSynchronizeArgs(kOther)), CUDA_SUCCESS);
  EXPECT_EQ(client_.Call(Op::cuEventElapsedTime_v2, wire::cuEventElapsedTime_v2Args(kEvent, kOther)),
            CUDA_SUCCESS);
  EXPECT_FLOAT_EQ(client_.Payload<wire::cuEventElapsedTime_v2Reply>(client_.last_slot).p_milliseconds(),
                  2.5f);
}

// ------------------------------------------------------------------------------------------- faults and ends

TEST_F(SessionTest, AFaultIsItsContextsAlone) {
  Load();
  TestClient other(test_, test_.AddTenant("b", 64 * kMiB));
  ASSERT_EQ(other.Begin(1), CUDA_SUCCESS);
  const auto mine = reinterpret_cast<CUcontext>(*test_.driver.contexts.begin());
  test_.driver.Hold();
  client_.Launch(kKernel, kLegacyStream);
  const uint32_t slot = client_.Ask(Op::cuCtxSynchronize, wire::cuCtxSynchronizeArgs());
  test_.Settle();
  test_.driver.Fault(mine, CUDA_ERROR_ILLEGAL_ADDRESS);
  test_.Settle();
  EXPECT_EQ(client_.Answer(slot), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(client_.Sticky(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(client_.Synchronize(), CUDA_ERROR_ILLEGAL_ADDRESS) << "it stays";
  uint64_t a = 0;
  EXPECT_EQ(client_.Alloc(100, &a), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(other.Synchronize(), CUDA_SUCCESS);
  EXPECT_EQ(other.Sticky(), CUDA_SUCCESS);
  EXPECT_EQ(holding().counters().kernel_faults.value(), 1u);
  test_.driver.Release();
  EXPECT_EQ(client_.Call(Op::wireContextDestroy, wire::wireContextDestroyArgs(1)), CUDA_SUCCESS);
  EXPECT_EQ(client_.Sticky(), CUDA_SUCCESS);
  EXPECT_EQ(client_.Begin(2), CUDA_SUCCESS) << "and begins anew";
  EXPECT_EQ(client_.Alloc(100, &a), CUDA_SUCCESS);
  EXPECT_TRUE(other.HangUp());
}

TEST_F(SessionTest, AKernelThatRunsTooLongIsEndedAlone) {
  tenant_.terms.max_kernel_ns = 500'000'000;
  test_.queue().TermsChanged(tenant_);
  TestClient other(test_, tenant_);
  ASSERT_EQ(other.Begin(1), CUDA_SUCCESS);
  Load();
  uint64_t address = 0;
  ASSERT_EQ(client_.Alloc(4 * kMiB, &address), CUDA_SUCCESS);
  test_.driver.Hold();
  client_.Launch(kKernel, kLegacyStream);
  const uint32_t waiting = client_.Ask(Op::cuCtxSynchronize, wire::cuCtxSynchronizeArgs());
  test_.Settle();
  test_.driver.Finish(1);  // the event before the kernel: it runs
  test_.Settle();
  test_.clock.Advance(400'000'000);
  test_.queue().Settle();
  test_.Settle();
  EXPECT_EQ(client_.Answer(waiting), kNoAnswer);
  EXPECT_EQ(test_.driver.contexts.size(), 2u);
  EXPECT_LE(test_.queue().NextLookNs(), test_.clock.NowNs() + 100'000'000);
  test_.clock.Advance(100'000'000);
  test_.queue().Settle();
  test_.Settle();
  EXPECT_EQ(client_.Answer(waiting), CUDA_ERROR_LAUNCH_TIMEOUT);
  EXPECT_EQ(client_.Sticky(), CUDA_ERROR_LAUNCH_TIMEOUT);
  EXPECT_EQ(test_.driver.contexts.size(), 1u) << "what runs is ended with the driver's context";
  EXPECT_EQ(holding().used(), 4 * kMiB + 512) << "its memory is the program's to free";
  EXPECT_EQ(holding().counters().kernel_timeouts.value(), 1u);
  client_.Free(address);
  EXPECT_EQ(client_.Synchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
  test_.driver.Release();
  EXPECT_EQ(other.Synchronize(), CUDA_SUCCESS);
  EXPECT_TRUE(other.HangUp());
}

TEST_F(SessionTest, ADestroyedContextTakesAllWithIt) {
  Load();
  uint64_t a = 0;
  ASSERT_EQ(client_.Begin(2), CUDA_SUCCESS);
  ASSERT_EQ(client_.Alloc(8 * kMiB, &a), CUDA_SUCCESS);
  Stream(kStreamB, 0);
  client_.context = 1;
  ASSERT_EQ(client_.Alloc(8 * kMiB, &a), CUDA_SUCCESS);
  Stream(kStreamA, 0);
  test_.driver.Hold();
  client_.Launch(kKernel, kStreamA);
  client_.Free(a);  // waits for the kernel
  EXPECT_EQ(client_.Call(Op::wireContextDestroy, wire::wireContextDestroyArgs(1)), CUDA_SUCCESS);
  test_.driver.Release();
  EXPECT_EQ(holding().used(), 8 * kMiB);
  client_.Launch(kKernel, kStreamA);
  EXPECT_EQ(client_.Deferred(), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(client_.Call(Op::cuStreamQuery, wire::cuStreamQueryArgs(kStreamB)), CUDA_SUCCESS);
  EXPECT_EQ(client_.Call(Op::wireContextDestroy, wire::wireContextDestroyArgs(1)),
            CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(SessionTest, AClientThatDiesMidwayLeavesNothing) {
  Load();
  uint64_t a = 0;
  ASSERT_EQ(client_.Alloc(100, &a), CUDA_SUCCESS);
  test_.driver.Hold();  // a kernel that never ends
  Stream(kStreamA, CU_STREAM_NON_BLOCKING);
  client_.Launch(kKernel, kStreamA);
  client_.OneWay(Op::wireHostFunc, wire::wireHostFuncArgs(kStreamA, 5));
  client_.Launch(kKernel, kStreamA);
  client_.Free(a);
  client_.Ask(Op::cuCtxSynchronize, wire::cuCtxSynchronizeArgs());
  client_.Ask(Op::cuMemAlloc_v2, wire::cuMemAlloc_v2Args(20 * kMiB));
  client_.Ask(Op::wireContextCreate, wire::wireContextCreateArgs(7, 0, 0));
  // TearDown hangs up and looks.
}

TEST_F(SessionTest, HandlesOfOthersDoNotExist) {
  Load();
  TestClient other(test_, test_.AddTenant("b", 64 * kMiB));
  ASSERT_EQ(other.Begin(1), CUDA_SUCCESS);
  other.Launch(kKernel, kLegacyStream);
  EXPECT_EQ(other.Deferred(), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(other.Call(Op::cuStreamSynchronize, wire::cuStreamSynchronizeArgs(kStreamA)),
            CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(other.Call(Op::cuEventQuery, wire::cuEventQueryArgs(kEvent)), CUDA_ERROR_INVALID_HANDLE);
  other.context = 9;
  EXPECT_EQ(other.Synchronize(), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(other.Call(Op::wireContextCreate, wire::wireContextCreateArgs(0, 0, 0)),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(other.Call(Op::wireContextCreate, wire::wireContextCreateArgs(5, 3, 0)),
            CUDA_ERROR_INVALID_DEVICE);
  EXPECT_TRUE(other.HangUp());
}

TEST_F(SessionTest, ALaunchThatTheDriverRefusesIsToldLater) {
  Load();
  client_.Launch(kKernel, kLegacyStream, 0);
  test_.Settle();
  EXPECT_EQ(client_.Deferred(), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(client_.Synchronize(), CUDA_SUCCESS);
  client_.OneWay(Op::wireLaunch, wire::wireLaunchArgs(kKernel, kLegacyStream, 1, 1, 1, 1, 1, 1, 0, 0, 0));
  EXPECT_EQ(client_.Deferred(), CUDA_ERROR_INVALID_VALUE) << "fewer parameter bytes than the kernel has";
}

TEST_F(SessionTest, NonsenseInTheRingEndsTheSession) {
  client_.Call(Op::cuMemGetInfo_v2, wire::cuMemGetInfo_v2Args());
  EXPECT_FALSE(client_.refused);
  auto frame = TestClient::Frame(Op::wireLaunch, kNoSlot, 1, wire::wireLaunchArgs());
  EXPECT_FALSE(client_.session->Handle(std::span(frame).first(20)).ok());
  frame[4] = std::byte{0xff};
  EXPECT_FALSE(client_.session->Handle(frame).ok());
}

}  // namespace
}  // namespace cuplex::server
