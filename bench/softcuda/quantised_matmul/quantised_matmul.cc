#include "bench/softcuda/quantised_matmul/quantised_matmul.h"

#include "bench/softcuda/quantised_matmul/quantised_matmul_ptx.h"
#include "bench/softcuda/subject.h"

namespace cuplex::bench {
namespace quantised_matmul {
namespace {

void Multiply(const signed char* a, const signed char* b, const float* scale_a, const float* scale_b,
              float* c, int n) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      int sum = 0;
      for (int k = 0; k < n; ++k) sum += a[i * n + k] * b[j * n + k];
      c[i * n + j] = static_cast<float>(sum) * scale_a[i] * scale_b[j];
    }
  }
}

class QuantisedMatMul : public Case {
 public:
  explicit QuantisedMatMul(const Module& module)
      : kernel_(module.GetKernel("quantised_matmul")),
        device_a_(module.device(), a_),
        device_b_(module.device(), b_),
        device_scale_a_(module.device(), scale_a_),
        device_scale_b_(module.device(), scale_b_),
        product_(module.device(), kSize * kSize) {}
  void Launch() override {
    kernel_.Launch({kSize / kTile, kSize / kTile}, {kTile, kTile}, device_a_.at(), device_b_.at(),
                   device_scale_a_.at(), device_scale_b_.at(), product_.at(), kSize, kWords);
  }
  void Native() override {
    Multiply(reinterpret_cast<const signed char*>(a_.data()), reinterpret_cast<const signed char*>(b_.data()),
             scale_a_.data(), scale_b_.data(), expected_.data(), kSize);
  }
  std::optional<std::string> Compare() override { return Far(product_.Read(), expected_, 1e-6f); }

 private:
  static constexpr int kWords = kSize / 4;
  Kernel kernel_;
  std::vector<std::uint32_t> a_ = Words(kSize * kWords, 1);
  std::vector<std::uint32_t> b_ = Words(kSize * kWords, 2);
  std::vector<float> scale_a_ = Floats(kSize, 3, 0, 1);
  std::vector<float> scale_b_ = Floats(kSize, 4, 0, 1);
  std::vector<float> expected_ = std::vector<float>(kSize * kSize);
  Array<std::uint32_t> device_a_;
  Array<std::uint32_t> device_b_;
  Array<float> device_scale_a_;
  Array<float> device_scale_b_;
  Array<float> product_;
};

}  // namespace
}  // namespace quantised_matmul

extern const Subject kQuantisedMatmul;
const Subject kQuantisedMatmul = {"quantised_matmul", quantised_matmul::kPtx, true,
                                  Make<quantised_matmul::QuantisedMatMul>};

}  // namespace cuplex::bench
