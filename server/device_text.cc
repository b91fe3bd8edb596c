#include "server/device_text.h"

#include <algorithm>
#include <utility>

namespace cuplex::server {

void TextBox::Put(TextStream stream, const char* text, size_t bytes) {
  std::lock_guard hold(lock_);
  if (bytes > most_) text += bytes - most_, bytes = most_;
  if (!bytes) return;
  pieces_.push_back({stream, std::string(text, bytes)});
  bytes_ += bytes;
  DropOldest();
  any_.store(true, std::memory_order_release);
}

void TextBox::DropOldest() {
  while (bytes_ > most_ && !pieces_.empty()) {
    bytes_ -= pieces_.front().text.size();
    pieces_.pop_front();
  }
}

TextBox::Piece TextBox::Take(size_t most) {
  std::lock_guard hold(lock_);
  Piece out;
  while (!pieces_.empty() && out.text.size() < most) {
    Piece& front = pieces_.front();
    if (!out.text.empty() && front.stream != out.stream) break;
    out.stream = front.stream;
    const size_t n = std::min(most - out.text.size(), front.text.size());
    out.text.append(front.text, 0, n);
    bytes_ -= n;
    if (n == front.text.size()) {
      pieces_.pop_front();
    } else {
      front.text.erase(0, n);
    }
  }
  if (pieces_.empty()) any_.store(false, std::memory_order_release);
  return out;
}

void TextBox::SetMost(size_t bytes) {
  std::lock_guard hold(lock_);
  most_ = std::min(bytes, kMost);
  DropOldest();
}

std::shared_ptr<TextBox> DeviceTexts::Open(CUcontext context) {
  auto box = std::make_shared<TextBox>();
  std::lock_guard hold(lock_);
  boxes_[context] = box;
  return box;
}

void DeviceTexts::Close(CUcontext context) {
  std::lock_guard hold(lock_);
  boxes_.erase(context);
}

void DeviceTexts::Receive(void* user, CUcontext context, TextStream stream, const char* text, size_t bytes) {
  auto& texts = *static_cast<DeviceTexts*>(user);
  std::shared_ptr<TextBox> box;
  {
    std::lock_guard hold(texts.lock_);
    if (auto at = texts.boxes_.find(context); at != texts.boxes_.end()) box = at->second;
  }
  if (box) box->Put(stream, text, bytes);
}

}  // namespace cuplex::server
