// Recognise: which tenant a client is, from what the kernel says about it. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "policies/policy.h"

namespace cuplex::policies {

/// What the kernel says about the process at the other end of a socket. Nothing here comes from the client.
struct Peer {
  uint32_t uid = 0;    // SO_PEERCRED
  uint32_t gid = 0;    // SO_PEERCRED
  int32_t pid = 0;     // SO_PEERCRED; for sentences only
  std::string cgroup;  // path of /proc/PID/cgroup in the unified hierarchy, "/..."; empty: not known
  std::string socket;  // path of the listening socket it reached, as the policy writes it
};

/// The tenant that `peer` is, owned by `policy`.
///  - On a tenant's own socket: that tenant, if it has no matches or one of them holds; else refused.
///  - On the shared socket: the first tenant of the file with a match that holds; else the default tenant;
///    else refused.
/// Error: Blame::kRefused, naming the peer and what would have been accepted; Blame::kOurs for a socket the
/// policy does not have.
Result<const Tenant*> Recognise(const Policy& policy, const Peer& peer);

/// Whether every kind in `match` that is not empty holds for `peer`. An empty match holds for nobody.
bool Holds(const Match& match, const Peer& peer);

/// Whether `pattern` names the cgroup at `path` or one it lies in. Both begin with '/'. In the pattern '*'
/// stands for any run of characters inside one path component and '?' for one character; a path with a ".."
/// component is matched by nothing.
bool MatchesCgroup(std::string_view pattern, std::string_view path);

}  // namespace cuplex::policies
