#include "server/queue.h"

#include <algorithm>
#include <cassert>

#include "server/context.h"

namespace cuplex::server {
namespace {

/// How far behind a tenant that returns from idle may stay; see policies/turn.h.
constexpr uint64_t kCreditNs = 2 * kTurnNs;

}  // namespace

DeviceQueue::DeviceQueue(const Clock& clock, CurrentContext& current)
    : clock_(clock), current_(current), turns_(kCreditNs) {}

DeviceQueue::~DeviceQueue() {
  for (Turn* turn : running_) delete turn;
  for (Turn* turn : spare_) delete turn;
}

void DeviceQueue::Add(Context& context) {
  contexts_.push_back(&context);
  std::unique_ptr<Runner>& runner = runners_[context.tenant().id];
  if (!runner) {
    runner = std::make_unique<Runner>();
    runner->tenant = &context.tenant();
    runner->holding = &context.holding();
    turns_.Add(context.tenant().id);
  }
  runner->contexts.push_back(&context);
}

void DeviceQueue::Remove(Context& context) {
  std::erase(contexts_, &context);
  Runner& runner = *runners_.at(context.tenant().id);
  std::erase(runner.contexts, &context);
  if (runner.contexts.empty() && runner.open) Close(runner);
}

void DeviceQueue::Remove(Tenant& tenant) {
  auto at = runners_.find(tenant.id);
  if (at == runners_.end()) return;
  Settle();
  assert(at->second->contexts.empty() && at->second->turns == 0);
  turns_.Remove(tenant.id);
  runners_.erase(at);
}

void DeviceQueue::Wake(Context& context) { turns_.Ready(context.tenant().id); }

// ------------------------------------------------------------------------------------------- turns

bool DeviceQueue::Contended(const Runner& runner) const {
  return turns_.ready() > 1 || static_cast<int>(running_.size()) > runner.turns;
}

bool DeviceQueue::Full(const Runner& runner, bool contended) const {
  if (!contended)
    return !runner.open &&
           (runner.turns >= kAheadTurns || (runner.turns >= kSharedTurns && runner.foreseen_ns >= kAheadNs));
  return static_cast<int>(running_.size()) - overdue_ - (runner.open ? 1 : 0) >= kSharedTurns;
}

bool DeviceQueue::Pump() {
  bool progress = false;
  // Each tenant that has nothing to give goes idle, so this ends.
  while (auto id = turns_.Next()) {
    Runner& runner = *runners_.at(*id);
    const bool contended = Contended(runner);
    if (contended)
      for (auto& [other, each] : runners_)
        if (each->open && each.get() != &runner) Close(*each);
    if (Full(runner, contended)) break;
    if (runner.turns >= kSharedTurns && contended &&
        !runner.open) {  // its own overdue turns stand in its way
      turns_.Idle(*id);
      continue;
    }
    const uint32_t given = Give(runner, contended);
    progress |= given > 0;
    const bool more = given && std::any_of(runner.contexts.begin(), runner.contexts.end(),
                                           [](const Context* context) { return context->queued() > 0; });
    if (!more) turns_.Idle(*id);
  }
  return progress;
}

uint32_t DeviceQueue::Give(Runner& runner, bool contended) {
  if (!runner.open) runner.open = NewTurn(runner);
  Turn& turn = *runner.open;
  uint32_t given = 0;
  const uint64_t before_ns = turn.foreseen_ns;
  for (size_t n = runner.contexts.size(), idle = 0; idle < n;) {
    if (turn.operations >= kTurnOperations || turn.foreseen_ns >= kTurnNs) break;
    Context& context = *runner.contexts[runner.next_context++ % n];
    const uint32_t some =
        context.Dispatch(&turn, {kTurnOperations - turn.operations, kTurnNs - turn.foreseen_ns});
    turn.operations += some;
    given += some;
    idle = some ? 0 : idle + 1;
  }
  turns_.Charge(runner.tenant->id, turn.foreseen_ns - before_ns);
  const bool spent = turn.operations >= kTurnOperations || turn.foreseen_ns >= kTurnNs;
  if (contended || spent || turn.intervals == 0) Close(runner);
  return given;
}

void DeviceQueue::Close(Runner& runner) {
  Turn* turn = runner.open;
  runner.open = nullptr;
  turn->closed = true;
  ++turn->intervals;  // so that it is not over half-way through
  for (Context* context : runner.contexts) context->CloseIntervals();
  if (--turn->intervals == 0) Over(turn);
}

void DeviceQueue::Quiet() {
  for (auto& [id, runner] : runners_)
    if (runner->open) Close(*runner);
}

Turn* DeviceQueue::NewTurn(Runner& runner) {
  if (spare_.empty()) spare_.push_back(new Turn);
  Turn* turn = spare_.back();
  spare_.pop_back();
  *turn = Turn{};
  turn->runner = &runner;
  turn->began_ns = clock_.NowNs();
  running_.push_back(turn);
  ++runner.turns;
  return turn;
}

void DeviceQueue::Over(Turn* turn) {
  Runner& runner = *turn->runner;
  --runner.turns;
  runner.foreseen_ns -= std::min(runner.foreseen_ns, turn->foreseen_ns);
  std::erase(running_, turn);
  spare_.push_back(turn);
  // It may have stood in its tenant's way.
  for (Context* context : runner.contexts)
    if (context->queued()) turns_.Ready(runner.tenant->id);
}

void DeviceQueue::Began(Turn* turn) { ++turn->intervals; }

void DeviceQueue::Foreseen(Turn* turn, uint64_t ns) {
  turn->foreseen_ns += ns;
  turn->runner->foreseen_ns += ns;
}

void DeviceQueue::Ended(Turn* turn, uint64_t foreseen_ns, int64_t begin_ns, int64_t end_ns) {
  Runner& runner = *turn->runner;
  const TenantId id = runner.tenant->id;
  // Charged at once, so that whose turn is next is decided by it; put right when the time is settled.
  const uint64_t ns = static_cast<uint64_t>(end_ns - begin_ns);
  turns_.Refund(id, foreseen_ns);
  turns_.Charge(id, ns);
  runner.advanced_ns += ns;
  time_.Finish({id, begin_ns, end_ns});
  unsettled_ = true;
  if (--turn->intervals == 0 && turn->closed) Over(turn);
}

// ------------------------------------------------------------------------------------------- the device

bool DeviceQueue::Poll() {
  bool progress = false;
  for (size_t i = 0; i < contexts_.size(); ++i)
    if (contexts_[i]->InFlight()) progress |= contexts_[i]->Poll();
  if (unsettled_) Settle();
  return progress;
}

void DeviceQueue::Settle() {
  const int64_t now = clock_.NowNs();
  int64_t until = INT64_MAX;
  std::vector<DeviceTime::Interval> still;
  overdue_ = 0;
  for (const Turn* turn : running_) {
    if (now - turn->began_ns > kOverdueNs) {
      ++overdue_;
      still.push_back({turn->runner->tenant->id, turn->began_ns, now});
    } else {
      until = std::min(until, turn->began_ns);
    }
  }
  until = std::min(until, still.empty() ? time_.last_end_ns() : now);
  time_.Settle(until, still, [&](TenantId id, uint64_t ns) {
    auto at = runners_.find(id);
    if (at == runners_.end()) return;
    at->second->holding->counters().device_ns.Add(ns);
    turns_.Charge(id, ns);
  });
  for (auto& [id, runner] : runners_) {
    if (!runner->advanced_ns) continue;
    const uint64_t left = time_.unsettled_ns(id);
    if (left >= runner->advanced_ns) continue;
    turns_.Refund(id, runner->advanced_ns - left);
    runner->advanced_ns = left;
  }
  unsettled_ = time_.HasUnsettled();
}

void DeviceQueue::Arm(CUhostFn wake, void* data) {
  for (Context* context : contexts_) context->Arm(wake, data);
}

bool DeviceQueue::InFlight() const {
  return std::any_of(contexts_.begin(), contexts_.end(), [](const Context* c) { return c->InFlight(); });
}

size_t DeviceQueue::Queued(const Tenant& tenant) const {
  auto at = runners_.find(tenant.id);
  if (at == runners_.end()) return 0;
  size_t queued = 0;
  for (const Context* context : at->second->contexts) queued += context->queued();
  return queued;
}

void DeviceQueue::CountQueued() {
  for (auto& [id, runner] : runners_) runner->holding->counters().queue_depth.Set(Queued(*runner->tenant));
}

}  // namespace cuplex::server
