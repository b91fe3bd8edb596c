// The sizes of a histogram of bytes.
#pragma once

namespace cuplex::bench::histogram {

constexpr int kCount = 4 << 20;  // bytes
constexpr int kBins = 256;
constexpr int kThreads = 256;
constexpr int kBlocks = 128;

}  // namespace cuplex::bench::histogram
