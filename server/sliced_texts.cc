#include "server/sliced_texts.h"

#include <span>
#include <utility>

#include "cuda/fatbin.h"
#include "ptx/parser.h"

namespace cuplex::server {
namespace {

constexpr uint64_t kRowBytes = 512;  // of what is kept beside the text

Result<std::string> PtxOf(std::string_view image, uint32_t arch) {
  const auto bytes = std::as_bytes(std::span(image));
  switch (KindOfImage(bytes)) {
    case ImageKind::kPtx:
      return std::string(image.substr(0, image.find('\0')));
    case ImageKind::kFatbin:
      return PtxOfFatbin(bytes, arch);
    default:
      return Fail(Blame::kUnsupported, "the module is machine code alone; PTX was expected.");
  }
}

}  // namespace

std::shared_ptr<const SlicedTexts::Made> SlicedTexts::Find(const Key& key) {
  std::scoped_lock hold(lock_);
  const auto at = by_key_.find(key);
  if (at == by_key_.end()) return nullptr;
  rows_.splice(rows_.begin(), rows_, at->second);
  return at->second->made;
}

Result<std::shared_ptr<const SlicedTexts::Made>> SlicedTexts::Get(std::string_view image, uint32_t arch,
                                                                  std::string_view name) {
  Key key(HashImage(std::as_bytes(std::span(image))), arch, name);
  if (auto known = Find(key)) return known;
  TRY(const std::string text, PtxOf(image, arch));
  TRY(const ptx::Module parsed, ptx::Parse(text));
  const std::string_view wanted[] = {name};
  TRY(ptx::SlicedModule sliced, ptx::Slice(parsed, wanted));
  auto made = std::make_shared<const Made>(Made{std::move(sliced.kernels.at(0)), std::move(sliced.text)});
  const uint64_t size = made->text.size() + kRowBytes;
  std::scoped_lock hold(lock_);
  ++made_;
  if (size > most_bytes_ || by_key_.contains(key)) return made;  // another thread was faster
  rows_.push_front({key, made});
  by_key_.emplace(std::move(key), rows_.begin());
  bytes_ += size;
  while (bytes_ > most_bytes_) {
    bytes_ -= rows_.back().made->text.size() + kRowBytes;
    by_key_.erase(rows_.back().key);
    rows_.pop_back();
  }
  return made;
}

uint64_t SlicedTexts::made() const {
  std::scoped_lock hold(lock_);
  return made_;
}

uint64_t SlicedTexts::bytes() const {
  std::scoped_lock hold(lock_);
  return bytes_;
}

}  // namespace cuplex::server
