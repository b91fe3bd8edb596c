// ImageStore: the module images of one tenant, known by their content. Reactor's thread.
//
// A client offers a hash and a length; what the tenant has sent before need not travel again. The hash is
// checked against the bytes when the last piece has come, so that nobody can put other bytes under it.
// Another tenant's images are not seen: whether somebody else uses a module is no one's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace cuplex::server {

struct ImageKey {
  uint64_t low = 0;  // XXH3-128 of the bytes
  uint64_t high = 0;
  auto operator<=>(const ImageKey&) const = default;
};
ImageKey HashImage(std::span<const std::byte> bytes);

class ImageStore {
 public:
  using Image = std::shared_ptr<const std::string>;

  /// At most `most_bytes` are kept, one image being at most as long; the one not used for longest goes first.
  explicit ImageStore(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  /// The image, or nullptr.
  Image Find(ImageKey key);
  void Add(ImageKey key, std::string bytes);
  uint64_t most_bytes() const { return most_bytes_; }
  uint64_t bytes() const { return bytes_; }

 private:
  struct Row {
    ImageKey key;
    Image image;
  };
  uint64_t most_bytes_;
  uint64_t bytes_ = 0;
  std::list<Row> rows_;  // last used first
  std::map<ImageKey, std::list<Row>::iterator> by_key_;
};

/// The images that one session is sending. At most one hash at a time can be in the making for each of a few
/// threads; their bytes together stay below the store's bound.
class ImageUploads {
 public:
  static constexpr size_t kMost = 16;

  /// True where the store has it. Otherwise an upload begins, from offset 0; one of the same hash begins
  /// anew.
  Result<bool> Offer(ImageStore& store, ImageKey key, uint64_t image_bytes);
  /// The next piece. Errors end this upload: a piece out of order, bytes past the length, or, at the end,
  /// bytes that do not have the hash.
  Status Write(ImageStore& store, ImageKey key, uint64_t offset, std::span<const std::byte> data);

 private:
  struct Upload {
    uint64_t image_bytes = 0;
    std::string bytes;
  };
  std::map<ImageKey, Upload> uploads_;
};

}  // namespace cuplex::server
