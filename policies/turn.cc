#include "policies/turn.h"

#include <algorithm>
#include <limits>

namespace cuplex::policies {

bool Turns::Add(TenantId tenant) {
  if (tenants_.contains(tenant)) return false;
  Standing standing;
  standing.place = {.charged = Floor(), .turn = turn_, .tenant = tenant};
  Queue mint;
  mint.insert(standing.place);
  standing.node = mint.extract(mint.begin());
  tenants_.emplace(tenant, std::move(standing));
  return true;
}

bool Turns::Remove(TenantId tenant) {
  auto at = tenants_.find(tenant);
  if (at == tenants_.end()) return false;
  Idle(tenant);
  tenants_.erase(at);
  return true;
}

void Turns::Ready(TenantId tenant) {
  auto at = tenants_.find(tenant);
  if (at == tenants_.end() || !at->second.node) return;
  Standing& standing = at->second;
  uint64_t floor = Floor();
  uint64_t least = floor > credit_ns_ ? floor - credit_ns_ : 0;
  standing.place.charged = std::max(standing.place.charged, least);
  standing.node.value() = standing.place;
  queue_.insert(std::move(standing.node));
}

void Turns::Idle(TenantId tenant) {
  auto at = tenants_.find(tenant);
  if (at == tenants_.end() || at->second.node) return;
  Floor();
  at->second.node = queue_.extract(at->second.place);
}

void Turns::Charge(TenantId tenant, uint64_t ns) {
  auto at = tenants_.find(tenant);
  if (at == tenants_.end()) return;
  Place to = at->second.place;
  to.charged += std::min(ns, std::numeric_limits<uint64_t>::max() - to.charged);
  Move(at->second, to);
}

void Turns::Refund(TenantId tenant, uint64_t ns) {
  auto at = tenants_.find(tenant);
  if (at == tenants_.end()) return;
  Place to = at->second.place;
  to.charged -= std::min(ns, to.charged);
  Move(at->second, to);
}

std::optional<Turns::TenantId> Turns::Next() {
  if (queue_.empty()) return std::nullopt;
  Floor();
  TenantId tenant = queue_.begin()->tenant;
  Standing& standing = tenants_.at(tenant);
  Place to = standing.place;
  to.turn = ++turn_;
  Move(standing, to);
  return tenant;
}

uint64_t Turns::Charged(TenantId tenant) const {
  auto at = tenants_.find(tenant);
  return at == tenants_.end() ? 0 : at->second.place.charged;
}

void Turns::Move(Standing& standing, const Place& to) {
  if (standing.node) {
    standing.place = to;
    return;
  }
  Queue::node_type node = queue_.extract(standing.place);
  standing.place = to;
  node.value() = to;
  queue_.insert(std::move(node));
}

uint64_t Turns::Floor() {
  if (!queue_.empty()) floor_ = std::max(floor_, queue_.begin()->charged);
  return floor_;
}

}  // namespace cuplex::policies
