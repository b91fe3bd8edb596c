// One step of heat flow: each thread makes one point of the plane from itself and its four neighbours.
#include "bench/softcuda/stencil2d/stencil2d.h"

using namespace cuplex::bench::stencil2d;

extern "C" __global__ void stencil2d(const float* in, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const int at = y * width + x;
  if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
    out[at] = in[at];
    return;
  }
  const float centre = in[at];
  out[at] = centre + kRate * (in[at - 1] + in[at + 1] + in[at - width] + in[at + width] - 4.0f * centre);
}
