// Scheduler: whose work goes to a device next, and how much of it. One Scheduler per device; one thread at a
// time.
//
// A pure function of what it is told: no clock, no thread, no driver. The caller says who has work, what each
// piece is foreseen to cost and what it did cost, and asks who is next at a time of its clock. The rules, in
// this order (docs/policies.md):
//
//   limit      a tenant that had its share of the time goes no further, also alone on the device
//   guarantee  a tenant with work that has not had its guarantee yet goes first, whatever its class
//   priority   then the highest class with work
//   weight     and in it the tenant that had least for its weight; guaranteed time does not count here
//
// Where several tenants' work may be on the device at once (Settings::together) the caller holds back a
// tenant that has as much there as it may, and the next may go beside it, under the same rules: a tenant that
// is far ahead of one that is held waits for it, by weight or for its guarantee, and beside a higher class
// lower ones go in small pieces.
//
// Time not used is not saved up: a tenant that returns from idle has at most a small credit in each of these.
// Every call is O(log n) in tenants and, Add and Change aside, allocates nothing.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "policies/terms.h"

namespace cuplex::policies {

class Scheduler {
 public:
  /// Chosen by the caller, unique while added.
  using TenantId = uint32_t;

  struct Settings {
    /// What may be on the device together while others may come; a grant is at most half of it. 1 us or more.
    int64_t slice_ns = 2'000'000;
    /// No grant is shorter, however many tenants wait or come back; at most half of slice_ns.
    int64_t least_ns = 0;
    /// In how long each of several tenants with work should have had a turn, if slices of an eighth of
    /// slice_ns let it.
    int64_t round_ns = 16'000'000;
    /// A guarantee that could not be had is made good for so long, and a limit that was not used may be
    /// passed for a part of it.
    int64_t horizon_ns = 100'000'000;
    /// A tenant that rested for less may come back at once: whoever had more than it leaves the device
    /// nearly free meanwhile. For a higher class, and for tenants of the same.
    int64_t return_above_ns = 50'000'000;
    int64_t return_beside_ns = 5'000'000;
    /// Several tenants' work may be on the device at once.
    bool together = false;
  };

  explicit Scheduler(const Settings& settings);
  void Set(const Settings& settings);

  /// A new tenant, idle, in its class as far as those with work are. False: already there.
  bool Add(TenantId tenant, const Terms& terms, int64_t now_ns);
  /// Its terms are others from now on. False: not there.
  bool Change(TenantId tenant, const Terms& terms, int64_t now_ns);
  /// Forgets it, ready or not. False: not there.
  bool Remove(TenantId tenant);

  /// It has work that could be dispatched. Nothing changes where it was ready already or is not there.
  void Ready(TenantId tenant, int64_t now_ns);
  /// It has none. Nothing changes where it was idle already or is not there.
  void Idle(TenantId tenant, int64_t now_ns);

  /// It has as much on the device as it may: it is not asked for until Resume, and stays ready, so that
  /// nobody runs away from it. Nothing changes where it is not ready. With Settings::together alone.
  void Hold(TenantId tenant, int64_t now_ns);
  void Resume(TenantId tenant, int64_t now_ns);

  /// It used `ns` of device time, or is foreseen to; below 0: so much less than was charged before.
  void Charge(TenantId tenant, int64_t ns, int64_t now_ns);

  struct Grant {
    TenantId tenant = 0;
    /// Device time that it may dispatch; a single piece that is longer goes all the same.
    uint64_t ns = 0;
    /// What may be on the device together then, everybody's.
    uint64_t ahead_ns = 0;
  };
  /// Who goes next; nullopt where nobody may. It stays ready until Idle or Remove; asked again without a
  /// Charge between, equals rotate.
  std::optional<Grant> Next(int64_t now_ns);
  /// When a tenant that has work and is held by its limit may go; INT64_MAX where there is none.
  int64_t NextRelease() const;

  /// For how long its limit held it although it had work, since the last call, in ns.
  uint64_t TakeThrottledNs(TenantId tenant, int64_t now_ns);

  /// Tenants with work, those held by their limit included.
  size_t ready() const { return ready_; }
  size_t size() const { return tenants_.size(); }

 private:
  /// Key of an ordered set; the number of the last turn makes equals rotate.
  struct Place {
    double tag = 0;
    uint64_t turn = 0;
    TenantId tenant = 0;
    auto operator<=>(const Place&) const = default;
  };
  /// A tenant's entry in an ordered set, kept when it is out of it, so that going in allocates nothing.
  class Entry {
   public:
    void Put(std::set<Place>& set, const Place& place);
    void Take();
    bool in() const { return set_ != nullptr; }

   private:
    std::set<Place>* set_ = nullptr;
    std::set<Place>::iterator at_;
    std::set<Place>::node_type node_;
  };
  struct Class {
    std::set<Place> by_weight;
    std::set<Place> held;  // by virtual time
    double floor = 0;      // the least virtual time of one that went; never falls
    size_t tenants = 0;
  };
  struct Standing {
    TenantId id = 0;
    Terms terms;
    Class* in = nullptr;
    bool ready = false;
    bool holds = false;             // has as much on the device as it may
    bool by_its_guarantee = false;  // why it went last, and where its charges go
    double virtual_ns = 0;          // time had beyond its guarantee, by its weight
    double guaranteed_ns = 0;       // until when, by the clock, it has had its guarantee
    double limited_ns = 0;          // until when, by the clock, it has had its limit
    uint64_t turn = 0;
    int64_t idle_since_ns = 0;
    int64_t throttled_since_ns = 0;
    uint64_t throttled_ns = 0;
    Entry by_weight, by_guarantee, throttled, held, held_by_guarantee;
  };

  double QuantumNs() const { return static_cast<double>(settings_.slice_ns) / 8; }
  double CreditNs(const Standing& s) const;
  double ReleaseNs(const Standing& s) const;
  void Enter(Standing& s, int64_t now_ns);
  void Leave(Standing& s, int64_t now_ns);
  void Release(int64_t now_ns);
  /// Whether somebody on the device is behind so far that `s` waits for it.
  bool WaitsFor(const Standing& s) const;
  bool SomebodyIsOwed(int64_t now_ns) const;
  enum class Returning { kNobody, kBeside, kAbove };
  Returning WhoMayReturn(const Standing& picked, int64_t now_ns);
  Grant GrantTo(Standing& s, bool below, int64_t now_ns);

  Settings settings_;
  std::unordered_map<TenantId, Standing> tenants_;
  std::map<int, Class, std::greater<>> classes_;
  std::set<Place> by_guarantee_;       // with work, a guarantee, and not held by their limit
  std::set<Place> held_by_guarantee_;  // those of them that are held
  std::set<Place> throttled_;          // with work and held by their limit, by when they may go
  size_t ready_ = 0;
  uint64_t turn_ = 0;
  std::array<TenantId, 8> resting_{};  // those that went idle last, a ring
  size_t next_resting_ = 0;
};

}  // namespace cuplex::policies
