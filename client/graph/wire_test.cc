// What graphs cost on the wire.
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/fake_server.h"
#include "client/process.h"
#include "cuda/driver_api.h"

namespace cuplex::client {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class GraphWire : public testing::Test {
 protected:
  GraphWire() {
    server_.Seen([&] {
      server_.parameters = {{0, 4}};
      return 0;
    });
    EXPECT_EQ(cuModuleLoadData(&module_, ".version 7.0\n.target sm_70\n.address_size 64\n"), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleGetFunction(&function_, module_, "f"), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    (void)Calls();
  }
  ~GraphWire() override { Detach(); }

  /// What has reached the server since the last time.
  std::vector<std::string> Calls() {
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    return server_.Seen([&] {
      auto calls = std::exchange(server_.calls, {});
      std::erase(calls, "cuCtxSynchronize");
      return calls;
    });
  }
  CUDA_KERNEL_NODE_PARAMS Kernel() {
    return {function_, 1, 1, 1, 1, 1, 1, 0, pointers_, nullptr, nullptr, nullptr};
  }

  FakeServer server_;
  CUcontext context_ = Attach(server_);
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  CUstream stream_ = nullptr;
  uint32_t argument_ = 7;
  void* pointers_[1] = {&argument_};
};

TEST_F(GraphWire, OnlyInstantiatingAndLaunchingTravel) {
  ASSERT_EQ(cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  for (int i = 0; i < 200; ++i)
    ASSERT_EQ(cuLaunchKernel(function_, 1, 1, 1, 1, 1, 1, 0, stream_, pointers_, nullptr), CUDA_SUCCESS);
  CUgraph graph = nullptr, clone = nullptr;
  ASSERT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphClone(&clone, graph), CUDA_SUCCESS);
  EXPECT_THAT(Calls(), IsEmpty());
  CUgraphExec exec = nullptr;
  ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  EXPECT_THAT(Calls(), ElementsAre("wireGraphNodes", "wireGraphReady"));
  ASSERT_EQ(cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  EXPECT_THAT(Calls(), ElementsAre("wireGraphLaunch", "wireGraphLaunch"));
  EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(clone), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(clone), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Calls(), ElementsAre("wireGraphDestroy"));
}

TEST_F(GraphWire, ChangesTravelTogetherWithTheNextLaunch) {
  CUgraph graph = nullptr;
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  std::vector<CUgraphNode> nodes(10);
  CUDA_KERNEL_NODE_PARAMS kernel = Kernel();
  for (size_t i = 0; i < nodes.size(); ++i)
    ASSERT_EQ(cuGraphAddKernelNode_v2(&nodes[i], graph, i ? &nodes[i - 1] : nullptr, i ? 1 : 0, &kernel),
              CUDA_SUCCESS);
  CUgraphExec exec = nullptr;
  ASSERT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  (void)Calls();
  ASSERT_EQ(cuGraphExecKernelNodeSetParams_v2(exec, nodes[3], &kernel), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  EXPECT_THAT(Calls(), ElementsAre("wireGraphLaunch")) << "the same as before is no change";
  argument_ = 8;
  for (size_t i : {4, 3, 5})
    ASSERT_EQ(cuGraphExecKernelNodeSetParams_v2(exec, nodes[i], &kernel), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphNodeSetEnabled(exec, nodes[9], 0), CUDA_SUCCESS);
  EXPECT_THAT(Calls(), IsEmpty());
  ASSERT_EQ(cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  EXPECT_THAT(Calls(), ElementsAre("wireGraphNodes", "wireGraphNodes", "wireGraphLaunch"))
      << "neighbours together";
  ASSERT_EQ(cuGraphLaunch(exec, stream_), CUDA_SUCCESS);
  EXPECT_THAT(Calls(), ElementsAre("wireGraphLaunch"));
  EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

TEST_F(GraphWire, WhatNamesNothingIsRefused) {
  CUgraphNode node = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  size_t count = 0;
  auto* nothing = reinterpret_cast<CUgraph>(0xdead0);
  EXPECT_EQ(cuGraphGetNodes(nothing, nullptr, &count), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, nothing, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphLaunch(reinterpret_cast<CUgraphExec>(0xdead0), stream_), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(reinterpret_cast<CUgraphExec>(graph), stream_), CUDA_ERROR_INVALID_VALUE)
      << "a graph is not what is instantiated from it";
  ASSERT_EQ(cuGraphAddEmptyNode(&node, graph, nullptr, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(reinterpret_cast<CUgraph>(node)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
  CUgraphNodeType type;
  EXPECT_EQ(cuGraphNodeGetType(node, &type), CUDA_ERROR_INVALID_VALUE) << "it went with its graph";
}

}  // namespace
}  // namespace cuplex::client
