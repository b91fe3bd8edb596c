#include "policies/scheduler.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cuplex::policies {
namespace {

// How far behind the others a tenant that returns from idle may stay, in slices.
constexpr double kCreditSlices = 1;
// For what part of the horizon a limit that was not used may be passed.
constexpr double kBurst = 1.0 / 5;
// How far ahead of one that is on the device another may go beside it, in slices of its own time.
constexpr double kLeadSlices = 2;

}  // namespace

void Scheduler::Entry::Put(std::set<Place>& set, const Place& place) {
  Take();
  if (node_.empty()) {
    at_ = set.insert(place).first;
  } else {
    node_.value() = place;
    at_ = set.insert(std::move(node_)).position;
  }
  set_ = &set;
}

void Scheduler::Entry::Take() {
  if (!set_) return;
  node_ = set_->extract(at_);
  set_ = nullptr;
}

Scheduler::Scheduler(const Settings& settings) : settings_(settings) {}

void Scheduler::Set(const Settings& settings) {
  settings_ = settings;
  if (settings_.together) return;
  for (auto& [id, s] : tenants_) {
    if (!std::exchange(s.holds, false)) continue;
    s.held.Take();
    s.held_by_guarantee.Take();
    s.by_weight.Put(s.in->by_weight, {s.virtual_ns, s.turn, s.id});
    if (s.terms.guarantee > 0) s.by_guarantee.Put(by_guarantee_, {s.guaranteed_ns, s.turn, s.id});
  }
}

bool Scheduler::Add(TenantId tenant, const Terms& terms, int64_t now_ns) {
  auto [at, fresh] = tenants_.try_emplace(tenant);
  if (!fresh) return false;
  Standing& s = at->second;
  s.id = tenant;
  s.terms = terms;
  s.in = &classes_[terms.priority];
  ++s.in->tenants;
  s.virtual_ns = s.in->floor;
  s.guaranteed_ns = s.limited_ns = static_cast<double>(now_ns);
  s.idle_since_ns = now_ns - settings_.return_above_ns - 1;
  // Its nodes are made here, so that going ready makes none.
  s.by_weight.Put(s.in->by_weight, {0, 0, tenant});
  s.by_weight.Take();
  s.by_guarantee.Put(by_guarantee_, {0, 0, tenant});
  s.by_guarantee.Take();
  s.throttled.Put(throttled_, {0, 0, tenant});
  s.throttled.Take();
  s.held.Put(s.in->held, {0, 0, tenant});
  s.held.Take();
  s.held_by_guarantee.Put(held_by_guarantee_, {0, 0, tenant});
  s.held_by_guarantee.Take();
  return true;
}

bool Scheduler::Change(TenantId tenant, const Terms& terms, int64_t now_ns) {
  auto at = tenants_.find(tenant);
  if (at == tenants_.end()) return false;
  Standing& s = at->second;
  if (s.terms == terms) return true;
  Leave(s, now_ns);
  // What it had ahead of the others, or owes them, it keeps; what it had of a share is not that of the new.
  const double lead = (s.virtual_ns - s.in->floor) * s.terms.weight;
  if (--s.in->tenants == 0) classes_.erase(s.terms.priority);
  s.in = &classes_[terms.priority];
  ++s.in->tenants;
  s.virtual_ns = s.in->floor + lead / terms.weight;
  if (s.terms.guarantee != terms.guarantee) s.guaranteed_ns = static_cast<double>(now_ns);
  if (s.terms.limit != terms.limit) s.limited_ns = static_cast<double>(now_ns);
  s.by_its_guarantee &= terms.guarantee > 0;
  s.terms = terms;
  if (s.ready) Enter(s, now_ns);
  return true;
}

bool Scheduler::Remove(TenantId tenant) {
  auto at = tenants_.find(tenant);
  if (at == tenants_.end()) return false;
  Standing& s = at->second;
  for (Entry* entry : {&s.by_weight, &s.by_guarantee, &s.throttled, &s.held, &s.held_by_guarantee})
    entry->Take();
  if (s.ready) --ready_;
  const int priority = s.terms.priority;
  const bool last = --s.in->tenants == 0;
  tenants_.erase(at);
  if (last) classes_.erase(priority);
  return true;
}

double Scheduler::CreditNs(const Standing& s) const {
  return kCreditSlices * static_cast<double>(settings_.slice_ns) / s.terms.weight;
}

double Scheduler::ReleaseNs(const Standing& s) const {
  // Not before there is enough for a piece worth its launch.
  if (s.terms.limit >= 1) return 0;
  const double burst = kBurst * static_cast<double>(settings_.horizon_ns);
  return s.limited_ns + std::min(4 * QuantumNs() / s.terms.limit, burst / 2);
}

/// Puts a tenant with work where Next will find it.
void Scheduler::Enter(Standing& s, int64_t now_ns) {
  if (s.holds) {
    s.by_weight.Take();
    s.by_guarantee.Take();
    s.held.Put(s.in->held, {s.virtual_ns, s.turn, s.id});
    if (s.terms.guarantee > 0) s.held_by_guarantee.Put(held_by_guarantee_, {s.guaranteed_ns, s.turn, s.id});
    return;
  }
  s.held.Take();
  s.held_by_guarantee.Take();
  if (ReleaseNs(s) > static_cast<double>(now_ns)) {
    if (!s.throttled.in()) s.throttled_since_ns = now_ns;
    s.by_weight.Take();
    s.by_guarantee.Take();
    s.throttled.Put(throttled_, {ReleaseNs(s), s.turn, s.id});
    return;
  }
  if (s.throttled.in()) {
    s.throttled.Take();
    // What the others had meanwhile is not owed to it.
    s.virtual_ns = std::max(s.virtual_ns, s.in->floor - CreditNs(s));
    s.throttled_ns += static_cast<uint64_t>(std::max<int64_t>(0, now_ns - s.throttled_since_ns));
  }
  s.by_weight.Put(s.in->by_weight, {s.virtual_ns, s.turn, s.id});
  if (s.terms.guarantee > 0) s.by_guarantee.Put(by_guarantee_, {s.guaranteed_ns, s.turn, s.id});
}

void Scheduler::Leave(Standing& s, int64_t now_ns) {
  if (s.throttled.in())
    s.throttled_ns += static_cast<uint64_t>(std::max<int64_t>(0, now_ns - s.throttled_since_ns));
  for (Entry* entry : {&s.by_weight, &s.by_guarantee, &s.throttled, &s.held, &s.held_by_guarantee})
    entry->Take();
}

void Scheduler::Ready(TenantId tenant, int64_t now_ns) {
  auto at = tenants_.find(tenant);
  if (at == tenants_.end() || at->second.ready) return;
  Standing& s = at->second;
  s.ready = true;
  ++ready_;
  const auto now = static_cast<double>(now_ns);
  s.virtual_ns = std::max(s.virtual_ns, s.in->floor - CreditNs(s));
  // A pause between two pieces is no reason to lose a guarantee or what a limit still allows; a rest is.
  if (s.terms.guarantee > 0)
    s.guaranteed_ns = std::max(
        s.guaranteed_ns, now - kCreditSlices * static_cast<double>(settings_.slice_ns) / s.terms.guarantee);
  s.limited_ns = std::max(s.limited_ns, now - kBurst * static_cast<double>(settings_.horizon_ns));
  Enter(s, now_ns);
}

void Scheduler::Idle(TenantId tenant, int64_t now_ns) {
  auto at = tenants_.find(tenant);
  if (at == tenants_.end() || !at->second.ready) return;
  Standing& s = at->second;
  Leave(s, now_ns);
  s.ready = s.holds = false;
  s.idle_since_ns = now_ns;
  --ready_;
  if (std::find(resting_.begin(), resting_.end(), tenant) == resting_.end())
    resting_[next_resting_++ % resting_.size()] = tenant;
}

void Scheduler::Hold(TenantId tenant, int64_t now_ns) {
  auto at = tenants_.find(tenant);
  if (at == tenants_.end() || !at->second.ready || at->second.holds) return;
  Leave(at->second, now_ns);
  at->second.holds = settings_.together;
  Enter(at->second, now_ns);
}

void Scheduler::Resume(TenantId tenant, int64_t now_ns) {
  auto at = tenants_.find(tenant);
  if (at == tenants_.end() || !at->second.holds) return;
  at->second.holds = false;
  Enter(at->second, now_ns);
}

void Scheduler::Charge(TenantId tenant, int64_t ns, int64_t now_ns) {
  auto at = tenants_.find(tenant);
  if (at == tenants_.end() || ns == 0) return;
  Standing& s = at->second;
  const auto now = static_cast<double>(now_ns);
  const auto rest = static_cast<double>(ns);
  if (s.terms.limit < 1) {
    s.limited_ns = std::max(s.limited_ns, now - kBurst * static_cast<double>(settings_.horizon_ns)) +
                   rest / s.terms.limit;
  }
  if (s.terms.guarantee > 0)
    s.guaranteed_ns = std::max(s.guaranteed_ns, now - static_cast<double>(settings_.horizon_ns));
  // A correction may come when the tenant has gone on for another reason: it is small, and the sum stays.
  if (s.by_its_guarantee) {
    s.guaranteed_ns += rest / s.terms.guarantee;
  } else {
    s.virtual_ns += rest / s.terms.weight;
  }
  if (s.ready) Enter(s, now_ns);
}

/// Those whose limit lets them go again.
void Scheduler::Release(int64_t now_ns) {
  while (!throttled_.empty() && throttled_.begin()->tag <= static_cast<double>(now_ns))
    Enter(tenants_.at(throttled_.begin()->tenant), now_ns);
}

/// Whether a tenant that should go before `picked` went idle so lately that it may come back at once.
Scheduler::Returning Scheduler::WhoMayReturn(const Standing& picked, int64_t now_ns) {
  Returning who = Returning::kNobody;
  for (TenantId id : resting_) {
    auto at = tenants_.find(id);
    if (at == tenants_.end()) continue;
    const Standing& s = at->second;
    if (s.ready || &s == &picked || ReleaseNs(s) > static_cast<double>(now_ns)) continue;
    const int64_t rested = now_ns - s.idle_since_ns;
    const bool beside = s.terms.priority == picked.terms.priority && s.virtual_ns < picked.virtual_ns;
    const bool owed = s.terms.guarantee > 0 && s.guaranteed_ns < static_cast<double>(now_ns);
    if ((beside || owed) && rested < settings_.return_beside_ns) return Returning::kBeside;
    if (s.terms.priority > picked.terms.priority && rested < settings_.return_above_ns)
      who = Returning::kAbove;
  }
  return who;
}

bool Scheduler::WaitsFor(const Standing& s) const {
  if (s.in->held.empty()) return false;
  const double lead = (s.virtual_ns - s.in->held.begin()->tag) * s.terms.weight;
  return lead > kLeadSlices * static_cast<double>(settings_.slice_ns);
}

/// Whether one on the device had so much less than its guarantee that it needs the device for itself.
bool Scheduler::SomebodyIsOwed(int64_t now_ns) const {
  if (held_by_guarantee_.empty()) return false;
  const Place& first = *held_by_guarantee_.begin();
  const double owed = (static_cast<double>(now_ns) - first.tag) * tenants_.at(first.tenant).terms.guarantee;
  return owed > static_cast<double>(settings_.slice_ns);
}

Scheduler::Grant Scheduler::GrantTo(Standing& s, bool below, int64_t now_ns) {
  const auto now = static_cast<double>(now_ns);
  const double quantum = QuantumNs();
  double ns = static_cast<double>(settings_.slice_ns) / 2;
  auto ahead = static_cast<double>(settings_.slice_ns);
  if (ready_ > 1)
    ns = std::clamp(static_cast<double>(settings_.round_ns) / static_cast<double>(ready_), quantum, ns);
  if (below) {
    ns = quantum;
    ahead = 2 * quantum;
  }
  switch (settings_.together ? Returning::kNobody : WhoMayReturn(s, now_ns)) {
    case Returning::kNobody:
      break;
    case Returning::kBeside:  // it keeps its share only if it finds the device nearly free
      ns = quantum / 2;
      ahead = quantum;
      break;
    case Returning::kAbove:  // it is not to wait long
      ns = std::min(ns, 2 * quantum);
      ahead = 4 * quantum;
      break;
  }
  if (s.terms.limit < 1) ns = std::min(ns, std::max(quantum / 2, (now - s.limited_ns) * s.terms.limit));
  const auto least = static_cast<double>(settings_.least_ns);
  return {s.id, static_cast<uint64_t>(std::max(ns, least)), static_cast<uint64_t>(std::max(ahead, least))};
}

std::optional<Scheduler::Grant> Scheduler::Next(int64_t now_ns) {
  Release(now_ns);
  const auto now = static_cast<double>(now_ns);
  Standing* picked = nullptr;
  bool guaranteed = false, below = false;
  if (!by_guarantee_.empty() && by_guarantee_.begin()->tag < now) {
    picked = &tenants_.at(by_guarantee_.begin()->tenant);
    guaranteed = true;
  } else if (!SomebodyIsOwed(now_ns)) {
    for (auto& [priority, in] : classes_) {
      if (!in.by_weight.empty()) {
        Standing& first = tenants_.at(in.by_weight.begin()->tenant);
        if (!WaitsFor(first)) picked = &first;
      }
      if (!picked) {
        below |= !in.held.empty();
        continue;
      }
      in.floor = std::max(in.floor, picked->virtual_ns);
      break;
    }
  }
  if (!picked) return std::nullopt;
  picked->turn = ++turn_;
  picked->by_its_guarantee = guaranteed;
  Enter(*picked, now_ns);
  return GrantTo(*picked, below, now_ns);
}

int64_t Scheduler::NextRelease() const {
  return throttled_.empty() ? INT64_MAX : static_cast<int64_t>(std::ceil(throttled_.begin()->tag));
}

uint64_t Scheduler::TakeThrottledNs(TenantId tenant, int64_t now_ns) {
  auto at = tenants_.find(tenant);
  if (at == tenants_.end()) return 0;
  Standing& s = at->second;
  if (s.throttled.in()) {
    s.throttled_ns += static_cast<uint64_t>(std::max<int64_t>(0, now_ns - s.throttled_since_ns));
    s.throttled_since_ns = now_ns;
  }
  return std::exchange(s.throttled_ns, 0);
}

}  // namespace cuplex::policies
