// DeviceTexts: what kernels have printed, by the driver's context, until the clients whose contexts they are
// take it.
//
// Drivers that can say whose text it is give it to Receive (cuda/device_text.h), on threads of their own; the
// rest is the reactor's thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "cuda/device_text.h"

namespace cuplex::server {

/// Of one context: a queue of bounded length, which drops its oldest text where more comes.
class TextBox {
 public:
  static constexpr size_t kFirst = size_t{1} << 20;
  /// Bytes that a client can make the server keep for one context, at most.
  static constexpr size_t kMost = size_t{4} << 20;

  struct Piece {
    TextStream stream = TextStream::kOutput;
    std::string text;
  };

  bool empty() const { return !any_.load(std::memory_order_acquire); }
  void Put(TextStream stream, const char* text, size_t bytes);
  /// The oldest text, of one stream and at most `most` bytes; empty where there is none.
  Piece Take(size_t most);
  void SetMost(size_t bytes);

 private:
  void DropOldest();  // under lock_

  std::mutex lock_;
  std::deque<Piece> pieces_;
  size_t bytes_ = 0;
  size_t most_ = kFirst;
  std::atomic<bool> any_{false};
};

class DeviceTexts {
 public:
  /// From here on the context's text is kept.
  std::shared_ptr<TextBox> Open(CUcontext context);
  void Close(CUcontext context);

  static DeviceTextReceiver Receive;  // `user` is the object

 private:
  std::mutex lock_;
  std::map<CUcontext, std::shared_ptr<TextBox>> boxes_;
};

}  // namespace cuplex::server
