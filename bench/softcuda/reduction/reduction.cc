#include "bench/softcuda/reduction/reduction.h"

#include "bench/softcuda/reduction/reduction_ptx.h"
#include "bench/softcuda/subject.h"

namespace cuplex::bench {
namespace reduction {
namespace {

float Sum(const float* values, int count) {
#pragma clang fp reassociate(on)
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += values[i];
  return sum;
}

class Reduction : public Case {
 public:
  explicit Reduction(const Module& module)
      : kernel_(module.GetKernel("reduction")),
        device_values_(module.device(), values_),
        of_blocks_(module.device(), kBlocks),
        sum_(module.device(), 1) {}
  void Launch() override {
    kernel_.Launch({kBlocks}, {kThreads}, device_values_.at(), of_blocks_.at(), kCount);
    kernel_.Launch({1}, {kThreads}, of_blocks_.at(), sum_.at(), kBlocks);
  }
  void Native() override { expected_[0] = Sum(values_.data(), kCount); }
  std::optional<std::string> Compare() override { return Far(sum_.Read(), expected_, 1e-4f); }

 private:
  Kernel kernel_;
  std::vector<float> values_ = Floats(kCount, 1, 0, 1);
  std::vector<float> expected_ = std::vector<float>(1);
  Array<float> device_values_;
  Array<float> of_blocks_;
  Array<float> sum_;
};

}  // namespace
}  // namespace reduction

extern const Subject kReduction;
const Subject kReduction = {"reduction", reduction::kPtx, true, Make<reduction::Reduction>};

}  // namespace cuplex::bench
