#include "policies/simulator.h"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <queue>
#include <utility>

#include <fmt/format.h>

#include "policies/quantity.h"

namespace cuplex::policies {
namespace {

constexpr int64_t kUs = 1000, kMs = 1'000'000, kSecond = 1'000'000'000;
constexpr std::string_view kColumns =
    "name,guarantee,limit,weight,priority,kernel_us,period_us,sliceable,from_ms,until_ms";
constexpr int64_t kMost = 1'000'000'000;

std::vector<std::string_view> Split(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const size_t comma = line.find(',');
    cells.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

struct Kernel {
  int64_t arrived_ns = 0;
  int64_t left_ns = 0;
};

struct Runner {
  std::deque<Kernel> queue;
  std::vector<int64_t> latencies;
};

/// The n-th of a hundred, by rank.
int64_t Percentile(std::vector<int64_t>& all, size_t n) {
  if (all.empty()) return 0;
  const size_t rank = std::min(all.size() - 1, all.size() * n / 100);
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(rank), all.end());
  return all[rank];
}

void CountShares(const Scenario& scenario, Simulation& result) {
  constexpr int64_t kBin = kSecond / 10;
  const size_t n = scenario.tenants.size();
  const size_t bins = static_cast<size_t>((scenario.length_ns + kBin - 1) / kBin);
  std::vector<std::vector<int64_t>> ran(n, std::vector<int64_t>(bins));
  int64_t busy = 0;
  for (const Simulation::Span& span : result.spans) {
    busy += span.end_ns - span.begin_ns;
    for (int64_t at = span.begin_ns; at < span.end_ns;) {
      const int64_t to = std::min(span.end_ns, (at / kBin + 1) * kBin);
      ran[span.tenant][static_cast<size_t>(at / kBin)] += to - at;
      at = to;
    }
  }
  result.idle = 1 - static_cast<double>(busy) / static_cast<double>(scenario.length_ns);
  for (size_t t = 0; t < n; ++t) {
    Simulation::Outcome& out = result.outcomes[t];
    int64_t sum = 0, window = 0, least = INT64_MAX, most = 0;
    for (size_t b = 0; b < bins; ++b) {
      sum += ran[t][b];
      window += ran[t][b] - (b >= 10 ? ran[t][b - 10] : 0);
      if (b + 1 < 10) continue;
      least = std::min(least, window);
      most = std::max(most, window);
    }
    out.share = static_cast<double>(sum) / static_cast<double>(scenario.length_ns);
    out.least_share = bins < 10 ? out.share : static_cast<double>(least) / kSecond;
    out.most_share = bins < 10 ? out.share : static_cast<double>(most) / kSecond;
  }
}

std::string Escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else
      out += c;
  }
  return out;
}

}  // namespace

Result<std::vector<SimulatedTenant>> ReadScenario(std::string_view text, std::string_view file) {
  std::vector<SimulatedTenant> tenants;
  bool headed = false;
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
    const auto cells = Split(line);
    if (cells.size() != 10)
      return Fail(Blame::kCaller, "{}:{}: The line has {} cells; 10 were expected.", file, number,
                  cells.size());
    constexpr std::array<std::pair<int64_t, int64_t>, 10> kRanges = {
        {{}, {0, 100}, {1, 100}, {1, 10000}, {-10, 10}, {1, kMost}, {0, kMost}, {}, {0, kMost}, {0, kMost}}};
    std::array<int64_t, 10> n{};
    for (size_t i = 1; i < 10; ++i) {
      if (i == 7) continue;
      const auto value = ParseInteger(cells[i]);
      if (!value || *value < kRanges[i].first || *value > kRanges[i].second)
        return Fail(Blame::kCaller, "{}:{}: Column {} is \"{}\"; a whole number from {} to {} was expected.",
                    file, number, i + 1, cells[i], kRanges[i].first, kRanges[i].second);
      n[i] = *value;
    }
    if (cells[7] != "yes" && cells[7] != "no")
      return Fail(Blame::kCaller, "{}:{}: Column 8 is \"{}\"; yes or no was expected.", file, number,
                  cells[7]);
    tenants.push_back({.name = std::string(cells[0]),
                       .terms = {.guarantee = static_cast<double>(n[1]) / 100,
                                 .limit = static_cast<double>(n[2]) / 100,
                                 .weight = static_cast<double>(n[3]),
                                 .priority = static_cast<int>(n[4])},
                       .kernel_ns = n[5] * kUs,
                       .period_ns = n[6] * kUs,
                       .sliceable = cells[7] == "yes",
                       .from_ns = n[8] * kMs,
                       .until_ns = n[9] ? n[9] * kMs : INT64_MAX});
  }
  if (tenants.empty())
    return Fail(Blame::kCaller, "{} names no tenant; a line of columns and one for each tenant was expected.",
                file);
  return tenants;
}

Simulation Simulate(const Scenario& scenario) {
  Scheduler scheduler(scenario.settings);
  Simulation result;
  const size_t n = scenario.tenants.size();
  std::vector<Runner> runners(n);
  using Arrival = std::pair<int64_t, uint32_t>;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals;
  for (uint32_t t = 0; t < n; ++t) {
    scheduler.Add(t, scenario.tenants[t].terms, 0);
    arrivals.push({scenario.tenants[t].from_ns, t});
  }
  int64_t now = 0;
  while (now < scenario.length_ns) {
    while (!arrivals.empty() && arrivals.top().first <= now) {
      const auto [at, t] = arrivals.top();
      arrivals.pop();
      const SimulatedTenant& tenant = scenario.tenants[t];
      if (at >= tenant.until_ns) continue;
      runners[t].queue.push_back({at, tenant.kernel_ns});
      scheduler.Ready(t, now);
      if (tenant.period_ns) arrivals.push({at + tenant.period_ns, t});
    }
    const auto grant = scheduler.Next(now);
    if (!grant) {
      int64_t to = std::min(scenario.length_ns, std::max(now + 1, scheduler.NextRelease()));
      if (!arrivals.empty()) to = std::min(to, arrivals.top().first);
      now = to;
      continue;
    }
    const SimulatedTenant& tenant = scenario.tenants[grant->tenant];
    Runner& runner = runners[grant->tenant];
    const int64_t begin = now;
    int64_t left = std::max<int64_t>(1, static_cast<int64_t>(grant->ns));
    while (left > 0 && !runner.queue.empty()) {
      Kernel& kernel = runner.queue.front();
      if (!tenant.sliceable && kernel.left_ns > left && now > begin) break;  // does not fit behind the others
      const int64_t piece = tenant.sliceable ? std::min(left, kernel.left_ns) : kernel.left_ns;
      now += piece;
      left -= piece;
      kernel.left_ns -= piece;
      if (kernel.left_ns > 0) continue;
      runner.latencies.push_back(now - kernel.arrived_ns);
      runner.queue.pop_front();
      if (tenant.period_ns == 0 && now < tenant.until_ns) runner.queue.push_back({now, tenant.kernel_ns});
    }
    scheduler.Charge(grant->tenant, now - begin, begin);
    if (runner.queue.empty()) scheduler.Idle(grant->tenant, now);
    const int64_t end = std::min(now, scenario.length_ns);
    if (!result.spans.empty() && result.spans.back().tenant == grant->tenant &&
        result.spans.back().end_ns == begin)
      result.spans.back().end_ns = end;
    else
      result.spans.push_back({grant->tenant, begin, end});
  }
  result.outcomes.resize(n);
  CountShares(scenario, result);
  for (size_t t = 0; t < n; ++t) {
    result.outcomes[t].kernels = runners[t].latencies.size();
    result.outcomes[t].p50_ns = Percentile(runners[t].latencies, 50);
    result.outcomes[t].p99_ns = Percentile(runners[t].latencies, 99);
  }
  return result;
}

std::string PrintSimulation(const Scenario& scenario, const Simulation& simulation) {
  std::string out = fmt::format("{:<16} {:>8} {:>9} {:>9} {:>9} {:>10} {:>10}\n", "tenant", "share %",
                                "least 1s", "most 1s", "kernels", "P50 ms", "P99 ms");
  for (size_t t = 0; t < scenario.tenants.size(); ++t) {
    const Simulation::Outcome& o = simulation.outcomes[t];
    out += fmt::format("{:<16} {:>8.2f} {:>9.2f} {:>9.2f} {:>9} {:>10.3f} {:>10.3f}\n",
                       scenario.tenants[t].name, o.share * 100, o.least_share * 100, o.most_share * 100,
                       o.kernels, static_cast<double>(o.p50_ns) / kMs, static_cast<double>(o.p99_ns) / kMs);
  }
  return out + fmt::format("idle {:.2f} %\n", simulation.idle * 100);
}

std::string DrawTimeline(const Scenario& scenario, const Simulation& simulation, int64_t from_ns,
                         int64_t to_ns) {
  constexpr int kLeft = 110, kWide = 600, kRow = 24, kBar = 16;
  constexpr std::array<std::string_view, 6> kColours = {"#3b82c4", "#d9822b", "#3f9f5f",
                                                        "#b05cc6", "#c94f5d", "#8a8f3c"};
  constexpr std::string_view kGrey = "#808080";  // readable on white and on black
  const int rows = static_cast<int>(scenario.tenants.size());
  const int bottom = rows * kRow + 4;
  const auto x = [&](int64_t ns) {
    return kLeft + static_cast<double>(ns - from_ns) / static_cast<double>(to_ns - from_ns) * kWide;
  };
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n",
      kLeft + kWide + 30, bottom + 22);
  for (int t = 0; t < rows; ++t) {
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"{}\">{}</text>\n", kLeft - 8,
                       t * kRow + 16, kGrey, Escape(scenario.tenants[static_cast<size_t>(t)].name));
  }
  for (const Simulation::Span& span : simulation.spans) {
    if (span.end_ns <= from_ns || span.begin_ns >= to_ns) continue;
    const double left = x(std::max(span.begin_ns, from_ns)), right = x(std::min(span.end_ns, to_ns));
    out += fmt::format("<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"/>\n", left,
                       static_cast<int>(span.tenant) * kRow + 4, std::max(right - left, 0.2), kBar,
                       kColours[span.tenant % kColours.size()]);
  }
  out += fmt::format("<path d=\"M{} {}H{}\" stroke=\"{}\"/>\n", kLeft, bottom, kLeft + kWide, kGrey);
  for (int i = 0; i <= 5; ++i) {
    const int64_t at = from_ns + (to_ns - from_ns) * i / 5;
    out += fmt::format("<text x=\"{:.0f}\" y=\"{}\" text-anchor=\"middle\" fill=\"{}\">{:g} ms</text>\n",
                       x(at), bottom + 16, kGrey, static_cast<double>(at) / kMs);
  }
  return out + "</svg>\n";
}

}  // namespace cuplex::policies
