#include "server/budget_waits.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace cuplex::server {

void BudgetWaits::Forget(const void* owner) {
  waits_.remove_if([&](const Wait& wait) { return wait.owner == owner; });
}

bool BudgetWaits::Look(int64_t now_ns) {
  bool any = false;
  // A call takes from the budget and may end others: after each it is looked at from the front again.
  for (bool called = true; called;) {
    called = false;
    std::vector<const Holding*> in_front;  // somebody waits for these already
    for (auto wait = waits_.begin(); wait != waits_.end(); ++wait) {
      const bool first = std::find(in_front.begin(), in_front.end(), wait->holding) == in_front.end();
      const bool enough = first && wait->bytes <= wait->holding->free();
      if (!enough && now_ns < wait->until_ns && wait->bytes <= wait->holding->limit()) {
        in_front.push_back(wait->holding);
        continue;
      }
      const auto then = std::move(wait->then);
      waits_.erase(wait);
      then(enough);
      any = called = true;
      break;
    }
  }
  return any;
}

int64_t BudgetWaits::NextNs() const {
  int64_t next = INT64_MAX;
  for (const Wait& wait : waits_) next = std::min(next, wait.until_ns);
  return next;
}

}  // namespace cuplex::server
