// What one decision costs: who is next, and the charge for it. Printed as "METRIC VALUE" lines, in
// nanoseconds.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <random>

#include "policies/scheduler.h"

namespace {

using cuplex::policies::Scheduler;
using cuplex::policies::Terms;

/// Nanoseconds for each Next and Charge, the median of nine rounds.
double Decision(uint32_t tenants, bool mixed) {
  std::mt19937 random(tenants);
  Scheduler scheduler{Scheduler::Settings{}};
  int64_t now = 0;
  for (uint32_t t = 0; t < tenants; ++t) {
    Terms terms;
    if (mixed) {
      terms.weight = 1 + random() % 1000;
      terms.priority = static_cast<int>(random() % 21) - 10;
      if (t < 40) terms.guarantee = 0.02;
      if (random() % 3 == 0) terms.limit = (2 + random() % 40) / 100.0;
    }
    scheduler.Add(t, terms, now);
    scheduler.Ready(t, now);
  }
  constexpr int kDecisions = 50'000;
  double rounds[9];
  for (double& round : rounds) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kDecisions; ++i) {
      const auto grant = scheduler.Next(now);
      if (grant) scheduler.Charge(grant->tenant, 50'000 + i % 7 * 10'000, now);
      now += 80'000;
    }
    round = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() /
            kDecisions;
  }
  std::sort(std::begin(rounds), std::end(rounds));
  return rounds[4];
}

}  // namespace

int main() {
  for (uint32_t tenants : {1u, 10u, 100u, 1000u}) {
    std::printf("decision_ns_%u_equal %.1f\n", tenants, Decision(tenants, false));
    std::printf("decision_ns_%u_mixed %.1f\n", tenants, Decision(tenants, true));
  }
}
