// The sizes of running sums.
#pragma once

namespace cuplex::bench::scan {

constexpr int kThreads = 512;
constexpr int kPerThread = 4;
constexpr int kChunk = kThreads * kPerThread;  // values a block scans
constexpr int kChunks = 1024;
constexpr int kCount = kChunk * kChunks;

}  // namespace cuplex::bench::scan
