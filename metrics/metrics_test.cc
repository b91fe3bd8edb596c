#include "metrics/metrics.h"

#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

#include <sstream>

#include <gtest/gtest.h>

#include "metrics/exposition.h"

namespace cuplex::metrics {
namespace {

std::map<std::string, double> Read(const Metrics& metrics) {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, metrics.collectable()->Collect());
  auto families = ParseExposition(text.str());
  EXPECT_TRUE(families.ok()) << families.error().sentence;
  return families.ok() ? Series(*families) : std::map<std::string, double>{};
}

Metrics TwoDevices() { return Metrics("1", "d", {{"0", "GPU-0", "zero", 1}, {"3", "GPU-3", "three", 2}}); }

TEST(Metrics, ATenantShowsOnTheDevicesItSees) {
  Metrics metrics = TwoDevices();
  auto a = *metrics.Tenant("a", {1});
  a->device(1).launches.Add(5);
  auto series = Read(metrics);
  EXPECT_EQ(series["cuplex_tenant_launches_total{device=\"3\",tenant=\"a\"}"], 5);
  EXPECT_FALSE(series.contains("cuplex_tenant_launches_total{device=\"0\",tenant=\"a\"}"));
}

TEST(Metrics, NamesBeyondTheFirstFewCountTogether) {
  NamedCounts counts;
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 40; ++i) counts.Add("kernel" + std::to_string(i));
  size_t names = 0;
  uint64_t others = 0, sum = 0;
  counts.ForEach([&](const std::string& name, const Count& count) {
    ++names;
    sum += count.value();
    if (name == "others") others = count.value();
  });
  EXPECT_EQ(names, NamedCounts::kMost);
  EXPECT_EQ(sum, 80u);
  EXPECT_EQ(others, 2u * (40 - (NamedCounts::kMost - 1)));
}

TEST(Metrics, ATenantStillHeldKeepsItsCounts) {
  Metrics metrics = TwoDevices();
  auto a = *metrics.Tenant("a", {0});
  a->device(0).launches.Add(5);
  auto again = *metrics.Tenant("a", {0, 1});
  EXPECT_EQ(a, again);
  a.reset();
  auto series = Read(metrics);
  EXPECT_EQ(series["cuplex_tenant_launches_total{device=\"0\",tenant=\"a\"}"], 5);
  EXPECT_TRUE(series.contains("cuplex_tenant_launches_total{device=\"3\",tenant=\"a\"}"));
}

TEST(Metrics, ATenantThatWentBeginsAtZero) {
  Metrics metrics = TwoDevices();
  (*metrics.Tenant("a", {0}))->device(0).launches.Add(5);
  auto a = *metrics.Tenant("a", {0});
  EXPECT_EQ(Read(metrics)["cuplex_tenant_launches_total{device=\"0\",tenant=\"a\"}"], 0);
}

TEST(Metrics, ADeviceThatIsNotThereIsOurFault) {
  auto tenant = TwoDevices().Tenant("a", {2});
  ASSERT_FALSE(tenant.ok());
  EXPECT_EQ(tenant.error().blame, Blame::kOurs);
  EXPECT_EQ(tenant.error().sentence, "Metrics of device 2 were asked for, but only 2 devices are known.");
}

TEST(Metrics, CountersOutliveTheMetricsTheyCameFrom) {
  std::shared_ptr<TenantCounters> a;
  {
    Metrics metrics = TwoDevices();
    a = *metrics.Tenant("a", {0});
  }
  a->device(0).launches.Add();
  EXPECT_EQ(a->device(0).launches.value(), 1u);
}

}  // namespace
}  // namespace cuplex::metrics
