// The sizes of a sort by a bitonic network.
#pragma once

namespace cuplex::bench::bitonic_sort {

constexpr unsigned kCount = 1 << 16;
constexpr unsigned kThreads = 512;
constexpr unsigned kChunk = 2 * kThreads;  // keys in a block's shared memory

}  // namespace cuplex::bench::bitonic_sort
