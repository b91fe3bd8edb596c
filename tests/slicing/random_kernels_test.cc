// Random kernels in slices of random size, on every path of softcuda: the bits must be those of the same
// program in plain C++, or, where that does not know them, of the whole kernel.
#include <random>

#include "ptx/passes/slice_plan.h"
#include "softcuda/jit/differential/random_kernel.h"
#include "softcuda/jit/test_rig.h"

namespace cuplex::softcuda {
namespace {

using differential::RandomKernel;
using Words = std::vector<uint32_t>;

class SlicedRandomKernels : public TestRig {
 protected:
  using Launches = std::vector<std::pair<std::array<uint32_t, 3>, std::vector<std::byte>>>;

  /// Outputs and counters after these launches, each a grid and what follows the three pointers.
  Words RunOn(const RandomKernel& kernel, const std::string& text, const Words& inputs, Path path,
              const Launches& launches) {
    auto parsed = ptx::Parse(text);
    EXPECT_TRUE(parsed.ok()) << parsed.error().sentence;
    if (!parsed.ok()) return {};
    CompileOptions options;
    options.path = path;
    auto program = Compile(std::make_shared<const ptx::Module>(std::move(*parsed)), *window_, options);
    EXPECT_TRUE(program.ok()) << program.error().sentence;
    if (!program.ok()) return {};
    next_ = window_->device().base;
    const size_t outputs = size_t{kernel.grid[0]} * kernel.threads() * differential::kOutputs;
    uint32_t* in = Upload(inputs);
    uint32_t* out = Upload(Words(outputs));
    uint32_t* counters = Upload(Words(differential::kCounters));
    const std::array<const uint32_t*, 3> pointers = {in, out, counters};
    const auto first = std::as_bytes(std::span(pointers));
    for (const auto& [grid, more] : launches) {
      std::vector<std::byte> params(first.begin(), first.end());
      params.insert(params.end(), more.begin(), more.end());
      Launch launch;
      launch.kernel = (*program)->FindKernel("run");
      launch.grid = grid;
      launch.block = kernel.block;
      launch.params = params;
      auto outcome = workers_->Run(launch, &control_);
      EXPECT_TRUE(outcome.ok()) << outcome.error().sentence;
      if (!outcome.ok()) return {};
      EXPECT_FALSE(outcome->has_value()) << (*outcome)->Sentence();
    }
    Words all(out, out + outputs);
    all.insert(all.end(), counters, counters + differential::kCounters);
    return all;
  }
};

TEST_F(SlicedRandomKernels, GiveTheBitsOfTheWholeKernel) {
  constexpr uint64_t kCount = 30;
  uint64_t several = 0;
  for (uint64_t seed = 1; seed <= kCount; ++seed) {
    RandomKernel kernel = differential::MakeRandomKernel(seed);
    std::mt19937_64 random(seed);
    kernel.grid = {1 + static_cast<uint32_t>(random() % 9), 1, 1};
    Words inputs(differential::kInputs);
    for (uint32_t& v : inputs) v = static_cast<uint32_t>(random() >> (random() % 3 ? 32 : 56));

    auto module = ptx::Parse(kernel.text);
    ASSERT_TRUE(module.ok()) << module.error().sentence;
    auto sliced = ptx::Slice(*module);
    ASSERT_TRUE(sliced.ok()) << sliced.error().sentence;
    const ptx::SlicedKernel& described = sliced->kernels.at(0);
    ASSERT_EQ(described.refusal, "");
    ASSERT_EQ(described.arguments_offset, 24u);
    Launches slices;
    for (uint64_t first = 0; first < ptx::BlocksOf(kernel.grid);) {
      const auto slice = ptx::NextSlice(described, kernel.grid, first,
                                        {1, static_cast<double>(random() % 6), 1 + random() % 2});
      slices.emplace_back(slice.launch, ptx::SliceArguments(described, kernel.grid, slice, {}));
      first += slice.count;
    }
    several += slices.size() > 1;

    for (Path path : {Path::kSteps, Path::kLoop, Path::kAuto}) {
      const Words expected = kernel.exact ? kernel.Evaluate(inputs)
                                          : RunOn(kernel, kernel.text, inputs, path, {{kernel.grid, {}}});
      const Words got = RunOn(kernel, sliced->text, inputs, path, slices);
      ASSERT_EQ(got.size(), expected.size()) << "seed " << seed;
      EXPECT_TRUE(got == expected) << "seed " << seed << ", path " << static_cast<int>(path);
    }
  }
  EXPECT_GT(several, kCount / 2);
}

}  // namespace
}  // namespace cuplex::softcuda
