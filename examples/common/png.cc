#include "examples/common/png.h"

#include <png.h>

#include "examples/common/program.h"

namespace cuplex::examples {

void WritePng(const std::string& path, unsigned width, unsigned height,
              const std::vector<std::uint8_t>& pixels) {
  if (pixels.size() != std::size_t{4} * width * height) {
    throw Failure("the picture has " + std::to_string(pixels.size()) + " bytes, expected 4 * " +
                  std::to_string(width) + " * " + std::to_string(height));
  }
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = PNG_FORMAT_RGBA;
  if (png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr) == 0) {
    throw Failure("the picture cannot be written to " + path + ": " + image.message);
  }
}

}  // namespace cuplex::examples
