#include "policies/simulator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <functional>
#include <queue>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "policies/quantity.h"

namespace cuplex::policies {
namespace {

constexpr int64_t kUs = 1000, kMs = 1'000'000, kSecond = 1'000'000'000;
constexpr std::string_view kColumns =
    "name,guarantee,limit,weight,priority,kernel_us,period_us,sliceable,from_ms,until_ms";
constexpr std::string_view kWidth = ",width_percent";
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
  bool sliceable = false;
};

/// When a tenant asks for the next kernel; INT64_MAX: never again.
int64_t NextArrival(const SimulatedTenant& tenant, size_t taken) {
  return taken < tenant.recorded.size() ? tenant.recorded[taken].at_ns : INT64_MAX;
}

Kernel KernelOf(const RecordedKernel& recorded) {
  return {recorded.at_ns, recorded.device_ns, recorded.sliceable};
}

struct Runner {
  size_t taken = 0;  // of a recorded load
  std::deque<Kernel> queue;
  std::vector<int64_t> latencies;
};

/// A stretch of time of which a tenant had a part.
struct Stretch {
  uint32_t tenant = 0;
  int64_t begin_ns = 0, end_ns = 0;
  double part = 1;
};

/// The n-th of a hundred, by rank.
int64_t Percentile(std::vector<int64_t>& all, size_t n) {
  if (all.empty()) return 0;
  const size_t rank = std::min(all.size() - 1, all.size() * n / 100);
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(rank), all.end());
  return all[rank];
}

void CountShares(const Scenario& scenario, const std::vector<Stretch>& stretches, Simulation& result) {
  constexpr int64_t kBin = kSecond / 10;
  const size_t n = scenario.tenants.size();
  const size_t bins = static_cast<size_t>((scenario.length_ns + kBin - 1) / kBin);
  std::vector<std::vector<double>> ran(n, std::vector<double>(bins));
  double busy = 0;
  for (const Stretch& stretch : stretches) {
    busy += static_cast<double>(stretch.end_ns - stretch.begin_ns) * stretch.part;
    for (int64_t at = stretch.begin_ns; at < stretch.end_ns;) {
      const int64_t to = std::min(stretch.end_ns, (at / kBin + 1) * kBin);
      ran[stretch.tenant][static_cast<size_t>(at / kBin)] += static_cast<double>(to - at) * stretch.part;
      at = to;
    }
  }
  result.idle = 1 - busy / static_cast<double>(scenario.length_ns);
  for (size_t t = 0; t < n; ++t) {
    Simulation::Outcome& out = result.outcomes[t];
    double sum = 0, window = 0, least = kSecond, most = 0;
    for (size_t b = 0; b < bins; ++b) {
      sum += ran[t][b];
      window += ran[t][b] - (b >= 10 ? ran[t][b - 10] : 0);
      if (b + 1 < 10) continue;
      least = std::min(least, window);
      most = std::max(most, window);
    }
    out.share = sum / static_cast<double>(scenario.length_ns);
    out.least_share = bins < 10 ? out.share : least / kSecond;
    out.most_share = bins < 10 ? out.share : most / kSecond;
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

/// Several tenants' work on the device at once.
class Together {
 public:
  explicit Together(const Scenario& scenario)
      : scenario_(scenario), scheduler_(scenario.settings), lanes_(scenario.tenants.size()) {
    for (uint32_t t = 0; t < lanes_.size(); ++t) {
      scheduler_.Add(t, scenario.tenants[t].terms, 0);
      const SimulatedTenant& tenant = scenario.tenants[t];
      lanes_[t].due_ns = tenant.recorded.empty() ? tenant.from_ns : NextArrival(tenant, 0);
    }
  }

  Simulation Run() {
    while (now_ < scenario_.length_ns) {
      Arrive();
      Pump();
      Pass();
    }
    for (Lane& lane : lanes_) {
      Simulation::Outcome out;
      out.kernels = lane.latencies.size();
      out.waiting =
          lane.queue.size() + static_cast<size_t>(std::ranges::count(lane.given, true, &Piece::last));
      out.p50_ns = Percentile(lane.latencies, 50);
      out.p99_ns = Percentile(lane.latencies, 99);
      result_.outcomes.push_back(out);
    }
    CountShares(scenario_, stretches_, result_);
    std::sort(result_.spans.begin(), result_.spans.end(),
              [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
    return std::move(result_);
  }

 private:
  struct Piece {
    int64_t arrived_ns = 0;
    int64_t foreseen_ns = 0;
    double left_ns = 0, had_ns = 0;
    bool last = true;  // of its kernel
  };
  struct Lane {
    std::deque<Kernel> queue;
    std::deque<Piece> given;
    int64_t due_ns = 0;  // the next arrival
    size_t taken = 0;    // of a recorded load
    size_t span = SIZE_MAX;
    std::vector<int64_t> latencies;
  };

  void Arrive() {
    for (uint32_t t = 0; t < lanes_.size(); ++t) {
      const SimulatedTenant& tenant = scenario_.tenants[t];
      Lane& lane = lanes_[t];
      while (!tenant.recorded.empty() && lane.due_ns <= now_) {
        lane.queue.push_back(KernelOf(tenant.recorded[lane.taken]));
        scheduler_.Ready(t, now_);
        lane.due_ns = NextArrival(tenant, ++lane.taken);
      }
      while (tenant.recorded.empty() && lane.due_ns <= now_ && lane.due_ns < tenant.until_ns) {
        // One that has work at any time is given it as fast as it is taken.
        if (!tenant.period_ns && !lane.queue.empty()) break;
        lane.queue.push_back({tenant.period_ns ? lane.due_ns : now_, tenant.kernel_ns, tenant.sliceable});
        scheduler_.Ready(t, now_);
        if (!tenant.period_ns) break;
        lane.due_ns += tenant.period_ns;
      }
    }
  }

  void Pump() {
    for (uint32_t t = 0; t < lanes_.size(); ++t) scheduler_.Resume(t, now_);
    while (const auto grant = scheduler_.Next(now_)) {
      Lane& lane = lanes_[grant->tenant];
      double on_device = 0;
      for (const Piece& piece : lane.given) on_device += piece.left_ns;
      const auto most = static_cast<double>(
          std::min<uint64_t>(grant->ahead_ns, static_cast<uint64_t>(scenario_.settings.slice_ns)));
      if (on_device > most / 2) {
        scheduler_.Hold(grant->tenant, now_);
        continue;
      }
      Give(grant->tenant, lane,
           static_cast<int64_t>(std::min(static_cast<double>(grant->ns), most - on_device)));
      Arrive();
      if (lane.queue.empty()) scheduler_.Idle(grant->tenant, now_);
    }
  }

  void Give(uint32_t t, Lane& lane, int64_t most_ns) {
    const SimulatedTenant& tenant = scenario_.tenants[t];
    int64_t given = 0;
    while (given < std::max<int64_t>(1, most_ns) && !lane.queue.empty()) {
      Kernel& kernel = lane.queue.front();
      const int64_t rest = most_ns - given;
      if (!kernel.sliceable && given && kernel.left_ns > rest) break;
      const int64_t ns =
          kernel.sliceable ? std::min(std::max<int64_t>(1, rest), kernel.left_ns) : kernel.left_ns;
      kernel.left_ns -= ns;
      given += ns;
      lane.given.push_back({kernel.arrived_ns, ns, static_cast<double>(ns), 0, kernel.left_ns == 0});
      if (kernel.left_ns) break;
      lane.queue.pop_front();
      if (!tenant.period_ns) Arrive();
    }
    scheduler_.Charge(t, given, now_);
  }

  /// How fast each that is on the device gets on: the narrow first have what they can fill.
  std::vector<std::pair<uint32_t, double>> Rates() const {
    std::vector<uint32_t> running;
    for (uint32_t t = 0; t < lanes_.size(); ++t)
      if (!lanes_[t].given.empty()) running.push_back(t);
    std::sort(running.begin(), running.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(scenario_.tenants[a].width, a) < std::pair(scenario_.tenants[b].width, b);
    });
    std::vector<std::pair<uint32_t, double>> rates;
    double left = 1;
    for (size_t i = 0; i < running.size(); ++i) {
      const double width = scenario_.tenants[running[i]].width;
      const double has = std::min(width, left / static_cast<double>(running.size() - i));
      left -= has;
      rates.emplace_back(running[i], has / width);
    }
    return rates;
  }

  /// Lets time pass until something happens.
  void Pass() {
    const auto rates = Rates();
    int64_t to = std::min(scenario_.length_ns, scheduler_.NextRelease());
    for (uint32_t t = 0; t < lanes_.size(); ++t) {
      const int64_t due = lanes_[t].due_ns;
      if (due > now_ && due < scenario_.tenants[t].until_ns) to = std::min(to, due);
    }
    for (const auto& [t, rate] : rates)
      to = std::min(to, now_ + static_cast<int64_t>(std::ceil(lanes_[t].given.front().left_ns / rate)));
    to = std::max(to, now_ + 1);
    for (const auto& [t, rate] : rates) {
      Lane& lane = lanes_[t];
      Piece& piece = lane.given.front();
      const double part = 1 / static_cast<double>(rates.size());
      Draw(t, lane, to, part);
      piece.left_ns -= static_cast<double>(to - now_) * rate;
      piece.had_ns += static_cast<double>(to - now_) * part;
      if (piece.left_ns > 0.5) continue;
      scheduler_.Charge(t, static_cast<int64_t>(piece.had_ns) - piece.foreseen_ns, to);
      if (piece.last) lane.latencies.push_back(to - piece.arrived_ns);
      lane.given.pop_front();
    }
    now_ = to;
  }

  void Draw(uint32_t t, Lane& lane, int64_t to, double part) {
    stretches_.push_back({t, now_, to, part});
    if (lane.span != SIZE_MAX && result_.spans[lane.span].end_ns == now_) {
      result_.spans[lane.span].end_ns = to;
      return;
    }
    lane.span = result_.spans.size();
    result_.spans.push_back({t, now_, to});
  }

  const Scenario& scenario_;
  Scheduler scheduler_;
  std::vector<Lane> lanes_;
  int64_t now_ = 0;
  std::vector<Stretch> stretches_;
  Simulation result_;
};

}  // namespace

Result<Scenario> ReadScenario(std::string_view text, std::string_view file) {
  Scenario scenario;
  std::vector<SimulatedTenant>& tenants = scenario.tenants;
  bool headed = false;
  size_t columns = 10;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    if (!headed) {
      const bool wide = line.starts_with(kColumns) && line.substr(kColumns.size()) == kWidth;
      scenario.settings.together = wide;
      columns += wide;
      if (line != kColumns && !wide)
        return Fail(Blame::kCaller, "{}:{}: The columns are \"{}\"; \"{}\" was expected.", file, number, line,
                    kColumns);
      headed = true;
      continue;
    }
    const auto cells = Split(line);
    if (cells.size() != columns)
      return Fail(Blame::kCaller, "{}:{}: The line has {} cells; {} were expected.", file, number,
                  cells.size(), columns);
    constexpr std::array<std::pair<int64_t, int64_t>, 11> kRanges = {{{},
                                                                      {0, 100},
                                                                      {1, 100},
                                                                      {1, 10000},
                                                                      {-10, 10},
                                                                      {1, kMost},
                                                                      {0, kMost},
                                                                      {},
                                                                      {0, kMost},
                                                                      {0, kMost},
                                                                      {1, 100}}};
    std::array<int64_t, 11> n{};
    n[10] = 100;
    for (size_t i = 1; i < columns; ++i) {
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
                       .until_ns = n[9] ? n[9] * kMs : INT64_MAX,
                       .width = static_cast<double>(n[10]) / 100});
  }
  if (tenants.empty())
    return Fail(Blame::kCaller, "{} names no tenant; a line of columns and one for each tenant was expected.",
                file);
  return scenario;
}

Simulation Simulate(const Scenario& scenario) {
  if (scenario.settings.together) return Together(scenario).Run();
  Scheduler scheduler(scenario.settings);
  Simulation result;
  const size_t n = scenario.tenants.size();
  std::vector<Runner> runners(n);
  using Arrival = std::pair<int64_t, uint32_t>;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals;
  for (uint32_t t = 0; t < n; ++t) {
    scheduler.Add(t, scenario.tenants[t].terms, 0);
    const SimulatedTenant& tenant = scenario.tenants[t];
    arrivals.push({tenant.recorded.empty() ? tenant.from_ns : NextArrival(tenant, 0), t});
  }
  int64_t now = 0;
  while (now < scenario.length_ns) {
    while (!arrivals.empty() && arrivals.top().first <= now) {
      const auto [at, t] = arrivals.top();
      arrivals.pop();
      const SimulatedTenant& tenant = scenario.tenants[t];
      if (at >= tenant.until_ns && tenant.recorded.empty()) continue;
      Runner& runner = runners[t];
      scheduler.Ready(t, now);
      if (!tenant.recorded.empty()) {
        runner.queue.push_back(KernelOf(tenant.recorded[runner.taken++]));
        const int64_t next = NextArrival(tenant, runner.taken);
        if (next != INT64_MAX) arrivals.push({next, t});
        continue;
      }
      runner.queue.push_back({at, tenant.kernel_ns, tenant.sliceable});
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
      if (!kernel.sliceable && kernel.left_ns > left && now > begin) break;  // does not fit behind the others
      const int64_t piece = kernel.sliceable ? std::min(left, kernel.left_ns) : kernel.left_ns;
      now += piece;
      left -= piece;
      kernel.left_ns -= piece;
      if (kernel.left_ns > 0) continue;
      runner.latencies.push_back(now - kernel.arrived_ns);
      runner.queue.pop_front();
      if (tenant.recorded.empty() && tenant.period_ns == 0 && now < tenant.until_ns)
        runner.queue.push_back({now, tenant.kernel_ns, tenant.sliceable});
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
  std::vector<Stretch> stretches;
  for (const Simulation::Span& span : result.spans)
    stretches.push_back({span.tenant, span.begin_ns, span.end_ns, 1});
  CountShares(scenario, stretches, result);
  for (size_t t = 0; t < n; ++t) {
    result.outcomes[t].kernels = runners[t].latencies.size();
    result.outcomes[t].waiting = runners[t].queue.size();
    result.outcomes[t].p50_ns = Percentile(runners[t].latencies, 50);
    result.outcomes[t].p99_ns = Percentile(runners[t].latencies, 99);
  }
  return result;
}

std::string PrintSimulation(const Scenario& scenario, const Simulation& simulation) {
  std::string out = fmt::format("{:<16} {:>8} {:>9} {:>9} {:>9} {:>9} {:>10} {:>10}\n", "tenant", "share %",
                                "least 1s", "most 1s", "kernels", "waiting", "P50 ms", "P99 ms");
  for (size_t t = 0; t < scenario.tenants.size(); ++t) {
    const Simulation::Outcome& o = simulation.outcomes[t];
    out += fmt::format("{:<16} {:>8.2f} {:>9.2f} {:>9.2f} {:>9} {:>9} {:>10.3f} {:>10.3f}\n",
                       scenario.tenants[t].name, o.share * 100, o.least_share * 100, o.most_share * 100,
                       o.kernels, o.waiting, static_cast<double>(o.p50_ns) / kMs,
                       static_cast<double>(o.p99_ns) / kMs);
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
