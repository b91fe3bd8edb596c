// What is softcuda's own about graphs: handles that are wrong, lives that end early, faults, threads. What
// every driver does is in tests/conformance/graph_launch_test.cc.
#include <cstdint>
#include <thread>
#include <vector>

#include "softcuda/api/kernels.h"
#include "softcuda/api/testing.h"

namespace cuplex::softcuda {
namespace {

class Graphs : public ContextTest {
 protected:
  void SetUp() override {
    ContextTest::SetUp();
    ASSERT_CU(cuModuleLoadData(&module, kKernels));
    ASSERT_CU(cuModuleGetFunction(&add, module, "add"));
    ASSERT_CU(cuMemAlloc_v2(&values, kCount * 4));
    ASSERT_CU(cuMemsetD32_v2(values, 0, kCount));
    ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  }

  /// values[i] += amount, `launches` times.
  CUresult Add(CUstream to, unsigned amount, int launches = 1) {
    unsigned count = kCount;
    void* params[] = {&values, &values, &amount, &count};
    for (int i = 0; i < launches; ++i) {
      if (CUresult failed = cuLaunchKernel(add, 2, 1, 1, 64, 1, 1, 0, to, params, nullptr)) return failed;
    }
    return CUDA_SUCCESS;
  }
  CUgraph Capture(unsigned amount, int launches = 1) {
    CUgraph graph = nullptr;
    EXPECT_CU(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_CU(Add(stream, amount, launches));
    EXPECT_CU(cuStreamEndCapture(stream, &graph));
    return graph;
  }
  CUgraphExec Instantiate(CUgraph graph) {
    CUgraphExec exec = nullptr;
    EXPECT_CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
  }
  std::vector<unsigned> Values() {
    std::vector<unsigned> out(kCount);
    EXPECT_CU(cuMemcpyDtoH_v2(out.data(), values, kCount * 4));
    return out;
  }

  static constexpr unsigned kCount = 100;
  CUmodule module = nullptr;
  CUfunction add = nullptr;
  CUdeviceptr values = 0;
  CUstream stream = nullptr;
};

TEST_F(Graphs, TwoHundredKernelsRunEachTime) {
  CUgraph graph = Capture(3, 200);
  size_t nodes = 0;
  EXPECT_CU(cuGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 200u);
  CUgraphExec exec = Instantiate(graph);
  EXPECT_CU(cuGraphDestroy(graph));
  for (int i = 0; i < 50; ++i) EXPECT_CU(cuGraphLaunch(exec, stream));
  EXPECT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(Values(), std::vector<unsigned>(kCount, 3 * 200 * 50));
  EXPECT_CU(cuGraphExecDestroy(exec));
}

TEST_F(Graphs, HandlesThatAreNoneOrOfAnotherKindAreRefused) {
  CUgraph graph = Capture(1);
  CUgraphExec exec = Instantiate(graph);
  CUgraphNode node = nullptr;
  size_t one = 1;
  ASSERT_CU(cuGraphGetNodes(graph, &node, &one));
  int outside = 0;
  for (void* wrong : {static_cast<void*>(nullptr), static_cast<void*>(&outside), static_cast<void*>(exec),
                      static_cast<void*>(node), reinterpret_cast<void*>(~uintptr_t{0})}) {
    size_t count = 0;
    EXPECT_CODE(cuGraphGetNodes(static_cast<CUgraph>(wrong), nullptr, &count), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CODE(cuGraphDestroy(static_cast<CUgraph>(wrong)), CUDA_ERROR_INVALID_VALUE);
    CUgraphExec none = nullptr;
    EXPECT_CODE(cuGraphInstantiateWithFlags(&none, static_cast<CUgraph>(wrong), 0), CUDA_ERROR_INVALID_VALUE);
  }
  for (void* wrong : {static_cast<void*>(nullptr), static_cast<void*>(&outside), static_cast<void*>(graph),
                      static_cast<void*>(node)}) {
    EXPECT_CODE(cuGraphLaunch(static_cast<CUgraphExec>(wrong), stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT_CODE(cuGraphExecDestroy(static_cast<CUgraphExec>(wrong)), CUDA_ERROR_INVALID_VALUE);
  }
  for (void* wrong : {static_cast<void*>(nullptr), static_cast<void*>(graph), static_cast<void*>(exec)}) {
    CUgraphNodeType type;
    EXPECT_CODE(cuGraphNodeGetType(static_cast<CUgraphNode>(wrong), &type), CUDA_ERROR_INVALID_VALUE);
  }
  EXPECT_CODE(cuGraphLaunch(exec, reinterpret_cast<CUstream>(&outside)), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CU(cuGraphExecDestroy(exec));
  EXPECT_CODE(cuGraphExecDestroy(exec), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuGraphDestroy(graph));
  EXPECT_CODE(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graphs, AKernelWhoseModuleHasGoneIsNotLaunched) {
  CUgraph graph = Capture(1);
  CUgraphExec exec = Instantiate(graph);
  ASSERT_CU(cuModuleUnload(module));
  EXPECT_CODE(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Values(), std::vector<unsigned>(kCount, 0));
  CUgraphExec none = nullptr;
  EXPECT_CODE(cuGraphInstantiateWithFlags(&none, graph, 0), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CU(cuGraphExecDestroy(exec));
  EXPECT_CU(cuGraphDestroy(graph));
}

TEST_F(Graphs, AContextTakesItsGraphsPowerWithIt) {
  CUcontext other = nullptr;
  ASSERT_CU(cuCtxCreate_v4(&other, nullptr, 0, 0));
  CUstream there = nullptr;
  ASSERT_CU(cuStreamCreate(&there, CU_STREAM_NON_BLOCKING));
  CUgraph graph = nullptr;
  ASSERT_CU(cuStreamBeginCapture_v2(there, CU_STREAM_CAPTURE_MODE_RELAXED));
  ASSERT_CU(cuMemsetD32Async(values, 7, kCount, there));
  ASSERT_CU(cuStreamEndCapture(there, &graph));
  CUgraphExec exec = Instantiate(graph);
  // A graph belongs to the context that it was instantiated in.
  EXPECT_CODE(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_CONTEXT);
  // One that is being captured in goes as well.
  ASSERT_CU(cuStreamBeginCapture_v2(there, CU_STREAM_CAPTURE_MODE_RELAXED));
  ASSERT_CU(cuCtxDestroy_v2(other));
  ASSERT_CU(cuCtxSetCurrent(context));
  EXPECT_CODE(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_CU(Add(nullptr, 2));
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_EQ(Values(), std::vector<unsigned>(kCount, 2));
  EXPECT_CU(cuGraphExecDestroy(exec));
  EXPECT_CU(cuGraphDestroy(graph));
}

TEST_F(Graphs, WhatIsDestroyedWhileItRunsRunsToItsEnd) {
  CUgraphExec exec = Instantiate(Capture(5, 20));
  Gate gate;
  gate.Hold(stream);
  EXPECT_CU(cuGraphLaunch(exec, stream));
  EXPECT_CU(cuGraphExecDestroy(exec));
  gate.Open();
  EXPECT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(Values(), std::vector<unsigned>(kCount, 100));
}

TEST_F(Graphs, AFaultInsideEndsTheContextAndNothingAfterItRuns) {
  CUcontext doomed = nullptr;
  ASSERT_CU(cuCtxCreate_v4(&doomed, nullptr, 0, 0));
  CUmodule there = nullptr;
  CUfunction fault = nullptr;
  ASSERT_CU(cuModuleLoadData(&there, kKernels));
  ASSERT_CU(cuModuleGetFunction(&fault, there, "add"));
  CUgraph graph = nullptr;
  ASSERT_CU(cuGraphCreate(&graph, 0));
  CUdeviceptr nowhere = 0x10;
  unsigned amount = 1, count = 1;
  void* params[] = {&nowhere, &nowhere, &amount, &count};
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = fault;
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
  kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = params;
  CUgraphNode first = nullptr, second = nullptr;
  ASSERT_CU(cuGraphAddKernelNode_v2(&first, graph, nullptr, 0, &kernel));
  CUDA_MEMSET_NODE_PARAMS fill{values, 0, 9, 4, kCount, 1};
  ASSERT_CU(cuGraphAddMemsetNode(&second, graph, &first, 1, &fill, doomed));
  CUgraphExec exec = Instantiate(graph);
  ASSERT_CU(cuGraphLaunch(exec, nullptr));
  EXPECT_CODE(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_CODE(cuGraphLaunch(exec, nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
  (void)cuCtxDestroy_v2(doomed);
  ASSERT_CU(cuCtxSetCurrent(context));
  EXPECT_EQ(Values(), std::vector<unsigned>(kCount, 0));
  EXPECT_CU(cuGraphExecDestroy(exec));
  EXPECT_CU(cuGraphDestroy(graph));
}

TEST_F(Graphs, CallsWithNoStreamAreRefusedDuringACapture) {
  CUevent event = nullptr;
  ASSERT_CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  ASSERT_CU(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  ASSERT_CU(cuEventRecord(event, stream));
  int outside = 0;
  auto none = reinterpret_cast<CUstream>(&outside);
  EXPECT_CODE(cuStreamWaitEvent(none, event, 0), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(cuEventRecord(event, none), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(Add(none, 1), CUDA_ERROR_INVALID_HANDLE);
  CUgraph graph = nullptr;
  EXPECT_CU(cuStreamEndCapture(stream, &graph));
  EXPECT_CU(cuGraphDestroy(graph));
  EXPECT_CU(cuEventDestroy_v2(event));
}

TEST_F(Graphs, AGraphInTheLegacyStreamWaitsForNoCapture) {
  CUgraphExec exec = Instantiate(Capture(1));
  CUstream blocking = nullptr;
  ASSERT_CU(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  ASSERT_CU(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CODE(cuGraphLaunch(exec, CU_STREAM_LEGACY), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CUgraph graph = nullptr;
  EXPECT_CODE(cuStreamEndCapture(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_CU(cuGraphLaunch(exec, CU_STREAM_LEGACY));
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_EQ(Values(), std::vector<unsigned>(kCount, 1));
  EXPECT_CU(cuGraphExecDestroy(exec));
}

TEST_F(Graphs, MemoryOfNodesIsCounted) {
  auto read = [](CUgraphMem_attribute attribute) {
    cuuint64_t value = 77;
    EXPECT_CU(cuDeviceGetGraphMemAttribute(0, attribute, &value));
    return value;
  };
  auto expect = [&](uint64_t used, uint64_t most_used, uint64_t held, uint64_t most_held) {
    EXPECT_EQ(read(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), used);
    EXPECT_EQ(read(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), most_used);
    EXPECT_EQ(read(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), held);
    EXPECT_EQ(read(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), most_held);
  };
  expect(0, 0, 0, 0);
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.bytesize = 4096;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  ASSERT_CU(cuGraphCreate(&graph, 0));
  ASSERT_CU(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
  expect(0, 0, 4096, 4096);
  CUgraphExec exec = Instantiate(graph);
  ASSERT_CU(cuGraphLaunch(exec, stream));
  expect(4096, 4096, 4096, 4096);
  EXPECT_CODE(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE) << "it is still allocated";
  EXPECT_CU(cuMemFreeAsync(params.dptr, stream));
  EXPECT_CODE(cuMemFreeAsync(params.dptr, stream), CUDA_ERROR_INVALID_VALUE);
  expect(0, 4096, 4096, 4096);
  ASSERT_CU(cuGraphLaunch(exec, stream));
  EXPECT_CU(cuStreamSynchronize(stream));
  EXPECT_CU(cuGraphExecDestroy(exec));
  EXPECT_CU(cuGraphDestroy(graph));
  expect(0, 4096, 0, 4096);
  cuuint64_t zero = 0, one = 1;
  EXPECT_CODE(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &one),
              CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero),
              CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero));
  EXPECT_CU(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &zero));
  EXPECT_CU(cuDeviceGraphMemTrim(0));
  expect(0, 0, 0, 0);
}

TEST_F(Graphs, AStreamThatHasBeenJoinedMayGoDuringACapture) {
  for (bool joined : {false, true}) {
    CUstream other = nullptr;
    CUevent fork = nullptr, join = nullptr;
    ASSERT_CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(cuEventCreate(&fork, 0));
    ASSERT_CU(cuEventCreate(&join, 0));
    ASSERT_CU(cuMemsetD32_v2(values, 0, kCount));
    ASSERT_CU(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_CU(Add(stream, 1));
    EXPECT_CU(cuEventRecord(fork, stream));
    EXPECT_CU(cuStreamWaitEvent(other, fork, 0));
    EXPECT_CU(Add(other, 10));
    EXPECT_CU(cuEventRecord(join, other));
    if (joined) EXPECT_CU(cuStreamWaitEvent(stream, join, 0));
    EXPECT_CU(cuStreamDestroy_v2(other));
    CUgraph graph = nullptr;
    EXPECT_CODE(cuStreamEndCapture(stream, &graph),
                joined ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    if (joined) {
      CUgraphExec exec = Instantiate(graph);
      EXPECT_CU(cuGraphLaunch(exec, stream));
      EXPECT_CU(cuStreamSynchronize(stream));
      EXPECT_EQ(Values(), std::vector<unsigned>(kCount, 11));
      EXPECT_CU(cuGraphExecDestroy(exec));
      EXPECT_CU(cuGraphDestroy(graph));
    }
    EXPECT_CU(cuEventDestroy_v2(fork));
    EXPECT_CU(cuEventDestroy_v2(join));
  }
}

TEST_F(Graphs, ManyThreadsCaptureAndLaunch) {
  constexpr int kThreads = 4, kRounds = 50;
  CUgraphExec shared = Instantiate(Capture(1));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      ASSERT_CU(cuCtxSetCurrent(context));
      CUstream own = nullptr;
      ASSERT_CU(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
      CUdeviceptr place = 0;
      ASSERT_CU(cuMemAlloc_v2(&place, kCount * 4));
      ASSERT_CU(cuMemsetD32_v2(place, 0, kCount));
      for (int i = 0; i < kRounds; ++i) {
        CUgraph graph = nullptr;
        CUgraphExec exec = nullptr;
        ASSERT_CU(cuStreamBeginCapture_v2(own, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        unsigned amount = 1, count = kCount;
        void* params[] = {&place, &place, &amount, &count};
        ASSERT_CU(cuLaunchKernel(add, 2, 1, 1, 64, 1, 1, 0, own, params, nullptr));
        ASSERT_CU(cuStreamEndCapture(own, &graph));
        ASSERT_CU(cuGraphInstantiateWithFlags(&exec, graph, 0));
        ASSERT_CU(cuGraphLaunch(exec, own));
        ASSERT_CU(cuGraphLaunch(shared, own));
        ASSERT_CU(cuGraphExecDestroy(exec));
        ASSERT_CU(cuGraphDestroy(graph));
      }
      ASSERT_CU(cuStreamSynchronize(own));
      std::vector<unsigned> out(kCount);
      ASSERT_CU(cuMemcpyDtoH_v2(out.data(), place, kCount * 4));
      EXPECT_EQ(out, std::vector<unsigned>(kCount, kRounds));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(Values(), std::vector<unsigned>(kCount, kThreads * kRounds));
  EXPECT_CU(cuGraphExecDestroy(shared));
}

}  // namespace
}  // namespace cuplex::softcuda
