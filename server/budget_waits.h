// BudgetWaits: allocations that wait for their tenant's memory budget instead of failing (policy: `on_oom:
// wait`). Reactor's thread.
//
// Who has waited longest for a budget has it first. Nothing waits for more than the budget can ever be.
#pragma once

#include <cstdint>
#include <functional>
#include <list>

#include "server/ledger.h"

namespace cuplex::server {

class BudgetWaits {
 public:
  struct Wait {
    const void* owner = nullptr;  // for Forget
    const Holding* holding = nullptr;
    uint64_t bytes = 0;
    int64_t until_ns = 0;
    std::function<void(bool enough)> then;  // once: the bytes are free now, or the time is over
  };

  void Add(Wait wait) { waits_.push_back(std::move(wait)); }
  /// Drops what an owner waits for, uncalled.
  void Forget(const void* owner);

  /// Calls those whose time has come. True where there were any.
  bool Look(int64_t now_ns);
  /// When Look has something to do by the clock alone; INT64_MAX: never.
  int64_t NextNs() const;
  bool empty() const { return waits_.empty(); }

 private:
  std::list<Wait> waits_;  // in the order in which they came
};

}  // namespace cuplex::server
