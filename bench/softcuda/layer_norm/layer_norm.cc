#include "bench/softcuda/layer_norm/layer_norm.h"

#include "bench/softcuda/layer_norm/layer_norm_ptx.h"
#include "bench/softcuda/subject.h"

namespace cuplex::bench {
namespace layer_norm {
namespace {

void Normalise(const float* in, const float* gamma, const float* beta, float* out, int rows) {
#pragma clang fp reassociate(on)
  for (int i = 0; i < rows; ++i) {
    const float* row = in + i * kColumns;
    float* __restrict result = out + i * kColumns;
    float sum = 0;
    for (int j = 0; j < kColumns; ++j) sum += row[j];
    const float mean = sum / kColumns;
    float squares = 0;
    for (int j = 0; j < kColumns; ++j) squares += (row[j] - mean) * (row[j] - mean);
    const float scale = 1.0f / std::sqrt(squares / kColumns + kEpsilon);
    for (int j = 0; j < kColumns; ++j) result[j] = (row[j] - mean) * scale * gamma[j] + beta[j];
  }
}

class LayerNorm : public Case {
 public:
  explicit LayerNorm(const Module& module)
      : kernel_(module.GetKernel("layer_norm")),
        device_in_(module.device(), in_),
        device_gamma_(module.device(), gamma_),
        device_beta_(module.device(), beta_),
        out_(module.device(), expected_.size()) {}
  void Launch() override {
    kernel_.Launch({kRows}, {kThreads}, device_in_.at(), device_gamma_.at(), device_beta_.at(), out_.at());
  }
  void Native() override { Normalise(in_.data(), gamma_.data(), beta_.data(), expected_.data(), kRows); }
  std::optional<std::string> Compare() override { return Far(out_.Read(), expected_, 1e-5f); }

 private:
  Kernel kernel_;
  std::vector<float> in_ = Floats(kRows * kColumns, 1);
  std::vector<float> gamma_ = Floats(kColumns, 2);
  std::vector<float> beta_ = Floats(kColumns, 3);
  std::vector<float> expected_ = std::vector<float>(kRows * kColumns);
  Array<float> device_in_;
  Array<float> device_gamma_;
  Array<float> device_beta_;
  Array<float> out_;
};

}  // namespace
}  // namespace layer_norm

extern const Subject kLayerNorm;
const Subject kLayerNorm = {"layer_norm", layer_norm::kPtx, true, Make<layer_norm::LayerNorm>};

}  // namespace cuplex::bench
