#include "client/runtime/image.h"

#include <cstdint>
#include <cstring>

#include <fmt/format.h>

namespace cuplex::runtime {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243b1;
constexpr uint32_t kContainerMagic = 0xba55ed50;

struct Wrapper {
  uint32_t magic;
  uint32_t version;  // 1; 2 where device code was linked, with the unlinked containers behind `rest`
  const void* container;
  const void* rest;
};

}  // namespace

std::unique_ptr<Image> ReadImage(const void* wrapper_address) {
  auto image = std::make_unique<Image>();
  if (!wrapper_address) {
    image->defect = "A fat binary was registered with a null address.";
    return image;
  }
  Wrapper wrapper;
  memcpy(&wrapper, wrapper_address, sizeof(wrapper));
  if (wrapper.magic != kWrapperMagic || wrapper.version < 1 || wrapper.version > 2 || !wrapper.container) {
    image->defect = fmt::format(
        "A fat binary was registered whose wrapper begins with {:#010x}, version {}; {:#010x}, version 1 or "
        "2, was expected.",
        wrapper.magic, wrapper.version, kWrapperMagic);
    return image;
  }
  uint32_t magic;
  memcpy(&magic, wrapper.container, sizeof(magic));
  if (magic != kContainerMagic) {
    image->defect =
        fmt::format("A fat binary was registered that begins with {:#010x}; {:#010x} was expected.", magic,
                    kContainerMagic);
    return image;
  }
  image->container = wrapper.container;
  image->linked = wrapper.version == 2;
  return image;
}

}  // namespace cuplex::runtime
