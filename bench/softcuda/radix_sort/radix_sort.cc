#include "bench/softcuda/radix_sort/radix_sort.h"

#include "bench/softcuda/radix_sort/radix_sort_ptx.h"
#include "bench/softcuda/subject.h"

namespace cuplex::bench {
namespace radix_sort {
namespace {

void Pass(const std::uint32_t* in, std::uint32_t* out, int count, int shift) {
  unsigned next[kDigits] = {};
  for (int i = 0; i < count; ++i) ++next[in[i] >> shift & (kDigits - 1)];
  unsigned before = 0;
  for (unsigned& digit : next) {
    const unsigned here = digit;
    digit = before;
    before += here;
  }
  for (int i = 0; i < count; ++i) out[next[in[i] >> shift & (kDigits - 1)]++] = in[i];
}

class RadixPass : public Case {
 public:
  explicit RadixPass(const Module& module)
      : count_(module.GetKernel("count_digits")),
        scan_(module.GetKernel("scan_counts")),
        scatter_(module.GetKernel("scatter")),
        device_in_(module.device(), in_),
        out_(module.device(), kCount),
        counts_(module.device(), kDigits * kChunks) {}
  void Launch() override {
    count_.Launch({kChunks}, {kThreads}, device_in_.at(), counts_.at(), kShift);
    scan_.Launch({1}, {kScanThreads}, counts_.at(), kDigits * kChunks);
    scatter_.Launch({kChunks}, {kThreads}, device_in_.at(), out_.at(), counts_.at(), kShift);
  }
  void Native() override { Pass(in_.data(), expected_.data(), kCount, kShift); }
  std::optional<std::string> Compare() override { return Unequal(out_.Read(), expected_); }

 private:
  Kernel count_;
  Kernel scan_;
  Kernel scatter_;
  std::vector<std::uint32_t> in_ = Words(kCount, 1);
  std::vector<std::uint32_t> expected_ = std::vector<std::uint32_t>(kCount);
  Array<std::uint32_t> device_in_;
  Array<std::uint32_t> out_;
  Array<unsigned> counts_;
};

}  // namespace
}  // namespace radix_sort

extern const Subject kRadixSort;
const Subject kRadixSort = {"radix_sort", radix_sort::kPtx, true, Make<radix_sort::RadixPass>};

}  // namespace cuplex::bench
