#include "policies/match.h"

#include <algorithm>

namespace cuplex::policies {
namespace {

bool InAny(const std::vector<IdRange>& ranges, uint32_t id) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [id](const IdRange& r) { return r.first <= id && id <= r.last; });
}

/// One path component against one component of a pattern. Steps back only to the last '*', so the time is at
/// most the product of the lengths.
bool MatchesComponent(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0;
  size_t star = std::string_view::npos, star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

/// The component after the '/' that `path` begins with, taken off it.
std::string_view TakeComponent(std::string_view& path) {
  path.remove_prefix(1);
  std::string_view component = path.substr(0, path.find('/'));
  path.remove_prefix(component.size());
  return component;
}

bool AnyHolds(const Tenant& tenant, const Peer& peer) {
  return std::any_of(tenant.matches.begin(), tenant.matches.end(),
                     [&peer](const Match& match) { return Holds(match, peer); });
}

std::string Describe(const Peer& peer) {
  return fmt::format("process {} (uid {}, gid {}, cgroup {})", peer.pid, peer.uid, peer.gid,
                     peer.cgroup.empty() ? "unknown" : peer.cgroup);
}

}  // namespace

bool MatchesCgroup(std::string_view pattern, std::string_view path) {
  if (!pattern.starts_with('/') || !path.starts_with('/')) return false;
  for (std::string_view rest = path; !rest.empty();) {
    if (TakeComponent(rest) == "..") return false;
  }
  if (pattern == "/") return true;
  while (!pattern.empty()) {
    if (path.empty() || !MatchesComponent(TakeComponent(pattern), TakeComponent(path))) return false;
  }
  return true;
}

bool Holds(const Match& match, const Peer& peer) {
  if (match.uids.empty() && match.gids.empty() && match.cgroups.empty()) return false;
  if (!match.uids.empty() && !InAny(match.uids, peer.uid)) return false;
  if (!match.gids.empty() && !InAny(match.gids, peer.gid)) return false;
  return match.cgroups.empty() ||
         std::any_of(match.cgroups.begin(), match.cgroups.end(),
                     [&peer](const std::string& pattern) { return MatchesCgroup(pattern, peer.cgroup); });
}

Result<const Tenant*> Recognise(const Policy& policy, const Peer& peer) {
  for (const Tenant& tenant : policy.tenants) {
    if (tenant.socket.path != peer.socket) continue;
    if (tenant.matches.empty() || AnyHolds(tenant, peer)) return &tenant;
    return Fail(Blame::kRefused,
                "The {} reached {}, but no match of the tenant whose socket that is holds for it.",
                Describe(peer), peer.socket);
  }
  if (peer.socket != policy.server.socket) {
    return Fail(Blame::kOurs, "A client came through {}, which is no socket of the policy.", peer.socket);
  }
  for (const Tenant& tenant : policy.tenants) {
    if (AnyHolds(tenant, peer)) return &tenant;
  }
  if (policy.default_tenant) {
    if (const Tenant* tenant = policy.Find(*policy.default_tenant)) return tenant;
  }
  return Fail(
      Blame::kRefused,
      "No tenant of the policy matches the {}; a `match` that holds for it, a tenant's own socket or a "
      "`default_tenant` was expected.",
      Describe(peer));
}

}  // namespace cuplex::policies
