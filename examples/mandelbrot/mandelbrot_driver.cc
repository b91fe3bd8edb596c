// mandelbrot.cu through the driver API.

#include <cstdio>

#include "examples/common/driver.h"
#include "examples/common/png.h"
#include "examples/mandelbrot/mandelbrot_ptx.h"
#include "examples/mandelbrot/mandelbrot_reference.h"

namespace cuplex::examples::mandelbrot {
namespace {

bool Run(const Options& options) {
  const unsigned width = static_cast<unsigned>(options.size);
  const unsigned height = Height(width);
  const Palette colours = MakePalette();
  const std::vector<std::uint8_t> expected = Reference(width, colours);
  std::printf("painting %u x %u pixels in blocks of %u x %u threads\n", width, height, kBlockWidth,
              kBlockHeight);

  const Driver cu;
  const Context context(cu);
  const Module module(cu, kPtx);
  const Kernel kernel = module.GetKernel("mandelbrot");
  cu.MemcpyHtoD(module.GetGlobal("palette", sizeof(colours)), colours.data(), sizeof(colours));
  const DeviceArray<std::uint8_t> canvas(cu, expected.size());

  std::vector<std::uint8_t> pixels(expected.size());
  std::optional<Difference> difference;
  for (int round = 0; round < options.repeat && !difference; ++round) {
    {
      const Timed timed(options, "paint, copy out");
      kernel.Launch({Blocks(width, kBlockWidth), Blocks(height, kBlockHeight)}, {kBlockWidth, kBlockHeight},
                    0, nullptr, canvas.address(), width, height, MakeView(width));
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
