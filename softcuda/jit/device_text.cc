#include "softcuda/jit/device_text.h"

#include <utility>

namespace cuplex::softcuda {

void DeviceText::SetMost(size_t bytes) {
  std::lock_guard hold(lock_);
  most_ = bytes;
  DropOldest();
}

void DeviceText::DropOldest() {
  while (bytes_ > most_ && !pieces_.empty()) {
    bytes_ -= pieces_.front().text.size();
    pieces_.pop_front();
  }
}

void DeviceText::Put(TextStream stream, std::string_view text) {
  std::lock_guard hold(lock_);
  if (text.size() > most_) text.remove_prefix(text.size() - most_);
  if (text.empty()) return;
  pieces_.push_back({stream, std::string(text)});
  bytes_ += text.size();
  DropOldest();
  any_.store(true, std::memory_order_release);
}

std::vector<DeviceText::Piece> DeviceText::Take() {
  std::vector<Piece> out;
  std::lock_guard hold(lock_);
  for (Piece& p : pieces_) {
    if (!out.empty() && out.back().stream == p.stream) {
      out.back().text += p.text;
    } else {
      out.push_back(std::move(p));
    }
  }
  pieces_.clear();
  bytes_ = 0;
  any_.store(false, std::memory_order_release);
  return out;
}

}  // namespace cuplex::softcuda
