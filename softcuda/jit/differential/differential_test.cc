// Random kernels on every path there is. All must give the same bits, and those that C++ computes beside
// them. SOFTCUDA_DIFFERENTIAL_SEEDS="FIRST COUNT" runs other seeds than the few of every day.
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "softcuda/jit/differential/random_kernel.h"
#include "softcuda/jit/test_rig.h"

namespace cuplex::softcuda {
namespace {

using differential::RandomKernel;
using Words = std::vector<uint32_t>;

constexpr uint64_t kFirst = 1, kCount = 50;

struct Way {
  const char* name;
  CompileOptions options;
};
const Way kWays[] = {
    {"steps", {.path = Path::kSteps}}, {"loop", {.path = Path::kLoop}}, {"auto", {.path = Path::kAuto}}};

class Differential : public TestRig {
 protected:
  /// Outputs and counters of a run; nothing where it fails, which is said.
  Words RunOn(const RandomKernel& kernel, const Words& inputs, const Way& way) {
    auto parsed = ptx::Parse(kernel.text);
    if (!parsed.ok()) return Say(way, parsed.error().sentence);
    auto program = Compile(std::make_shared<const ptx::Module>(std::move(*parsed)), *window_, way.options);
    if (!program.ok()) return Say(way, program.error().sentence);
    next_ = window_->device().base;
    uint32_t* in = Upload(inputs);
    const size_t outputs = size_t{kernel.grid[0]} * kernel.threads() * differential::kOutputs;
    uint32_t* out = Upload(Words(outputs));
    uint32_t* counters = Upload(Words(differential::kCounters));
    auto outcome = TryRun(**program, "run", {kernel.grid, kernel.block}, in, out, counters);
    if (!outcome.ok()) return Say(way, outcome.error().sentence);
    if (outcome->has_value()) return Say(way, (*outcome)->Sentence());
    Words all(out, out + outputs);
    all.insert(all.end(), counters, counters + differential::kCounters);
    return all;
  }

  static Words Say(const Way& way, const std::string& sentence) {
    ADD_FAILURE() << way.name << ": " << sentence;
    return {};
  }

  static void Compare(const RandomKernel& kernel, const Words& got, const Words& expected,
                      const std::string& who) {
    ASSERT_EQ(got.size(), expected.size()) << who;
    size_t wrong = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      if (got[i] == expected[i] || ++wrong > 4) continue;
      const size_t thread = i / differential::kOutputs;
      ADD_FAILURE() << who << ": "
                    << (thread < size_t{kernel.grid[0]} * kernel.threads()
                            ? fmt::format("thread {} of block {}, output {}", thread % kernel.threads(),
                                          thread / kernel.threads(), i % differential::kOutputs)
                            : "a global counter")
                    << fmt::format(": {:#x}, expected {:#x}", got[i], expected[i]);
    }
    EXPECT_EQ(wrong, 0u) << "words differ";
  }
};

TEST_F(Differential, EveryPathGivesTheSameBits) {
  uint64_t first = kFirst, count = kCount;
  if (const char* given = std::getenv("SOFTCUDA_DIFFERENTIAL_SEEDS"))
    std::istringstream(given) >> first >> count;
  size_t exact = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const RandomKernel kernel = differential::MakeRandomKernel(seed);
    Words inputs(differential::kInputs);
    std::mt19937_64 random(seed);
    for (uint32_t& v : inputs) v = static_cast<uint32_t>(random() >> (random() % 3 ? 32 : 56));
    Words expected;
    if (kernel.exact) expected = kernel.Evaluate(inputs), ++exact;
    for (const Way& way : kWays) {
      const Words got = RunOn(kernel, inputs, way);
      if (expected.empty()) expected = got;
      if (!got.empty()) Compare(kernel, got, expected, way.name);
      if (HasFailure()) break;
    }
    if (HasFailure()) {
      const std::string file = fmt::format("{}random_kernel.{}.ptx", testing::TempDir(), seed);
      std::ofstream(file) << kernel.text;
      FAIL() << fmt::format("seed {}, blocks of {}x{}x{}: {}", seed, kernel.block[0], kernel.block[1],
                            kernel.block[2], file);
    }
  }
  EXPECT_GE(exact * 5, count * 3);
}

}  // namespace
}  // namespace cuplex::softcuda
