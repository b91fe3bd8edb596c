// The sizes of a step of gravity.
#pragma once

namespace cuplex::bench::nbody {

constexpr int kBodies = 2048;
constexpr int kThreads = 256;
constexpr float kSoftening = 0.01f;  // added to each squared distance

}  // namespace cuplex::bench::nbody
