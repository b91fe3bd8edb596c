// RecordedLoad: what clients asked of a device, as `cuplexctl record` writes it down, and the scenario in
// which a policy gets the same to decide. Values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policies/policy.h"
#include "policies/simulator.h"

namespace cuplex::policies {

struct RecordedLoad {
  struct Of {
    std::string tenant;
    std::vector<RecordedKernel> kernels;  // by their arrival
  };
  std::vector<Of> tenants;  // by name
  int64_t length_ns = 0;    // from 0 to the last arrival or, where that is later, all of the work
};

/// The load on one device (its number on the server) of a CSV text: a line of the columns
/// `at_ns,device,tenant,device_ns,sliceable` (when it was asked for, what it took, yes or no), then a line
/// for each kernel or copy, in any order. `file` begins error lines.
Result<RecordedLoad> ReadLoad(std::string_view text, std::string_view file, int device);

/// Each tenant of the load with the policy's terms on the device, in mode timeslice or concurrent.
/// Errors: the load names a tenant that the policy does not know or that does not see the device; mode
/// partition, where nobody waits for anybody.
Result<Scenario> ScenarioOf(const Policy& policy, const DeviceName& device, const RecordedLoad& load);

/// A scenario's own tenants get what the load has of them in the place of what their lines say.
/// Error: the load names a tenant that the scenario does not.
Status TakeLoad(const RecordedLoad& load, Scenario& scenario);

}  // namespace cuplex::policies
