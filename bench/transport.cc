// What a call costs on whatever driver the loader finds as "libcuda.so.1": one program, run once directly on
// a driver and once in front of the server; bench/run.py sets the two side by side.
//
//   bench_transport [Google Benchmark's options]      all but the times below
//   bench_transport --attach                          prints the nanoseconds from opening the library to a
//   current context

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "cuda/driver.h"

namespace cuplex {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBatch = 64;  // launches whose cost is taken together
constexpr int kGraphKernels = 200;
constexpr char kNoGraphs[] = "the driver has no graphs";
constexpr size_t kCopyBytes = 32 << 20;  // larger than the caches
constexpr char kEmptyKernel[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n{\n  ret;\n}\n";

double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

void Require(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "bench_transport: %s answered %d, CUDA_SUCCESS was expected.\n", what,
               static_cast<int>(result));
  std::exit(1);
}

/// A driver with a current context.
class Attached {
 public:
  Attached() {
    auto opened = OpenDriver("libcuda.so.1");
    if (!opened.ok()) {
      std::fprintf(stderr, "bench_transport: %s\n", opened.error().sentence.c_str());
      std::exit(1);
    }
    driver_ = *std::move(opened);
    CUdevice device = 0;
    CUcontext context = nullptr;
    Require(cu().cuInit(0), "cuInit");
    Require(cu().cuDeviceGet(&device, 0), "cuDeviceGet");
    Require(cu().cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    Require(cu().cuCtxSetCurrent(context), "cuCtxSetCurrent");
  }

  const DriverTable& cu() const { return driver_->table(); }

  CUfunction EmptyKernel() {
    if (!function_) {
      CUmodule module = nullptr;
      Require(cu().cuModuleLoadData(&module, kEmptyKernel), "cuModuleLoadData");
      Require(cu().cuModuleGetFunction(&function_, module, "nothing"), "cuModuleGetFunction");
    }
    return function_;
  }

  void Launch(CUfunction function) const {
    Require(cu().cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), "cuLaunchKernel");
  }
  void Synchronize() const { Require(cu().cuCtxSynchronize(), "cuCtxSynchronize"); }

 private:
  std::unique_ptr<Driver> driver_;
  CUfunction function_ = nullptr;
};

Attached& Gpu() {
  static Attached attached;
  return attached;
}

/// What a launch costs its caller: batches with an idle device before each, so that nobody waits for room.
void LaunchCost(benchmark::State& state) {
  CUfunction function = Gpu().EmptyKernel();
  for (auto _ : state) {
    Gpu().Synchronize();
    auto began = Clock::now();
    for (int i = 0; i < kBatch; ++i) Gpu().Launch(function);
    state.SetIterationTime(Seconds(began) / kBatch);
  }
  Gpu().Synchronize();
}

/// Launches a second, to the last one's end.
void LaunchSustained(benchmark::State& state) {
  constexpr int kLaunches = 20000;
  CUfunction function = Gpu().EmptyKernel();
  for (auto _ : state) {
    auto began = Clock::now();
    for (int i = 0; i < kLaunches; ++i) Gpu().Launch(function);
    Gpu().Synchronize();
    state.SetIterationTime(Seconds(began) / kLaunches);
  }
}

/// A graph of empty kernels, each after the other; nullptr where the driver has no graphs.
CUgraphExec EmptyGraph() {
  const DriverTable& cu = Gpu().cu();
  CUgraph graph = nullptr;
  const CUresult made = cu.cuGraphCreate(&graph, 0);
  if (made == CUDA_ERROR_NOT_SUPPORTED) return nullptr;
  Require(made, "cuGraphCreate");
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = Gpu().EmptyKernel();
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  CUgraphNode last = nullptr;
  for (int i = 0; i < kGraphKernels; ++i) {
    CUgraphNode node = nullptr;
    Require(cu.cuGraphAddKernelNode_v2(&node, graph, last ? &last : nullptr, last ? 1 : 0, &params),
            "cuGraphAddKernelNode");
    last = node;
  }
  CUgraphExec exec = nullptr;
  Require(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiate");
  Require(cu.cuGraphDestroy(graph), "cuGraphDestroy");
  return exec;
}

/// What the launch of a graph costs its caller, with an idle device before it.
void GraphLaunchCost(benchmark::State& state) {
  CUgraphExec exec = EmptyGraph();
  if (!exec) return state.SkipWithError(kNoGraphs);
  for (auto _ : state) {
    Gpu().Synchronize();
    auto began = Clock::now();
    Require(Gpu().cu().cuGraphLaunch(exec, nullptr), "cuGraphLaunch");
    state.SetIterationTime(Seconds(began));
  }
  Gpu().Synchronize();
  Require(Gpu().cu().cuGraphExecDestroy(exec), "cuGraphExecDestroy");
}

/// Kernels a second out of graphs, to the last one's end.
void GraphSustained(benchmark::State& state) {
  constexpr int kLaunches = 100;
  CUgraphExec exec = EmptyGraph();
  if (!exec) return state.SkipWithError(kNoGraphs);
  for (auto _ : state) {
    auto began = Clock::now();
    for (int i = 0; i < kLaunches; ++i) Require(Gpu().cu().cuGraphLaunch(exec, nullptr), "cuGraphLaunch");
    Gpu().Synchronize();
    state.SetIterationTime(Seconds(began) / (kLaunches * kGraphKernels));
  }
  Require(Gpu().cu().cuGraphExecDestroy(exec), "cuGraphExecDestroy");
}

/// A call that only its driver can answer.
void RoundTrip(benchmark::State& state) {
  size_t free = 0;
  size_t total = 0;
  for (auto _ : state) Require(Gpu().cu().cuMemGetInfo_v2(&free, &total), "cuMemGetInfo");
}

void SynchronizeIdle(benchmark::State& state) {
  for (auto _ : state) Gpu().Synchronize();
}

/// Spins until `done`, giving the processor away where it takes long: there may be no second one.
template <typename Done>
void Spin(Done done) {
  for (int spins = 0; !done(); ++spins) {
    if (spins < 2000) {
      __builtin_ia32_pause();
    } else {
      sched_yield();
    }
  }
}

/// Two processes hand one word to and fro over shared memory, spinning: the floor under any round trip.
void PingPong(benchmark::State& state) {
  struct alignas(64) Line {
    std::atomic<uint32_t> word;
    char bytes[60];
  };
  constexpr uint32_t kStop = UINT32_MAX;
  auto* lines = static_cast<Line*>(
      mmap(nullptr, 2 * sizeof(Line), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (lines == MAP_FAILED) return state.SkipWithError("no shared memory was to be had");
  pid_t other = fork();
  if (other == 0) {
    for (uint32_t next = 1;; ++next) {
      uint32_t said = 0;
      Spin([&] { return (said = lines[0].word.load(std::memory_order_acquire)) == next || said == kStop; });
      if (said == kStop) _exit(0);
      std::memcpy(lines[1].bytes, lines[0].bytes, sizeof lines[0].bytes);
      lines[1].word.store(next, std::memory_order_release);
    }
  }
  uint32_t next = 0;
  for (auto _ : state) {
    lines[0].bytes[0] = static_cast<char>(++next);
    lines[0].word.store(next, std::memory_order_release);
    Spin([&] { return lines[1].word.load(std::memory_order_acquire) == next; });
  }
  lines[0].word.store(kStop, std::memory_order_release);
  waitpid(other, nullptr, 0);
  munmap(lines, 2 * sizeof(Line));
}

void PlainMemcpy(benchmark::State& state) {
  std::vector<char> from(kCopyBytes, 1);
  std::vector<char> to(kCopyBytes, 2);
  for (auto _ : state) {
    benchmark::DoNotOptimize(from.data());
    std::memcpy(to.data(), from.data(), kCopyBytes);
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
}

enum class Way { kIn, kOut };

void Copy(benchmark::State& state, Way way, bool pinned) {
  const DriverTable& cu = Gpu().cu();
  CUdeviceptr device = 0;
  Require(cu.cuMemAlloc_v2(&device, kCopyBytes), "cuMemAlloc");
  std::vector<char> pageable(pinned ? 0 : kCopyBytes, 1);
  void* host = pageable.data();
  if (pinned) {
    Require(cu.cuMemAllocHost_v2(&host, kCopyBytes), "cuMemAllocHost");
    std::memset(host, 1, kCopyBytes);
  }
  Require(cu.cuMemcpyHtoD_v2(device, host, kCopyBytes),
          "cuMemcpyHtoD");  // every page is there before the clock runs
  for (auto _ : state) {
    if (way == Way::kIn) {
      Require(cu.cuMemcpyHtoD_v2(device, host, kCopyBytes), "cuMemcpyHtoD");
      Gpu().Synchronize();
    } else {
      Require(cu.cuMemcpyDtoH_v2(host, device, kCopyBytes), "cuMemcpyDtoH");
    }
  }
  if (pinned) Require(cu.cuMemFreeHost(host), "cuMemFreeHost");
  Require(cu.cuMemFree_v2(device), "cuMemFree");
}

// PingPong forks, so it comes before anything opens the driver.
BENCHMARK(PingPong)->UseRealTime();
BENCHMARK(PlainMemcpy)->UseRealTime()->Iterations(5);
BENCHMARK(LaunchCost)->UseManualTime()->Iterations(100);
BENCHMARK(LaunchSustained)->UseManualTime()->Iterations(1);
BENCHMARK(GraphLaunchCost)->UseManualTime()->Iterations(100);
BENCHMARK(GraphSustained)->UseManualTime()->Iterations(1);
BENCHMARK(RoundTrip)->UseRealTime()->Iterations(2000);
BENCHMARK(SynchronizeIdle)->UseRealTime()->Iterations(2000);
BENCHMARK_CAPTURE(Copy, in_pageable, Way::kIn, false)->UseRealTime()->Iterations(5);
BENCHMARK_CAPTURE(Copy, out_pageable, Way::kOut, false)->UseRealTime()->Iterations(5);
BENCHMARK_CAPTURE(Copy, in_pinned, Way::kIn, true)->UseRealTime()->Iterations(5);
BENCHMARK_CAPTURE(Copy, out_pinned, Way::kOut, true)->UseRealTime()->Iterations(5);

}  // namespace
}  // namespace cuplex

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--attach") {
    auto began = cuplex::Clock::now();
    cuplex::Gpu();
    std::printf("%.0f\n", cuplex::Seconds(began) * 1e9);
    return 0;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
