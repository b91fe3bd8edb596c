// The sizes of a sum.
#pragma once

namespace cuplex::bench::reduction {

constexpr int kCount = 4 << 20;
constexpr int kThreads = 256;
constexpr int kBlocks = 512;

}  // namespace cuplex::bench::reduction
