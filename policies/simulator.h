// Simulator: made-up or recorded loads on one device, with the Scheduler that the server uses deciding, and a
// clock that jumps. The device runs one piece of work at a time, or several tenants' side by side. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policies/scheduler.h"

namespace cuplex::policies {

/// One kernel of a recorded load.
struct RecordedKernel {
  int64_t at_ns = 0;      // when it was asked for, from the record's begin
  int64_t device_ns = 1;  // what it takes; 1 or more
  bool sliceable = false;
  bool operator==(const RecordedKernel&) const = default;
};

struct SimulatedTenant {
  std::string name;
  Terms terms = {};
  int64_t kernel_ns = 0;         // device time of each kernel
  int64_t period_ns = 0;         // asks for one kernel as often as this; 0: has one at any time
  bool sliceable = false;        // kernels longer than a grant go in pieces
  int64_t from_ns = 0;           // has work from here ...
  int64_t until_ns = INT64_MAX;  // ... to here
  double width = 1;              // of the device, as much as its kernels can fill
  /// By their arrival: asks for these, and for nothing that the fields above say.
  std::vector<RecordedKernel> recorded = {};
};

struct Scenario {
  int64_t length_ns = 10'000'000'000;
  /// With `together`, several tenants' kernels are on the device at once: those that fill it slow each other
  /// down evenly, those that fill less of it run beside each other.
  Scheduler::Settings settings;
  std::vector<SimulatedTenant> tenants;
};

/// The scenario of a CSV text: a line of the columns
/// `name,guarantee,limit,weight,priority,kernel_us,period_us, sliceable,from_ms,until_ms` (sliceable: yes or
/// no; until_ms 0: no end), then a line for each tenant. One more column, `width_percent`, makes it one of a
/// device in mode concurrent. Empty lines and lines that begin with '#' are passed over. Percents and times
/// are whole numbers. `file` begins error lines.
Result<Scenario> ReadScenario(std::string_view text, std::string_view file);

struct Simulation {
  struct Span {
    uint32_t tenant = 0;  // its place in the scenario
    int64_t begin_ns = 0, end_ns = 0;
  };
  struct Outcome {
    double share = 0;  // of the scenario's length; time with others on the device counts in equal parts
    // In windows of a second, those that begin at whole tenths of one; of shorter scenarios: `share`.
    double least_share = 0, most_share = 0;
    uint64_t kernels = 0;            // ended
    uint64_t waiting = 0;            // asked for and not ended
    int64_t p50_ns = 0, p99_ns = 0;  // from a kernel's arrival to its end
    bool operator==(const Outcome&) const = default;
  };
  std::vector<Span> spans;  // in order of their beginnings; neighbours of one tenant are one
  std::vector<Outcome> outcomes;
  double idle = 0;  // share of the time in which the device ran nothing
};

Simulation Simulate(const Scenario& scenario);

/// A table of the outcomes.
std::string PrintSimulation(const Scenario& scenario, const Simulation& simulation);
/// Who runs when, between two times, as an SVG of one row for each tenant.
std::string DrawTimeline(const Scenario& scenario, const Simulation& simulation, int64_t from_ns,
                         int64_t to_ns);

}  // namespace cuplex::policies
