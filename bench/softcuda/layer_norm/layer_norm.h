// The sizes of normalising rows.
#pragma once

namespace cuplex::bench::layer_norm {

constexpr int kRows = 2048;
constexpr int kColumns = 1024;
constexpr int kThreads = 256;
constexpr float kEpsilon = 1e-5f;

}  // namespace cuplex::bench::layer_norm
