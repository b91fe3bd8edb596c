#include "softcuda/jit/pace.h"

#include <algorithm>
#include <ctime>

namespace cuplex::softcuda {
namespace {

// How often a thread looks at its clocks; what it may be ahead before it sleeps; what it keeps of the time it
// had nothing to do; how long it sleeps without looking whether its grid is ended.
constexpr int64_t kLookEveryNs = 50'000, kAheadNs = 100'000, kMostCreditNs = 500'000, kNapNs = 5'000'000;

struct Part {
  const Pace* of = nullptr;
  int64_t begun = 0;   // processor time, where the grid began or was counted last
  int64_t looked = 0;  // wall time
  int64_t since = 0;   // wall time from which `used` counts
  int64_t used = 0;    // processor time in grids
};
thread_local Part part;

int64_t Read(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

void Count() {
  const int64_t now = Read(CLOCK_THREAD_CPUTIME_ID);
  part.used += now - part.begun;
  part.begun = now;
}

}  // namespace

void Pace::BeginPart() const {
  if (part.of != this) part = {.of = this, .since = Read(CLOCK_MONOTONIC)};
  part.begun = Read(CLOCK_THREAD_CPUTIME_ID);
}

void Pace::EndPart() const { Count(); }

void Pace::KeepPart(const std::atomic<bool>& stop) const {
  int64_t now = Read(CLOCK_MONOTONIC);
  if (now - part.looked < kLookEveryNs) return;
  part.looked = now;
  Count();
  // The time at which what was used is what was allowed.
  const auto needed = static_cast<int64_t>(static_cast<double>(part.used) / duty_);
  if (part.since + needed < now - kMostCreditNs) part.since = now - kMostCreditNs - needed;
  const int64_t until = part.since + needed;
  if (until - now < kAheadNs) return;
  while (now < until && !stop.load(std::memory_order_relaxed)) {
    const int64_t wake = std::min(until, now + kNapNs);
    const timespec at = {wake / 1'000'000'000, wake % 1'000'000'000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
    now = Read(CLOCK_MONOTONIC);
  }
}

}  // namespace cuplex::softcuda
