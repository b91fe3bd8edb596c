// graph_replay.cu through the driver API.

#include <cstdio>

#include "examples/common/driver.h"
#include "examples/graph_replay/graph_replay_ptx.h"
#include "examples/graph_replay/graph_replay_reference.h"

namespace cuplex::examples::graph_replay {
namespace {

bool Run(const Options& options) {
  const Problem problem(options.size);
  const std::vector<unsigned> expected = Reference(problem);
  std::printf("%u kernels over %zu generators, captured once and launched %d times\n", kKernels,
              problem.state.size(), kReplays);

  const Driver cu;
  const Context context(cu);
  const Module module(cu, kPtx);
  const Kernel kernel = module.GetKernel("advance");
  const DeviceArray<unsigned> state(cu, problem.state.size());
  const Stream stream(cu);
  std::vector<unsigned> result(problem.state.size());

  cu.StreamBeginCapture(stream.get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  for (unsigned step = 0; step < kKernels; ++step)
    kernel.Launch({kBlocks}, {kThreads}, 0, stream.get(), static_cast<unsigned>(state.size()), step,
                  state.address());
  cu.MemcpyDtoHAsync(result.data(), state.address(), state.Bytes(), stream.get());
  CUgraph captured = nullptr;
  cu.StreamEndCapture(stream.get(), &captured);
  CUgraphExec graph = nullptr;
  cu.GraphInstantiate(&graph, captured, 0);
  cu.GraphDestroy(captured);

  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "all launches");
      cu.MemcpyHtoDAsync(state.address(), problem.state.data(), state.Bytes(), stream.get());
      for (int replay = 0; replay < kReplays; ++replay) cu.GraphLaunch(graph, stream.get());
      stream.Synchronize();
    }
    difference = FirstDifference(result, expected);
  }
  cu.GraphExecDestroy(graph);
  return Report(kDescription.name, "state", difference, result);
}

}  // namespace
}  // namespace cuplex::examples::graph_replay

int main(int argc, char** argv) {
  namespace job = cuplex::examples::graph_replay;
  return cuplex::examples::RunProgram(argc, argv, job::kDescription, job::Run);
}
