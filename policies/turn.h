// Turns: whose work goes to a device next. One Turns per device; one thread at a time.
//
// No clock and no waiting: the caller says who has work and what each turn cost in device time, and asks who
// is next. Among tenants with ready work the one that was charged least goes first; equals go in the order in
// which they last had a turn. Device time not used is not saved up: a tenant that returns from idle starts at
// the least charge among the ready ones (see `credit_ns`). Every call is O(log n) in tenants and, Add aside,
// allocates nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>

namespace cuplex::policies {

class Turns {
 public:
  /// Chosen by the caller, unique while added.
  using TenantId = uint32_t;

  /// `credit_ns`: how far behind the others a tenant that returns from idle may stay. 0 is the plain rule;
  /// some slice lengths keep a client that waits for each result from losing its turn in the gap between two
  /// launches.
  explicit Turns(uint64_t credit_ns = 0) : credit_ns_(credit_ns) {}

  /// A new tenant, idle, charged as much as the least of the ready. False: already there.
  bool Add(TenantId tenant);
  /// Forgets it, ready or not. False: not there.
  bool Remove(TenantId tenant);

  /// It has work that could be dispatched. Nothing changes where it was ready already or is not there.
  void Ready(TenantId tenant);
  /// It has none. Nothing changes where it was idle already or is not there.
  void Idle(TenantId tenant);

  /// It used `ns` of device time (or is foreseen to). Ready or idle; saturates.
  void Charge(TenantId tenant, uint64_t ns);
  /// Takes back what an earlier Charge foresaw too much.
  void Refund(TenantId tenant, uint64_t ns);

  /// Who goes next, nullopt where nobody is ready. It stays ready until Idle or Remove; asked again without a
  /// Charge between, equals rotate.
  std::optional<TenantId> Next();

  /// Charge as it counts for the order, in ns: what was charged, plus what was lifted over on return from
  /// idle. 0 for a tenant that is not there.
  uint64_t Charged(TenantId tenant) const;
  size_t ready() const { return queue_.size(); }
  size_t size() const { return tenants_.size(); }

 private:
  struct Place {
    uint64_t charged = 0;
    uint64_t turn = 0;  // number of its last turn
    TenantId tenant = 0;
    auto operator<=>(const Place&) const = default;
  };
  using Queue = std::set<Place>;
  struct Standing {
    Place place;
    Queue::node_type node;  // holds the queue's node while idle, so that going ready needs no allocation
  };

  void Move(Standing& standing, const Place& to);
  uint64_t Floor();

  uint64_t credit_ns_;
  uint64_t floor_ = 0;  // the least charge among the ready, as last seen; never falls
  uint64_t turn_ = 0;
  Queue queue_;
  std::unordered_map<TenantId, Standing> tenants_;
};

}  // namespace cuplex::policies
