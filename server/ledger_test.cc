#include "server/ledger.h"

#include <gtest/gtest.h>

#include "metrics/metrics.h"

namespace cuplex::server {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

class LedgerTest : public testing::Test {
 protected:
  LedgerTest() {
    for (int d = 0; d < 3; ++d) {
      devices_[static_cast<size_t>(d)].index = d;
      devices_[static_cast<size_t>(d)].memory_bytes = 80 * kGiB;
    }
    terms_.name = "a";
    terms_.terms = {.time = {.limit = 0.5}, .memory_bytes = 2 * kGiB, .part = {}};
  }
  std::vector<Device> devices_ = std::vector<Device>(3);
  metrics::Metrics metrics_{"0", "test", {{"0", "", "", 0}, {"1", "", "", 0}, {"2", "", "", 0}}};
  policies::Tenant terms_;
};

TEST_F(LedgerTest, TermsOfADeviceGoBeforeThoseOfTheTenant) {
  terms_.devices = {0, 2};
  terms_.on = {{0, {.time = {.guarantee = 0.1}, .memory_bytes = policies::kAllMemory, .part = {}}},
               {2, {.time = {.weight = 7}, .memory_bytes = 5 * kGiB, .part = {}}}};
  Tenant tenant(1, terms_, devices_, metrics_.Tenant("a", {0, 2}).value());
  EXPECT_EQ(tenant.holdings[0]->limit(), 80 * kGiB) << "all there is";
  EXPECT_EQ(tenant.holdings[1], nullptr);
  EXPECT_EQ(tenant.holdings[2]->limit(), 5 * kGiB);
  EXPECT_EQ(tenant.On(0).time.guarantee, 0.1);
  EXPECT_EQ(tenant.On(2).time.weight, 7);
  EXPECT_EQ(tenant.host_limit(), 80 * kGiB);
}

TEST_F(LedgerTest, ANewPolicyChangesEachDeviceByItself) {
  Tenant tenant(1, terms_, devices_, metrics_.Tenant("a", {0, 1, 2}).value());
  EXPECT_EQ(tenant.holdings[1]->limit(), 2 * kGiB);
  EXPECT_EQ(tenant.On(1).time.limit, 0.5);
  terms_.on = {{1, {.time = {.limit = 0.25}, .memory_bytes = kGiB, .part = {}}}};
  tenant.Take(terms_);
  EXPECT_EQ(tenant.holdings[0]->limit(), 2 * kGiB);
  EXPECT_EQ(tenant.holdings[1]->limit(), kGiB);
  EXPECT_EQ(tenant.On(0).time.limit, 0.5);
  EXPECT_EQ(tenant.On(1).time.limit, 0.25);
}

}  // namespace
}  // namespace cuplex::server
