#include "server/device_time.h"

#include <random>

namespace cuplex::server {
namespace {

class DeviceTimeTest : public testing::Test {
 protected:
  void Settle(int64_t until, std::vector<DeviceTime::Interval> running = {}) {
    time_.Settle(until, running, [&](uint32_t tenant, uint64_t ns) { charged_[tenant] += ns; });
  }
  DeviceTime time_;
  std::map<uint32_t, uint64_t> charged_;
};

TEST_F(DeviceTimeTest, OneTenantsOverlapCountsOnce) {
  time_.Finish({1, 0, 100});
  time_.Finish({1, 50, 150});
  time_.Finish({1, 200, 230});
  Settle(1000);
  EXPECT_EQ(charged_[1], 180u);
  EXPECT_FALSE(time_.HasUnsettled());
}

TEST_F(DeviceTimeTest, OverlapOfTwoTenantsIsSplit) {
  time_.Finish({1, 0, 100});
  time_.Finish({2, 60, 160});
  Settle(1000);
  EXPECT_EQ(charged_[1], 60u + 20u);
  EXPECT_EQ(charged_[2], 60u + 20u);
}

TEST_F(DeviceTimeTest, SettledTimeStays) {
  time_.Finish({1, 0, 100});
  Settle(40);
  EXPECT_EQ(charged_[1], 40u);
  time_.Finish({2, 10, 100});  // tells of time before 40 too late
  Settle(100);
  EXPECT_EQ(charged_[1], 40u + 30u);
  EXPECT_EQ(charged_[2], 30u);
}

TEST_F(DeviceTimeTest, WhatStillRunsIsChargedAsItGoes) {
  Settle(100, {{1, 20, 0}});
  EXPECT_EQ(charged_[1], 80u);
  time_.Finish({1, 20, 130});
  Settle(200);
  EXPECT_EQ(charged_[1], 110u);
}

// Against counting every nanosecond by itself.
TEST_F(DeviceTimeTest, SumsToTheTimeThatAnyoneWasBusy) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    time_ = {};
    charged_.clear();
    std::vector<std::vector<bool>> busy(3, std::vector<bool>(500));
    for (int i = 0; i < 12; ++i) {
      const uint32_t tenant = random() % 3;
      const int64_t begin = random() % 400, end = begin + random() % 100;
      time_.Finish({tenant, begin, end});
      for (int64_t t = begin; t < end; ++t) busy[tenant][t] = true;
    }
    uint64_t any = 0;
    std::vector<double> share(3);
    for (int t = 0; t < 500; ++t) {
      const int n = busy[0][t] + busy[1][t] + busy[2][t];
      any += n > 0;
      for (int k = 0; k < 3; ++k)
        if (busy[k][t]) share[k] += 1.0 / n;
    }
    for (int64_t until = 0; until <= 500; until += 50) Settle(until);
    uint64_t sum = 0;
    for (uint32_t k = 0; k < 3; ++k) {
      EXPECT_NEAR(static_cast<double>(charged_[k]), share[k], 30) << "rounding is at most 1 ns an edge";
      sum += charged_[k];
    }
    EXPECT_EQ(sum, any);
  }
}

}  // namespace
}  // namespace cuplex::server
