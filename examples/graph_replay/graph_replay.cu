// A stream is captured: what it is given becomes a graph, which then is launched as one.

#include <cstdio>

#include "examples/common/runtime.h"
#include "examples/graph_replay/graph_replay_reference.h"

extern "C" __global__ void advance(unsigned elements, unsigned step, unsigned* state) {
  const unsigned stride = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += stride)
    state[i] = state[i] * cuplex::examples::graph_replay::kMultiplier + step;
}

namespace cuplex::examples::graph_replay {
namespace {

bool Run(const Options& options) {
  const Problem problem(options.size);
  const std::vector<unsigned> expected = Reference(problem);
  std::printf("%u kernels over %zu generators, captured once and launched %d times\n", kKernels,
              problem.state.size(), kReplays);

  const DeviceArray<unsigned> state(problem.state.size());
  const Stream stream;
  std::vector<unsigned> result(problem.state.size());

  Check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  for (unsigned step = 0; step < kKernels; ++step) {
    ::advance<<<kBlocks, kThreads, 0, stream.get()>>>(static_cast<unsigned>(state.size()), step, state.get());
    CheckLaunch("advance");
  }
  Check(cudaMemcpyAsync(result.data(), state.get(), state.size() * sizeof(unsigned), cudaMemcpyDeviceToHost,
                        stream.get()),
        "cudaMemcpyAsync");
  cudaGraph_t captured = nullptr;
  Check(cudaStreamEndCapture(stream.get(), &captured), "cudaStreamEndCapture");
  cudaGraphExec_t graph = nullptr;
  Check(cudaGraphInstantiate(&graph, captured, 0), "cudaGraphInstantiate");
  Check(cudaGraphDestroy(captured), "cudaGraphDestroy");

  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "all launches");
      Check(cudaMemcpyAsync(state.get(), problem.state.data(), state.size() * sizeof(unsigned),
                            cudaMemcpyHostToDevice, stream.get()),
            "cudaMemcpyAsync");
      for (int replay = 0; replay < kReplays; ++replay)
        Check(cudaGraphLaunch(graph, stream.get()), "cudaGraphLaunch");
      stream.Synchronize();
    }
    difference = FirstDifference(result, expected);
  }
  Check(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
  return Report(kDescription.name, "state", difference, result);
}

}  // namespace
}  // namespace cuplex::examples::graph_replay

int main(int argc, char** argv) {
  namespace job = cuplex::examples::graph_replay;
  return cuplex::examples::RunProgram(argc, argv, job::kDescription, job::Run);
}
