// TestRig: a window with some mapped device memory, and PTX text compiled and run on it. For the tests of
// this room.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "ptx/parser.h"
#include "softcuda/jit/program.h"
#include "softcuda/jit/workers.h"

namespace cuplex::softcuda {

class TestRig : public ::testing::Test {
 protected:
  static constexpr size_t kMapped = size_t{16} << 20;

  void SetUp() override {
    auto window = AddressWindow::Reserve();
    ASSERT_TRUE(window.ok()) << window.error().sentence;
    window_ = std::move(*window);
    void* at = mmap(reinterpret_cast<void*>(window_->device().base), kMapped, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    ASSERT_NE(at, MAP_FAILED);
    next_ = window_->device().base;
    StartWorkers(0);
  }

  void StartWorkers(unsigned helpers) {
    workers_.reset();
    auto workers = Workers::Start(helpers, *window_);
    ASSERT_TRUE(workers.ok()) << workers.error().sentence;
    workers_ = std::move(*workers);
  }

  void TearDown() override { workers_.reset(); }

  /// Device memory for n values, zero.
  template <typename T>
  T* Allocate(size_t n, size_t alignment = 256) {
    next_ = (next_ + alignment - 1) / alignment * alignment;
    auto* p = reinterpret_cast<T*>(next_);
    next_ += n * sizeof(T);
    EXPECT_LE(next_, window_->device().base + kMapped);
    return p;
  }
  template <typename T>
  T* Upload(const std::vector<T>& values) {
    T* p = Allocate<T>(values.size());
    if (!values.empty()) std::memcpy(p, values.data(), values.size() * sizeof(T));
    return p;
  }

  static std::string Header() { return ".version 8.0\n.target sm_90\n.address_size 64\n"; }

  Result<std::shared_ptr<Program>> TryLoad(const std::string& body, CompileOptions options = {}) {
    TRY(ptx::Module module, ptx::Parse(Header() + body));
    TRY(auto program, Compile(std::make_shared<const ptx::Module>(std::move(module)), *window_, options));
    for (const VariableInfo& v : program->variables()) {
      auto* p = Allocate<std::byte>(v.size, std::max<size_t>(v.alignment, 16));
      TRY(program->Place(v.name, reinterpret_cast<uintptr_t>(p)));
      places_[v.name] = p;
    }
    return program;
  }

  /// Loads, and compiles all kernels.
  Result<std::shared_ptr<Program>> TryCompile(const std::string& body, CompileOptions options = {}) {
    TRY(auto program, TryLoad(body, options));
    for (const KernelInfo& k : program->kernels())
      TRY(program->Prepare(program->FindKernel(k.name), {32, 1, 1}));
    return program;
  }

  /// Loads, and gives the variables what they hold at the start.
  std::shared_ptr<Program> Load(const std::string& body, CompileOptions options = {}) {
    auto program = TryLoad(body, options);
    EXPECT_TRUE(program.ok()) << (program.ok() ? "" : program.error().sentence);
    if (!program.ok()) return nullptr;
    for (const VariableInfo& v : (*program)->variables()) {
      auto bytes = (*program)->InitialBytes(v.name);
      EXPECT_TRUE(bytes.ok());
      if (bytes.ok()) std::memcpy(places_[v.name], bytes->data(), bytes->size());
    }
    return *program;
  }

  struct Shape {
    std::array<uint32_t, 3> grid = {1, 1, 1};
    std::array<uint32_t, 3> block = {1, 1, 1};
    uint32_t dynamic_shared = 0;
  };

  /// Packs the arguments at their natural alignment.
  template <typename... A>
  Result<Outcome> TryRun(Program& program, std::string_view kernel, Shape shape, A... args) {
    std::vector<std::byte> params;
    auto add = [&](auto value) {
      size_t at = (params.size() + sizeof(value) - 1) / sizeof(value) * sizeof(value);
      params.resize(at + sizeof(value));
      std::memcpy(params.data() + at, &value, sizeof(value));
    };
    (add(args), ...);
    Launch launch;
    launch.kernel = program.FindKernel(kernel);
    launch.grid = shape.grid;
    launch.block = shape.block;
    launch.dynamic_shared = shape.dynamic_shared;
    launch.params = params;
    launch.heap = heap_;
    return workers_->Run(launch, &control_);
  }

  template <typename... A>
  void Run(Program& program, std::string_view kernel, Shape shape, A... args) {
    auto outcome = TryRun(program, kernel, shape, args...);
    ASSERT_TRUE(outcome.ok()) << outcome.error().sentence;
    ASSERT_FALSE(outcome->has_value()) << (*outcome)->Sentence();
  }

  template <typename... A>
  Fault RunToFault(Program& program, std::string_view kernel, Shape shape, A... args) {
    auto outcome = TryRun(program, kernel, shape, args...);
    EXPECT_TRUE(outcome.ok()) << (outcome.ok() ? "" : outcome.error().sentence);
    if (!outcome.ok()) return {};
    EXPECT_TRUE(outcome->has_value());
    return outcome->value_or(Fault{});
  }

  std::unique_ptr<AddressWindow> window_;
  std::unique_ptr<Workers> workers_;
  GridControl control_;
  DeviceHeap* heap_ = nullptr;  // of the kernels it runs
  uintptr_t next_ = 0;
  std::map<std::string, void*> places_;
};

}  // namespace cuplex::softcuda
