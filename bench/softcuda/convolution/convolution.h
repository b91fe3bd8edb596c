// The sizes of filtering a picture.
#pragma once

namespace cuplex::bench::convolution {

constexpr int kWidth = 1024;
constexpr int kHeight = 512;
constexpr int kRadius = 3;
constexpr int kFilter = 2 * kRadius + 1;
constexpr int kTile = 16;

}  // namespace cuplex::bench::convolution
