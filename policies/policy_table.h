// The table of a policy: what each tenant has of each device, when presets, profiles and defaults are told.
// Pure; any thread.
#pragma once

#include <string>

#include "policies/policy.h"

namespace cuplex::policies {

/// A paragraph for each device of the file, or one for all where it has none, with a line for each tenant
/// that sees it.
std::string PrintPolicy(const Policy& policy);

}  // namespace cuplex::policies
