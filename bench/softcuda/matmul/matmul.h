// The sizes of the product of two square matrices.
#pragma once

namespace cuplex::bench::matmul {

constexpr int kSize = 384;  // rows and columns; a multiple of kTile
constexpr int kTile = 16;

}  // namespace cuplex::bench::matmul
