// softcuda against plain C++: every subject on both sides, taking turns, and what launches and barriers cost.
//
//   bench_softcuda                        all subjects
//   bench_softcuda --kernel matmul        one, or several
//   bench_softcuda --overheads            launches of nothing, and barriers
//
// The driver is build/soft/libcuda.so.1 unless --driver names another. Unless the environment says otherwise,
// SOFTCUDA_WORKERS is 1 and SOFTCUDA_CACHE_DIR off. With --json each line is an object for bench/softcuda.py;
// times there are nanoseconds.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>

#include <boost/program_options.hpp>

#include "bench/softcuda/overhead/overhead_ptx.h"
#include "bench/softcuda/subject.h"

namespace cuplex::bench {
namespace {

struct Options {
  std::vector<std::string> kernels;
  std::string driver;
  double seconds = 1;  // spent on a subject's pairs of runs, at least
  bool device_alone = false;
  bool compile = false;
  bool overheads = false;
  bool json = false;
};

constexpr std::size_t kFewestPairs = 5;
constexpr std::size_t kMostPairs = 51;

double Nanoseconds(const std::function<void()>& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - began).count();
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Measured {
  double load = 0;   // making the module
  double first = 0;  // the first run after it
  std::vector<double> device;
  std::vector<double> native;
};

Measured Measure(const Device& device, const Subject& subject, const Options& options) {
  Measured measured;
  std::unique_ptr<Module> module;
  measured.load = Nanoseconds([&] { module = std::make_unique<Module>(device, subject.ptx); });
  const std::unique_ptr<Case> job = subject.make(*module);
  const auto run = [&] {
    job->Launch();
    device.Synchronize();
  };
  measured.first = Nanoseconds(run);
  job->Native();
  if (const auto differs = job->Compare()) throw Failure(*differs + ".");
  double spent = 0;
  const double budget = options.compile ? 0 : options.seconds * 1e9;
  while (measured.device.size() < kMostPairs && (spent < budget || measured.device.size() < kFewestPairs)) {
    measured.device.push_back(Nanoseconds(run));
    spent += measured.device.back();
    if (options.device_alone || options.compile) continue;
    measured.native.push_back(Nanoseconds([&] { job->Native(); }));
    spent += measured.native.back();
  }
  if (const auto differs = job->Compare()) throw Failure(*differs + ", after many runs.");
  return measured;
}

void Print(const Subject& subject, const Measured& measured, const Options& options) {
  const double device = Median(measured.device);
  const double native = measured.native.empty() ? 0 : Median(measured.native);
  const double compile = std::max(0.0, measured.load + measured.first - device);
  if (options.json) {
    std::printf(
        "{\"kernel\": \"%s\", \"wide\": %s, \"device\": %.0f, \"least\": %.0f, \"native\": %.0f, "
        "\"compile\": "
        "%.0f}\n",
        subject.name, subject.wide ? "true" : "false", device,
        *std::min_element(measured.device.begin(), measured.device.end()), native, compile);
  } else {
    std::printf(
        "%-18s %10.3f %10.3f %10.3f %10.3f %8.2f %10.1f\n", subject.name, device / 1e6,
        *std::min_element(measured.device.begin(), measured.device.end()) / 1e6, native / 1e6,
        measured.native.empty() ? 0 : *std::min_element(measured.native.begin(), measured.native.end()) / 1e6,
        native > 0 ? device / native : 0, compile / 1e6);
  }
  std::fflush(stdout);
}

void PrintOverhead(const char* name, double nanoseconds, const Options& options) {
  std::printf(options.json ? "{\"overhead\": \"%s\", \"value\": %.3f}\n" : "%-32s %12.3f ns\n", name,
              nanoseconds);
  std::fflush(stdout);
}

/// Nanoseconds for each of the kernels of a graph of `nodes` empty ones, launched again and again.
double GraphNode(const Device& device, const Kernel& nothing, int nodes) {
  constexpr int kLaunches = 50;
  const DriverTable& cu = device.cu();
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  device.Require(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  device.Require(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "cuStreamBeginCapture");
  for (int i = 0; i < nodes; ++i) nothing.LaunchIn(stream, {1}, {1});
  device.Require(cu.cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  device.Require(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiate");
  const double all = Nanoseconds([&] {
    for (int i = 0; i < kLaunches; ++i) device.Require(cu.cuGraphLaunch(exec, stream), "cuGraphLaunch");
    device.Require(cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
  });
  (void)cu.cuGraphExecDestroy(exec);
  (void)cu.cuGraphDestroy(graph);
  (void)cu.cuStreamDestroy_v2(stream);
  return all / (nodes * kLaunches);
}

void MeasureOverheads(const Device& device, const Options& options) {
  constexpr int kLaunches = 10000;
  constexpr int kRounds = 256;
  constexpr unsigned kBlocks = 64;
  constexpr unsigned kThreads = 256;
  const Module module(device, overhead::kPtx);
  const Kernel nothing = module.GetKernel("nothing");
  const Kernel with = module.GetKernel("barriers");
  const Kernel without = module.GetKernel("no_barriers");
  const Array<unsigned> out(device, kBlocks * kThreads);

  std::vector<double> streamed;
  std::vector<double> waited;
  std::vector<double> barriers;
  std::vector<double> nodes;
  for (int repetition = 0; repetition < 9; ++repetition) {
    streamed.push_back(Nanoseconds([&] {
                         for (int i = 0; i < kLaunches; ++i) nothing.Launch({1}, {1});
                         device.Synchronize();
                       }) /
                       kLaunches);
    for (int i = 0; i < 200; ++i) {
      waited.push_back(Nanoseconds([&] {
        nothing.Launch({1}, {1});
        device.Synchronize();
      }));
    }
    nodes.push_back(GraphNode(device, nothing, 200));
    const auto loop = [&](const Kernel& kernel) {
      return Nanoseconds([&] {
        kernel.Launch({kBlocks}, {kThreads}, out.at(), kRounds);
        device.Synchronize();
      });
    };
    const double empty = loop(without);
    barriers.push_back((loop(with) - empty) / (kBlocks * kThreads * kRounds));
  }
  PrintOverhead("launch, back to back", Median(streamed), options);
  PrintOverhead("launch and wait", Median(waited), options);
  PrintOverhead("kernel of a graph of 200", Median(nodes), options);
  PrintOverhead("barrier, of a thread", Median(barriers), options);
}

bool Wanted(const Subject& subject, const Options& options) {
  return options.kernels.empty() ||
         std::find(options.kernels.begin(), options.kernels.end(), subject.name) != options.kernels.end();
}

int Run(const Options& options) {
  for (const std::string& name : options.kernels) {
    const auto subjects = Subjects();
    if (std::none_of(subjects.begin(), subjects.end(),
                     [&](const Subject* subject) { return subject->name == name; })) {
      std::string names;
      for (const Subject* subject : subjects) names += std::string(" ") + subject->name;
      throw Failure("\"" + name + "\" is no kernel here; one of" + names + " was expected.");
    }
  }
  setenv("SOFTCUDA_WORKERS", "1", 0);
  setenv("SOFTCUDA_CACHE_DIR", "off", 0);
  const Device device(options.driver);
  if (options.overheads) {
    MeasureOverheads(device, options);
    return 0;
  }
  {  // What the first module and launch of a process cost is no kernel's.
    const Module module(device, overhead::kPtx);
    module.GetKernel("nothing").Launch({1}, {1});
    device.Synchronize();
  }
  if (!options.json) {
    std::printf("%-18s %10s %10s %10s %10s %8s %10s\n", "kernel", "device ms", "least", "native ms", "least",
                "ratio", "compile ms");
  }
  int failed = 0;
  for (const Subject* subject : Subjects()) {
    if (!Wanted(*subject, options)) continue;
    try {
      Print(*subject, Measure(device, *subject, options), options);
    } catch (const Failure& failure) {
      std::fprintf(stderr, "bench_softcuda: %s: %s\n", subject->name, failure.what());
      ++failed;
    }
  }
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace cuplex::bench

int main(int argc, char** argv) {
  namespace po = boost::program_options;
  cuplex::bench::Options options;
  options.driver =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../soft/libcuda.so.1").string();
  po::options_description described("bench_softcuda");
  described.add_options()("help", "say this")("kernel", po::value(&options.kernels),
                                              "measure only this one; may be repeated")(
      "driver", po::value(&options.driver), "the driver to open")("seconds", po::value(&options.seconds),
                                                                  "to spend on a kernel, at least")(
      "device-alone", po::bool_switch(&options.device_alone), "time the device only")(
      "compile", po::bool_switch(&options.compile), "few runs: the times of compiling are what counts")(
      "overheads", po::bool_switch(&options.overheads), "launches and barriers, no kernels")(
      "json", po::bool_switch(&options.json), "print objects instead of a table");
  try {
    po::variables_map given;
    po::store(po::parse_command_line(argc, argv, described), given);
    po::notify(given);
    if (given.count("help")) {
      std::cout << described;
      return 0;
    }
    return cuplex::bench::Run(options);
  } catch (const po::error& error) {
    std::fprintf(stderr, "bench_softcuda: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_softcuda: %s\n", error.what());
    return 1;
  }
}
