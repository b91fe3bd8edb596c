// Pause: one turn of a loop that waits for another processor. Any thread.
#pragma once

#include <chrono>
#include <cstdint>

namespace cuplex::softcuda {

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

inline int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Waits until `ready` or until `ns` have passed; what `ready` said last. Only where another processor can
/// make it true.
template <typename F>
bool SpinUntil(F&& ready, int64_t ns) {
  for (int i = 0; i < 32; ++i) {
    if (ready()) return true;
    Pause();
  }
  for (int64_t end = NowNs() + ns; NowNs() < end;) {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      Pause();
    }
  }
  return ready();
}

}  // namespace cuplex::softcuda
