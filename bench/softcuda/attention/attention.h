// The sizes of attention.
#pragma once

namespace cuplex::bench::attention {

constexpr int kHeads = 4;
constexpr int kLength = 256;  // queries, and keys, of a head
constexpr int kWidth = 64;    // elements of a query, a key, a value
constexpr int kTile = 32;     // keys in shared memory
constexpr int kThreads = 64;  // queries of a block
constexpr float kScale = 0.125f;

}  // namespace cuplex::bench::attention
