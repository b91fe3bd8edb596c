// The sizes of many Fourier transforms.
#pragma once

namespace cuplex::bench::fft {

constexpr int kBits = 10;
constexpr int kPoints = 1 << kBits;
constexpr int kThreads = kPoints / 2;
constexpr int kBatch = 256;

}  // namespace cuplex::bench::fft
