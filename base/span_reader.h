// SpanReader: reads values out of a byte span and cannot run past its end. One thread at a time; owns
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace cuplex {

class SpanReader {
 public:
  explicit SpanReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t left() const { return bytes_.size() - at_; }
  size_t at() const { return at_; }

  /// Copies a T out; nullopt, and nothing consumed, where fewer than sizeof(T) bytes are left.
  template <typename T>
  std::optional<T> Read() {
    static_assert(std::is_trivially_copyable_v<T>);
    if (left() < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  /// The next n bytes, not copied; nullopt, and nothing consumed, where fewer are left.
  std::optional<std::span<const std::byte>> Bytes(uint64_t n) {
    if (n > left()) return std::nullopt;
    auto out = bytes_.subspan(at_, n);
    at_ += n;
    return out;
  }

  /// Skips to the next multiple of `alignment` (a power of two) from the span's start.
  bool Align(size_t alignment) {
    size_t to = (at_ + alignment - 1) & ~(alignment - 1);
    if (to > bytes_.size()) return false;
    at_ = to;
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

}  // namespace cuplex
