// Graphs: built node by node or captured, launched, changed; and what must not be done while a stream is
// captured.
#include <atomic>
#include <thread>

#include "tests/conformance/driver_under_test.h"

namespace cuplex::conformance {
namespace {

class Graphs : public Body {
 protected:
  void SetUp() override {
    Body::SetUp();
    CUgraph graph = nullptr;
    if (Cu().cuGraphCreate(&graph, 0) == CUDA_ERROR_NOT_SUPPORTED)
      GTEST_SKIP() << "this driver has no graphs";
    MUST(Cu().cuGraphDestroy(graph));
  }
};

/// A graph, and what is instantiated from one, that end with the scope.
struct Graph {
  Graph() { MUST(Cu().cuGraphCreate(&handle, 0)); }
  explicit Graph(CUgraph graph) : handle(graph) {}
  ~Graph() { (void)Cu().cuGraphDestroy(handle); }
  Graph(const Graph&) = delete;
  operator CUgraph() const { return handle; }  // NOLINT
  CUgraph handle = nullptr;
};
struct Exec {
  explicit Exec(CUgraph graph, unsigned long long flags = 0) {
    MUST(Cu().cuGraphInstantiateWithFlags(&handle, graph, flags));
  }
  ~Exec() { (void)Cu().cuGraphExecDestroy(handle); }
  Exec(const Exec&) = delete;
  operator CUgraphExec() const { return handle; }  // NOLINT
  void Run(CUstream stream) const { MUST(Cu().cuGraphLaunch(handle, stream)); }
  CUgraphExec handle = nullptr;
};

/// `add` of kernels.cu: values[i] += amount.
struct AddNode {
  AddNode(CUfunction f, CUdeviceptr at, unsigned amount, unsigned count)
      : at(at), amount(amount), count(count) {
    params.func = f;
    params.gridDimX = (count + 63) / 64;
    params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
    params.blockDimX = 64;
    params.kernelParams = pointers;
  }
  CUdeviceptr at;
  unsigned amount, count;
  void* pointers[3] = {&at, &amount, &count};
  CUDA_KERNEL_NODE_PARAMS params{};
};

CUDA_MEMCPY3D Line(CUdeviceptr to, const void* to_host, CUdeviceptr from, const void* from_host,
                   size_t bytes) {
  CUDA_MEMCPY3D c{};
  c.dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  c.srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  c.dstHost = const_cast<void*>(to_host);
  c.srcHost = from_host;
  c.dstDevice = to;
  c.srcDevice = from;
  c.WidthInBytes = bytes;
  c.Height = c.Depth = 1;
  return c;
}

void CountUp(void* count) { static_cast<std::atomic<int>*>(count)->fetch_add(1); }

TEST_F(Graphs, NodesRunAfterThoseTheyDependOn) {
  constexpr unsigned kCount = 100;
  DeviceMemory x(kCount * 4), y(kCount * 4);
  Graph graph;
  const CUDA_MEMSET_NODE_PARAMS fill{x.at, 0, 5, 4, kCount, 1};
  AddNode add(Kernel("add"), x.at, 3, kCount);
  const CUDA_MEMCPY3D copy = Line(y.at, nullptr, x.at, nullptr, kCount * 4);
  CUgraphNode first, second, third;
  // The last is made first: only what it is told to depend on says when it runs.
  MUST(Cu().cuGraphAddMemcpyNode(&third, graph, nullptr, 0, &copy, context_));
  MUST(Cu().cuGraphAddKernelNode_v2(&second, graph, nullptr, 0, &add.params));
  MUST(Cu().cuGraphAddMemsetNode(&first, graph, nullptr, 0, &fill, context_));
  const CUgraphNode from[] = {first, second}, to[] = {second, third};
  MUST(Cu().cuGraphAddDependencies_v2(graph, from, to, nullptr, 2));
  EXPECT_EQ(Cu().cuGraphAddDependencies_v2(graph, from, to, nullptr, 1), CUDA_ERROR_INVALID_VALUE) << "twice";
  size_t count = 0;
  MUST(Cu().cuGraphGetNodes(graph, nullptr, &count));
  EXPECT_EQ(count, 3u);
  MUST(Cu().cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &count));
  EXPECT_EQ(count, 2u);
  CUgraphNode root = nullptr;
  count = 1;
  MUST(Cu().cuGraphGetRootNodes(graph, &root, &count));
  EXPECT_EQ(root, first);

  Exec exec(graph);
  Stream stream;
  for (int launch = 0; launch < 3; ++launch) {
    MUST(Cu().cuMemsetD32Async(y.at, 0, kCount, stream));
    exec.Run(stream);
    MUST(Cu().cuStreamSynchronize(stream));
    EXPECT_EQ(Read<unsigned>(y.at, kCount), std::vector<unsigned>(kCount, 8u));
  }
}

TEST_F(Graphs, ParametersAreThoseOfTheMomentWhenTheNodeIsMade) {
  DeviceMemory x(4);
  Write<unsigned>(x.at, {0});
  Graph graph;
  CUgraphNode node;
  {
    AddNode add(Kernel("add"), x.at, 7, 1);
    MUST(Cu().cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &add.params));
    add.amount = 1000;
  }
  CUDA_KERNEL_NODE_PARAMS kept{};
  MUST(Cu().cuGraphKernelNodeGetParams_v2(node, &kept));
  EXPECT_EQ(kept.blockDimX, 64u);
  EXPECT_EQ(*static_cast<unsigned*>(kept.kernelParams[1]), 7u);
  Exec exec(graph);
  exec.Run(nullptr);
  MUST(Cu().cuCtxSynchronize());
  EXPECT_EQ(Read<unsigned>(x.at, 1)[0], 7u);
}

TEST_F(Graphs, WhatWasInstantiatedStaysWhatItWas) {
  DeviceMemory x(4);
  Write<unsigned>(x.at, {0});
  CUgraphExec exec;
  {
    Graph graph;
    AddNode add(Kernel("add"), x.at, 7, 1);
    CUgraphNode node;
    MUST(Cu().cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &add.params));
    MUST(Cu().cuGraphInstantiateWithFlags(&exec, graph, 0));
    add.amount = 1000;
    MUST(Cu().cuGraphKernelNodeSetParams_v2(node, &add.params));
  }
  MUST(Cu().cuGraphLaunch(exec, nullptr));
  MUST(Cu().cuGraphLaunch(exec, nullptr));
  MUST(Cu().cuGraphExecDestroy(exec));
  MUST(Cu().cuCtxSynchronize());
  EXPECT_EQ(Read<unsigned>(x.at, 1)[0], 14u) << "also where it is destroyed before it has run";
  EXPECT_EQ(Cu().cuGraphLaunch(exec, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graphs, ACircleIsFoundWhenItIsInstantiated) {
  Graph graph;
  CUgraphNode a, b;
  MUST(Cu().cuGraphAddEmptyNode(&a, graph, nullptr, 0));
  MUST(Cu().cuGraphAddEmptyNode(&b, graph, &a, 1));
  CUgraphExec exec;
  const CUresult added = Cu().cuGraphAddDependencies_v2(graph, &b, &a, nullptr, 1);
  if (!added) {
    EXPECT_EQ(Cu().cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
  } else {
    EXPECT_EQ(added, CUDA_ERROR_INVALID_VALUE);
  }
}

TEST_F(Graphs, PageableMemoryIsReadAndWrittenWhenTheGraphRuns) {
  constexpr unsigned kCount = 5000;
  std::vector<unsigned> from(kCount, 1), to(kCount, 0);
  DeviceMemory x(kCount * 4);
  Graph graph;
  AddNode add(Kernel("add"), x.at, 10, kCount);
  const CUDA_MEMCPY3D in = Line(x.at, nullptr, 0, from.data(), kCount * 4);
  const CUDA_MEMCPY3D out = Line(0, to.data(), x.at, nullptr, kCount * 4);
  CUgraphNode a, b, c;
  MUST(Cu().cuGraphAddMemcpyNode(&a, graph, nullptr, 0, &in, context_));
  MUST(Cu().cuGraphAddKernelNode_v2(&b, graph, &a, 1, &add.params));
  MUST(Cu().cuGraphAddMemcpyNode(&c, graph, &b, 1, &out, context_));
  Exec exec(graph);
  Stream stream;
  for (unsigned launch = 0; launch < 5; ++launch) {
    std::fill(from.begin(), from.end(), launch * 100);
    exec.Run(stream);
    MUST(Cu().cuStreamSynchronize(stream));
    EXPECT_EQ(to, std::vector<unsigned>(kCount, launch * 100 + 10));
  }
}

TEST_F(Graphs, HostNodesAreCalledInOrderAndEachTime) {
  DeviceMemory x(4);
  Graph graph;
  struct Seen {
    std::atomic<int> calls{0};
    unsigned value = 0;
    int last = 0;
  } seen;
  const CUDA_MEMSET_NODE_PARAMS fill{x.at, 0, 77, 4, 1, 1};
  const CUDA_MEMCPY3D out = Line(0, &seen.value, x.at, nullptr, 4);
  const CUDA_HOST_NODE_PARAMS call{[](void* data) {
                                     auto* s = static_cast<Seen*>(data);
                                     s->last = static_cast<int>(s->value);
                                     s->calls.fetch_add(1);
                                   },
                                   &seen};
  CUgraphNode a, b, c;
  MUST(Cu().cuGraphAddMemsetNode(&a, graph, nullptr, 0, &fill, context_));
  MUST(Cu().cuGraphAddMemcpyNode(&b, graph, &a, 1, &out, context_));
  MUST(Cu().cuGraphAddHostNode(&c, graph, &b, 1, &call));
  {
    Exec exec(graph);
    Stream stream;
    for (int launch = 0; launch < 3; ++launch) exec.Run(stream);
    MUST(Cu().cuStreamSynchronize(stream));
  }
  EXPECT_EQ(seen.calls, 3);
  EXPECT_EQ(seen.last, 77);
}

TEST_F(Graphs, NodesOfSomethingInstantiatedCanBeChangedAndSwitchedOff) {
  DeviceMemory x(4);
  Graph graph;
  AddNode add(Kernel("add"), x.at, 1, 1);
  const CUDA_MEMSET_NODE_PARAMS fill{x.at, 0, 100, 4, 1, 1};
  CUgraphNode a, b;
  MUST(Cu().cuGraphAddMemsetNode(&a, graph, nullptr, 0, &fill, context_));
  MUST(Cu().cuGraphAddKernelNode_v2(&b, graph, &a, 1, &add.params));
  Exec exec(graph);
  Stream stream;
  auto run = [&] {
    exec.Run(stream);
    MUST(Cu().cuStreamSynchronize(stream));
    return Read<unsigned>(x.at, 1)[0];
  };
  EXPECT_EQ(run(), 101u);
  add.amount = 5;
  MUST(Cu().cuGraphExecKernelNodeSetParams_v2(exec, b, &add.params));
  EXPECT_EQ(run(), 105u);
  MUST(Cu().cuGraphNodeSetEnabled(exec, a, 0));
  unsigned enabled = 1;
  MUST(Cu().cuGraphNodeGetEnabled(exec, a, &enabled));
  EXPECT_EQ(enabled, 0u);
  EXPECT_EQ(run(), 110u);
  MUST(Cu().cuGraphNodeSetEnabled(exec, a, 1));
  EXPECT_EQ(run(), 105u);
  CUDA_KERNEL_NODE_PARAMS kept{};
  MUST(Cu().cuGraphKernelNodeGetParams_v2(b, &kept));
  EXPECT_EQ(*static_cast<unsigned*>(kept.kernelParams[1]), 1u) << "the graph itself is as it was";
  // A launch that is queued already is not changed.
  {
    Gate gate(stream);
    exec.Run(stream);
    add.amount = 1000;
    MUST(Cu().cuGraphExecKernelNodeSetParams_v2(exec, b, &add.params));
    gate.Open();
    MUST(Cu().cuStreamSynchronize(stream));
    EXPECT_EQ(Read<unsigned>(x.at, 1)[0], 105u);
  }
  EXPECT_EQ(run(), 1100u);
}

TEST_F(Graphs, AnUpdateTakesAGraphOfTheSameShape) {
  DeviceMemory x(4);
  AddNode add(Kernel("add"), x.at, 1, 1);
  const CUDA_MEMSET_NODE_PARAMS fill{x.at, 0, 100, 4, 1, 1};
  auto build = [&](CUgraph graph, bool joined) {
    CUgraphNode a, b;
    MUST(Cu().cuGraphAddMemsetNode(&a, graph, nullptr, 0, &fill, context_));
    MUST(Cu().cuGraphAddKernelNode_v2(&b, graph, &a, joined ? 1 : 0, &add.params));
  };
  Graph graph, other, apart;
  build(graph, true);
  Exec exec(graph);
  add.amount = 9;
  build(other, true);
  build(apart, false);
  CUgraphExecUpdateResultInfo info{};
  MUST(Cu().cuGraphExecUpdate_v2(exec, other, &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  exec.Run(nullptr);
  MUST(Cu().cuCtxSynchronize());
  EXPECT_EQ(Read<unsigned>(x.at, 1)[0], 109u);
  EXPECT_EQ(Cu().cuGraphExecUpdate_v2(exec, apart, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
}

TEST_F(Graphs, AChildGraphIsACopyThatRunsInItsPlace) {
  DeviceMemory x(4);
  AddNode add(Kernel("add"), x.at, 4, 1);
  const CUDA_MEMSET_NODE_PARAMS fill{x.at, 0, 1, 4, 1, 1};
  Graph graph, child;
  CUgraphNode inner, a, b, c;
  MUST(Cu().cuGraphAddKernelNode_v2(&inner, child, nullptr, 0, &add.params));
  MUST(Cu().cuGraphAddMemsetNode(&a, graph, nullptr, 0, &fill, context_));
  MUST(Cu().cuGraphAddChildGraphNode(&b, graph, &a, 1, child));
  MUST(Cu().cuGraphAddChildGraphNode(&c, graph, &b, 1, child));
  add.amount = 1000;
  MUST(Cu().cuGraphKernelNodeSetParams_v2(inner, &add.params));
  CUgraph embedded = nullptr;
  MUST(Cu().cuGraphChildGraphNodeGetGraph(b, &embedded));
  EXPECT_NE(embedded, child.handle);
  Exec exec(graph);
  exec.Run(nullptr);
  MUST(Cu().cuCtxSynchronize());
  EXPECT_EQ(Read<unsigned>(x.at, 1)[0], 9u);
}

TEST_F(Graphs, MemoryNodesGiveAnAddressAtOnceAndMemoryWhenTheyRun) {
  constexpr unsigned kCount = 1000;
  DeviceMemory y(kCount * 4);
  Graph graph;
  CUDA_MEM_ALLOC_NODE_PARAMS take{};
  take.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  take.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  take.bytesize = kCount * 4;
  CUgraphNode a, b, c, d;
  MUST(Cu().cuGraphAddMemAllocNode(&a, graph, nullptr, 0, &take));
  ASSERT_NE(take.dptr, 0u);
  const CUDA_MEMSET_NODE_PARAMS fill{take.dptr, 0, 6, 4, kCount, 1};
  const CUDA_MEMCPY3D copy = Line(y.at, nullptr, take.dptr, nullptr, kCount * 4);
  MUST(Cu().cuGraphAddMemsetNode(&b, graph, &a, 1, &fill, context_));
  MUST(Cu().cuGraphAddMemcpyNode(&c, graph, &b, 1, &copy, context_));
  {
    Exec exec(graph);
    exec.Run(nullptr);
    MUST(Cu().cuCtxSynchronize());
    EXPECT_EQ(Read<unsigned>(y.at, kCount), std::vector<unsigned>(kCount, 6u));
    EXPECT_EQ(Cu().cuGraphLaunch(exec, nullptr), CUDA_ERROR_INVALID_VALUE) << "nobody has freed it";
    MUST(Cu().cuMemFreeAsync(take.dptr, nullptr));
    exec.Run(nullptr);
    MUST(Cu().cuCtxSynchronize());
    MUST(Cu().cuMemFreeAsync(take.dptr, nullptr));
    MUST(Cu().cuCtxSynchronize());
  }
  MUST(Cu().cuGraphAddMemFreeNode(&d, graph, &c, 1, take.dptr));
  Exec exec(graph);
  exec.Run(nullptr);
  exec.Run(nullptr);
  MUST(Cu().cuCtxSynchronize());
}

TEST_F(Graphs, EventsInsideOfGraphs) {
  DeviceMemory x(4);
  Stream one, two;
  Event done(CU_EVENT_DISABLE_TIMING);
  Graph first, second;
  CUgraphNode a, b, c, d;
  const CUDA_MEMSET_NODE_PARAMS fill{x.at, 0, 3, 4, 1, 1};
  AddNode add(Kernel("add"), x.at, 4, 1);
  MUST(Cu().cuGraphAddMemsetNode(&a, first, nullptr, 0, &fill, context_));
  MUST(Cu().cuGraphAddEventRecordNode(&b, first, &a, 1, done));
  MUST(Cu().cuGraphAddEventWaitNode(&c, second, nullptr, 0, done));
  MUST(Cu().cuGraphAddKernelNode_v2(&d, second, &c, 1, &add.params));
  Exec writes(first), reads(second);
  Gate gate(one);
  writes.Run(one);
  reads.Run(two);
  EXPECT_EQ(Cu().cuEventQuery(done), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(Cu().cuStreamQuery(two), CUDA_ERROR_NOT_READY);
  gate.Open();
  MUST(Cu().cuStreamSynchronize(two));
  EXPECT_EQ(Read<unsigned>(x.at, 1)[0], 7u);
}

TEST_F(Graphs, LaunchesOfOneGraphDoNotOverlap) {
  DeviceMemory x(8);
  Stream one(CU_STREAM_NON_BLOCKING), two(CU_STREAM_NON_BLOCKING);
  Graph graph;
  std::atomic<int> calls{0};
  const CUDA_HOST_NODE_PARAMS call{CountUp, &calls};
  CUgraphNode node;
  MUST(Cu().cuGraphAddHostNode(&node, graph, nullptr, 0, &call));
  Exec exec(graph);
  Gate gate(one);
  exec.Run(one);
  exec.Run(two);
  EXPECT_EQ(Cu().cuStreamQuery(two), CUDA_ERROR_NOT_READY) << "the first launch has not begun";
  EXPECT_EQ(calls, 0);
  gate.Open();
  MUST(Cu().cuStreamSynchronize(two));
  EXPECT_EQ(calls, 2);
}

// ------------------------------------------------------------------------------------------------ capture

TEST_F(Graphs, CaptureWritesDownWhatAStreamIsGiven) {
  constexpr unsigned kCount = 300;
  DeviceMemory x(kCount * 4);
  Write<unsigned>(x.at, std::vector<unsigned>(kCount, 1));
  std::vector<unsigned> home(kCount, 0);
  Stream stream;
  CUfunction add = Kernel("add");
  MUST(Cu().cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUstreamCaptureStatus status{};
  MUST(Cu().cuStreamIsCapturing(stream, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  MUST(Cu().cuMemsetD32Async(x.at, 20, kCount, stream));
  for (unsigned i = 0; i < 5; ++i) MUST(Launch(add, 5, 64, stream, x.at, i, kCount));
  MUST(Cu().cuMemcpyDtoHAsync_v2(home.data(), x.at, kCount * 4, stream));
  CUgraph captured = nullptr;
  MUST(Cu().cuStreamEndCapture(stream, &captured));
  Graph graph(captured);
  MUST(Cu().cuStreamIsCapturing(stream, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(Read<unsigned>(x.at, 1)[0], 1u) << "nothing has run";
  size_t nodes = 0, edges = 0;
  MUST(Cu().cuGraphGetNodes(graph, nullptr, &nodes));
  MUST(Cu().cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT_EQ(nodes, 7u);
  EXPECT_EQ(edges, 6u);
  Exec exec(graph);
  exec.Run(stream);
  MUST(Cu().cuStreamSynchronize(stream));
  EXPECT_EQ(home, std::vector<unsigned>(kCount, 30u));
}

TEST_F(Graphs, CaptureFollowsEventsIntoOtherStreamsAndBack) {
  DeviceMemory x(8);
  Stream one, two;
  Event fork(CU_EVENT_DISABLE_TIMING), join(CU_EVENT_DISABLE_TIMING);
  MUST(Cu().cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  MUST(Cu().cuMemsetD32Async(x.at, 1, 2, one));
  MUST(Cu().cuEventRecord(fork, one));
  MUST(Cu().cuStreamWaitEvent(two, fork, 0));
  CUstreamCaptureStatus status{};
  MUST(Cu().cuStreamIsCapturing(two, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  MUST(Launch(Kernel("add"), 1, 1, one, x.at, 10u, 1u));
  MUST(Launch(Kernel("add"), 1, 1, two, x.at + 4, 20u, 1u));
  CUgraph captured = nullptr;
  MUST(Cu().cuEventRecord(join, two));
  MUST(Cu().cuStreamWaitEvent(one, join, 0));
  const CUgraphNode* tips = nullptr;
  size_t count = 0;
  CUgraph graph_now = nullptr;
  cuuint64_t id = 0;
  MUST(Cu().cuStreamGetCaptureInfo_v3(one, &status, &id, &graph_now, &tips, nullptr, &count));
  EXPECT_EQ(count, 2u) << "both branches";
  MUST(Cu().cuStreamEndCapture(one, &captured));
  EXPECT_EQ(captured, graph_now);
  Graph graph(captured);
  Exec exec(graph);
  exec.Run(two);
  MUST(Cu().cuStreamSynchronize(two));
  EXPECT_EQ(Read<unsigned>(x.at, 2), (std::vector<unsigned>{11, 21}));
}

TEST_F(Graphs, WhatMustNotBeDoneDuringCapture) {
  DeviceMemory x(4);
  Stream stream, other;
  Event event(CU_EVENT_DISABLE_TIMING), outside(CU_EVENT_DISABLE_TIMING);
  MUST(Cu().cuEventRecord(outside, other));
  CUgraph captured = nullptr;
  auto begin = [&] { MUST(Cu().cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL)); };
  auto spoiled = [&] {
    EXPECT_EQ(Cu().cuStreamEndCapture(stream, &captured), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(captured, nullptr);
  };
  begin();
  EXPECT_EQ(Cu().cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(Cu().cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(Cu().cuMemsetD32Async(x.at, 1, 1, stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  spoiled();
  begin();
  EXPECT_EQ(Cu().cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  spoiled();
  begin();
  CUdeviceptr more = 0;
  EXPECT_EQ(Cu().cuMemAlloc_v2(&more, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  spoiled();
  begin();
  EXPECT_EQ(Cu().cuMemsetD32Async(x.at, 1, 1, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  spoiled();
  begin();
  MUST(Cu().cuEventRecord(event, stream));
  EXPECT_EQ(Cu().cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
  spoiled();
  begin();
  EXPECT_EQ(Cu().cuStreamWaitEvent(stream, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  spoiled();
  begin();
  MUST(Cu().cuEventRecord(event, stream));
  MUST(Cu().cuStreamWaitEvent(other, event, 0));
  MUST(Cu().cuMemsetD32Async(x.at, 1, 1, other));
  EXPECT_EQ(Cu().cuStreamEndCapture(stream, &captured), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(Cu().cuStreamEndCapture(stream, &captured), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(Cu().cuStreamBeginCapture_v2(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  // All is well again.
  MUST(Cu().cuStreamSynchronize(stream));
  MUST(Cu().cuStreamSynchronize(other));
  MUST(Cu().cuCtxSynchronize());
}

TEST_F(Graphs, ACaptureEndsInTheThreadThatBeganIt) {
  Stream stream;
  CUgraph captured = nullptr;
  MUST(Cu().cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CUresult answer{}, alloc{};
  CUdeviceptr memory = 0;
  std::thread([&] {
    MUST(Cu().cuCtxSetCurrent(context_));
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    MUST(Cu().cuThreadExchangeStreamCaptureMode(&mode));
    alloc = Cu().cuMemAlloc_v2(&memory, 4);
    answer = Cu().cuStreamEndCapture(stream, &captured);
  }).join();
  EXPECT_EQ(alloc, CUDA_SUCCESS) << "another thread's own business";
  EXPECT_EQ(answer, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  EXPECT_EQ(Cu().cuStreamEndCapture(stream, &captured), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  MUST(Cu().cuMemFree_v2(memory));
}

TEST_F(Graphs, UserObjectsLiveAsLongAsAnybodyHasThem) {
  std::atomic<int> ended{0};
  CUuserObject object;
  MUST(Cu().cuUserObjectCreate(&object, &ended, CountUp, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  {
    Graph graph;
    CUgraphNode node;
    MUST(Cu().cuGraphAddEmptyNode(&node, graph, nullptr, 0));
    MUST(Cu().cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    Exec exec(graph);
    MUST(Cu().cuGraphDestroy(graph.handle));
    graph.handle = nullptr;
    EXPECT_EQ(ended, 0) << "what was instantiated has it";
    exec.Run(nullptr);
    MUST(Cu().cuCtxSynchronize());
  }
  MUST(Cu().cuCtxSynchronize());
  for (int i = 0; i < 1000 && !ended; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(ended, 1);
}

}  // namespace
}  // namespace cuplex::conformance
