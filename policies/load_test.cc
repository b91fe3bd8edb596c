#include "policies/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

namespace cuplex::policies {
namespace {

using testing::HasSubstr;

constexpr std::string_view kHead = "at_ns,device,tenant,device_ns,sliceable\n";

class NoAccounts final : public Accounts {
 public:
  std::optional<uint32_t> Uid(const std::string&) const override { return std::nullopt; }
  std::optional<uint32_t> Gid(const std::string&) const override { return std::nullopt; }
};

Policy Read(std::string_view text) {
  auto policy = ParsePolicy(text, "p.yaml", NoAccounts());
  EXPECT_TRUE(policy.ok()) << policy.error().sentence;
  return *policy;
}

RecordedLoad Load(const std::string& lines, int device = 0) {
  auto load = ReadLoad(std::string(kHead) + lines, "l.csv", device);
  EXPECT_TRUE(load.ok()) << load.error().sentence;
  return load.ok() ? *load : RecordedLoad{};
}

TEST(Load, IsReadByTenantAndInTheOrderOfArrival) {
  const RecordedLoad load =
      Load("# a comment\n500,0,b,70,no\n100,0,a,2000000,yes\n\n0,0,b,0,no\n300,1,a,5,no\n");
  ASSERT_EQ(load.tenants.size(), 2u);
  EXPECT_EQ(load.tenants[0].tenant, "a");
  EXPECT_EQ(load.tenants[0].kernels, (std::vector<RecordedKernel>{{100, 2'000'000, true}}));
  EXPECT_EQ(load.tenants[1].tenant, "b");
  EXPECT_EQ(load.tenants[1].kernels, (std::vector<RecordedKernel>{{0, 1, false}, {500, 70, false}}));
  EXPECT_EQ(load.length_ns, 2'000'071) << "as long as all of the work";
  EXPECT_EQ(Load("300,1,a,5,no\n9,0,a,1,no\n", 1).length_ns, 301) << "until the last is asked for";
}

TEST(Load, SaysWhereItsTextIsWrong) {
  const std::pair<std::string, std::string> wrong[] = {
      {"at,tenant\n", "l.csv:1: The columns are \"at,tenant\""},
      {std::string(kHead) + "1,0,a,5\n", "l.csv:2: The line is \"1,0,a,5\"; 5 cells were expected."},
      {std::string(kHead) + "1,0,a,5,no,9\n", "5 cells were expected."},
      {std::string(kHead) + "\n-1,0,a,5,no\n", "l.csv:3: Column 1 is \"-1\""},
      {std::string(kHead) + "1,x,a,5,no\n", "Column 2 is \"x\""},
      {std::string(kHead) + "1,0,a,99999999999999999999,no\n", "Column 4 is"},
      {std::string(kHead) + "1,0,,5,no\n", "Column 3 is empty"},
      {std::string(kHead) + "1,0,a,5,maybe\n", "Column 5 is \"maybe\"; yes or no was expected."},
      {std::string(kHead), "l.csv records nothing on device 0."},
      {std::string(kHead) + "1,3,a,5,no\n", "l.csv records nothing on device 0, but on others."},
      {"", "records nothing"},
  };
  for (const auto& [text, sentence] : wrong) {
    const auto load = ReadLoad(text, "l.csv", 0);
    ASSERT_FALSE(load.ok()) << text;
    EXPECT_THAT(load.error().sentence, HasSubstr(sentence));
  }
}

constexpr const char* kPolicy = R"(version: 1
devices:
  - {index: 0, mode: timeslice, max_slice: 4ms}
  - {index: 1, mode: concurrent}
tenants:
  - {name: a, memory: 1GiB, limit: 30%}
  - {name: b, memory: 1GiB, priority: 3, devices: [0]}
)";

TEST(Load, TakesItsTermsFromAPolicy) {
  const RecordedLoad load = Load("0,0,a,1000,no\n0,0,b,1000,no\n");
  const auto scenario = ScenarioOf(Read(kPolicy), 0, load);
  ASSERT_TRUE(scenario.ok()) << scenario.error().sentence;
  EXPECT_EQ(scenario->settings.slice_ns, 4'000'000);
  EXPECT_FALSE(scenario->settings.together);
  ASSERT_EQ(scenario->tenants.size(), 2u);
  EXPECT_EQ(scenario->tenants[0].terms.limit, 0.3);
  EXPECT_EQ(scenario->tenants[1].terms.priority, 3);
  const auto beside = ScenarioOf(Read(kPolicy), 1, Load("0,0,a,1000,no\n"));
  ASSERT_TRUE(beside.ok()) << beside.error().sentence;
  EXPECT_TRUE(beside->settings.together);
}

TEST(Load, OfATenantThatIsNotThereIsRefused) {
  const auto unknown = ScenarioOf(Read(kPolicy), 0, Load("0,0,c,1000,no\n"));
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().sentence, HasSubstr("\"c\", whom this policy does not know"));
  const auto unseen = ScenarioOf(Read(kPolicy), 1, Load("0,0,b,1000,no\n"));
  ASSERT_FALSE(unseen.ok());
  EXPECT_THAT(unseen.error().sentence, HasSubstr("\"b\", who does not see the device"));
  Scenario scenario;
  scenario.tenants.push_back({.name = "a"});
  EXPECT_FALSE(TakeLoad(Load("0,0,c,1000,no\n"), scenario).ok());
}

TEST(Load, OfAPartOfADeviceIsRefused) {
  const auto parts = ScenarioOf(Read("version: 1\ndevices: [{index: 0, mode: partition}]\n"
                                     "tenants: [{name: a, memory: 1GiB, partition: 2of7}]\n"),
                                0, Load("0,0,a,1000,no\n"));
  ASSERT_FALSE(parts.ok());
  EXPECT_THAT(parts.error().sentence, HasSubstr("mode partition"));
}

/// a asks for 1 ms every ms and b for 5 ms every 5 ms: twice what there is.
RecordedLoad Overload(int64_t ms) {
  std::string lines;
  for (int64_t at = 0; at < ms; ++at) {
    lines += fmt::format("{},0,a,1000000,no\n", at * 1'000'000);
    if (at % 5 == 0) lines += fmt::format("{},0,b,5000000,yes\n", at * 1'000'000);
  }
  return Load(lines);
}

class LoadReplayed : public testing::TestWithParam<bool> {};

TEST_P(LoadReplayed, GetsWhatTheTermsSay) {
  const RecordedLoad load = Overload(2000);
  Scenario scenario;
  scenario.settings.together = GetParam();
  scenario.tenants = {{.name = "a", .terms = {.weight = 25}}, {.name = "b", .terms = {.weight = 75}}};
  ASSERT_TRUE(TakeLoad(load, scenario).ok());
  EXPECT_EQ(scenario.length_ns, 4'000'000'000);
  scenario.length_ns = 2'000'000'000;
  const Simulation beside = Simulate(scenario);
  EXPECT_NEAR(beside.outcomes[0].share, 0.25, 0.01);
  EXPECT_NEAR(beside.outcomes[1].share, 0.75, 0.01);
  EXPECT_EQ(beside.outcomes[0].kernels + beside.outcomes[0].waiting, 2000u);
  EXPECT_EQ(beside.outcomes[1].kernels + beside.outcomes[1].waiting, 400u);
  EXPECT_NEAR(static_cast<double>(beside.outcomes[0].kernels), 500, 20);

  // Given the time, each gets all it asked for, and no more.
  scenario.length_ns = 5'000'000'000;
  const Simulation whole = Simulate(scenario);
  EXPECT_EQ(whole.outcomes[0].kernels, 2000u);
  EXPECT_EQ(whole.outcomes[1].kernels, 400u);
  EXPECT_NEAR(whole.outcomes[0].share, 0.4, 1e-3);
  EXPECT_NEAR(whole.idle, 0.2, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(InTurnsAndTogether, LoadReplayed, testing::Bool());

TEST(LoadReplayed, AHigherClassWaitsForOneSliceAtMost) {
  std::string lines = "0,0,low,3000000000,yes\n";
  for (int i = 0; i < 200; ++i) lines += fmt::format("{},0,high,1000000,no\n", 3'000'000 + i * 10'000'000);
  Scenario scenario;
  scenario.tenants = {{.name = "high", .terms = {.priority = 1}}, {.name = "low"}};
  ASSERT_TRUE(TakeLoad(Load(lines), scenario).ok());
  const Simulation simulation = Simulate(scenario);
  EXPECT_EQ(simulation.outcomes[0].kernels, 200u);
  EXPECT_LE(simulation.outcomes[0].p99_ns, 3'000'000);
  EXPECT_EQ(simulation.outcomes[1].kernels, 1u);
}

}  // namespace
}  // namespace cuplex::policies
