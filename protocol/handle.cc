#include "protocol/handle.h"

namespace cuplex {

Handle HandleSource::Take() {
  std::lock_guard lock(mutex_);
  if (!free_.empty()) {
    Handle h = free_.back();
    free_.pop_back();
    return h;
  }
  return next_ < kMaxHandleId ? MakeHandle(next_++, 0) : 0;
}

void HandleSource::Return(Handle h) {
  std::lock_guard lock(mutex_);
  free_.push_back(MakeHandle(HandleId(h), HandleGeneration(h) + 1));
}

}  // namespace cuplex
