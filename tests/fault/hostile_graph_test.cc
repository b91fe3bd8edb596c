// A client that lies about graphs. Dependencies do not travel, so a cycle can only be tried as a graph within
// itself, or as events that wait for each other.
#include <cstring>
#include <random>

#include "tests/fault/hostile.h"

namespace cuplex::fault {
namespace {

using namespace std::chrono_literals;
using Bytes = std::vector<std::byte>;

constexpr char kPtx[] = R"(.version 7.0
.target sm_50
.address_size 64
.visible .entry store(.param .u64 p)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd0, [p];
  mov.u32 %r0, 7;
  st.global.u32 [%rd0], %r0;
  ret;
}
)";
constexpr Handle kModule = MakeHandle(40, 0), kStore = MakeHandle(41, 0), kStream = MakeHandle(42, 0),
                 kEvent = MakeHandle(43, 0), kOtherEvent = MakeHandle(44, 0), kGraph = MakeHandle(50, 0),
                 kOther = MakeHandle(51, 0);

template <typename Args>
Bytes Node(Op op, const Args& args, std::span<const std::byte> span = {}) {
  return RawSession::Frame(op, kNoSlot, 0, args, span);
}
Bytes Fill(uint64_t address, uint64_t bytes) {
  return Node(Op::wireFill, wire::wireFillArgs(address, 0, bytes, 1, 0, 7, 1));
}
Bytes Copy(uint64_t to, uint64_t from, uint64_t bytes, uint32_t staged = 0) {
  return Node(Op::wireCopy, wire::wireCopyArgs(to, from, bytes, 0, staged));
}
Bytes Launch(Handle function, std::span<const std::byte> parameters, uint32_t grid = 1, uint32_t block = 1,
             uint32_t shared = 0) {
  return Node(Op::wireLaunch,
              wire::wireLaunchArgs(function, 0, grid, 1, 1, block, 1, 1, shared, 0,
                                   static_cast<uint32_t>(parameters.size())),
              parameters);
}
Bytes Store(uint64_t address, uint32_t grid = 1, uint32_t block = 1, uint32_t shared = 0) {
  return Launch(kStore, std::as_bytes(std::span(&address, 1)), grid, block, shared);
}
Bytes HostFunc(uint64_t cookie) { return Node(Op::wireHostFunc, wire::wireHostFuncArgs(0, cookie)); }
Bytes Record(Handle event) { return Node(Op::cuEventRecord, wire::cuEventRecordArgs(event, 0)); }
Bytes Wait(Handle event) { return Node(Op::cuStreamWaitEvent, wire::cuStreamWaitEventArgs(0, event, 0)); }

class HostileGraph : public Hostile {
 protected:
  /// A client with all that a graph can name.
  RawSession Equipped() {
    RawSession client = Client();
    EXPECT_EQ(client.Load(kContext, kPtx, kModule, "store", kStore), CUDA_SUCCESS);
    client.OneWay(Op::wireStreamCreate, kContext,
                  wire::wireStreamCreateArgs(kStream, CU_STREAM_NON_BLOCKING, 0));
    for (Handle event : {kEvent, kOtherEvent})
      client.OneWay(Op::wireEventCreate, kContext, wire::wireEventCreateArgs(event, CU_EVENT_DISABLE_TIMING));
    return client;
  }
  static void Nodes(RawSession& client, const std::vector<Bytes>& nodes, uint32_t first = 0,
                    Handle graph = kGraph) {
    Bytes all;
    for (const Bytes& node : nodes) all.insert(all.end(), node.begin(), node.end());
    client.OneWay(Op::wireGraphNodes, kContext,
                  wire::wireGraphNodesArgs(graph, first, static_cast<uint32_t>(all.size())), all);
  }
  static CUresult Ready(RawSession& client, uint32_t count, Handle graph = kGraph) {
    return client.Call(Op::wireGraphReady, kContext, wire::wireGraphReadyArgs(graph, count));
  }
  static CUresult Make(RawSession& client, const std::vector<Bytes>& nodes, Handle graph = kGraph) {
    Nodes(client, nodes, 0, graph);
    return Ready(client, static_cast<uint32_t>(nodes.size()), graph);
  }
  static void Run(RawSession& client, Handle graph = kGraph, uint64_t stream = kStream) {
    client.OneWay(Op::wireGraphLaunch, kContext, wire::wireGraphLaunchArgs(graph, stream));
  }
  static void Destroy(RawSession& client, Handle graph = kGraph) {
    client.OneWay(Op::wireGraphDestroy, kContext, wire::wireGraphDestroyArgs(graph));
  }
  /// What the server thinks of what came so far.
  static CUresult Verdict(RawSession& client) {
    EXPECT_EQ(client.Synchronize(kContext), CUDA_SUCCESS) << "a wrong graph is no reason to end a session";
    return client.TakeDeferred();
  }
  /// Before anything that a stream of its own may do.
  void Clear(RawSession& client) {
    client.Fill(kContext, mine_, 4, 0);
    EXPECT_EQ(client.Synchronize(kContext), CUDA_SUCCESS);
  }
  /// The client's own word, as the device has it.
  uint32_t Word(RawSession& client) {
    uint32_t word = 0;
    EXPECT_EQ(client.Read(kContext, mine_, std::as_writable_bytes(std::span(&word, 1))), CUDA_SUCCESS);
    return word;
  }
};

TEST_F(HostileGraph, NodesThatCannotBe) {
  RawSession client = Equipped();
  neighbour_.OneWay(Op::wireEventCreate, kContext, wire::wireEventCreateArgs(MakeHandle(60, 0), 0));
  ASSERT_EQ(neighbour_.Synchronize(kContext), CUDA_SUCCESS);
  const uint64_t address = mine_;
  const auto word = std::as_bytes(std::span(&address, 1));
  auto changed = [&](size_t at, uint64_t value, size_t bytes) {
    Bytes node = Store(mine_);
    memcpy(node.data() + at, &value, bytes);
    return node;
  };
  const std::vector<Bytes> wrong = {
      Launch(0, word),
      Launch(kModule, word),
      Launch(MakeHandle(41, 1), word),
      Launch(kAll, word),
      Fill(theirs_, 64),
      Fill(mine_ + kMiB - 8, 16),
      Fill(mine_, kAll),
      Fill(kAll - 7, 16),
      Copy(theirs_, mine_, 64),
      Copy(mine_, theirs_, 64),
      Copy(mine_, kAll - 7, 64),
      Copy(mine_, 0, 64, 1),
      Copy(0, mine_, 64, 2),
      Copy(mine_, mine_, 64, 0xfffffffc),
      Record(MakeHandle(60, 0)),
      Wait(MakeHandle(60, 0)),
      Record(0),
      Wait(kAll),
      Node(Op::wireGraphLaunch, wire::wireGraphLaunchArgs(kGraph, kStream)),
      Node(Op::wireGraphDestroy, wire::wireGraphDestroyArgs(kGraph)),
      Node(Op::wireGraphNodes, wire::wireGraphNodesArgs(kGraph, 0, 0)),
      Node(Op::cuMemFree_v2, wire::cuMemFree_v2Args(mine_)),
      Node(Op::wireHostFuncDone, wire::wireHostFuncDoneArgs(1)),
      Node(Op::wireModuleUnload, wire::wireModuleUnloadArgs(kModule)),
      RawSession::Frame(Op::cuCtxSynchronize, 0, kContext, wire::cuCtxSynchronizeArgs()),
      RawSession::Frame(Op::wireContextDestroy, 0, kContext, wire::wireContextDestroyArgs(kContext)),
      changed(4, 0, 2),           // no call
      changed(4, 0xffff, 2),      // no call either
      changed(6, 9, 1),           // another version
      changed(7, 1, 1),           // flags
      changed(8, 0, 4),           // a slot
      changed(16 + 48, 9, 4),     // parameters: what follows is shorter
      changed(16 + 48, kAll, 4),  // far shorter
  };
  for (size_t i = 0; i < wrong.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_NE(Make(client, {Fill(mine_, 4), wrong[i], Fill(mine_, 4)}), CUDA_SUCCESS);
    Run(client);
    EXPECT_EQ(Verdict(client), CUDA_ERROR_INVALID_HANDLE) << "it was never ready";
    Destroy(client);
    // The same in place of a good one.
    ASSERT_EQ(Make(client, {Fill(mine_, 4), Store(mine_)}), CUDA_SUCCESS);
    Nodes(client, {wrong[i]}, 1);
    Run(client);
    EXPECT_NE(Verdict(client), CUDA_SUCCESS);
    Nodes(client, {Store(mine_)}, 1);
    Clear(client);
    Run(client);
    EXPECT_EQ(Verdict(client), CUDA_SUCCESS);
    EXPECT_EQ(Word(client), 7u) << "a good node there again, it runs";
    Destroy(client);
  }
  EXPECT_EQ(neighbour_.Call(Op::cuEventQuery, kContext, wire::cuEventQueryArgs(MakeHandle(60, 0))),
            CUDA_SUCCESS);
}

TEST_F(HostileGraph, ParametersAndShapesThatCannotBe) {
  RawSession client = Equipped();
  for (size_t bytes : {0u, 4u, 7u}) {
    EXPECT_NE(Make(client, {Launch(kStore, Bytes(bytes))}), CUDA_SUCCESS) << bytes;
    Destroy(client);
  }
  // What is longer than the kernel's says no more than it would.
  for (size_t bytes : {16u, 4096u, 30'000u}) {
    Bytes parameters(bytes, std::byte{0x41});
    memcpy(parameters.data(), &mine_, sizeof(mine_));
    Clear(client);
    if (Make(client, {Launch(kStore, parameters)}) == CUDA_SUCCESS) {
      Run(client);
      EXPECT_EQ(Verdict(client), CUDA_SUCCESS) << bytes;
      EXPECT_EQ(Word(client), 7u) << bytes;
    }
    Destroy(client);
    (void)client.TakeDeferred();
  }
  const std::vector<Bytes> shapes = {Store(mine_, 0),
                                     Store(mine_, 1, 0),
                                     Store(mine_, 1, 4096),
                                     Store(mine_, 1, 0xffffffff),
                                     Store(mine_, 1, 1, 0xffffffff),
                                     Store(mine_, 0xffffffff)};
  for (size_t i = 0; i < shapes.size(); ++i) {
    SCOPED_TRACE(i);
    // Some of it only the driver knows, at the launch.
    CUresult said = Make(client, {shapes[i]});
    if (!said) {
      Run(client);
      said = Verdict(client);
    }
    EXPECT_NE(said, CUDA_SUCCESS);
    Destroy(client);
    (void)client.TakeDeferred();
  }
  Clear(client);
  ASSERT_EQ(Make(client, {Store(mine_)}), CUDA_SUCCESS);
  Run(client);
  EXPECT_EQ(Verdict(client), CUDA_SUCCESS);
  EXPECT_EQ(Word(client), 7u);
}

TEST_F(HostileGraph, CountsAndPlacesThatCannotBe) {
  RawSession client = Equipped();
  for (uint32_t first : {1u, 0x7fffffffu, 0xffffffffu}) {
    Nodes(client, {Fill(mine_, 4)}, first);
    EXPECT_NE(Verdict(client), CUDA_SUCCESS) << first;
  }
  Nodes(client, {Fill(mine_, 4)});
  for (uint32_t count : {0u, 2u, 0x80000000u, 0xffffffffu}) {
    EXPECT_NE(Ready(client, count), CUDA_SUCCESS) << count;
    EXPECT_NE(Ready(client, count, kOther), CUDA_SUCCESS) << count;
  }
  for (uint32_t length : {0u, 1u, 7u, 15u, 1000u, 0x80000000u, 0xffffffffu}) {
    SCOPED_TRACE(length);
    Bytes node = Fill(mine_, 4);
    memcpy(node.data(), &length, 4);
    Nodes(client, {node}, 1);
    EXPECT_NE(Verdict(client), CUDA_SUCCESS);
  }
  for (size_t keep : {1u, 8u, 15u, 24u}) {
    Bytes node = Fill(mine_, 4);
    node.resize(keep);
    Nodes(client, {node}, 1);
    EXPECT_NE(Verdict(client), CUDA_SUCCESS) << keep;
  }
  for (Handle graph : {Handle{0}, Handle{15}, MakeHandle(kMaxHandleId, 0), kAll}) {
    Nodes(client, {Fill(mine_, 4)}, 0, graph);
    EXPECT_NE(Verdict(client), CUDA_SUCCESS) << graph;
  }
}

TEST_F(HostileGraph, MoreNodesThanThereMayBe) {
  RawSession client = Equipped();
  const std::vector<Bytes> many(400, Fill(mine_, 4));
  CUresult code = CUDA_SUCCESS;
  uint32_t count = 0;
  for (; count < 200'000 && !code; count += 400) {
    Nodes(client, many, count);
    code = client.TakeDeferred();
  }
  const CUresult last = Verdict(client);  // of those that were on their way
  EXPECT_EQ(code ? code : last, CUDA_ERROR_OUT_OF_MEMORY);
  // Many graphs instead of a large one.
  Destroy(client);
  for (uint32_t i = 0; i < 20'000; ++i) Nodes(client, {Fill(mine_, 4)}, 0, MakeHandle(100 + i, 0));
  EXPECT_EQ(Verdict(client), CUDA_ERROR_OUT_OF_MEMORY);
  for (uint32_t i = 0; i < 20'000; ++i) Destroy(client, MakeHandle(100 + i, 0));
  (void)Verdict(client);
  // Large nodes: what a client may describe is bounded in bytes, too.
  const Bytes parameters(32'000);
  for (uint32_t i = 0; i < 4000; ++i) Nodes(client, {Launch(kStore, parameters)}, i);
  EXPECT_EQ(Verdict(client), CUDA_ERROR_OUT_OF_MEMORY);
  Destroy(client);
  EXPECT_EQ(Make(client, {Store(mine_)}, kOther), CUDA_SUCCESS);
  Run(client, kOther);
  EXPECT_EQ(Verdict(client), CUDA_SUCCESS);
}

TEST_F(HostileGraph, GraphsOfOthersAndGraphsThatAreGone) {
  RawSession other = Equipped(), client = Equipped();
  ASSERT_EQ(Make(client, {Fill(mine_, 4)}), CUDA_SUCCESS);
  Run(other);
  EXPECT_EQ(Verdict(other), CUDA_ERROR_INVALID_HANDLE) << "of another process";
  Destroy(other);
  EXPECT_EQ(Verdict(other), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Ready(other, 1), CUDA_ERROR_INVALID_HANDLE);
  // Of another context of the same process, and in a stream of it.
  constexpr uint32_t kSecond = 2;
  const Handle there = MakeHandle(45, 0);
  ASSERT_EQ(client.Begin(kSecond), CUDA_SUCCESS);
  client.OneWay(Op::wireStreamCreate, kSecond, wire::wireStreamCreateArgs(there, 0, 0));
  client.OneWay(Op::wireGraphLaunch, kSecond, wire::wireGraphLaunchArgs(kGraph, kLegacyStream));
  EXPECT_EQ(Verdict(client), CUDA_ERROR_INVALID_HANDLE);
  Run(client, kGraph, there);
  EXPECT_EQ(Verdict(client), CUDA_ERROR_INVALID_HANDLE);
  for (uint64_t stream : {uint64_t{3}, uint64_t{kGraph}, kAll}) {
    Run(client, kGraph, stream);
    EXPECT_EQ(Verdict(client), CUDA_ERROR_INVALID_HANDLE) << stream;
  }
  Destroy(client);
  Run(client);
  EXPECT_EQ(Verdict(client), CUDA_ERROR_INVALID_HANDLE);
  Destroy(client);
  EXPECT_EQ(Verdict(client), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Ready(client, 1), CUDA_ERROR_INVALID_HANDLE);
  // Of a context that is destroyed.
  client.OneWay(Op::wireGraphNodes, kSecond,
                wire::wireGraphNodesArgs(kOther, 0, static_cast<uint32_t>(HostFunc(1).size())), HostFunc(1));
  ASSERT_EQ(client.Call(Op::wireGraphReady, kSecond, wire::wireGraphReadyArgs(kOther, 1)), CUDA_SUCCESS);
  client.OneWay(Op::wireGraphLaunch, kSecond, wire::wireGraphLaunchArgs(kOther, kLegacyStream));
  ASSERT_EQ(client.Call(Op::wireContextDestroy, kSecond, wire::wireContextDestroyArgs(kSecond)), CUDA_SUCCESS)
      << "with a launch that stands in it";
  Run(client, kOther);
  EXPECT_EQ(Verdict(client), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(HostileGraph, WhatNodesNameIsGone) {
  RawSession client = Equipped();
  uint64_t freed = 0;
  ASSERT_EQ(client.Alloc(kContext, 4 * kMiB, &freed), CUDA_SUCCESS);
  ASSERT_EQ(Make(client, {Fill(freed, 64)}), CUDA_SUCCESS);
  Run(client);
  client.OneWay(Op::cuMemFree_v2, kContext, wire::cuMemFree_v2Args(freed));
  Run(client);
  EXPECT_EQ(Verdict(client), CUDA_ERROR_INVALID_VALUE);
  Nodes(client, {Copy(mine_, freed, 64)});
  Run(client);
  EXPECT_EQ(Verdict(client), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(Make(client, {Record(kEvent), Wait(kEvent)}, kOther), CUDA_SUCCESS);
  client.OneWay(Op::cuEventDestroy_v2, kContext, wire::cuEventDestroy_v2Args(kEvent));
  Run(client, kOther);
  EXPECT_EQ(Verdict(client), CUDA_ERROR_INVALID_HANDLE);
  Destroy(client);
  ASSERT_EQ(Make(client, {Store(mine_)}), CUDA_SUCCESS);
  Run(client);
  client.OneWay(Op::wireModuleUnload, kContext, wire::wireModuleUnloadArgs(kModule));
  Run(client);
  EXPECT_EQ(Verdict(client), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Word(client), 7u) << "the launch before it has run";
  client.OneWay(Op::cuStreamDestroy_v2, kContext, wire::cuStreamDestroy_v2Args(kStream));
  Run(client);
  EXPECT_NE(Verdict(client), CUDA_SUCCESS);
}

TEST_F(HostileGraph, EventsThatWaitForEachOther) {
  RawSession client = Equipped();
  const Handle second = MakeHandle(45, 0);
  client.OneWay(Op::wireStreamCreate, kContext,
                wire::wireStreamCreateArgs(second, CU_STREAM_NON_BLOCKING, 0));
  ASSERT_EQ(Make(client, {Wait(kEvent), Store(mine_), Record(kOtherEvent)}), CUDA_SUCCESS);
  ASSERT_EQ(Make(client, {Wait(kOtherEvent), Store(mine_), Record(kEvent)}, kOther), CUDA_SUCCESS);
  // A launch waits for what was recorded before it, so there is always one that can go on.
  for (int i = 0; i < 500; ++i) {
    Run(client);
    Run(client, kOther, second);
  }
  EXPECT_EQ(Verdict(client), CUDA_SUCCESS);
  EXPECT_EQ(Word(client), 7u);
}

TEST_F(HostileGraph, DestroyedWhileTheyRun) {
  RawSession client = Equipped();
  for (int round = 0; round < 200 && !client.ended(); ++round) {
    Nodes(client, {Store(mine_), Record(kEvent), Fill(mine_, 64), Wait(kEvent)});
    const uint32_t count = 4;
    ASSERT_EQ(Ready(client, count), CUDA_SUCCESS);
    for (int i = 0; i < 20; ++i) {
      Run(client, kGraph, i % 2 ? kStream : uint64_t{kLegacyStream});
      Nodes(client, {Fill(mine_, static_cast<uint64_t>(i) + 1)}, 2);
    }
    Destroy(client);
    Run(client);
  }
  EXPECT_EQ(Verdict(client), CUDA_ERROR_INVALID_HANDLE);
  // A context that ends under launches that stand, and a client that goes.
  ASSERT_EQ(Make(client, {HostFunc(1), Store(mine_)}), CUDA_SUCCESS);
  for (int i = 0; i < 1000; ++i) Run(client);
  Destroy(client);
  EXPECT_EQ(client.Call(Op::wireContextDestroy, kContext, wire::wireContextDestroyArgs(kContext)),
            CUDA_SUCCESS);
  client = Equipped();
  ASSERT_EQ(Make(client, {HostFunc(1), Store(mine_)}), CUDA_SUCCESS);
  for (int i = 0; i < 1000; ++i) Run(client);
}

TEST_F(HostileGraph, MoreLaunchesThanAnybodyWaitsFor) {
  RawSession client = Equipped();
  ASSERT_EQ(Make(client, std::vector<Bytes>(500, Store(mine_))), CUDA_SUCCESS);
  ASSERT_EQ(Make(client, {HostFunc(1)}, kOther), CUDA_SUCCESS);
  Run(client, kOther);  // and never says that it is done
  for (int i = 0; i < 100'000 && !client.ended(); ++i) Run(client);
  EXPECT_EQ(neighbour_.Synchronize(kContext), CUDA_SUCCESS);
}

/// Nodes, counts and launches drawn from what tends to break things.
TEST_F(HostileGraph, GraphsAtRandom) {
  std::mt19937_64 random(5);
  const auto until = std::chrono::steady_clock::now() + 4s;
  const std::vector<Op> ops = {
      Op::wireLaunch,   Op::wireCopy,        Op::wireCopyBox,    Op::wireCopyArray,     Op::wireFill,
      Op::wireHostFunc, Op::cuEventRecord,   Op::wireFreeAsync,  Op::cuStreamWaitEvent, Op::wireHostFuncDone,
      Op::cuMemFree_v2, Op::wireGraphLaunch, Op::wireGraphNodes, Op::wireGraphReady};
  uint64_t launched = 0;
  while (std::chrono::steady_clock::now() < until) {
    RawSession client = Equipped();
    const std::vector<uint64_t> numbers = {0,
                                           1,
                                           2,
                                           8,
                                           64,
                                           4096,
                                           kMiB,
                                           mine_,
                                           mine_,
                                           theirs_,
                                           kAll,
                                           kAll - 7,
                                           kStore,
                                           kEvent,
                                           kOtherEvent,
                                           kGraph,
                                           kOther,
                                           kStream,
                                           kLegacyStream,
                                           client.arena(),
                                           uint64_t{1} << 32,
                                           uint64_t{1} << 63};
    auto node = [&]() -> Bytes {
      switch (random() % 6) {
        case 0:
          return Fill(mine_, random() % 64);
        case 1:
          return random() % 2 ? Record(kEvent) : Wait(kOtherEvent);
        case 2:
          return HostFunc(random() % 3);
        default:
          break;
      }
      const OpRow* row = FindOp(static_cast<uint16_t>(ops[random() % ops.size()]));
      Bytes args(row->args_bytes);
      for (size_t at = 0; at < args.size(); at += 4) {
        const uint64_t number = numbers[random() % numbers.size()];
        memcpy(args.data() + at, &number, std::min<size_t>(args.size() - at, random() % 2 ? 8 : 4));
      }
      Bytes frame = RawSession::Frame(row->op, row->oneway ? kNoSlot : 0, 0, args, Bytes(random() % 64));
      if (random() % 16 == 0) frame[random() % 16] = static_cast<std::byte>(random());
      return frame;
    };
    for (int i = 0; i < 400 && !client.ended(); ++i) {
      const Handle graph = random() % 2 ? kGraph : kOther;
      switch (random() % 6) {
        case 0:
        case 1: {
          std::vector<Bytes> nodes;
          for (size_t n = random() % 4; n > 0; --n) nodes.push_back(node());
          Nodes(client, nodes, static_cast<uint32_t>(random() % 4), graph);
          break;
        }
        case 2:
          (void)Ready(client, static_cast<uint32_t>(random() % 5), graph);
          break;
        case 3:
          Run(client, graph, numbers[random() % numbers.size()]);
          Run(client, graph);
          ++launched;
          break;
        case 4:
          client.OneWay(Op::wireHostFuncDone, kContext, wire::wireHostFuncDoneArgs(random() % 3));
          break;
        default:
          if (random() % 4 == 0) Destroy(client, graph);
      }
    }
  }
  EXPECT_GT(launched, 20u);
}

}  // namespace
}  // namespace cuplex::fault
