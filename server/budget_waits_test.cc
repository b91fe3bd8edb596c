#include "server/budget_waits.h"

#include <gtest/gtest.h>

namespace cuplex::server {
namespace {

class BudgetWaitsTest : public testing::Test {
 protected:
  void Wait(uint64_t bytes, int64_t until_ns, const void* owner = nullptr) {
    waits_.Add({owner, &holding_, bytes, until_ns, [this, bytes](bool enough) {
                  said_.emplace_back(bytes, enough);
                  if (enough) {
                    EXPECT_TRUE(holding_.Charge(bytes));
                  }
                }});
  }
  metrics::TenantDeviceCounters counters_;
  Holding holding_{0, 100, &counters_};
  BudgetWaits waits_;
  std::vector<std::pair<uint64_t, bool>> said_;
};

TEST_F(BudgetWaitsTest, WhatIsFreedGoesToWhoWaitedLongest) {
  ASSERT_TRUE(holding_.Charge(100));
  Wait(60, 1000);
  Wait(30, 1000);
  EXPECT_FALSE(waits_.Look(1));
  holding_.Refund(40);
  EXPECT_FALSE(waits_.Look(2)) << "the second does not overtake";
  holding_.Refund(60);
  EXPECT_TRUE(waits_.Look(3));
  EXPECT_EQ(said_, (std::vector<std::pair<uint64_t, bool>>{{60, true}, {30, true}}));
  EXPECT_EQ(holding_.used(), 90u);
}

TEST_F(BudgetWaitsTest, TheWaitIsBounded) {
  ASSERT_TRUE(holding_.Charge(100));
  Wait(60, 1000);
  Wait(30, 500);
  EXPECT_EQ(waits_.NextNs(), 500);
  EXPECT_TRUE(waits_.Look(500));
  EXPECT_EQ(said_, (std::vector<std::pair<uint64_t, bool>>{{30, false}}));
  EXPECT_TRUE(waits_.Look(1000));
  EXPECT_EQ(said_.back(), (std::pair<uint64_t, bool>{60, false}));
  EXPECT_EQ(waits_.NextNs(), INT64_MAX);
}

TEST_F(BudgetWaitsTest, WhatCanNeverBeDoesNotWait) {
  ASSERT_TRUE(holding_.Charge(50));
  Wait(80, 1000);
  holding_.SetLimit(60);
  EXPECT_TRUE(waits_.Look(1));
  EXPECT_EQ(said_, (std::vector<std::pair<uint64_t, bool>>{{80, false}}));
}

TEST_F(BudgetWaitsTest, AnOwnerThatIsGoneIsNotCalled) {
  ASSERT_TRUE(holding_.Charge(100));
  int owner = 0;
  Wait(60, 1000, &owner);
  waits_.Forget(&owner);
  EXPECT_TRUE(waits_.empty());
  EXPECT_FALSE(waits_.Look(2000));
  EXPECT_TRUE(said_.empty());
}

}  // namespace
}  // namespace cuplex::server
