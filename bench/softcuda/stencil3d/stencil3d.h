// The sizes of one sweep over a cuboid.
#pragma once

namespace cuplex::bench::stencil3d {

constexpr int kSide = 160;  // points along each axis
constexpr int kBlockX = 32;
constexpr int kBlockY = 8;
constexpr float kRate = 0.1f;

}  // namespace cuplex::bench::stencil3d
