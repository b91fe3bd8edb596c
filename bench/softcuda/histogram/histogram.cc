#include "bench/softcuda/histogram/histogram.h"

#include "bench/softcuda/histogram/histogram_ptx.h"
#include "bench/softcuda/subject.h"

namespace cuplex::bench {
namespace histogram {
namespace {

void Count(const unsigned char* bytes, int count, unsigned* counts) {
  unsigned of_even[kBins] =
      {};  // two tables, so that a byte that occurs twice in a row need not wait for itself
  unsigned of_odd[kBins] = {};
  for (int i = 0; i < count; i += 2) {
    ++of_even[bytes[i]];
    ++of_odd[bytes[i + 1]];
  }
  for (int i = 0; i < kBins; ++i) counts[i] = of_even[i] + of_odd[i];
}

class Histogram : public Case {
 public:
  explicit Histogram(const Module& module)
      : kernel_(module.GetKernel("histogram")),
        device_words_(module.device(), words_),
        counts_(module.device(), kBins) {}
  void Launch() override {
    counts_.Clear();
    kernel_.Launch({kBlocks}, {kThreads}, device_words_.at(), counts_.at(), kCount / 4);
  }
  void Native() override {
    Count(reinterpret_cast<const unsigned char*>(words_.data()), kCount, expected_.data());
  }
  std::optional<std::string> Compare() override { return Unequal(counts_.Read(), expected_); }

 private:
  Kernel kernel_;
  std::vector<std::uint32_t> words_ = Words(kCount / 4, 1);
  std::vector<unsigned> expected_ = std::vector<unsigned>(kBins);
  Array<std::uint32_t> device_words_;
  Array<unsigned> counts_;
};

}  // namespace
}  // namespace histogram

extern const Subject kHistogram;
const Subject kHistogram = {"histogram", histogram::kPtx, true, Make<histogram::Histogram>};

}  // namespace cuplex::bench
