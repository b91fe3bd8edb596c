// Clock: the time, passed in so that tests can set it. Any thread.
#pragma once

#include <chrono>
#include <cstdint>

namespace cuplex {

inline constexpr int64_t kMicrosecondNs = 1'000;
inline constexpr int64_t kMillisecondNs = 1'000'000;
inline constexpr int64_t kSecondNs = 1'000'000'000;

class Clock {
 public:
  virtual ~Clock() = default;
  /// Nanoseconds of a clock that never runs backwards.
  virtual int64_t NowNs() const = 0;
};

class SteadyClock final : public Clock {
 public:
  int64_t NowNs() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

class ManualClock final : public Clock {
 public:
  int64_t NowNs() const override { return now_ns_; }
  void Advance(int64_t ns) { now_ns_ += ns; }
  void AdvanceTo(int64_t ns) { now_ns_ = ns > now_ns_ ? ns : now_ns_; }

 private:
  int64_t now_ns_ = 0;
};

}  // namespace cuplex
