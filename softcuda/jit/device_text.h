// DeviceText: what a context's kernels have printed and nobody has taken yet: a queue of bounded length,
// which drops its oldest text where more comes (CU_LIMIT_PRINTF_FIFO_SIZE). Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/device_text.h"

namespace cuplex::softcuda {

class DeviceText {
 public:
  struct Piece {
    TextStream stream = TextStream::kOutput;
    std::string text;
  };

  /// In bytes.
  explicit DeviceText(size_t most) : most_(most) {}

  void SetMost(size_t bytes);
  /// Appends; a piece longer than all the room keeps its end.
  void Put(TextStream stream, std::string_view text);
  bool empty() const { return !any_.load(std::memory_order_acquire); }
  /// All there is, oldest first; neighbours of one stream are one piece.
  std::vector<Piece> Take();

 private:
  void DropOldest();  // under lock_

  std::mutex lock_;
  std::deque<Piece> pieces_;
  size_t bytes_ = 0;
  size_t most_;
  std::atomic<bool> any_{false};
};

}  // namespace cuplex::softcuda
