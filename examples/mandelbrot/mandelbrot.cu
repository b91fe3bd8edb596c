// A thread paints a pixel. The palette is in constant memory; colours between two of its entries are mixed.

#include <cstdint>
#include <cstdio>

#include "examples/common/png.h"
#include "examples/common/runtime.h"
#include "examples/mandelbrot/mandelbrot_reference.h"

using cuplex::examples::mandelbrot::kColours;
using cuplex::examples::mandelbrot::kEscape;
using cuplex::examples::mandelbrot::View;

extern "C" {
__constant__ uchar4 palette[kColours];
}

namespace {

__device__ unsigned char Mix(unsigned char from, unsigned char to, float share) {
  return static_cast<unsigned char>(__float2int_rn(from + share * (static_cast<float>(to) - from)));
}

}  // namespace

// The orbit is computed with every operation rounded by itself, never fused: near the edge of the set the
// slightest difference grows into another picture.
extern "C" __global__ void mandelbrot(uchar4* pixels, unsigned width, unsigned height, View view) {
  const unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= width || row >= height) return;

  const float c_real = __fadd_rn(view.left, __fmul_rn(view.step, static_cast<float>(column)));
  const float c_imaginary = __fsub_rn(view.top, __fmul_rn(view.step, static_cast<float>(row)));
  float real = c_real;
  float imaginary = c_imaginary;
  float real_squared = __fmul_rn(real, real);
  float imaginary_squared = __fmul_rn(imaginary, imaginary);
  int iterations = 0;
  while (iterations < view.most && __fadd_rn(real_squared, imaginary_squared) < kEscape) {
    imaginary = __fadd_rn(2 * __fmul_rn(real, imaginary), c_imaginary);
    real = __fadd_rn(__fsub_rn(real_squared, imaginary_squared), c_real);
    real_squared = __fmul_rn(real, real);
    imaginary_squared = __fmul_rn(imaginary, imaginary);
    ++iterations;
  }

  uchar4 colour = make_uchar4(0, 0, 0, 255);
  if (iterations < view.most) {
    // How far beyond the limit it went tells how much of the last iteration was needed.
    const float smooth = iterations + 5 - log2f(log2f(__fadd_rn(real_squared, imaginary_squared)));
    const float place = view.cycles * log2f(smooth);
    const float whole = floorf(place);
    const unsigned index = static_cast<unsigned>(whole);
    const uchar4 from = palette[index % kColours];
    const uchar4 to = palette[(index + 1) % kColours];
    const float share = place - whole;
    colour = make_uchar4(Mix(from.x, to.x, share), Mix(from.y, to.y, share), Mix(from.z, to.z, share), 255);
  }
  pixels[row * width + column] = colour;
}

namespace cuplex::examples::mandelbrot {
namespace {

bool Run(const Options& options) {
  const unsigned width = static_cast<unsigned>(options.size);
  const unsigned height = Height(width);
  const Palette colours = MakePalette();
  const std::vector<std::uint8_t> expected = Reference(width, colours);
  std::printf("painting %u x %u pixels in blocks of %u x %u threads\n", width, height, kBlockWidth,
              kBlockHeight);

  Check(cudaMemcpyToSymbol(::palette, colours.data(), sizeof(colours)), "cudaMemcpyToSymbol");
  const DeviceArray<std::uint8_t> canvas(expected.size());

  std::vector<std::uint8_t> pixels(expected.size());
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "paint, copy out");
      const dim3 grid(Blocks(width, kBlockWidth), Blocks(height, kBlockHeight));
      ::mandelbrot<<<grid, dim3(kBlockWidth, kBlockHeight)>>>(reinterpret_cast<uchar4*>(canvas.get()), width,
                                                              height, MakeView(width));
      CheckLaunch("mandelbrot");
      canvas.CopyTo(&pixels);
    }
    difference = Compare(pixels, expected);
  }
  WritePng(options.output, width, height, pixels);
  std::printf("wrote %s\n", options.output.c_str());
  return Report(kDescription.name, "pixels", difference, pixels);
}

}  // namespace
}  // namespace cuplex::examples::mandelbrot

int main(int argc, char** argv) {
  namespace job = cuplex::examples::mandelbrot;
  return cuplex::examples::RunProgram(argc, argv, job::kDescription, job::Run);
}
