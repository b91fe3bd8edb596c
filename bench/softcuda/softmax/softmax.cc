#include "bench/softcuda/softmax/softmax.h"

#include "bench/softcuda/softmax/softmax_ptx.h"
#include "bench/softcuda/subject.h"

namespace cuplex::bench {
namespace softmax {
namespace {

void Softmax(const float* in, float* out, int rows, int columns) {
#pragma clang fp reassociate(on)
  for (int i = 0; i < rows; ++i) {
    const float* row = in + static_cast<std::size_t>(i) * columns;
    float* __restrict result = out + static_cast<std::size_t>(i) * columns;
    float largest = row[0];
    for (int j = 1; j < columns; ++j) largest = row[j] > largest ? row[j] : largest;
    for (int j = 0; j < columns; ++j) result[j] = std::exp(row[j] - largest);
    float sum = 0;
    for (int j = 0; j < columns; ++j) sum += result[j];
    const float scale = 1.0f / sum;
    for (int j = 0; j < columns; ++j) result[j] *= scale;
  }
}

class SoftmaxRows : public Case {
 public:
  explicit SoftmaxRows(const Module& module)
      : kernel_(module.GetKernel("softmax")),
        device_in_(module.device(), in_),
        out_(module.device(), expected_.size()) {}
  void Launch() override { kernel_.Launch({kRows}, {kThreads}, device_in_.at(), out_.at(), kColumns); }
  void Native() override { Softmax(in_.data(), expected_.data(), kRows, kColumns); }
  std::optional<std::string> Compare() override { return Far(out_.Read(), expected_, 1e-6f); }

 private:
  Kernel kernel_;
  std::vector<float> in_ = Floats(kRows * kColumns, 1, -4, 4);
  std::vector<float> expected_ = std::vector<float>(kRows * kColumns);
  Array<float> device_in_;
  Array<float> out_;
};

}  // namespace
}  // namespace softmax

extern const Subject kSoftmax;
const Subject kSoftmax = {"softmax", softmax::kPtx, true, Make<softmax::SoftmaxRows>};

}  // namespace cuplex::bench
