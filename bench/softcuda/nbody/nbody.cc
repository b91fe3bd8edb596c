#include "bench/softcuda/nbody/nbody.h"

#include "bench/softcuda/nbody/nbody_ptx.h"
#include "bench/softcuda/subject.h"

namespace cuplex::bench {
namespace nbody {
namespace {

struct Bodies {
  std::vector<float> x, y, z, mass;
};

void Accelerate(const Bodies& bodies, float* accelerations) {
#pragma clang fp reassociate(on)
  const int count = static_cast<int>(bodies.x.size());
  const float* x = bodies.x.data();
  const float* y = bodies.y.data();
  const float* z = bodies.z.data();
  const float* mass = bodies.mass.data();
  for (int i = 0; i < count; ++i) {
    float ax = 0;
    float ay = 0;
    float az = 0;
    for (int j = 0; j < count; ++j) {
      const float dx = x[j] - x[i];
      const float dy = y[j] - y[i];
      const float dz = z[j] - z[i];
      const float inverse = 1.0f / std::sqrt(dx * dx + dy * dy + dz * dz + kSoftening);
      const float pull = mass[j] * inverse * inverse * inverse;
      ax += dx * pull;
      ay += dy * pull;
      az += dz * pull;
    }
    accelerations[4 * i] = ax;
    accelerations[4 * i + 1] = ay;
    accelerations[4 * i + 2] = az;
    accelerations[4 * i + 3] = 0;
  }
}

Bodies Split(const std::vector<float>& fours) {
  Bodies bodies;
  for (std::size_t i = 0; i < fours.size(); i += 4) {
    bodies.x.push_back(fours[i]);
    bodies.y.push_back(fours[i + 1]);
    bodies.z.push_back(fours[i + 2]);
    bodies.mass.push_back(fours[i + 3]);
  }
  return bodies;
}

class NBody : public Case {
 public:
  explicit NBody(const Module& module)
      : kernel_(module.GetKernel("nbody")),
        device_bodies_(module.device(), fours_),
        accelerations_(module.device(), 4 * kBodies) {}
  void Launch() override {
    kernel_.Launch({kBodies / kThreads}, {kThreads}, device_bodies_.at(), accelerations_.at(), kBodies);
  }
  void Native() override { Accelerate(bodies_, expected_.data()); }
  std::optional<std::string> Compare() override { return Far(accelerations_.Read(), expected_, 1e-3f); }

 private:
  Kernel kernel_;
  std::vector<float> fours_ = Floats(4 * kBodies, 1, 0, 1);
  Bodies bodies_ = Split(fours_);
  std::vector<float> expected_ = std::vector<float>(4 * kBodies);
  Array<float> device_bodies_;
  Array<float> accelerations_;
};

}  // namespace
}  // namespace nbody

extern const Subject kNbody;
const Subject kNbody = {"nbody", nbody::kPtx, false, Make<nbody::NBody>};

}  // namespace cuplex::bench
