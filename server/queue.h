// DeviceQueue: whose operations go to a device next, and what each tenant's cost. Reactor's thread.
//
// A turn is a batch of one tenant's operations. policies/scheduler.h decides who has the next turn and how
// long it may be; this class keeps little enough on the device that a decision takes effect soon, and enough
// that it never runs dry. docs/scheduling.md says how, and how device time is measured and charged.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "cuda/driver_table.h"
#include "policies/scheduler.h"
#include "server/device_time.h"
#include "server/ledger.h"
#include "server/load_record.h"

namespace cuplex::server {

class Context;
struct Runner;

/// How much is on the device at once. Times in ns, of foreseen device time.
struct QueueBounds {
  uint32_t turn_operations = 512;
  /// Where other tenants may come: a kernel longer than a part of this runs as slices, and what is on the
  /// device together is to take no longer.
  uint64_t slice_ns = 2'000'000;
  uint64_t least_slice_ns = 0;  // nothing is cut shorter
  int shared_turns = 4;
  /// Where the tenant is alone on the device.
  uint64_t ahead_ns = 8'000'000;
  int ahead_turns = 32;
  uint64_t alone_slice_ns = 10'000'000;
  /// Of a tenant's contexts one at a time is on the device: each is confined to as many multiprocessors as
  /// the tenant has, and together they would have more.
  bool one_context = false;
  /// Several tenants' work is on the device at once: slice_ns and shared_turns are each tenant's.
  bool concurrent = false;
  uint64_t multiprocessors = 1;
  bool block_at_a_time = true;  // each runs one block at a time; else as many as fit
  /// A turn that takes this much longer than foreseen stands in nobody's way any more.
  int64_t overdue_ns = 100'000'000;
};

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

/// What may go to the driver at once, in ns of foreseen device time.
struct Allowance {
  uint32_t operations = 0;
  uint64_t ns = 0;        // the first operation goes also where it is longer
  uint64_t slice_ns = 0;  // what is longer goes in parts of about this, where it can
};

struct Turn {
  Runner* runner = nullptr;
  uint32_t operations = 0;
  uint64_t foreseen_ns = 0;
  int intervals = 0;  // not ended
  bool closed = false;
  bool spent = false;  // nothing is to be added to it
  int64_t made_ns = 0;
  bool overdue = false;  // stands in nobody's way any more
};

/// A tenant on this device.
struct Runner {
  Tenant* tenant = nullptr;
  Holding* holding = nullptr;
  std::vector<Context*> contexts;
  size_t next_context = 0;
  Context* on_device = nullptr;  // one_context: that was given to the driver last
  uint64_t on_device_ns = 0;     // foreseen, since another was
  Turn* open = nullptr;
  uint64_t max_kernel_ns = 0;  // 0: as long as they like
  int turns = 0;               // not over, the open one included
  bool unlimited = true;       // its share of the time has no limit
  uint64_t settled_ns = 0;     // settled, and not compared yet with what was charged in advance
  uint64_t advanced_ns = 0;    // charged for measured time that is not settled
  bool held = false;           // has work, and as much on the device as it may; in the queue's list of those
  uint64_t ahead_ns = 0;       // what it might have there when it was held
  int64_t front_began_ns = 0;  // when the oldest of its turns can have begun
  bool advanced = false;       // in the queue's list of those
  bool ready = false;          // has operations that may go, as far as is known
};

class DeviceQueue {
 public:
  /// `record`, where there is one, is told what was done while it is on; it outlives this.
  DeviceQueue(const Clock& clock, CurrentContext& current, LoadRecord* record = nullptr,
              const QueueBounds& bounds = {});
  ~DeviceQueue();

  void Add(Context& context);
  void Remove(Context& context);
  /// Forgets a tenant without contexts.
  void Remove(Tenant& tenant);
  /// The tenant's terms are others now.
  void TermsChanged(Tenant& tenant);
  void SetBounds(const QueueBounds& bounds);

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
  bool InFlight() const { return !busy_.empty(); }
  /// Whether the context's tenant has operations that the device has no room for yet.
  bool Waits(const Context& context) const;
  /// What is on the device is foreseen to take so long from now on.
  uint64_t BacklogNs(int64_t now_ns) const;
  /// When Pump or Settle has something to do though nothing happens, by the clock; INT64_MAX: never.
  int64_t NextLookNs() const;
  /// Brings the tenants' queue depths into the metrics.
  void CountQueued();
  size_t Queued(const Tenant& tenant) const;

  // ------------------------------------------------------------------------- called by contexts
  const QueueBounds& bounds() const { return bounds_; }
  CUresult Enter(CUcontext context) { return current_.Enter(context); }
  void Leave(CUcontext context) { current_.Leave(context); }
  bool recording() const { return record_ && record_->on(); }
  void Record(const Context& context, std::span<const LoadRecord::Part> parts, int64_t ns);
  /// It has work in the driver, and is looked at until it has none.
  void Busy(Context& context);
  void Began(Turn* turn);
  void Foreseen(Turn* turn, uint64_t ns);
  void Ended(Turn* turn, uint64_t foreseen_ns, int64_t begin_ns, int64_t end_ns);

 private:
  bool Alone() const { return attached_ == 1; }
  bool Contended(const Runner& runner) const;
  /// What the tenant has on the device: turns, foreseen time, and that less what has passed of the first.
  struct Share {
    int turns = 0;
    uint64_t backlog_ns = 0;
  };
  Share OnDevice(const Runner& runner, int64_t now_ns) const;
  policies::Scheduler::Settings Rules() const;
  /// Those that had no room and may have some now can go again.
  void ResumeHeld(int64_t now_ns);
  /// Foreseen time that may be added to what is on the device; 0: not now.
  uint64_t Room(const Runner& runner, uint64_t ahead_ns, int64_t now_ns);
  struct Given {
    uint32_t operations = 0;
    bool wants_turn = false;  // what comes next needs a new one
  };
  Given Give(Runner& runner, uint64_t ns, bool contended);
  bool MayGive(const Runner& runner, const Context& context) const;
  void Close(Runner& runner);
  void Over(Turn* turn);
  void Leaves(Turn* turn);
  Turn* NewTurn(Runner& runner);
  /// Since when it runs on the device, by the server's clock; INT64_MAX where it does not yet.
  static int64_t RunningSince(const Turn& turn);
  void LookAtFront(int64_t now_ns);
  /// Ends contexts whose kernels run for longer than they may.
  void EndOverruns(int64_t now_ns);

  const Clock& clock_;
  CurrentContext& current_;
  LoadRecord* const record_;
  QueueBounds bounds_;
  policies::Scheduler scheduler_;
  DeviceTime time_;
  std::map<TenantId, std::unique_ptr<Runner>> runners_;
  size_t attached_ = 0;         // runners with contexts
  std::vector<Context*> busy_;  // contexts with work in the driver
  std::vector<Runner*> open_;   // with an open turn
  std::vector<Runner*> held_;   // concurrent: with work and without room
  std::vector<Runner*> advanced_;
  std::vector<Turn*> running_;  // turns not over, oldest first
  std::vector<Turn*> spare_;
  int overdue_ = 0;
  int live_ = 0;                   // of running_, not overdue
  uint64_t live_foreseen_ns_ = 0;  // of these
  int64_t front_began_ns_ = 0;     // when the oldest of these can have begun
  int64_t next_look_ns_ = INT64_MAX;
  int64_t next_overrun_ns_ = INT64_MAX;
  int64_t polled_ns_ = 0;  // while some turn is overdue
  bool unsettled_ = false;
  std::vector<DeviceTime::Interval> still_;  // kept to allocate nothing in the long run
};

}  // namespace cuplex::server
