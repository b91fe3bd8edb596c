#include "bench/softcuda/stencil3d/stencil3d.h"

#include "bench/softcuda/stencil3d/stencil3d_ptx.h"
#include "bench/softcuda/subject.h"

namespace cuplex::bench {
namespace stencil3d {
namespace {

void Sweep(const float* in, float* __restrict out, int nx, int ny, int nz) {
  const int layer = nx * ny;
  for (int z = 1; z < nz - 1; ++z) {
    for (int y = 1; y < ny - 1; ++y) {
      const float* row = in + z * layer + y * nx;
      float* to = out + z * layer + y * nx;
      for (int x = 1; x < nx - 1; ++x) {
        const float around = row[x - 1] + row[x + 1] + row[x - nx] + row[x + nx];
        to[x] = row[x] + kRate * (around + row[x - layer] + row[x + layer] - 6.0f * row[x]);
      }
    }
  }
}

class Stencil : public Case {
 public:
  explicit Stencil(const Module& module)
      : kernel_(module.GetKernel("stencil3d")),
        device_in_(module.device(), in_),
        out_(module.device(), expected_) {}
  void Launch() override {
    kernel_.Launch({kBlocksX, kBlocksY}, {kBlockX, kBlockY}, device_in_.at(), out_.at(), kSide, kSide, kSide);
  }
  void Native() override { Sweep(in_.data(), expected_.data(), kSide, kSide, kSide); }
  std::optional<std::string> Compare() override { return Far(out_.Read(), expected_, 1e-6f); }

 private:
  static constexpr unsigned kBlocksX = (kSide - 2 + kBlockX - 1) / kBlockX;
  static constexpr unsigned kBlocksY = (kSide - 2 + kBlockY - 1) / kBlockY;
  Kernel kernel_;
  std::vector<float> in_ = Floats(kSide * kSide * kSide, 1);
  std::vector<float> expected_ = std::vector<float>(kSide * kSide * kSide);  // zero on the outer faces
  Array<float> device_in_;
  Array<float> out_;
};

}  // namespace
}  // namespace stencil3d

extern const Subject kStencil3d;
const Subject kStencil3d = {"stencil3d", stencil3d::kPtx, true, Make<stencil3d::Stencil>};

}  // namespace cuplex::bench
