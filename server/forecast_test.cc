#include "server/forecast.h"

#include <gtest/gtest.h>

namespace cuplex::server {
namespace {

constexpr LaunchShape kSmall{10, 128, 0}, kLarge{1000, 128, 0}, kOther{10, 256, 4096};

TEST(Forecast, KnowsNothingAtFirst) {
  Forecast forecast;
  EXPECT_FALSE(forecast.known());
  EXPECT_EQ(forecast.LaunchNs(kSmall), 0u);
}

TEST(Forecast, ForeseesWhatWasMeasured) {
  Forecast forecast;
  forecast.Measured(kSmall, 10, 5'000);
  EXPECT_EQ(forecast.LaunchNs(kSmall), 5'000u);
  EXPECT_EQ(forecast.BlockNs(kSmall), 500.0);
}

TEST(Forecast, ANewShapeCostsWhatItsBlocksCostBefore) {
  Forecast forecast;
  forecast.Measured(kSmall, 10, 5'000);
  EXPECT_EQ(forecast.LaunchNs(kLarge), 500'000u);
  forecast.Measured(kLarge, 1000, 200'000);
  EXPECT_EQ(forecast.LaunchNs(kLarge), 200'000u);
  EXPECT_EQ(forecast.LaunchNs(kSmall), 5'000u) << "the shape that is known keeps its own";
}

TEST(Forecast, APartOfALaunchIsMeasuredByItsBlocks) {
  Forecast forecast;
  forecast.Measured(kLarge, 100, 50'000);
  EXPECT_EQ(forecast.LaunchNs(kLarge), 500'000u);
}

TEST(Forecast, FollowsAKernelThatChanges) {
  Forecast forecast;
  forecast.Measured(kSmall, 10, 10'000);
  for (int i = 0; i < 20; ++i) forecast.Measured(kSmall, 10, 12'000);
  EXPECT_NEAR(static_cast<double>(forecast.LaunchNs(kSmall)), 12'000, 100);
  for (int i = 0; i < 3; ++i) forecast.Measured(kSmall, 10, 1'000'000);
  EXPECT_GT(forecast.LaunchNs(kSmall), 800'000u) << "a large change is believed soon";
  for (int i = 0; i < 10; ++i) forecast.Measured(kSmall, 10, 1'000'000);
  EXPECT_NEAR(static_cast<double>(forecast.LaunchNs(kSmall)), 1'000'000, 20'000);
  for (int i = 0; i < 40; ++i) forecast.MeasuredTogether(kSmall, 0.5);
  EXPECT_LT(forecast.LaunchNs(kSmall), 300'000u);
}

TEST(Forecast, TheShapeNotUsedForLongestGoes) {
  Forecast forecast;
  forecast.Measured(kOther, 10, 70'000);
  for (uint32_t i = 0; i < Forecast::kShapes - 1; ++i) forecast.Measured({100 + i, 32, 0}, 100 + i, 1'000);
  EXPECT_EQ(forecast.LaunchNs(kOther), 70'000u);
  forecast.Measured({1, 1, 1}, 1, 1);
  EXPECT_EQ(forecast.LaunchNs(kOther), 70'000u) << "it was asked for since";
  forecast.Measured({2, 1, 1}, 2, 2);
  EXPECT_EQ(forecast.LaunchNs({100, 32, 0}), 100u) << "taken from the shape measured last";
}

TEST(Forecast, StaysFiniteWithExtremes) {
  Forecast forecast;
  forecast.Measured({UINT64_MAX, 1024, 0}, UINT64_MAX, 1);
  EXPECT_GE(forecast.LaunchNs(kSmall), 1u);
  forecast.Measured(kSmall, 1, UINT64_MAX);
  EXPECT_LE(forecast.LaunchNs(kLarge), uint64_t{1'000'000'000'000'000'000});
  forecast.Measured(kSmall, 0, 5);
}

}  // namespace
}  // namespace cuplex::server
