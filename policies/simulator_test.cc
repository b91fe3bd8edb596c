#include "policies/simulator.h"

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

namespace cuplex::policies {
namespace {

constexpr int64_t kMs = 1'000'000;

std::string ReadAll(const std::string& path) {
  std::ifstream file(std::string(SOURCE_ROOT) + path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

Scenario Read(const std::string& name) {
  auto scenario = ReadScenario(ReadAll("/policies/scenarios/" + name + ".csv"), name);
  EXPECT_TRUE(scenario.ok()) << scenario.error().sentence;
  return scenario.ok() ? *scenario : Scenario{};
}

struct Expectation {
  const char* scenario;
  std::vector<double> shares;
  double within, within_a_second;
};

class SimulatorShares : public testing::TestWithParam<Expectation> {};

TEST_P(SimulatorShares, AreWhatTheTermsSay) {
  const auto& [name, shares, within, within_a_second] = GetParam();
  const Simulation simulation = Simulate(Read(name));
  ASSERT_EQ(simulation.outcomes.size(), shares.size());
  for (size_t t = 0; t < shares.size(); ++t) {
    EXPECT_NEAR(simulation.outcomes[t].share, shares[t], within) << t;
    EXPECT_NEAR(simulation.outcomes[t].least_share, shares[t], within_a_second) << t;
    EXPECT_NEAR(simulation.outcomes[t].most_share, shares[t], within_a_second) << t;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios, SimulatorShares,
    testing::Values(Expectation{"weights", {0.3, 0.7}, 0.01, 0.02},
                    Expectation{"weights-2-98", {0.02, 0.98}, 0.01, 0.02},
                    Expectation{"weights-1-to-8",
                                {1 / 36., 2 / 36., 3 / 36., 4 / 36., 5 / 36., 6 / 36., 7 / 36., 8 / 36.},
                                0.01,
                                0.02},
                    Expectation{"limit", {0.3}, 0.01, 0.01}, Expectation{"guarantee", {0.3, 0.7}, 0.01, 0.02},
                    Expectation{"guarantee-alone", {1}, 0.02, 0.02},
                    Expectation{"fixed-share", {0.25, 0.5}, 0.01, 0.01},
                    Expectation{"tiny-and-long", {0.5, 0.5}, 0.01, 0.02},
                    Expectation{"concurrent", {0.5, 0.5}, 0.01, 0.01},
                    Expectation{"concurrent-weights", {0.25, 0.75}, 0.01, 0.01},
                    Expectation{"concurrent-limit", {0.3, 0.7}, 0.01, 0.01},
                    // 70%, and a third of what that leaves
                    Expectation{"concurrent-guarantee", {0.8, 0.1, 0.1}, 0.01, 0.01}),
    [](const auto& row) {
      std::string name = row.param.scenario;
      std::erase(name, '-');
      return name;
    });

TEST(Simulator, AHigherClassWaitsForOnePieceAtMost) {
  const Simulation simulation = Simulate(Read("priority"));
  EXPECT_LE(simulation.outcomes[0].p99_ns, 11 * kMs / 10 + 2 * kMs);
  EXPECT_GE(simulation.outcomes[1].share, 0.85 * 0.9);
}

TEST(Simulator, KernelsOfATwoSecondTenantGoInPieces) {
  const Simulation simulation = Simulate(Read("long-kernel"));
  EXPECT_NEAR(simulation.outcomes[0].share, 0.2, 0.02);
  EXPECT_LE(simulation.outcomes[1].p99_ns, 3 * kMs);
}

// Kernels that fill half of the device run beside each other at full speed, also those of the one that waits
// for the other now and then: in turns 10 s would see 20,000 of 500 us in all.
TEST(Simulator, SideBySideMoreGetsDone) {
  for (const char* name : {"concurrent", "concurrent-weights", "concurrent-limit"}) {
    const Simulation simulation = Simulate(Read(name));
    EXPECT_NEAR(static_cast<double>(simulation.outcomes[1].kernels), 20'000, 200) << name;
    EXPECT_GT(simulation.outcomes[0].kernels, 9'900u) << name;
    EXPECT_NEAR(simulation.idle, 0, 0.01) << name;
  }
}

// Two that fill the device each go half as fast: what one's request of 1 ms has to wait for the other is
// that.
TEST(Simulator, SideBySideAHigherClassIsNotAlone) {
  const Simulation simulation = Simulate(Read("concurrent-priority"));
  EXPECT_LE(simulation.outcomes[0].p99_ns, 2 * kMs + kMs / 10);
  EXPECT_NEAR(simulation.outcomes[1].share, 0.9, 0.01);
}

TEST(Simulator, TimeIsNobodysOrOnes) {
  const Simulation simulation = Simulate(Read("limit"));
  EXPECT_NEAR(simulation.idle + simulation.outcomes[0].share, 1, 1e-9);
  for (size_t i = 1; i < simulation.spans.size(); ++i)
    ASSERT_GE(simulation.spans[i].begin_ns, simulation.spans[i - 1].end_ns);
}

TEST(Simulator, BadScenariosAreRefused) {
  constexpr std::string_view kHead =
      "name,guarantee,limit,weight,priority,kernel_us,period_us,sliceable,from_ms,until_ms\n";
  const auto told = [](const std::string& text) {
    auto read = ReadScenario(text, "s");
    return read.ok() ? std::string() : read.error().sentence;
  };
  const std::string head(kHead);
  EXPECT_EQ(told("name\n"),
            "s:1: The columns are \"name\"; \"" + head.substr(0, head.size() - 1) + "\" was expected.");
  EXPECT_EQ(told(head + "a,1\n"), "s:2: The line has 2 cells; 10 were expected.");
  EXPECT_EQ(told(head + "a,0,0,1,0,1,0,no,0,0\n"),
            "s:2: Column 3 is \"0\"; a whole number from 1 to 100 was expected.");
  EXPECT_EQ(told(head + "a,0,1,1,0,1,0,maybe,0,0\n"), "s:2: Column 8 is \"maybe\"; yes or no was expected.");
  EXPECT_EQ(told(head), "s names no tenant; a line of columns and one for each tenant was expected.");
}

// docs/images/NAME.svg is what `cuplex-simulate policies/scenarios/NAME.csv --svg 0 50` prints.
class Pictures : public testing::TestWithParam<const char*> {};

TEST_P(Pictures, AreWhatTheSchedulerDoes) {
  Scenario scenario = Read(GetParam());
  scenario.length_ns = 50 * kMs;
  EXPECT_EQ(DrawTimeline(scenario, Simulate(scenario), 0, 50 * kMs),
            ReadAll(std::string("/docs/images/") + GetParam() + ".svg"))
      << "draw it again: cuplex-simulate policies/scenarios/" << GetParam() << ".csv --svg 0 50";
}

INSTANTIATE_TEST_SUITE_P(Docs, Pictures,
                         testing::Values("weights", "limit", "guarantee", "priority", "fixed-share",
                                         "comes-and-goes", "burst-share", "time-slicing", "average",
                                         "concurrent", "concurrent-weights", "concurrent-limit",
                                         "concurrent-guarantee", "concurrent-priority"),
                         [](const auto& row) {
                           std::string name = row.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace cuplex::policies
