#include "bench/softcuda/stencil2d/stencil2d.h"

#include "bench/softcuda/stencil2d/stencil2d_ptx.h"
#include "bench/softcuda/subject.h"

namespace cuplex::bench {
namespace stencil2d {
namespace {

void Sweep(const float* in, float* __restrict out, int width, int height) {
  for (int y = 0; y < height; ++y) {
    const float* row = in + y * width;
    float* to = out + y * width;
    if (y == 0 || y == height - 1) {
      for (int x = 0; x < width; ++x) to[x] = row[x];
      continue;
    }
    to[0] = row[0];
    for (int x = 1; x < width - 1; ++x) {
      to[x] = row[x] + kRate * (row[x - 1] + row[x + 1] + row[x - width] + row[x + width] - 4.0f * row[x]);
    }
    to[width - 1] = row[width - 1];
  }
}

class Stencil : public Case {
 public:
  explicit Stencil(const Module& module)
      : kernel_(module.GetKernel("stencil2d")),
        device_in_(module.device(), in_),
        out_(module.device(), expected_.size()) {}
  void Launch() override {
    kernel_.Launch({kWidth / kBlockX, kHeight / kBlockY}, {kBlockX, kBlockY}, device_in_.at(), out_.at(),
                   kWidth, kHeight);
  }
  void Native() override { Sweep(in_.data(), expected_.data(), kWidth, kHeight); }
  std::optional<std::string> Compare() override { return Far(out_.Read(), expected_, 1e-6f); }

 private:
  Kernel kernel_;
  std::vector<float> in_ = Floats(kWidth * kHeight, 1);
  std::vector<float> expected_ = std::vector<float>(kWidth * kHeight);
  Array<float> device_in_;
  Array<float> out_;
};

}  // namespace
}  // namespace stencil2d

extern const Subject kStencil2d;
const Subject kStencil2d = {"stencil2d", stencil2d::kPtx, true, Make<stencil2d::Stencil>};

}  // namespace cuplex::bench
