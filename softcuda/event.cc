#include "softcuda/event.h"

namespace cuplex::softcuda {

Event::Mark Event::mark() const {
  std::lock_guard lock(lock_);
  return mark_;
}

void Event::Set(Ref<Stream> stream, uint64_t number, uint64_t record) {
  Ref<Stream> before;  // dropped after the lock
  std::lock_guard lock(lock_);
  if (record < mark_.record) return;
  before = std::exchange(mark_.stream, std::move(stream));
  mark_.number = number;
  mark_.record = record;
}

void Event::Stamp(uint64_t record, int64_t now_ns) {
  std::lock_guard lock(lock_);
  if (record < stamped_) return;
  stamped_ = record;
  time_ns_.store(now_ns, std::memory_order_release);
}

}  // namespace cuplex::softcuda
