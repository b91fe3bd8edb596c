#include "bench/softcuda/monte_carlo/monte_carlo.h"

#include "bench/softcuda/monte_carlo/monte_carlo_ptx.h"
#include "bench/softcuda/subject.h"

namespace cuplex::bench {
namespace monte_carlo {
namespace {

void Throw(const std::uint32_t* seeds, unsigned* hits, int streams, int darts) {
  constexpr int kTogether = 64;  // streams whose states stay in registers
  for (int begin = 0; begin < streams; begin += kTogether) {
    std::uint32_t state[kTogether];
    unsigned inside[kTogether] = {};
    for (int i = 0; i < kTogether; ++i) state[i] = seeds[begin + i];
    for (int dart = 0; dart < darts; ++dart) {
      for (int i = 0; i < kTogether; ++i) {
        std::uint32_t s = state[i];
        s ^= s << 13;
        s ^= s >> 17;
        s ^= s << 5;
        const float x = static_cast<float>(static_cast<int>(s >> 8)) * 0x1p-24f;
        s ^= s << 13;
        s ^= s >> 17;
        s ^= s << 5;
        const float y = static_cast<float>(static_cast<int>(s >> 8)) * 0x1p-24f;
        state[i] = s;
        inside[i] += x * x + y * y < 1.0f ? 1 : 0;
      }
    }
    for (int i = 0; i < kTogether; ++i) hits[begin + i] = inside[i];
  }
}

class MonteCarlo : public Case {
 public:
  explicit MonteCarlo(const Module& module)
      : kernel_(module.GetKernel("monte_carlo")),
        device_seeds_(module.device(), seeds_),
        hits_(module.device(), kStreams) {}
  void Launch() override { kernel_.Launch({kBlocks}, {kThreads}, device_seeds_.at(), hits_.at(), kDarts); }
  void Native() override { Throw(seeds_.data(), expected_.data(), kStreams, kDarts); }
  std::optional<std::string> Compare() override { return Unequal(hits_.Read(), expected_); }

 private:
  Kernel kernel_;
  std::vector<std::uint32_t> seeds_ = Words(kStreams, 1);
  std::vector<unsigned> expected_ = std::vector<unsigned>(kStreams);
  Array<std::uint32_t> device_seeds_;
  Array<unsigned> hits_;
};

}  // namespace
}  // namespace monte_carlo

extern const Subject kMonteCarlo;
const Subject kMonteCarlo = {"monte_carlo", monte_carlo::kPtx, true, Make<monte_carlo::MonteCarlo>};

}  // namespace cuplex::bench
