// Image: the bytes of a module as a program gives them, and their way to the server. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "cuda/driver_types.h"

namespace cuplex::client {

class Session;

/// Views bytes that its maker keeps.
struct Image {
  std::span<const std::byte> bytes;
  uint64_t hash_low = 0;  // XXH3, 128 bits
  uint64_t hash_high = 0;
};

/// PTX text, a fatbin (also by its wrapper) or a cubin at an address of this process.
Result<Image> ImageFrom(const void* address);
/// The same where the extent is known.
Result<Image> ImageFrom(std::span<const std::byte> bytes);

/// Any bytes, to travel as an image does.
Image ImageOf(std::span<const std::byte> bytes);

/// Sees to it that the server holds the image: offers its hash, sends bytes only where they are not known.
CUresult Upload(Session& session, uint32_t context, const Image& image);

/// The bytes of a file; CUDA_ERROR_FILE_NOT_FOUND where it cannot be read.
CUresult ReadImageFile(const char* path, std::string* out);

}  // namespace cuplex::client
