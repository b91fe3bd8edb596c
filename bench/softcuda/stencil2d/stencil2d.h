// The sizes of one Jacobi sweep over a plane.
#pragma once

namespace cuplex::bench::stencil2d {

constexpr int kWidth = 2048;
constexpr int kHeight = 1024;
constexpr int kBlockX = 32;
constexpr int kBlockY = 8;
constexpr float kRate = 0.2f;

}  // namespace cuplex::bench::stencil2d
