// Writing a picture as a PNG file. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cuplex::examples {

/// `pixels` holds width * height pixels of four bytes, red, green, blue, alpha, row by row from the top.
/// Throws Failure if they are fewer or more, or if the file cannot be written.
void WritePng(const std::string& path, unsigned width, unsigned height,
              const std::vector<std::uint8_t>& pixels);

}  // namespace cuplex::examples
