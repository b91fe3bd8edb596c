// DeviceQueue: whose operations go to a device next, and what each tenant's cost. Reactor's thread.
//
// A turn is a batch of one tenant's operations, a few dozen or about a millisecond of foreseen time. Who has
// the next turn is decided by policies/turn.h. Where one tenant alone has work, turns follow each other
// without a gap; where several have, two turns together are on the device, so that it never runs dry and
// nobody waits long. A turn that goes on far longer than a turn should (an endless kernel) no longer counts
// among the two. docs/scheduling.md says how device time is measured and charged.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "cuda/driver_table.h"
#include "policies/turn.h"
#include "server/device_time.h"
#include "server/ledger.h"

namespace cuplex::server {

class Context;
struct Runner;

inline constexpr uint32_t kTurnOperations = 64;
inline constexpr uint64_t kTurnNs = 1'000'000;
inline constexpr uint64_t kAheadNs = 8'000'000;  // foreseen time that a lone tenant may have on the device
inline constexpr int kAheadTurns = 32;
inline constexpr int kSharedTurns = 2;
inline constexpr int64_t kOverdueNs = 100'000'000;

/// The driver's context that is current on the reactor's thread.
class CurrentContext {
 public:
  explicit CurrentContext(const DriverTable& cu) : cu_(cu) {}
  CUresult Enter(CUcontext context) {
    if (context == now_) return CUDA_SUCCESS;
    const CUresult code = cu_.cuCtxSetCurrent(context);
    now_ = code ? nullptr : context;
    return code;
  }
  /// Somebody else has set this thread's context.
  void Lost() { now_ = nullptr; }
  /// Before `context` is destroyed.
  void Leave(CUcontext context) {
    if (context != now_) return;
    (void)cu_.cuCtxSetCurrent(nullptr);
    now_ = nullptr;
  }

 private:
  const DriverTable& cu_;
  CUcontext now_ = nullptr;
};

/// What may go to the driver at once.
struct Allowance {
  uint32_t operations = 0;
  uint64_t ns = 0;  // foreseen; the first operation goes also where it is longer
};

struct Turn {
  Runner* runner = nullptr;
  uint32_t operations = 0;
  uint64_t foreseen_ns = 0;
  int intervals = 0;  // not ended
  bool closed = false;
  int64_t began_ns = 0;
};

/// A tenant on this device.
struct Runner {
  Tenant* tenant = nullptr;
  Holding* holding = nullptr;
  std::vector<Context*> contexts;
  size_t next_context = 0;
  Turn* open = nullptr;
  int turns = 0;             // not over, the open one included
  uint64_t foreseen_ns = 0;  // of these
  uint64_t advanced_ns = 0;  // charged for measured time that is not settled
};

class DeviceQueue {
 public:
  DeviceQueue(const Clock& clock, CurrentContext& current);
  ~DeviceQueue();

  void Add(Context& context);
  void Remove(Context& context);
  /// Forgets a tenant without contexts.
  void Remove(Tenant& tenant);

  /// Something of the context may have become ready.
  void Wake(Context& context);
  /// Gives operations to the driver as long as somebody may. True where any went.
  bool Pump();
  /// Looks what the device has done. True where there was progress.
  bool Poll();
  /// Nothing new comes at the moment: what is on its way gets its end marked.
  void Quiet();
  /// Charges what can be charged; `Poll` does so too. For turns that do not end, call it now and then.
  void Settle();
  void Arm(CUhostFn wake, void* data);
  bool InFlight() const;
  bool HasOverdue() const { return overdue_ > 0; }
  /// Brings the tenants' queue depths into the metrics.
  void CountQueued();
  size_t Queued(const Tenant& tenant) const;

  // ------------------------------------------------------------------------- called by contexts
  CUresult Enter(CUcontext context) { return current_.Enter(context); }
  void Leave(CUcontext context) { current_.Leave(context); }
  void Began(Turn* turn);
  void Foreseen(Turn* turn, uint64_t ns);
  void Ended(Turn* turn, uint64_t foreseen_ns, int64_t begin_ns, int64_t end_ns);

 private:
  bool Contended(const Runner& runner) const;
  bool Full(const Runner& runner, bool contended) const;
  uint32_t Give(Runner& runner, bool contended);
  void Close(Runner& runner);
  void Over(Turn* turn);
  Turn* NewTurn(Runner& runner);

  const Clock& clock_;
  CurrentContext& current_;
  policies::Turns turns_;
  DeviceTime time_;
  std::map<TenantId, std::unique_ptr<Runner>> runners_;
  std::vector<Context*> contexts_;
  std::vector<Turn*> running_;  // turns not over
  std::vector<Turn*> spare_;
  int overdue_ = 0;
  bool unsettled_ = false;
};

}  // namespace cuplex::server
