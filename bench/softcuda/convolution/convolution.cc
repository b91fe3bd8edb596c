#include "bench/softcuda/convolution/convolution.h"

#include "bench/softcuda/convolution/convolution_ptx.h"
#include "bench/softcuda/subject.h"

namespace cuplex::bench {
namespace convolution {
namespace {

// The picture with zeros around it, so that no weight needs to ask whether it lies outside.
constexpr int kPaddedWidth = kWidth + 2 * kRadius;
constexpr int kPaddedHeight = kHeight + 2 * kRadius;

void Filter(const float* in, const float* weights, float* __restrict padded, float* __restrict out) {
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) padded[(y + kRadius) * kPaddedWidth + kRadius + x] = in[y * kWidth + x];
  }
  for (int y = 0; y < kHeight; ++y) {
    float* row = out + y * kWidth;
    for (int x = 0; x < kWidth; ++x) {
      float sum = 0;
      for (int dy = 0; dy < kFilter; ++dy) {
        for (int dx = 0; dx < kFilter; ++dx) {
          sum += weights[dy * kFilter + dx] * padded[(y + dy) * kPaddedWidth + x + dx];
        }
      }
      row[x] = sum;
    }
  }
}

class Convolution : public Case {
 public:
  explicit Convolution(const Module& module)
      : kernel_(module.GetKernel("convolution")),
        device_in_(module.device(), in_),
        out_(module.device(), expected_.size()) {
    module.SetVariable("weights", weights_.data(), weights_.size() * sizeof(float));
  }
  void Launch() override {
    kernel_.Launch({kWidth / kTile, kHeight / kTile}, {kTile, kTile}, device_in_.at(), out_.at(), kWidth,
                   kHeight);
  }
  void Native() override { Filter(in_.data(), weights_.data(), padded_.data(), expected_.data()); }
  std::optional<std::string> Compare() override { return Far(out_.Read(), expected_, 1e-4f); }

 private:
  Kernel kernel_;
  std::vector<float> in_ = Floats(kWidth * kHeight, 1);
  std::vector<float> weights_ = Floats(kFilter * kFilter, 2);
  std::vector<float> padded_ = std::vector<float>(kPaddedWidth * kPaddedHeight);
  std::vector<float> expected_ = std::vector<float>(kWidth * kHeight);
  Array<float> device_in_;
  Array<float> out_;
};

}  // namespace
}  // namespace convolution

extern const Subject kConvolution;
const Subject kConvolution = {"convolution", convolution::kPtx, true, Make<convolution::Convolution>};

}  // namespace cuplex::bench
