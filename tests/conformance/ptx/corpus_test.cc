// Runs the corpus on the driver under test, a test a family. Kernels that softcuda does not carry are listed
// in unsupported.txt; the list is printed, and a line whose kernel passes must go.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>

#include <fmt/format.h>

#include "tests/conformance/driver_under_test.h"
#include "tests/conformance/ptx/corpus.h"

namespace cuplex::corpus {
void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }
}  // namespace cuplex::corpus

namespace cuplex::conformance {
namespace {

using corpus::Kernel;
using corpus::Named;

struct Count {
  size_t kernels = 0, beyond_device = 0;
  std::vector<std::string> unsupported;
  std::set<std::string> forms;
};
Count total;

/// Lines "family name" of kernels that softcuda refuses or gets wrong.
const std::set<std::string>& Unsupported() {
  static const std::set<std::string> lines = [] {
    std::set<std::string> all;
    std::ifstream in(CUPLEX_CORPUS_UNSUPPORTED);
    for (std::string line; std::getline(in, line);)
      if (!line.empty() && line[0] != '#') all.insert(line);
    return all;
  }();
  return lines;
}

/// A context and what is loaded in it; begun anew after a kernel has failed.
class Session {
 public:
  Session() { MUST(Cu().cuCtxCreate_v2(&context_, 0, 0)); }
  ~Session() { (void)Cu().cuCtxDestroy_v2(context_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Null where the driver refuses the text.
  CUmodule Load(const std::string& text) {
    CUmodule module = nullptr;
    return Cu().cuModuleLoadData(&module, text.c_str()) == CUDA_SUCCESS ? module : nullptr;
  }

  /// Empty where the kernel gives what it must, else a sentence.
  static std::string Run(CUmodule module, const Named& named) {
    const Kernel& kernel = named.kernel;
    CUfunction function = nullptr;
    CUdeviceptr buffers[5] = {};
    const unsigned threads = kernel.threads;
    std::vector<std::byte> arguments(kernel.extra_offset + kernel.extra.size());
    std::string sentence;
    auto call = [&](CUresult code, const char* what) {
      if (code == CUDA_SUCCESS || !sentence.empty()) return;
      const char* name = "an unknown code";
      (void)Cu().cuGetErrorName(code, &name);
      sentence = fmt::format("{} answered {}", what, name);
    };
    call(Cu().cuModuleGetFunction(&function, module, named.entry.c_str()), "cuModuleGetFunction");
    if (!sentence.empty()) return sentence;
    for (size_t i = 0; i < kernel.inputs.size(); ++i) {
      if (kernel.inputs[i].empty()) continue;
      call(Cu().cuMemAlloc_v2(&buffers[i], kernel.inputs[i].size()), "cuMemAlloc");
      call(Cu().cuMemcpyHtoD_v2(buffers[i], kernel.inputs[i].data(), kernel.inputs[i].size()),
           "cuMemcpyHtoD");
    }
    call(Cu().cuMemAlloc_v2(&buffers[4], kernel.output.size()), "cuMemAlloc");
    call(Cu().cuMemcpyHtoD_v2(buffers[4], kernel.output.data(), kernel.output.size()), "cuMemcpyHtoD");
    std::memcpy(arguments.data(), buffers, sizeof(buffers));
    std::memcpy(arguments.data() + sizeof(buffers), &threads, sizeof(threads));
    std::copy(kernel.extra.begin(), kernel.extra.end(),
              arguments.begin() + static_cast<ptrdiff_t>(kernel.extra_offset));
    size_t bytes = kernel.extra.empty() ? sizeof(buffers) + sizeof(threads) : arguments.size();
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, arguments.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    if (kernel.dynamic_shared > (48u << 10)) {
      call(Cu().cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                   static_cast<int>(kernel.dynamic_shared)),
           "cuFuncSetAttribute");
    }
    if (!sentence.empty()) return sentence;
    call(
        Cu().cuLaunchKernel(function, kernel.grid[0], kernel.grid[1], kernel.grid[2], kernel.block[0],
                            kernel.block[1], kernel.block[2], kernel.dynamic_shared, nullptr, nullptr, extra),
        "cuLaunchKernel");
    call(Cu().cuCtxSynchronize(), "cuCtxSynchronize");
    std::vector<std::byte> output(kernel.output.size());
    call(Cu().cuMemcpyDtoH_v2(output.data(), buffers[4], output.size()), "cuMemcpyDtoH");
    if (!sentence.empty()) return sentence;
    for (CUdeviceptr buffer : buffers)
      if (buffer) call(Cu().cuMemFree_v2(buffer), "cuMemFree");
    return sentence.empty() ? kernel.check(output) : sentence;
  }

 private:
  CUcontext context_ = nullptr;
};

/// Kernels one after another, with a new session after each failure.
class Runner {
 public:
  /// The sentence for a kernel in a module by itself.
  std::string RunAlone(const Named& named) {
    if (!session_) session_ = std::make_unique<Session>();
    CUmodule module = session_->Load(corpus::ModuleText({&named}));
    if (!module) return "the driver refuses the module";
    std::string sentence = Session::Run(module, named);
    if (!sentence.empty()) session_.reset();
    return sentence;
  }

  void RunGroup(const std::vector<const Named*>& group, std::map<const Named*, std::string>& failures) {
    if (!session_) session_ = std::make_unique<Session>();
    CUmodule module = session_->Load(corpus::ModuleText(group));
    if (!module && group.size() > 1) {  // who is it?
      const auto middle = group.begin() + static_cast<ptrdiff_t>(group.size() / 2);
      RunGroup({group.begin(), middle}, failures);
      RunGroup({middle, group.end()}, failures);
      return;
    }
    for (const Named* named : group) {
      if (!session_) {
        session_ = std::make_unique<Session>();
        module = session_->Load(corpus::ModuleText(group));
      }
      std::string sentence = module ? Session::Run(module, *named) : "the driver refuses the module";
      if (sentence.empty()) continue;
      failures[named] = sentence;
      session_.reset();
    }
    if (module && session_) MUST(Cu().cuModuleUnload(module));
  }

 private:
  std::unique_ptr<Session> session_;
};

int DeviceTarget() {
  int major = 0, minor = 0;
  CUdevice device = 0;
  MUST(Cu().cuDeviceGet(&device, 0));
  MUST(Cu().cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  MUST(Cu().cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  return major * 10 + minor;
}

bool RunsHere(const Kernel& kernel, int device) {
  if (Given().ours) return true;  // takes any target
  return kernel.target_suffix.empty() ? kernel.target <= device : kernel.target == device;
}

class PtxCorpus : public testing::TestWithParam<corpus::Subject> {
 public:
  static void TearDownTestSuite() {
    std::cout << fmt::format(
        "ptx corpus: {} kernels, {} forms; {} that softcuda does not carry; {} beyond this device\n",
        total.kernels, total.forms.size(), total.unsupported.size(), total.beyond_device);
    for (const std::string& line : total.unsupported) std::cout << "  not carried: " << line << '\n';
  }
};

TEST_P(PtxCorpus, GivesWhatTheDocumentSays) {
  const corpus::Subject& subject = GetParam();
  const std::vector<Named> kernels = corpus::KernelsOf(subject);
  const char* only = std::getenv("PTX_CORPUS_ONLY");  // a part of a name, to look at a few
  const int device = DeviceTarget();
  std::vector<Named> run, refused;
  for (const Named& named : kernels) {
    if (only && named.kernel.name.find(only) == std::string::npos) continue;
    if (!RunsHere(named.kernel, device)) {
      ++total.beyond_device;
      continue;
    }
    ++total.kernels;
    total.forms.insert(named.kernel.name.substr(0, named.kernel.name.find('#')));
    const bool listed =
        Given().ours && Unsupported().count(std::string(subject.name) + " " + named.kernel.name);
    (listed ? refused : run).push_back(named);
  }
  Runner runner;
  std::map<const Named*, std::string> failures;
  for (const auto& group : corpus::Grouped(run, 64)) runner.RunGroup(group, failures);
  for (const auto& [named, sentence] : failures) {
    ADD_FAILURE() << subject.name << ' ' << named->kernel.name << ": " << sentence
                  << (std::getenv("PTX_CORPUS_TEXT") ? "\n" + corpus::ModuleText({named}) : "");
  }
  for (const Named& named : refused) {
    const std::string line = std::string(subject.name) + " " + named.kernel.name;
    total.unsupported.push_back(line);
    EXPECT_FALSE(runner.RunAlone(named).empty())
        << line << " passes now: its line in unsupported.txt must go";
  }
}

INSTANTIATE_TEST_SUITE_P(Families, PtxCorpus, testing::ValuesIn(corpus::Subjects()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(PtxCorpusList, NamesKernelsThatExist) {
  std::set<std::string> all;
  for (const corpus::Subject& subject : corpus::Subjects())
    for (const Named& named : corpus::KernelsOf(subject))
      all.insert(std::string(subject.name) + " " + named.kernel.name);
  for (const std::string& line : Unsupported()) EXPECT_TRUE(all.count(line)) << line;
}

}  // namespace
}  // namespace cuplex::conformance
