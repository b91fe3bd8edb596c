// Resolve: from tenants as a file writes them to the terms that each has on each device. Pure; any thread.
#pragma once

#include <vector>

#include "policies/document.h"
#include "policies/presets.h"

namespace cuplex::policies {

/// A device that a tenant sees, and what it has there of its own.
struct Seen {
  DeviceName name;
  WrittenTerms terms;
  Mark at;
};

/// A tenant as it is written.
struct Draft {
  Tenant tenant;
  WrittenTerms terms;
  std::vector<Seen> devices;  // empty: all
  Mark at;
};

/// A device of the file, and what Expand needs of it.
struct DescribedDevice {
  const Preset* preset = nullptr;
  std::optional<uint32_t> shares;
  std::optional<uint64_t> memory_bytes;
  uint32_t replicas = 0;
  Mark at;
};

/// Fills policy.tenants from the drafts, in their order, with terms for each device; `described` goes with
/// policy.devices. Adds a fault for what contradicts itself and what no device can give: at the place of the
/// tenant, or at `tenants_at` where several tenants are to blame.
void ResolveTerms(std::vector<Draft>& drafts, const std::vector<DescribedDevice>& described, Mark tenants_at,
                  Policy& policy, Faults& faults);

}  // namespace cuplex::policies
