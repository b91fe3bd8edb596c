// The operator's documents against what is served: docs/metrics.md, the dashboard and the alert rules.
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <yaml-cpp/yaml.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metrics/metrics.h"

namespace cuplex::metrics {
namespace {

using testing::IsSubsetOf;
using testing::UnorderedElementsAreArray;

std::string Text(const std::string& path) {
  std::ifstream file(std::string(SOURCE_ROOT) + "/" + path);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::set<std::string> MetricsNamed(const std::string& text) {
  static const std::regex name("cuplex_(server|device|tenant)_[a-z_]+");
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) names.insert(at->str());
  return names;
}

std::set<std::string> MetricsServed() {
  Metrics metrics("1", "d", {{"0", "GPU-0", "zero", 1}});
  auto tenant = *metrics.Tenant("a", {0});
  tenant->device(0).whole_kernels.Add("kernel");
  std::set<std::string> names;
  for (const auto& family : metrics.collectable()->Collect()) names.insert(family.name);
  return names;
}

/// The text of every key `key` below `node`.
void Gather(const YAML::Node& node, const std::string& key, std::vector<std::string>& found) {
  if (node.IsMap()) {
    for (const auto& entry : node) {
      if (entry.first.as<std::string>() == key && entry.second.IsScalar()) {
        found.push_back(entry.second.as<std::string>());
      }
      Gather(entry.second, key, found);
    }
  } else if (node.IsSequence()) {
    for (const auto& item : node) Gather(item, key, found);
  }
}

bool Balanced(const std::string& query) {
  std::string open;
  for (char c : query) {
    if (c == '(' || c == '{' || c == '[') open += c == '(' ? ')' : c == '{' ? '}' : ']';
    if (c != ')' && c != '}' && c != ']') continue;
    if (open.empty() || open.back() != c) return false;
    open.pop_back();
  }
  return open.empty();
}

TEST(Documents, EveryMetricIsDescribedAndNoOther) {
  EXPECT_THAT(MetricsNamed(Text("docs/metrics.md")), UnorderedElementsAreArray(MetricsServed()));
}

TEST(Documents, TheDashboardAsksForWhatIsServed) {
  YAML::Node dashboard = YAML::Load(Text("metrics/dashboards/cuplex.json"));
  EXPECT_EQ(dashboard["uid"].as<std::string>(), "cuplex");
  std::vector<std::string> queries;
  Gather(dashboard, "expr", queries);
  EXPECT_GE(queries.size(), dashboard["panels"].size());
  std::set<int> ids;
  for (const auto& panel : dashboard["panels"]) EXPECT_TRUE(ids.insert(panel["id"].as<int>()).second);
  for (const std::string& query : queries) {
    EXPECT_THAT(MetricsNamed(query), IsSubsetOf(MetricsServed())) << query;
    EXPECT_FALSE(MetricsNamed(query).empty()) << query;
    EXPECT_TRUE(Balanced(query)) << query;
  }
}

TEST(Documents, TheAlertRulesAskForWhatIsServed) {
  YAML::Node rules = YAML::Load(Text("metrics/alerts/cuplex.rules.yaml"))["groups"][0]["rules"];
  ASSERT_TRUE(rules.IsSequence());
  std::set<std::string> names;
  for (const auto& rule : rules) {
    std::string name = rule["alert"].as<std::string>(), query = rule["expr"].as<std::string>();
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_THAT(MetricsNamed(query), IsSubsetOf(MetricsServed())) << name;
    EXPECT_TRUE(Balanced(query)) << query;
    EXPECT_TRUE(rule["labels"]["severity"].IsScalar()) << name;
    EXPECT_TRUE(rule["annotations"]["summary"].IsScalar()) << name;
  }
}

}  // namespace
}  // namespace cuplex::metrics
