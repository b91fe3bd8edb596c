// Graphs of a session: what reaches the driver and in which order, and what is refused.
#include "server/graph.h"

#include "server/test_house.h"

namespace cuplex::server {
namespace {

using testing::ElementsAre;

constexpr Handle kModule = MakeHandle(20, 0), kKernel = MakeHandle(21, 0);
constexpr Handle kStreamA = MakeHandle(30, 0), kStreamB = MakeHandle(31, 0), kEvent = MakeHandle(40, 0);
constexpr Handle kGraph = MakeHandle(50, 0), kOther = MakeHandle(51, 0);
constexpr char kImage[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry kernel(.param .u64 a, .param .u32 "
    "b)\n{\n  ret;\n}\n";

using Bytes = std::vector<std::byte>;

template <typename Args>
Bytes Node(Op op, const Args& args, std::span<const std::byte> span = {}) {
  return TestClient::Frame(op, kNoSlot, 0, args, span);
}
Bytes Launch(uint32_t grid, Handle function = kKernel) {
  const std::byte parameters[12] = {};
  return Node(Op::wireLaunch, wire::wireLaunchArgs(function, 0, grid, 1, 1, 1, 1, 1, 0, 0, 12), parameters);
}
Bytes Fill(uint64_t address, uint64_t bytes) {
  return Node(Op::wireFill, wire::wireFillArgs(address, 0, bytes, 1, 0, 7, 1));
}
Bytes Copy(uint64_t to, uint64_t from, uint64_t bytes, uint32_t staged = 0) {
  return Node(Op::wireCopy, wire::wireCopyArgs(to, from, bytes, 0, staged));
}
Bytes HostFunc(uint64_t cookie) { return Node(Op::wireHostFunc, wire::wireHostFuncArgs(0, cookie)); }
Bytes Record(Handle event) { return Node(Op::cuEventRecord, wire::cuEventRecordArgs(event, 0)); }
Bytes Wait(Handle event) { return Node(Op::cuStreamWaitEvent, wire::cuStreamWaitEventArgs(0, event, 0)); }

class GraphTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(client_.Begin(1), CUDA_SUCCESS);
    ASSERT_EQ(client_.Load(kImage, kModule, kKernel), CUDA_SUCCESS);
    for (Handle stream : {kStreamA, kStreamB})
      client_.OneWay(Op::wireStreamCreate, wire::wireStreamCreateArgs(stream, CU_STREAM_NON_BLOCKING, 0));
    client_.OneWay(Op::wireEventCreate, wire::wireEventCreateArgs(kEvent, CU_EVENT_DISABLE_TIMING));
    test_.driver.log.clear();
  }
  void TearDown() override {
    EXPECT_FALSE(client_.refused) << "a wrong graph is no reason to end a session";
    EXPECT_TRUE(client_.HangUp());
    EXPECT_TRUE(client_.session->Empty());
    EXPECT_EQ(tenant_.holdings[0]->used(), 0u);
    EXPECT_EQ(test_.driver.physical_bytes(), 0u);
  }

  void Nodes(const std::vector<Bytes>& nodes, uint32_t first = 0, Handle graph = kGraph) {
    Bytes all;
    for (const Bytes& node : nodes) all.insert(all.end(), node.begin(), node.end());
    client_.OneWay(Op::wireGraphNodes,
                   wire::wireGraphNodesArgs(graph, first, static_cast<uint32_t>(all.size())), all);
  }
  CUresult Ready(uint32_t count, Handle graph = kGraph) {
    return client_.Call(Op::wireGraphReady, wire::wireGraphReadyArgs(graph, count));
  }
  uint32_t Wrong() { return client_.Payload<wire::wireGraphReadyReply>(client_.last_slot).node(); }
  CUresult Make(const std::vector<Bytes>& nodes, Handle graph = kGraph) {
    Nodes(nodes, 0, graph);
    return Ready(static_cast<uint32_t>(nodes.size()), graph);
  }
  void Run(Handle stream = kStreamA, Handle graph = kGraph) {
    client_.OneWay(Op::wireGraphLaunch, wire::wireGraphLaunchArgs(graph, stream));
  }
  void Destroy(Handle graph = kGraph) {
    client_.OneWay(Op::wireGraphDestroy, wire::wireGraphDestroyArgs(graph));
  }
  /// What reached the driver since the last time, without the stream and without marks.
  std::vector<std::string> Work() {
    std::vector<std::string> work;
    for (const std::string& line : test_.driver.log)
      if (!line.starts_with("record")) work.push_back(line.substr(0, line.find(" on ")));
    test_.driver.log.clear();
    return work;
  }
  size_t Launches() {
    size_t count = 0;
    for (const std::string& line : test_.driver.log) count += line.starts_with("launch");
    return count;
  }
  /// What the server told the client to run.
  std::vector<uint64_t> Inbox() {
    std::vector<uint64_t> cookies;
    SegmentHeader* header = client_.session->segment().header();
    while (header->inbox_head != header->inbox_tail) {
      cookies.push_back(header->inbox[header->inbox_head % kInboxCount]);
      ++header->inbox_head;
    }
    return cookies;
  }

  TestHouse test_;
  Tenant& tenant_ = test_.AddTenant("a", 64 * kMiB);
  TestClient client_{test_, tenant_};
};

TEST_F(GraphTest, NodesRunInTheirOrderAsOftenAsTheGraphIsLaunched) {
  uint64_t a = 0, b = 0;
  ASSERT_EQ(client_.Alloc(4 * kMiB, &a), CUDA_SUCCESS);
  ASSERT_EQ(client_.Alloc(4 * kMiB, &b), CUDA_SUCCESS);
  test_.driver.log.clear();
  // The same calls one by one say what the driver must be given.
  client_.OneWay(Op::wireFill, wire::wireFillArgs(a, 0, 100, 1, kStreamA, 7, 1));
  client_.Launch(kKernel, kStreamA, 3);
  client_.OneWay(Op::wireCopy, wire::wireCopyArgs(b, a, 50, kStreamA, 0));
  ASSERT_EQ(client_.Synchronize(), CUDA_SUCCESS);
  const std::vector<std::string> once = Work();
  ASSERT_EQ(once.size(), 3u);

  ASSERT_EQ(Make({Fill(a, 100), Launch(3), Copy(b, a, 50)}), CUDA_SUCCESS);
  EXPECT_TRUE(Work().empty());
  Run();
  ASSERT_EQ(client_.Synchronize(), CUDA_SUCCESS);
  EXPECT_EQ(Work(), once);
  Run();
  Run();
  ASSERT_EQ(client_.Synchronize(), CUDA_SUCCESS);
  std::vector<std::string> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_EQ(Work(), twice);
  EXPECT_EQ(client_.Deferred(), CUDA_SUCCESS);
}

TEST_F(GraphTest, AnEmptyGraphAndNodesOfNothing) {
  ASSERT_EQ(Make({}), CUDA_SUCCESS);
  Run();
  ASSERT_EQ(Make({Fill(0, 0)}, kOther), CUDA_SUCCESS) << "what is switched off";
  Run(kStreamA, kOther);
  EXPECT_EQ(client_.Synchronize(), CUDA_SUCCESS);
  EXPECT_TRUE(Work().empty());
  EXPECT_EQ(client_.Deferred(), CUDA_SUCCESS);
}

TEST_F(GraphTest, ALargeGraphTakesTurnsWithAnotherTenant) {
  TestClient other(test_, test_.AddTenant("b", 64 * kMiB));
  ASSERT_EQ(other.Begin(1), CUDA_SUCCESS);
  ASSERT_EQ(other.Load(kImage, kModule, kKernel), CUDA_SUCCESS);
  ASSERT_EQ(Make(std::vector<Bytes>(1000, Launch(1))), CUDA_SUCCESS);
  test_.driver.log.clear();
  test_.driver.Hold();
  Run();
  for (int i = 0; i < 1000; ++i) other.Launch(kKernel, kLegacyStream, 2);
  test_.Settle();
  EXPECT_LT(Launches(), 200u) << "the others' turn comes before the graph is through";
  test_.driver.Release();
  test_.Settle();
  EXPECT_EQ(Launches(), 2000u);
  EXPECT_TRUE(other.HangUp());
}

TEST_F(GraphTest, WhatIsQueuedKeepsTheNodesItWasLaunchedWith) {
  ASSERT_EQ(Make({HostFunc(77), Launch(5)}), CUDA_SUCCESS);
  Run();
  Nodes({Launch(6)}, 1);
  Run();
  Destroy();
  test_.Settle();
  EXPECT_EQ(Launches(), 0u) << "the host function is still running";
  EXPECT_THAT(Inbox(), ElementsAre(77u));
  client_.OneWay(Op::wireHostFuncDone, wire::wireHostFuncDoneArgs(77));
  test_.Settle();
  ASSERT_EQ(Launches(), 1u);
  EXPECT_THAT(Inbox(), ElementsAre(77u));
  client_.OneWay(Op::wireHostFuncDone, wire::wireHostFuncDoneArgs(77));
  test_.Settle();
  EXPECT_EQ(Launches(), 2u) << "also though the graph is destroyed";
  EXPECT_EQ(tenant_.holdings[0]->counters().launches.value(), 2u);
  Run();
  EXPECT_EQ(client_.Deferred(), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(GraphTest, MemoryThatIsGoneIsFoundWhenItIsLaunched) {
  uint64_t a = 0;
  ASSERT_EQ(client_.Alloc(4 * kMiB, &a), CUDA_SUCCESS);
  ASSERT_EQ(Make({Fill(a, 100)}), CUDA_SUCCESS);
  Run();
  client_.Free(a);
  Run();
  EXPECT_EQ(client_.Deferred(), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(client_.Synchronize(), CUDA_SUCCESS);
  uint64_t again = 0;
  ASSERT_EQ(client_.Alloc(4 * kMiB, &again), CUDA_SUCCESS);
  ASSERT_EQ(again, a) << "the same place: the graph may be launched again";
  Work();
  Run();
  EXPECT_EQ(client_.Synchronize(), CUDA_SUCCESS);
  EXPECT_EQ(Work().size(), 1u);
  EXPECT_EQ(client_.Deferred(), CUDA_SUCCESS);
}

TEST_F(GraphTest, AFunctionThatIsGoneIsFoundWhenItIsLaunched) {
  ASSERT_EQ(Make({Launch(1)}), CUDA_SUCCESS);
  client_.OneWay(Op::wireModuleUnload, wire::wireModuleUnloadArgs(kModule));
  Run();
  EXPECT_EQ(client_.Deferred(), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(GraphTest, EventsAreRecordedAndWaitedForInsideOfAGraph) {
  ASSERT_EQ(Make({Launch(1), Record(kEvent)}), CUDA_SUCCESS);
  ASSERT_EQ(Make({Wait(kEvent), Launch(2)}, kOther), CUDA_SUCCESS);
  test_.driver.Hold();
  Run(kStreamA);
  Run(kStreamB, kOther);
  test_.Settle();
  size_t waits = 0;
  for (const std::string& line : test_.driver.log) waits += line.starts_with("wait");
  EXPECT_EQ(waits, 1u) << "one lane waits for the other";
  EXPECT_EQ(client_.Call(Op::cuEventQuery, wire::cuEventQueryArgs(kEvent)), CUDA_ERROR_NOT_READY);
  test_.driver.Release();
  EXPECT_EQ(client_.Synchronize(), CUDA_SUCCESS);
  EXPECT_EQ(client_.Call(Op::cuEventQuery, wire::cuEventQueryArgs(kEvent)), CUDA_SUCCESS);
  client_.OneWay(Op::cuEventDestroy_v2, wire::cuEventDestroy_v2Args(kEvent));
  Run();
  EXPECT_EQ(client_.Deferred(), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(GraphTest, LaunchesOfOneGraphComeAfterEachOtherInAllStreams) {
  ASSERT_EQ(Make({Launch(1)}), CUDA_SUCCESS);
  test_.driver.Hold();
  Run(kStreamA);
  test_.driver.log.clear();
  Run(kStreamB);
  test_.Settle();
  size_t waits = 0;
  for (const std::string& line : test_.driver.log) waits += line.starts_with("wait");
  EXPECT_EQ(waits, 1u);
  // Also where the stream of the last launch has ended since.
  client_.OneWay(Op::cuStreamDestroy_v2, wire::cuStreamDestroy_v2Args(kStreamB));
  test_.driver.log.clear();
  Run(kStreamA);
  test_.Settle();
  waits = 0;
  for (const std::string& line : test_.driver.log) waits += line.starts_with("wait");
  EXPECT_EQ(waits, 1u);
  test_.driver.Release();
  EXPECT_EQ(client_.Synchronize(), CUDA_SUCCESS);
  EXPECT_EQ(client_.Deferred(), CUDA_SUCCESS);
}

TEST_F(GraphTest, AFaultInTheMiddleDropsTheRest) {
  ASSERT_EQ(Make({Launch(1), HostFunc(5), Record(kEvent), Wait(kEvent), Launch(2)}), CUDA_SUCCESS);
  Run();
  Run();
  test_.Settle();
  EXPECT_EQ(Launches(), 1u);
  test_.driver.Fault(reinterpret_cast<CUcontext>(*test_.driver.contexts.rbegin()),
                     CUDA_ERROR_ILLEGAL_ADDRESS);
  client_.Launch(kKernel, kStreamB);
  test_.Settle();
  EXPECT_EQ(client_.Synchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(client_.Sticky(), CUDA_ERROR_ILLEGAL_ADDRESS);
  Run();
}

TEST_F(GraphTest, WrongNodesAreNamed) {
  uint64_t a = 0;
  ASSERT_EQ(client_.Alloc(4 * kMiB, &a), CUDA_SUCCESS);
  const std::vector<std::pair<Bytes, CUresult>> wrong = {
      {Launch(1, kModule), CUDA_ERROR_INVALID_HANDLE},
      {Fill(a, 4 * kMiB + 1), CUDA_ERROR_INVALID_VALUE},
      {Fill(a + kMiB, ~uint64_t{0}), CUDA_ERROR_INVALID_VALUE},
      {Copy(a, a + 4 * kMiB - 8, 9), CUDA_ERROR_INVALID_VALUE},
      {Copy(a, 0, 9, 1), CUDA_ERROR_INVALID_VALUE},  // from the staging area
      {Copy(0, a, 0, 2), CUDA_ERROR_INVALID_VALUE},
      {Record(kGraph), CUDA_ERROR_INVALID_HANDLE},
      {Wait(kGraph), CUDA_ERROR_INVALID_HANDLE},
      {Node(Op::wireGraphLaunch, wire::wireGraphLaunchArgs(kGraph, kStreamA)), CUDA_ERROR_INVALID_VALUE},
      {Node(Op::cuMemFree_v2, wire::cuMemFree_v2Args(a)), CUDA_ERROR_INVALID_VALUE},
      {TestClient::Frame(Op::cuCtxSynchronize, 1, 0, wire::cuCtxSynchronizeArgs()), CUDA_ERROR_INVALID_VALUE},
  };
  for (const auto& [node, code] : wrong) {
    EXPECT_EQ(Make({Launch(1), node, Launch(2)}), code);
    EXPECT_EQ(Wrong(), 1u);
    Run();
    EXPECT_EQ(client_.Deferred(), CUDA_ERROR_INVALID_HANDLE) << "it was never ready";
    Destroy();
  }
  EXPECT_EQ(client_.Deferred(), CUDA_SUCCESS);
}

TEST_F(GraphTest, AnotherClientsHandlesAreNobodysHere) {
  TestClient other(test_, tenant_);
  ASSERT_EQ(other.Begin(1), CUDA_SUCCESS);
  uint64_t foreign = 0;
  ASSERT_EQ(other.Alloc(4 * kMiB, &foreign), CUDA_SUCCESS);
  EXPECT_EQ(Make({Fill(foreign, 8)}), CUDA_ERROR_INVALID_VALUE);
  Destroy();
  ASSERT_EQ(Make({Launch(1)}), CUDA_SUCCESS);
  other.OneWay(Op::wireGraphLaunch, wire::wireGraphLaunchArgs(kGraph, kLegacyStream));
  EXPECT_EQ(other.Deferred(), CUDA_ERROR_INVALID_HANDLE);
  other.OneWay(Op::wireGraphDestroy, wire::wireGraphDestroyArgs(kGraph));
  EXPECT_EQ(other.Deferred(), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_TRUE(other.HangUp());
}

TEST_F(GraphTest, DescriptionsThatDoNotAddUp) {
  Nodes({Launch(1)}, 1);
  EXPECT_EQ(client_.Deferred(), CUDA_ERROR_INVALID_VALUE) << "a node behind a gap";
  Nodes({Launch(1)}, 0xffffffff);
  EXPECT_EQ(client_.Deferred(), CUDA_ERROR_INVALID_VALUE);
  Bytes cut = Launch(1);
  cut.resize(cut.size() - 8);
  Nodes({cut});
  EXPECT_EQ(client_.Deferred(), CUDA_ERROR_INVALID_VALUE);
  Bytes none = Launch(1);
  none[0] = none[1] = std::byte{0};
  Nodes({none});
  EXPECT_EQ(client_.Deferred(), CUDA_ERROR_INVALID_VALUE) << "a frame of no bytes";
  Nodes({Launch(1)});
  EXPECT_EQ(Ready(2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Ready(0), CUDA_ERROR_INVALID_VALUE);
  Run();
  EXPECT_EQ(client_.Deferred(), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Ready(1), CUDA_SUCCESS);
  EXPECT_EQ(Ready(1, kOther), CUDA_ERROR_INVALID_HANDLE);
  Nodes({Launch(1, kModule)});
  Run();
  EXPECT_EQ(client_.Deferred(), CUDA_ERROR_INVALID_HANDLE) << "a node changed to something wrong";
}

TEST_F(GraphTest, ThereIsABoundToWhatAClientMayDescribe) {
  // A host function keeps the launches; each of them keeps nodes of its own.
  const std::vector<Bytes> nodes(1000, Launch(1));
  std::vector<Bytes> all{HostFunc(1)};
  for (size_t part = 0; part < kMostGraphNodes / 4000; ++part)
    Nodes(nodes, static_cast<uint32_t>(part * 1000));
  const uint32_t count = static_cast<uint32_t>(kMostGraphNodes / 4000 * 1000);
  Nodes(all, 0);
  ASSERT_EQ(Ready(count), CUDA_SUCCESS);
  int launched = 0;
  while (launched < 10 && client_.Deferred() == CUDA_SUCCESS) {
    Nodes(all, 0);
    Run();
    ++launched;
  }
  EXPECT_LT(launched, 7);
  for (uint32_t part = 0; part < 4; ++part) Nodes(nodes, part * 1000, kOther);
  EXPECT_EQ(Ready(4000, kOther), CUDA_ERROR_OUT_OF_MEMORY);
}

}  // namespace
}  // namespace cuplex::server
