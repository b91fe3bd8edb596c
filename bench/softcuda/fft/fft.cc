#include "bench/softcuda/fft/fft.h"

#include "bench/softcuda/fft/fft_ptx.h"
#include "bench/softcuda/subject.h"

namespace cuplex::bench {
namespace fft {
namespace {

struct Complex {
  float re, im;
};

// Where each point goes before the first step.
std::vector<int> Reversed() {
  std::vector<int> to(kPoints);
  for (int i = 0; i < kPoints; ++i) {
    for (int bit = 0; bit < kBits; ++bit) to[i] |= (i >> bit & 1) << (kBits - 1 - bit);
  }
  return to;
}

// Of unity, in the halves' order of every step: `half` of them begin at index `half`.
std::vector<Complex> RootsOfSteps() {
  std::vector<Complex> roots(kPoints);
  for (int half = 1; half < kPoints; half *= 2) {
    for (int i = 0; i < half; ++i) {
      const double angle = -M_PI * i / half;
      roots[half + i] = {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
    }
  }
  return roots;
}

std::vector<float> Roots() {
  std::vector<float> roots;
  for (int i = 0; i < kPoints / 2; ++i) {
    const double angle = -2 * M_PI * i / kPoints;
    roots.push_back(static_cast<float>(std::cos(angle)));
    roots.push_back(static_cast<float>(std::sin(angle)));
  }
  return roots;
}

void Transform(const Complex* in, Complex* out, const Complex* roots, const int* reversed) {
  for (int i = 0; i < kPoints; ++i) out[reversed[i]] = in[i];
  for (int half = 1; half < kPoints; half *= 2) {
    const Complex* root = roots + half;
    for (int begin = 0; begin < kPoints; begin += 2 * half) {
      Complex* __restrict low = out + begin;
      Complex* __restrict high = out + begin + half;
      for (int i = 0; i < half; ++i) {
        const Complex a = low[i];
        const float re = high[i].re * root[i].re - high[i].im * root[i].im;
        const float im = high[i].re * root[i].im + high[i].im * root[i].re;
        low[i] = {a.re + re, a.im + im};
        high[i] = {a.re - re, a.im - im};
      }
    }
  }
}

class Fft : public Case {
 public:
  explicit Fft(const Module& module)
      : kernel_(module.GetKernel("fft")),
        device_in_(module.device(), in_),
        device_roots_(module.device(), Roots()),
        out_(module.device(), expected_.size()) {}
  void Launch() override {
    kernel_.Launch({kBatch}, {kThreads}, device_in_.at(), out_.at(), device_roots_.at());
  }
  void Native() override {
    for (int row = 0; row < kBatch; ++row) {
      Transform(reinterpret_cast<const Complex*>(in_.data()) + row * kPoints,
                reinterpret_cast<Complex*>(expected_.data()) + row * kPoints, roots_.data(),
                reversed_.data());
    }
  }
  std::optional<std::string> Compare() override { return Far(out_.Read(), expected_, 1e-4f); }

 private:
  Kernel kernel_;
  std::vector<float> in_ = Floats(2 * kPoints * kBatch, 1);
  std::vector<Complex> roots_ = RootsOfSteps();
  std::vector<int> reversed_ = Reversed();
  std::vector<float> expected_ = std::vector<float>(2 * kPoints * kBatch);
  Array<float> device_in_;
  Array<float> device_roots_;
  Array<float> out_;
};

}  // namespace
}  // namespace fft

extern const Subject kFft;
const Subject kFft = {"fft", fft::kPtx, true, Make<fft::Fft>};

}  // namespace cuplex::bench
