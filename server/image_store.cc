#include "server/image_store.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <utility>

namespace cuplex::server {

ImageKey HashImage(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

ImageStore::Image ImageStore::Find(ImageKey key) {
  auto at = by_key_.find(key);
  if (at == by_key_.end()) return nullptr;
  rows_.splice(rows_.begin(), rows_, at->second);
  return at->second->image;
}

void ImageStore::Add(ImageKey key, std::string bytes) {
  if (by_key_.contains(key) || bytes.size() > most_bytes_) return;
  while (bytes_ + bytes.size() > most_bytes_) {
    bytes_ -= rows_.back().image->size();
    by_key_.erase(rows_.back().key);
    rows_.pop_back();
  }
  bytes_ += bytes.size();
  rows_.push_front({key, std::make_shared<const std::string>(std::move(bytes))});
  by_key_.emplace(key, rows_.begin());
}

Result<bool> ImageUploads::Offer(ImageStore& store, ImageKey key, uint64_t image_bytes) {
  if (ImageStore::Image image = store.Find(key)) {
    if (image->size() == image_bytes) return true;
    return Fail(Blame::kCaller, "an image of {} bytes was offered under the hash of one of {} bytes.",
                image_bytes, image->size());
  }
  uploads_.erase(key);
  uint64_t announced = image_bytes;
  for (const auto& [other, upload] : uploads_) announced += upload.image_bytes;
  if (image_bytes == 0 || image_bytes > store.most_bytes() || announced > store.most_bytes() ||
      uploads_.size() >= kMost)
    return Fail(
        Blame::kExhausted,
        "an image of {} bytes was offered with {} others on their way, 1 to {} bytes in at most {} images "
        "were expected.",
        image_bytes, uploads_.size(), store.most_bytes(), kMost);
  uploads_[key].image_bytes = image_bytes;
  return false;
}

Status ImageUploads::Write(ImageStore& store, ImageKey key, uint64_t offset,
                           std::span<const std::byte> data) {
  auto at = uploads_.find(key);
  if (at == uploads_.end()) {
    if (store.Find(key)) return {};  // two threads sent the same image, and the other was done first
    return Fail(Blame::kCaller, "a piece of an image came that was not offered.");
  }
  Upload& upload = at->second;
  if (offset != upload.bytes.size() || data.size() > upload.image_bytes - upload.bytes.size()) {
    // The same for pieces of a twin: those that are there already are passed over.
    if (offset + data.size() <= upload.bytes.size()) return {};
    Error error =
        Fail(Blame::kCaller,
             "a piece of {} bytes at offset {} came for an image of {} bytes of which {} are there.",
             data.size(), offset, upload.image_bytes, upload.bytes.size());
    uploads_.erase(at);
    return error;
  }
  upload.bytes.append(reinterpret_cast<const char*>(data.data()), data.size());
  if (upload.bytes.size() < upload.image_bytes) return {};
  std::string bytes = std::move(upload.bytes);
  uploads_.erase(at);
  if (HashImage(std::as_bytes(std::span(bytes))) != key)
    return Fail(Blame::kCaller, "the {} bytes of an image do not have the hash that they were offered under.",
                bytes.size());
  store.Add(key, std::move(bytes));
  return {};
}

}  // namespace cuplex::server
