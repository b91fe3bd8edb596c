// The sizes of one pass of a radix sort.
#pragma once

namespace cuplex::bench::radix_sort {

constexpr int kBits = 4;
constexpr int kDigits = 1 << kBits;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kChunk = 1024;  // keys of a block
constexpr int kChunks = 1024;
constexpr int kCount = kChunk * kChunks;
constexpr int kShift = 8;  // which bits are looked at
constexpr int kScanThreads = 1024;

}  // namespace cuplex::bench::radix_sort
