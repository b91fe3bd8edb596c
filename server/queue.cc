#include "server/queue.h"

#include <algorithm>
#include <cassert>

#include "server/context.h"

namespace cuplex::server {
namespace {

// Looks for room in the time that all there may be on the device takes: so often at most.
constexpr uint64_t kLooks = 16;

}  // namespace

DeviceQueue::DeviceQueue(const Clock& clock, CurrentContext& current, LoadRecord* record,
                         const QueueBounds& bounds)
    : clock_(clock), current_(current), record_(record), bounds_(bounds), scheduler_(Rules()) {}

policies::Scheduler::Settings DeviceQueue::Rules() const {
  return {.slice_ns = static_cast<int64_t>(bounds_.slice_ns),
          .least_ns = static_cast<int64_t>(bounds_.least_slice_ns),
          .together = bounds_.concurrent};
}

DeviceQueue::~DeviceQueue() {
  for (Turn* turn : running_) delete turn;
  for (Turn* turn : spare_) delete turn;
}

void DeviceQueue::Add(Context& context) {
  std::unique_ptr<Runner>& runner = runners_[context.tenant().id];
  if (!runner) {
    runner = std::make_unique<Runner>();
    runner->tenant = &context.tenant();
    runner->holding = &context.holding();
    runner->max_kernel_ns = context.tenant().terms.max_kernel_ns;
    const policies::Terms& terms = context.tenant().On(context.holding().device).time;
    runner->unlimited = terms.limit >= 1;
    scheduler_.Add(context.tenant().id, terms, clock_.NowNs());
  }
  if (runner->contexts.empty()) ++attached_;
  runner->contexts.push_back(&context);
  context.runner = runner.get();
}

void DeviceQueue::Remove(Context& context) {
  std::erase(busy_, &context);
  Runner& runner = *runners_.at(context.tenant().id);
  std::erase(runner.contexts, &context);
  if (runner.on_device == &context) runner.on_device = nullptr;
  if (!runner.contexts.empty()) return;
  --attached_;
  if (runner.open) Close(runner);
}

void DeviceQueue::Remove(Tenant& tenant) {
  auto at = runners_.find(tenant.id);
  if (at == runners_.end()) return;
  Settle();
  assert(at->second->contexts.empty() && at->second->turns == 0);
  scheduler_.Remove(tenant.id);
  std::erase(advanced_, at->second.get());
  std::erase(held_, at->second.get());
  runners_.erase(at);
}

void DeviceQueue::TermsChanged(Tenant& tenant) {
  auto at = runners_.find(tenant.id);
  if (at == runners_.end()) return;
  at->second->max_kernel_ns = tenant.terms.max_kernel_ns;
  const policies::Terms& terms = tenant.On(at->second->holding->device).time;
  at->second->unlimited = terms.limit >= 1;
  scheduler_.Change(tenant.id, terms, clock_.NowNs());
}

void DeviceQueue::SetBounds(const QueueBounds& bounds) {
  bounds_ = bounds;
  scheduler_.Set(Rules());
  if (bounds_.concurrent) return;
  for (Runner* runner : held_) runner->held = false;
  held_.clear();
}

void DeviceQueue::Wake(Context& context) {
  if (std::exchange(context.runner->ready, true)) return;
  scheduler_.Ready(context.tenant().id, clock_.NowNs());
}

bool DeviceQueue::Waits(const Context& context) const {
  return context.queued() > 0 && context.runner->ready;
}

// ------------------------------------------------------------------------------------------- turns

bool DeviceQueue::Contended(const Runner& runner) const {
  return scheduler_.ready() > 1 || static_cast<int>(running_.size()) > runner.turns;
}

uint64_t DeviceQueue::BacklogNs(int64_t now_ns) const {
  if (live_ == 0) return 0;
  uint64_t front = 0;
  for (const Turn* turn : running_) {
    if (turn->overdue) continue;
    front = turn->foreseen_ns;
    break;
  }
  const auto passed = static_cast<uint64_t>(std::max<int64_t>(0, now_ns - front_began_ns_));
  return live_foreseen_ns_ - std::min({passed, front, live_foreseen_ns_});
}

DeviceQueue::Share DeviceQueue::OnDevice(const Runner& runner, int64_t now_ns) const {
  if (!bounds_.concurrent) return {live_, BacklogNs(now_ns)};
  Share share;
  uint64_t front = 0;
  for (const Turn* turn : running_) {
    if (turn->overdue || turn->runner != &runner) continue;
    if (share.turns++ == 0) front = turn->foreseen_ns;
    share.backlog_ns += turn->foreseen_ns;
  }
  const auto passed = static_cast<uint64_t>(std::max<int64_t>(0, now_ns - runner.front_began_ns));
  share.backlog_ns -= std::min(passed, front);
  return share;
}

uint64_t DeviceQueue::Room(const Runner& runner, uint64_t ahead_ns, int64_t now_ns) {
  const bool alone = Alone();
  const uint64_t most = alone ? bounds_.ahead_ns : std::min(bounds_.slice_ns, ahead_ns);
  const auto [turns, backlog] = OnDevice(runner, now_ns);
  if (turns == 0) return most;
  if (!runner.open && turns >= (alone ? bounds_.ahead_turns : bounds_.shared_turns)) return 0;
  if (backlog <= most / 2) return most - backlog;
  // Where what runs takes longer than foreseen, looking all the time would not end it sooner.
  const uint64_t after = std::max(backlog - most / 2, most / kLooks);
  next_look_ns_ = std::min(next_look_ns_, now_ns + static_cast<int64_t>(after));
  return 0;
}

void DeviceQueue::ResumeHeld(int64_t now_ns) {
  std::erase_if(held_, [&](Runner* runner) {
    if (!Room(*runner, runner->ahead_ns, now_ns)) return false;
    runner->held = false;
    scheduler_.Resume(runner->tenant->id, now_ns);
    return true;
  });
}

bool DeviceQueue::Pump() {
  next_look_ns_ = INT64_MAX;
  if (scheduler_.ready() == 0) return false;
  bool progress = false;
  const int64_t now = clock_.NowNs();
  ResumeHeld(now);
  // Each tenant that has nothing to give goes idle, and each that has fills the room, so this ends.
  while (auto grant = scheduler_.Next(now)) {
    Runner& runner = *runners_.at(grant->tenant);
    const bool contended = Contended(runner);
    if (contended)
      for (size_t i = open_.size(); i-- > 0;)
        if (open_[i] != &runner) Close(*open_[i]);
    const uint64_t room = Room(runner, grant->ahead_ns, now);
    if (!room && !bounds_.concurrent) return progress;
    if (!room) {
      scheduler_.Hold(grant->tenant, now);
      runner.ahead_ns = grant->ahead_ns;
      if (!std::exchange(runner.held, true)) held_.push_back(&runner);
      continue;
    }
    // Alone on the device there is nobody to keep a grant short for, but the tenant's own limit.
    const bool unbound = Alone() && runner.unlimited;
    const Given given = Give(runner, unbound ? room : std::min(room, grant->ns), contended);
    progress |= given.operations > 0;
    if (given.wants_turn) continue;
    const bool more =
        given.operations && std::any_of(runner.contexts.begin(), runner.contexts.end(),
                                        [](const Context* context) { return context->queued() > 0; });
    if (more) continue;
    runner.ready = false;
    scheduler_.Idle(grant->tenant, now);
  }
  next_look_ns_ = std::min(next_look_ns_, scheduler_.NextRelease());
  return progress;
}

DeviceQueue::Given DeviceQueue::Give(Runner& runner, uint64_t ns, bool contended) {
  if (!runner.open) {
    runner.open = NewTurn(runner);
    open_.push_back(&runner);
  }
  Turn& turn = *runner.open;
  const uint64_t before_ns = turn.foreseen_ns;
  Allowance allowed{0, 0, Alone() ? bounds_.alone_slice_ns : bounds_.slice_ns / 2};
  uint32_t given = 0;
  for (size_t n = runner.contexts.size(), idle = 0; idle < n && !turn.spent;) {
    allowed.operations = bounds_.turn_operations - turn.operations;
    allowed.ns = ns - std::min(ns, turn.foreseen_ns - before_ns);
    if (!allowed.operations || !allowed.ns) break;
    Context& context = *runner.contexts[runner.next_context++ % n];
    if (bounds_.one_context && !MayGive(runner, context)) {
      ++idle;
      continue;
    }
    const uint64_t had_ns = turn.foreseen_ns;
    const uint32_t some = context.Dispatch(&turn, allowed);
    if (some && std::exchange(runner.on_device, &context) != &context) runner.on_device_ns = 0;
    runner.on_device_ns += turn.foreseen_ns - had_ns;
    turn.operations += some;
    given += some;
    idle = some ? 0 : idle + 1;
  }
  scheduler_.Charge(runner.tenant->id, static_cast<int64_t>(turn.foreseen_ns - before_ns), clock_.NowNs());
  // What is next goes first in a turn or not at all.
  const bool wants_turn = turn.spent && given == 0 && turn.operations > 0;
  const uint64_t length = (Alone() ? bounds_.ahead_ns : bounds_.slice_ns) / 2;
  turn.spent |= turn.operations >= bounds_.turn_operations || turn.foreseen_ns >= length;
  if (contended || turn.spent || turn.intervals == 0) Close(runner);
  return {given, wants_turn};
}

bool DeviceQueue::MayGive(const Runner& runner, const Context& context) const {
  if (!runner.on_device) return true;
  if (runner.on_device != &context) return !runner.on_device->InFlight();
  // It gives way when it has had a slice and another has something to do.
  return runner.on_device_ns < bounds_.slice_ns ||
         std::none_of(
             runner.contexts.begin(), runner.contexts.end(),
             [&](const Context* other) { return other != &context && other->queued() > 0; });
}

void DeviceQueue::Close(Runner& runner) {
  Turn* turn = runner.open;
  runner.open = nullptr;
  std::erase(open_, &runner);
  turn->closed = true;
  ++turn->intervals;  // so that it is not over half-way through
  for (Context* context : runner.contexts) context->CloseIntervals();
  if (--turn->intervals == 0) Over(turn);
}

void DeviceQueue::Quiet() {
  while (!open_.empty()) Close(*open_.back());
}

Turn* DeviceQueue::NewTurn(Runner& runner) {
  if (spare_.empty()) spare_.push_back(new Turn);
  Turn* turn = spare_.back();
  spare_.pop_back();
  *turn = Turn{};
  turn->runner = &runner;
  turn->made_ns = clock_.NowNs();
  if (runner.max_kernel_ns)
    next_overrun_ns_ = std::min(next_overrun_ns_, turn->made_ns + static_cast<int64_t>(runner.max_kernel_ns));
  running_.push_back(turn);
  if (std::none_of(running_.begin(), running_.end() - 1,
                   [&](const Turn* other) { return other->runner == &runner && !other->overdue; }))
    runner.front_began_ns = turn->made_ns;
  ++runner.turns;
  if (live_++ == 0) front_began_ns_ = turn->made_ns;
  return turn;
}

/// It no longer counts among those on the device.
void DeviceQueue::Leaves(Turn* turn) {
  const auto front =
      std::find_if(running_.begin(), running_.end(), [](const Turn* t) { return !t->overdue; });
  if (*front == turn) front_began_ns_ = clock_.NowNs();
  const auto own = std::find_if(running_.begin(), running_.end(),
                                [&](const Turn* t) { return !t->overdue && t->runner == turn->runner; });
  if (*own == turn) turn->runner->front_began_ns = clock_.NowNs();
  --live_;
  live_foreseen_ns_ -= std::min(live_foreseen_ns_, turn->foreseen_ns);
}

void DeviceQueue::Over(Turn* turn) {
  Runner& runner = *turn->runner;
  turn->overdue ? void(--overdue_) : Leaves(turn);
  --runner.turns;
  std::erase(running_, turn);
  spare_.push_back(turn);
}

void DeviceQueue::Busy(Context& context) {
  if (context.listed) return;
  context.listed = true;
  busy_.push_back(&context);
}

void DeviceQueue::Began(Turn* turn) { ++turn->intervals; }

void DeviceQueue::Foreseen(Turn* turn, uint64_t ns) {
  turn->foreseen_ns += ns;
  if (!turn->overdue) live_foreseen_ns_ += ns;
}

void DeviceQueue::Ended(Turn* turn, uint64_t foreseen_ns, int64_t begin_ns, int64_t end_ns) {
  Runner& runner = *turn->runner;
  const TenantId id = runner.tenant->id;
  // Charged at once, so that whose turn is next is decided by it; put right when the time is settled.
  const uint64_t ns = static_cast<uint64_t>(end_ns - begin_ns);
  scheduler_.Charge(id, static_cast<int64_t>(ns - foreseen_ns), clock_.NowNs());
  runner.advanced_ns += ns;
  if (!runner.advanced) {
    runner.advanced = true;
    advanced_.push_back(&runner);
  }
  time_.Finish({id, begin_ns, end_ns});
  unsettled_ = true;
  if (--turn->intervals == 0 && turn->closed) Over(turn);
}

void DeviceQueue::Record(const Context& context, std::span<const LoadRecord::Part> parts, int64_t ns) {
  const Runner& runner = *context.runner;
  record_->Add(runner.tenant->name, runner.holding->device, parts,
               static_cast<uint64_t>(std::max<int64_t>(0, ns)), clock_.NowNs());
}

// ------------------------------------------------------------------------------------------- the device

bool DeviceQueue::Poll() {
  bool progress = false;
  if (overdue_) polled_ns_ = clock_.NowNs();
  for (size_t i = 0; i < busy_.size();) {
    Context& context = *busy_[i];
    progress |= context.Poll();
    // What it calls may have ended contexts, or given work to others.
    if (i >= busy_.size() || busy_[i] != &context) continue;
    if (context.InFlight()) {
      ++i;
      continue;
    }
    context.listed = false;
    busy_[i] = busy_.back();
    busy_.pop_back();
    if (!bounds_.one_context) continue;
    for (Context* other : context.runner->contexts)
      if (other->queued() > 0) Wake(*other);
  }
  if (unsettled_) Settle();
  return progress;
}

int64_t DeviceQueue::RunningSince(const Turn& turn) {
  int64_t since = INT64_MAX;
  for (Context* context : turn.runner->contexts) since = std::min(since, context->RunningSince(turn));
  return since;
}

void DeviceQueue::LookAtFront(int64_t now_ns) {
  for (Turn* turn : running_) {
    if (turn->overdue) continue;
    // Those behind it may be waiting for it: they get their time when it is out of the way.
    if (now_ns < front_began_ns_ + static_cast<int64_t>(turn->foreseen_ns) + bounds_.overdue_ns) return;
    if (RunningSince(*turn) == INT64_MAX) return;
    Leaves(turn);
    turn->overdue = true;
    ++overdue_;
  }
}

void DeviceQueue::EndOverruns(int64_t now_ns) {
  next_overrun_ns_ = INT64_MAX;
  for (size_t i = 0; i < running_.size(); ++i) {
    const Turn& turn = *running_[i];
    const uint64_t most = turn.runner->max_kernel_ns;
    if (!most) continue;
    for (Context* context : turn.runner->contexts) {
      const int64_t since = context->RunningSince(turn);
      if (since == INT64_MAX) {
        next_overrun_ns_ = std::min(next_overrun_ns_, now_ns + static_cast<int64_t>(most));
        continue;
      }
      // Of several kernels it is not known which runs, but what all should take.
      const int64_t until = since + static_cast<int64_t>(most + (turn.operations > 1 ? turn.foreseen_ns : 0));
      if (now_ns < until) {
        next_overrun_ns_ = std::min(next_overrun_ns_, until);
        continue;
      }
      context->Overrun();         // ends turns
      next_overrun_ns_ = now_ns;  // and the rest is looked at again
      return;
    }
  }
}

void DeviceQueue::Settle() {
  const int64_t now = clock_.NowNs();
  if (now >= next_overrun_ns_) EndOverruns(now);
  LookAtFront(now);
  int64_t until = INT64_MAX;
  still_.clear();
  for (const Turn* turn : running_) {
    if (turn->overdue) {
      still_.push_back({turn->runner->tenant->id, std::min(now, RunningSince(*turn)), now});
    } else if (overdue_ && RunningSince(*turn) == INT64_MAX) {
      until = std::min(until, polled_ns_);  // it may wait for the one that does not end
    } else {
      until = std::min(until, turn->made_ns);
    }
  }
  until = std::min(until, still_.empty() ? time_.last_end_ns() : now);
  time_.Settle(until, still_, [&](TenantId id, uint64_t ns) {
    auto at = runners_.find(id);
    if (at == runners_.end()) return;
    Runner& runner = *at->second;
    runner.holding->counters().device_ns.Add(ns);
    // What was charged when its intervals ended is not charged again.
    runner.settled_ns += ns;
    if (runner.advanced) return;
    runner.advanced = true;
    advanced_.push_back(&runner);
  });
  for (size_t i = 0; i < advanced_.size();) {
    Runner& runner = *advanced_[i];
    const TenantId id = runner.tenant->id;
    const uint64_t left = std::min(runner.advanced_ns, time_.unsettled_ns(id));
    const auto more = static_cast<int64_t>(runner.settled_ns - (runner.advanced_ns - left));
    if (more) scheduler_.Charge(id, more, now);
    runner.settled_ns = 0;
    runner.advanced_ns = left;
    if (runner.advanced_ns) {
      ++i;
      continue;
    }
    runner.advanced = false;
    advanced_[i] = advanced_.back();
    advanced_.pop_back();
  }
  unsettled_ = time_.HasUnsettled();
}

void DeviceQueue::Arm(CUhostFn wake, void* data) {
  for (Context* context : busy_) context->Arm(wake, data);
}

int64_t DeviceQueue::NextLookNs() const {
  int64_t at = std::min(next_look_ns_, next_overrun_ns_);
  if (overdue_) at = std::min(at, clock_.NowNs() + bounds_.overdue_ns / 2);
  if (live_) at = std::min(at, front_began_ns_ + bounds_.overdue_ns);
  return at;
}

size_t DeviceQueue::Queued(const Tenant& tenant) const {
  auto at = runners_.find(tenant.id);
  if (at == runners_.end()) return 0;
  size_t queued = 0;
  for (const Context* context : at->second->contexts) queued += context->queued();
  return queued;
}

void DeviceQueue::CountQueued() {
  const int64_t now = clock_.NowNs();
  for (auto& [id, runner] : runners_) {
    metrics::TenantDeviceCounters& counters = runner->holding->counters();
    counters.queue_depth.Set(Queued(*runner->tenant));
    counters.throttled_ns.Add(scheduler_.TakeThrottledNs(id, now));
  }
}

}  // namespace cuplex::server
