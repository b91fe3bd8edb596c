// The sizes of a dartboard.
#pragma once

namespace cuplex::bench::monte_carlo {

constexpr int kThreads = 256;
constexpr int kBlocks = 64;
constexpr int kStreams = kThreads * kBlocks;  // sequences of random numbers, one a thread
constexpr int kDarts = 512;                   // a sequence

}  // namespace cuplex::bench::monte_carlo
