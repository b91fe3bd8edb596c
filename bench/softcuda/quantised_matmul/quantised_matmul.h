// The sizes of the product of two matrices of bytes.
#pragma once

namespace cuplex::bench::quantised_matmul {

constexpr int kSize = 384;  // rows, columns and inner length; a multiple of 4 * kTile
constexpr int kTile = 16;

}  // namespace cuplex::bench::quantised_matmul
