// Graphs through the exported functions, over a mock driver: what reaches the driver, and what comes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/runtime/exports.h"
#include "client/runtime/mock_driver.h"
#include "client/runtime/runtime.h"

namespace cuplex::runtime {
namespace {

struct FatBinary {
  uint32_t container[4] = {0xba55ed50, 0x00100001, 0, 0};
  struct {
    uint32_t magic = 0x466243b1, version = 1;
    const void* container;
    const void* rest = nullptr;
  } wrapper{.container = container};
};

class GraphTest : public ::testing::Test {
 protected:
  GraphTest() {
    RenewRoot();
    mock.functions = {"_Z3addv"};
    mock.globals["table"] = std::vector<char>(16);
    void** handle = __cudaRegisterFatBinary(&fat.wrapper);
    __cudaRegisterFunction(handle, &add, nullptr, "_Z3addv", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterVar(handle, table, nullptr, "table", 0, 16, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
  }

  MockDriver mock;
  FatBinary fat;
  char add{}, stranger{};
  char table[16]{};
  cudaGraph_t graph = reinterpret_cast<cudaGraph_t>(0x4000);
  cudaGraphNode_t node = nullptr;
};

TEST_F(GraphTest, KernelNodesAreNamedByHostFunction) {
  int argument = 42;
  void* args[] = {&argument};
  cudaKernelNodeParams params{&add, {1, 2, 3}, {4, 5, 6}, 7, args, nullptr};
  ASSERT_EQ(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params), cudaSuccess);
  EXPECT_EQ(mock.calls().back(), "cuGraphAddKernelNode_v2 0x4000 after 0: 0x3000 1,2,3 4,5,6 7 42");

  cudaKernelNodeParams kept{};
  ASSERT_EQ(cudaGraphKernelNodeGetParams(node, &kept), cudaSuccess);
  EXPECT_EQ(kept.func, &add) << "the program's own name for the function that the driver keeps";
  EXPECT_EQ(kept.gridDim.z, 3u);
  EXPECT_EQ(kept.blockDim.x, 4u);
  EXPECT_EQ(kept.sharedMemBytes, 7u);

  params.func = &stranger;
  EXPECT_EQ(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaGraphAddKernelNode(&node, graph, nullptr, 0, nullptr), cudaErrorInvalidValue);
}

TEST_F(GraphTest, CopyNodesKnowTheirDirectionAndContext) {
  char host[16];
  ASSERT_EQ(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, host, host, 16, cudaMemcpyHostToHost),
            cudaSuccess);
  EXPECT_EQ(mock.calls().back(), "cuGraphAddMemcpyNode 16x1x1 from 1 to 1 in 0x1000");
  ASSERT_EQ(
      cudaGraphAddMemcpyNodeToSymbol(&node, graph, nullptr, 0, table, host, 8, 8, cudaMemcpyHostToDevice),
      cudaSuccess);
  EXPECT_EQ(mock.calls().back(), "cuGraphAddMemcpyNode 8x1x1 from 1 to 2 in 0x1000");
  EXPECT_EQ(
      cudaGraphAddMemcpyNodeToSymbol(&node, graph, nullptr, 0, table, host, 9, 8, cudaMemcpyHostToDevice),
      cudaErrorInvalidValue)
      << "one byte behind the symbol";
  EXPECT_EQ(
      cudaGraphAddMemcpyNodeFromSymbol(&node, graph, nullptr, 0, host, table, 8, 8, cudaMemcpyHostToDevice),
      cudaErrorInvalidMemcpyDirection);
  cudaMemcpy3DParms box{};
  box.srcPtr = {host, 4, 4, 4};
  box.dstPtr = {host, 4, 4, 4};
  box.extent = {4, 2, 2};
  box.kind = cudaMemcpyDeviceToDevice;
  ASSERT_EQ(cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &box), cudaSuccess);
  EXPECT_EQ(mock.calls().back(), "cuGraphAddMemcpyNode 4x2x2 from 2 to 2 in 0x1000");
}

cudaError_t AddNode(cudaGraphNode_t* node, cudaGraph_t graph, cudaGraphNodeParams* params) {
#if CUPLEX_CUDART_MAJOR == 12
  return cudaGraphAddNode(node, graph, nullptr, 0, params);
#else
  return cudaGraphAddNode(node, graph, nullptr, nullptr, 0, params);
#endif
}

TEST_F(GraphTest, NodesOfEveryTypeComeThroughOneCall) {
  cudaGraphNodeParams fill{};
  fill.type = CU_GRAPH_NODE_TYPE_MEMSET;
  fill.memset = {&fill, 16, 0xab, 1, 16, 1};
  ASSERT_EQ(AddNode(&node, graph, &fill), cudaSuccess);
  EXPECT_EQ(mock.calls().back(), "fill 0xab in 0x1000");

  cudaGraphNodeParams take{};
  take.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  take.alloc.bytesize = 64;
  ASSERT_EQ(AddNode(&node, graph, &take), cudaSuccess);
  EXPECT_EQ(mock.calls().back(), "cuGraphAddNode_v2 type 10 edges false");
  EXPECT_EQ(take.alloc.dptr, 0x77000u) << "the address is the program's answer";

  cudaGraphNodeParams condition{};
  condition.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  EXPECT_EQ(AddNode(&node, graph, &condition), cudaErrorNotSupported);
}

TEST_F(GraphTest, InstantiatingAnswersInTheProgramsStruct) {
  cudaGraphExec_t exec = nullptr;
  cudaGraphInstantiateParams params{2, nullptr, nullptr, CUDA_GRAPH_INSTANTIATE_SUCCESS};
  ASSERT_EQ(cudaGraphInstantiateWithParams_ptsz(&exec, graph, &params), cudaSuccess);
  EXPECT_EQ(mock.calls().back(), "cuGraphInstantiateWithParams 2 0x2");
  EXPECT_EQ(params.hUploadStream, nullptr) << "the stream stays as the program gave it";
  EXPECT_EQ(params.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
  mock.clear();
  ASSERT_EQ(cudaGraphLaunch(exec, nullptr), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch_ptsz(exec, nullptr), cudaSuccess);
  EXPECT_THAT(mock.calls(), ::testing::ElementsAre("cuGraphLaunch 0x6000 0x0", "cuGraphLaunch 0x6000 0x2"));
}

TEST_F(GraphTest, CapturedCopyBetweenHostPlacesLivesAsLongAsItsGraph) {
  mock.capturing = true;
  int from = 1, to = 0;
  ASSERT_EQ(cudaMemcpyAsync(&to, &from, sizeof(int), cudaMemcpyHostToHost, nullptr), cudaSuccess);
  EXPECT_EQ(to, 0) << "captured, not run";
  EXPECT_EQ(mock.count("cuGraphRetainUserObject"), 1);
  for (int launch = 1; launch <= 3; ++launch) {
    from = launch;
    mock.captured();
    EXPECT_EQ(to, launch);
  }
  mock.destroy();  // leaks, or ends twice, under the address sanitizer where that is wrong
}

}  // namespace
}  // namespace cuplex::runtime
