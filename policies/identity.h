// Identity: how a tenant's clients are told, as the file writes it: matches and the tenant's socket. Pure,
// but for names of accounts; one thread at a time.
#pragma once

#include "policies/fields.h"

namespace cuplex::policies {

/// The matches of a tenant: `entry` is its `match`.
std::vector<Match> ReadMatches(const Entry& entry, Fields& fields);

/// The socket of a tenant: `entry` is its `socket`, or nullptr. Its path is empty where the file says none.
/// nullopt: the path was at fault. `path_at`: where the path stands, unchanged where it does not.
std::optional<Socket> ReadSocket(const Entry* entry, bool has_matches, Fields& fields, Mark& path_at);

}  // namespace cuplex::policies
