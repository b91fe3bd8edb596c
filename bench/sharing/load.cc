// One tenant's load: requests of a given length, back to back or at a given pace, and when each was done. The
// program runs on whatever driver the loader finds as "libcuda.so.1"; bench/sharing.py starts one for each
// tenant of a scenario.
//
//   bench_sharing --help
//
// Prints one JSON object: {"done": [[ns, requests], ...], "latency_ns": [...]}: how many requests were done
// by which time of CLOCK_MONOTONIC, and, of paced requests, how long each took from when it was due.

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <boost/program_options.hpp>

#include "cuda/driver.h"

namespace cuplex {
namespace {

// `work` keeps each of its threads busy for `rounds` steps that depend on each other.
constexpr char kKernels[] = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry work(.param .u64 out, .param .u32 rounds)
{
  .reg .pred %p;
  .reg .b32 %x, %t, %n, %i, %s;
  .reg .b64 %a, %o;
  ld.param.u64 %a, [out];
  ld.param.u32 %n, [rounds];
  mov.u32 %t, %tid.x;
  mov.u32 %x, %ctaid.x;
  mad.lo.u32 %x, %x, 2654435761, %t;
  or.b32 %x, %x, 1;
  mov.u32 %i, 0;
again:
  shl.b32 %s, %x, 13;
  xor.b32 %x, %x, %s;
  shr.u32 %s, %x, 17;
  xor.b32 %x, %x, %s;
  shl.b32 %s, %x, 5;
  xor.b32 %x, %x, %s;
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, %n;
  @%p bra again;
  mul.wide.u32 %o, %t, 4;
  add.u64 %a, %a, %o;
  st.global.u32 [%a], %x;
  ret;
}
.visible .entry nothing() { ret; }
)";
constexpr uint32_t kThreads = 32;

int64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void WaitUntil(int64_t ns) {
  const timespec until{ns / 1'000'000'000, ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

void Require(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "bench_sharing: %s answered %d, CUDA_SUCCESS was expected.\n", what,
               static_cast<int>(result));
  std::exit(1);
}

struct Load {
  uint32_t blocks = 1;
  uint32_t rounds = 1000;
  uint32_t kernels = 1;  // a request
  uint32_t depth = 4;    // requests on their way
  bool graph = false;
  bool calibrate = false;
  double seconds = 1;
  int64_t period_ns = 0;
  int64_t start_ns = 0;
};

class Tenant {
 public:
  explicit Tenant(const Load& load) : load_(load) {
    auto opened = OpenDriver("libcuda.so.1");
    if (!opened.ok()) {
      std::fprintf(stderr, "bench_sharing: %s\n", opened.error().sentence.c_str());
      std::exit(1);
    }
    driver_ = *std::move(opened);
    CUdevice device = 0;
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    Require(cu().cuInit(0), "cuInit");
    Require(cu().cuDeviceGet(&device, 0), "cuDeviceGet");
    Require(cu().cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    Require(cu().cuCtxSetCurrent(context), "cuCtxSetCurrent");
    Require(cu().cuModuleLoadData(&module, kKernels), "cuModuleLoadData");
    Require(cu().cuModuleGetFunction(&work_, module, "work"), "cuModuleGetFunction");
    Require(cu().cuModuleGetFunction(&nothing_, module, "nothing"), "cuModuleGetFunction");
    Require(cu().cuMemAlloc_v2(&out_, kThreads * sizeof(uint32_t)), "cuMemAlloc");
    Require(cu().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    events_.resize(load_.depth);
    for (CUevent& event : events_)
      Require(cu().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    if (load_.graph) Capture();
    for (int i = 0; i < 3; ++i) Request();
    Require(cu().cuStreamSynchronize(stream_), "cuStreamSynchronize");
  }

  /// The median time of one request alone.
  int64_t Calibrate() {
    std::vector<int64_t> times;
    for (int64_t end = NowNs() + static_cast<int64_t>(load_.seconds * 1e9); NowNs() < end;) {
      const int64_t began = NowNs();
      for (int i = 0; i < 8; ++i) Request();
      Require(cu().cuStreamSynchronize(stream_), "cuStreamSynchronize");
      times.push_back((NowNs() - began) / 8);
    }
    std::nth_element(times.begin(), times.begin() + static_cast<ptrdiff_t>(times.size() / 2), times.end());
    return times[times.size() / 2];
  }

  void Run() {
    if (load_.start_ns) WaitUntil(load_.start_ns);
    const int64_t end = NowNs() + static_cast<int64_t>(load_.seconds * 1e9);
    done_.reserve(1 << 20);
    load_.period_ns ? Paced(end) : BackToBack(end);
    Require(cu().cuStreamSynchronize(stream_), "cuStreamSynchronize");
  }

  void Print() const {
    std::printf("{\"done\": [");
    for (size_t i = 0; i < done_.size(); ++i)
      std::printf("%s[%lld, %zu]", i ? ", " : "", static_cast<long long>(done_[i]), i + 1);
    std::printf("], \"latency_ns\": [");
    for (size_t i = 0; i < latency_.size(); ++i)
      std::printf("%s%lld", i ? ", " : "", static_cast<long long>(latency_[i]));
    std::printf("]}\n");
  }

 private:
  const DriverTable& cu() const { return driver_->table(); }

  void Kernel() {
    void* parameters[] = {&out_, &load_.rounds};
    Require(
        load_.rounds
            ? cu().cuLaunchKernel(work_, load_.blocks, 1, 1, kThreads, 1, 1, 0, stream_, parameters, nullptr)
            : cu().cuLaunchKernel(nothing_, load_.blocks, 1, 1, kThreads, 1, 1, 0, stream_, nullptr, nullptr),
        "cuLaunchKernel");
  }

  void Capture() {
    CUgraph graph = nullptr;
    Require(cu().cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
            "cuStreamBeginCapture");
    for (uint32_t i = 0; i < load_.kernels; ++i) Kernel();
    Require(cu().cuStreamEndCapture(stream_, &graph), "cuStreamEndCapture");
    Require(cu().cuGraphInstantiateWithFlags(&graph_, graph, 0), "cuGraphInstantiate");
  }

  void Request() {
    if (graph_) return Require(cu().cuGraphLaunch(graph_, stream_), "cuGraphLaunch");
    for (uint32_t i = 0; i < load_.kernels; ++i) Kernel();
  }

  void BackToBack(int64_t end) {
    size_t asked = 0;
    while (true) {
      if (asked >= load_.depth) {
        Require(cu().cuEventSynchronize(events_[asked % load_.depth]), "cuEventSynchronize");
        done_.push_back(NowNs());
        if (done_.back() >= end) return;
      }
      Request();
      Require(cu().cuEventRecord(events_[asked++ % load_.depth], stream_), "cuEventRecord");
    }
  }

  void Paced(int64_t end) {
    for (int64_t due = NowNs(); due < end; due += load_.period_ns) {
      if (NowNs() < due) WaitUntil(due);
      Request();
      Require(cu().cuStreamSynchronize(stream_), "cuStreamSynchronize");
      done_.push_back(NowNs());
      latency_.push_back(done_.back() - due);
    }
  }

  Load load_;
  std::unique_ptr<Driver> driver_;
  CUfunction work_ = nullptr, nothing_ = nullptr;
  CUdeviceptr out_ = 0;
  CUstream stream_ = nullptr;
  CUgraphExec graph_ = nullptr;
  std::vector<CUevent> events_;
  std::vector<int64_t> done_;
  std::vector<int64_t> latency_;
};

int Main(int argc, char** argv) {
  namespace po = boost::program_options;
  Load load;
  double period_ms = 0;
  po::options_description known("bench_sharing: one tenant's load");
  auto option = known.add_options();
  option("help", "say this");
  option("blocks", po::value(&load.blocks), "blocks of a kernel");
  option("rounds", po::value(&load.rounds), "steps of each thread; 0: an empty kernel");
  option("kernels", po::value(&load.kernels), "kernels of a request");
  option("depth", po::value(&load.depth), "requests on their way at once");
  option("graph", po::bool_switch(&load.graph), "a request is one launch of a captured graph");
  option("seconds", po::value(&load.seconds), "how long");
  option("period-ms", po::value(&period_ms), "a request so often, each waited for; 0: back to back");
  option("start-ns", po::value(&load.start_ns), "begin at this time of CLOCK_MONOTONIC");
  option("calibrate", po::bool_switch(&load.calibrate), "print the median ns of a request and end");
  po::variables_map given;
  try {
    po::store(po::parse_command_line(argc, argv, known), given);
    po::notify(given);
  } catch (const po::error& error) {
    std::fprintf(stderr, "bench_sharing: %s\n", error.what());
    return 2;
  }
  if (given.contains("help")) {
    std::cout << known;
    return 0;
  }
  if (!load.blocks || !load.kernels || !load.depth) {
    std::fprintf(stderr, "bench_sharing: blocks, kernels and depth of at least 1 were expected.\n");
    return 2;
  }
  load.period_ns = static_cast<int64_t>(period_ms * 1e6);
  Tenant tenant(load);
  if (load.calibrate) {
    std::printf("%lld\n", static_cast<long long>(tenant.Calibrate()));
    return 0;
  }
  tenant.Run();
  tenant.Print();
  return 0;
}

}  // namespace
}  // namespace cuplex

int main(int argc, char** argv) { return cuplex::Main(argc, argv); }
