// Futex: waiting on a 32-bit word that other processes share, and waking those who wait. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace cuplex {

/// Waits while `*word == expected`, at most `timeout_ns` (negative: without bound). May return early; look
/// again.
void FutexWait(std::atomic<uint32_t>* word, uint32_t expected, int64_t timeout_ns);
/// Wakes up to `count` waiters.
void FutexWake(std::atomic<uint32_t>* word, int count);

/// One turn of a spin loop.
inline void SpinPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace cuplex
