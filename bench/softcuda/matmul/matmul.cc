#include "bench/softcuda/matmul/matmul.h"

#include "bench/softcuda/matmul/matmul_ptx.h"
#include "bench/softcuda/subject.h"

namespace cuplex::bench {
namespace matmul {
namespace {

void Multiply(const float* a, const float* b, float* c, int n) {
  constexpr int kRun = 64;  // rows of b that stay in the caches
  for (int i = 0; i < n * n; ++i) c[i] = 0;
  for (int begin = 0; begin < n; begin += kRun) {
    for (int i = 0; i < n; ++i) {
      float* __restrict row = c + i * n;
      for (int k = begin; k < begin + kRun; ++k) {
        const float factor = a[i * n + k];
        const float* other = b + k * n;
        for (int j = 0; j < n; ++j) row[j] += factor * other[j];
      }
    }
  }
}

class MatMul : public Case {
 public:
  explicit MatMul(const Module& module)
      : kernel_(module.GetKernel("matmul")),
        device_a_(module.device(), a_),
        device_b_(module.device(), b_),
        product_(module.device(), expected_.size()) {}
  void Launch() override {
    kernel_.Launch({kSize / kTile, kSize / kTile}, {kTile, kTile}, device_a_.at(), device_b_.at(),
                   product_.at(), kSize);
  }
  void Native() override { Multiply(a_.data(), b_.data(), expected_.data(), kSize); }
  std::optional<std::string> Compare() override { return Far(product_.Read(), expected_, 1e-4f); }

 private:
  Kernel kernel_;
  std::vector<float> a_ = Floats(kSize * kSize, 1);
  std::vector<float> b_ = Floats(kSize * kSize, 2);
  std::vector<float> expected_ = std::vector<float>(kSize * kSize);
  Array<float> device_a_;
  Array<float> device_b_;
  Array<float> product_;
};

}  // namespace
}  // namespace matmul

extern const Subject kMatmul;
const Subject kMatmul = {"matmul", matmul::kPtx, true, Make<matmul::MatMul>};

}  // namespace cuplex::bench
