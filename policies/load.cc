#include "policies/load.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "policies/quantity.h"

namespace cuplex::policies {
namespace {

constexpr std::string_view kColumns = "at_ns,device,tenant,device_ns,sliceable";
constexpr int64_t kLatest = int64_t{1} << 53;  // 104 days

/// True where the line has exactly that many cells.
template <size_t n>
bool SplitInto(std::string_view line, std::array<std::string_view, n>& cells) {
  for (size_t i = 0; i < n; ++i) {
    const size_t comma = line.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == n)) return false;
    cells[i] = line.substr(0, comma);
    line.remove_prefix(i + 1 == n ? line.size() : comma + 1);
  }
  return true;
}

}  // namespace

Result<RecordedLoad> ReadLoad(std::string_view text, std::string_view file, int device) {
  std::map<std::string, std::vector<RecordedKernel>, std::less<>> found;
  RecordedLoad load;
  int64_t work_ns = 0;
  bool headed = false, others = false;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    if (!headed) {
      if (line != kColumns)
        return Fail(Blame::kCaller, "{}:{}: The columns are \"{}\"; \"{}\" was expected.", file, number, line,
                    kColumns);
      headed = true;
      continue;
    }
    std::array<std::string_view, 5> cells;
    if (!SplitInto(line, cells))
      return Fail(Blame::kCaller, "{}:{}: The line is \"{}\"; {} cells were expected.", file, number, line,
                  cells.size());
    const auto at = ParseInteger(cells[0]), on = ParseInteger(cells[1]), ns = ParseInteger(cells[3]);
    const auto fits = [](const auto& n) { return n && *n >= 0 && *n <= kLatest; };
    for (size_t i : {0u, 1u, 3u})
      if (!fits(i == 0 ? at : i == 1 ? on : ns))
        return Fail(Blame::kCaller, "{}:{}: Column {} is \"{}\"; a whole number from 0 to {} was expected.",
                    file, number, i + 1, cells[i], kLatest);
    if (cells[2].empty())
      return Fail(Blame::kCaller, "{}:{}: Column 3 is empty; a tenant's name was expected.", file, number);
    if (cells[4] != "yes" && cells[4] != "no")
      return Fail(Blame::kCaller, "{}:{}: Column 5 is \"{}\"; yes or no was expected.", file, number,
                  cells[4]);
    others |= *on != device;
    if (*on != device) continue;
    auto it = found.find(cells[2]);
    if (it == found.end()) it = found.try_emplace(std::string(cells[2])).first;
    // One that took nothing is still somebody's turn.
    it->second.push_back({*at, std::max<int64_t>(1, *ns), cells[4] == "yes"});
    load.length_ns = std::max(load.length_ns, *at + 1);
    work_ns += std::max<int64_t>(1, *ns);
  }
  if (found.empty())
    return Fail(Blame::kCaller, "{} records nothing on device {}{}.", file, device,
                others ? ", but on others" : "");
  load.length_ns = std::max(load.length_ns, work_ns);
  for (auto& [tenant, kernels] : found) {
    std::sort(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) {
      return std::tie(a.at_ns, a.device_ns) < std::tie(b.at_ns, b.device_ns);
    });
    load.tenants.push_back({tenant, std::move(kernels)});
  }
  return load;
}

Result<Scenario> ScenarioOf(const Policy& policy, const DeviceName& device, const RecordedLoad& load) {
  const auto is = [&](const DeviceName& name) { return name == device; };
  Scenario scenario;
  scenario.length_ns = load.length_ns;
  for (const Device& each : policy.devices) {
    if (!is(each.name)) continue;
    if (each.mode == DeviceMode::kPartition)
      return Fail(Blame::kCaller,
                  "Device {} is in mode partition, where each tenant has a part to itself and nobody waits; "
                  "timeslice or concurrent was expected.",
                  PrintDeviceName(device));
    scenario.settings.slice_ns = static_cast<int64_t>(each.max_slice_ns);
    scenario.settings.least_ns = static_cast<int64_t>(each.min_slice_ns);
    scenario.settings.together = each.mode == DeviceMode::kConcurrent;
  }
  for (const RecordedLoad::Of& of : load.tenants) {
    const Tenant* tenant = policy.Find(of.tenant);
    if (!tenant || !tenant->Sees(device))
      return Fail(Blame::kCaller, "The load names the tenant \"{}\", {}.", of.tenant,
                  tenant ? "who does not see the device in this policy" : "whom this policy does not know");
    scenario.tenants.push_back({.name = of.tenant, .terms = tenant->On(is).time});
    scenario.tenants.back().recorded = of.kernels;
  }
  return scenario;
}

Status TakeLoad(const RecordedLoad& load, Scenario& scenario) {
  for (const RecordedLoad::Of& of : load.tenants) {
    const auto at = std::ranges::find(scenario.tenants, of.tenant, &SimulatedTenant::name);
    if (at == scenario.tenants.end())
      return Fail(Blame::kCaller, "The load names the tenant \"{}\", whom the scenario does not know.",
                  of.tenant);
    at->recorded = of.kernels;
    at->from_ns = 0;
    at->until_ns = INT64_MAX;
  }
  scenario.length_ns = load.length_ns;
  return {};
}

}  // namespace cuplex::policies
