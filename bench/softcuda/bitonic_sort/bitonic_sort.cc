#include "bench/softcuda/bitonic_sort/bitonic_sort.h"

#include "bench/softcuda/bitonic_sort/bitonic_sort_ptx.h"
#include "bench/softcuda/subject.h"

namespace cuplex::bench {
namespace bitonic_sort {
namespace {

void Order(unsigned* keys, unsigned at, unsigned stride, bool ascending) {
  unsigned* __restrict low = keys + at;
  unsigned* __restrict high = keys + at + stride;
  for (unsigned i = 0; i < stride; ++i) {
    const unsigned less = low[i] < high[i] ? low[i] : high[i];
    const unsigned more = low[i] < high[i] ? high[i] : low[i];
    low[i] = ascending ? less : more;
    high[i] = ascending ? more : less;
  }
}

void Sort(const unsigned* in, unsigned* out, unsigned count) {
  for (unsigned i = 0; i < count; ++i) out[i] = in[i];
  for (unsigned length = 2; length <= count; length *= 2) {
    for (unsigned stride = length / 2; stride > 0; stride /= 2) {
      for (unsigned at = 0; at < count; at += 2 * stride) Order(out, at, stride, (at & length) == 0);
    }
  }
}

class BitonicSort : public Case {
 public:
  explicit BitonicSort(const Module& module)
      : shared_(module.GetKernel("sort_shared")),
        global_(module.GetKernel("merge_global")),
        device_in_(module.device(), in_),
        out_(module.device(), kCount) {}
  void Launch() override {
    shared_.Launch({kCount / kChunk}, {kThreads}, device_in_.at(), out_.at(), 2u, kChunk);
    for (unsigned length = 2 * kChunk; length <= kCount; length *= 2) {
      for (unsigned stride = length / 2; stride >= kChunk; stride /= 2) {
        global_.Launch({kCount / kChunk}, {kThreads}, out_.at(), length, stride);
      }
      shared_.Launch({kCount / kChunk}, {kThreads}, out_.at(), out_.at(), length, length);
    }
  }
  void Native() override { Sort(in_.data(), expected_.data(), kCount); }
  std::optional<std::string> Compare() override { return Unequal(out_.Read(), expected_); }

 private:
  Kernel shared_;
  Kernel global_;
  std::vector<std::uint32_t> in_ = Words(kCount, 1);
  std::vector<std::uint32_t> expected_ = std::vector<std::uint32_t>(kCount);
  Array<std::uint32_t> device_in_;
  Array<std::uint32_t> out_;
};

}  // namespace
}  // namespace bitonic_sort

extern const Subject kBitonicSort;
const Subject kBitonicSort = {"bitonic_sort", bitonic_sort::kPtx, true, Make<bitonic_sort::BitonicSort>};

}  // namespace cuplex::bench
