// One step of heat flow in three dimensions. A block walks along z with a plane of the cuboid in shared
// memory and the planes before and behind it in registers.
#include "bench/softcuda/stencil3d/stencil3d.h"

using namespace cuplex::bench::stencil3d;

extern "C" __global__ void stencil3d(const float* in, float* out, int nx, int ny, int nz) {
  __shared__ float plane[kBlockY + 2][kBlockX + 2];
  const int x = blockIdx.x * kBlockX + threadIdx.x + 1;
  const int y = blockIdx.y * kBlockY + threadIdx.y + 1;
  const int tx = threadIdx.x + 1;
  const int ty = threadIdx.y + 1;
  const bool inside = x < nx - 1 && y < ny - 1;
  const int layer = nx * ny;
  int at = min(y, ny - 1) * nx + min(x, nx - 1);
  float before = in[at];
  float centre = in[at + layer];
  for (int z = 1; z < nz - 1; ++z) {
    at += layer;
    const float behind = in[at + layer];
    plane[ty][tx] = centre;
    if (threadIdx.x == 0) plane[ty][0] = in[at - 1];
    if (threadIdx.x == kBlockX - 1 && inside) plane[ty][kBlockX + 1] = in[at + 1];
    if (threadIdx.y == 0) plane[0][tx] = in[at - nx];
    if (threadIdx.y == kBlockY - 1 && inside) plane[kBlockY + 1][tx] = in[at + nx];
    __syncthreads();
    if (inside) {
      const float around = plane[ty][tx - 1] + plane[ty][tx + 1] + plane[ty - 1][tx] + plane[ty + 1][tx];
      out[at] = centre + kRate * (around + before + behind - 6.0f * centre);
    }
    __syncthreads();
    before = centre;
    centre = behind;
  }
}
