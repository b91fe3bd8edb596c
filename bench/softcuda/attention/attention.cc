#include "bench/softcuda/attention/attention.h"

#include "bench/softcuda/attention/attention_ptx.h"
#include "bench/softcuda/subject.h"

namespace cuplex::bench {
namespace attention {
namespace {

void Attend(const float* queries, const float* keys, const float* values, float* out) {
#pragma clang fp reassociate(on)
  for (int head = 0; head < kHeads; ++head) {
    const int base = head * kLength * kWidth;
    for (int q = 0; q < kLength; ++q) {
      const float* query = queries + base + q * kWidth;
      float sum[kWidth] = {};
      float largest = -INFINITY;
      float total = 0;
      for (int begin = 0; begin < kLength; begin += kTile) {
        const float* key = keys + base + begin * kWidth;
        const float* value = values + base + begin * kWidth;
        float weights[kTile];
        float now = largest;
        for (int k = 0; k < kTile; ++k) {
          float score = 0;
          for (int i = 0; i < kWidth; ++i) score += query[i] * key[k * kWidth + i];
          weights[k] = score * kScale;
          now = weights[k] > now ? weights[k] : now;
        }
        for (int k = 0; k < kTile; ++k) weights[k] = std::exp(weights[k] - now);
        const float rescale = std::exp(largest - now);
        total *= rescale;
        for (int k = 0; k < kTile; ++k) total += weights[k];
        for (int i = 0; i < kWidth; ++i) sum[i] *= rescale;
        for (int k = 0; k < kTile; ++k) {
          for (int i = 0; i < kWidth; ++i) sum[i] += weights[k] * value[k * kWidth + i];
        }
        largest = now;
      }
      for (int i = 0; i < kWidth; ++i) out[base + q * kWidth + i] = sum[i] / total;
    }
  }
}

class Attention : public Case {
 public:
  explicit Attention(const Module& module)
      : kernel_(module.GetKernel("attention")),
        device_queries_(module.device(), queries_),
        device_keys_(module.device(), keys_),
        device_values_(module.device(), values_),
        out_(module.device(), kCount) {}
  void Launch() override {
    kernel_.Launch({kLength / kThreads, kHeads}, {kThreads}, device_queries_.at(), device_keys_.at(),
                   device_values_.at(), out_.at());
  }
  void Native() override { Attend(queries_.data(), keys_.data(), values_.data(), expected_.data()); }
  std::optional<std::string> Compare() override { return Far(out_.Read(), expected_, 1e-4f); }

 private:
  static constexpr int kCount = kHeads * kLength * kWidth;
  Kernel kernel_;
  std::vector<float> queries_ = Floats(kCount, 1);
  std::vector<float> keys_ = Floats(kCount, 2);
  std::vector<float> values_ = Floats(kCount, 3);
  std::vector<float> expected_ = std::vector<float>(kCount);
  Array<float> device_queries_;
  Array<float> device_keys_;
  Array<float> device_values_;
  Array<float> out_;
};

}  // namespace
}  // namespace attention

extern const Subject kAttention;
const Subject kAttention = {"attention", attention::kPtx, false, Make<attention::Attention>};

}  // namespace cuplex::bench
