#include "policies/scheduler.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace cuplex::policies {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1000 * kMs;

/// A device that runs one piece after the other, and tenants that always have work, in pieces of their own
/// length. What a piece costs is foreseen wrongly and put right when it is over.
class Device {
 public:
  struct Load {
    Terms terms;
    int64_t piece_ns = kMs;  // a longer grant takes several, a shorter one a part of one
    bool sliceable = true;
    double foreseen = 1;    // over what it takes
    int64_t period_ns = 0;  // 0: always has work; else one piece so often
  };

  explicit Device(std::vector<Load> loads, Scheduler::Settings settings = {})
      : loads_(std::move(loads)), scheduler_(settings), due_(loads_.size()), waits_(loads_.size()) {
    for (uint32_t i = 0; i < loads_.size(); ++i) {
      EXPECT_TRUE(scheduler_.Add(i, loads_[i].terms, now_));
      if (!loads_[i].period_ns) scheduler_.Ready(i, now_);
    }
    got_.resize(loads_.size());
  }

  void RunUntil(int64_t until) {
    while (now_ < until) {
      int64_t arrival = INT64_MAX;
      for (uint32_t i = 0; i < loads_.size(); ++i) {
        if (!loads_[i].period_ns) continue;
        if (due_[i] <= now_)
          scheduler_.Ready(i, now_);
        else
          arrival = std::min(arrival, due_[i]);
      }
      auto grant = scheduler_.Next(now_);
      if (!grant) {
        const int64_t next = std::min(arrival, scheduler_.NextRelease());
        ASSERT_NE(next, INT64_MAX) << "somebody has work and nobody may go, for ever";
        now_ = std::max(now_ + 1, next);
        continue;
      }
      Load& load = loads_[grant->tenant];
      int64_t ns = static_cast<int64_t>(grant->ns);
      if (!load.sliceable || load.period_ns) ns = load.piece_ns;
      const auto foreseen = static_cast<int64_t>(static_cast<double>(ns) * load.foreseen);
      scheduler_.Charge(grant->tenant, foreseen, now_);
      if (load.period_ns) {
        scheduler_.Idle(grant->tenant, now_);
        waits_[grant->tenant].push_back(now_ - due_[grant->tenant]);
        due_[grant->tenant] += load.period_ns;
      }
      now_ += ns;
      scheduler_.Charge(grant->tenant, ns - foreseen, now_);
      got_[grant->tenant].emplace_back(now_, ns);
    }
  }

  /// What a tenant had of [begin, end), of 1.
  double Share(uint32_t tenant, int64_t begin, int64_t end) const {
    double sum = 0;
    for (auto [at, ns] : got_[tenant])
      sum += static_cast<double>(std::max<int64_t>(0, std::min(at, end) - std::max(at - ns, begin)));
    return sum / static_cast<double>(end - begin);
  }
  double WorstWindow(uint32_t tenant, double share, int64_t begin, int64_t end) const {
    double worst = 0;
    for (; begin + kSecond <= end; begin += kSecond / 4)
      worst = std::max(worst, std::abs(Share(tenant, begin, begin + kSecond) - share));
    return worst;
  }
  Scheduler& scheduler() { return scheduler_; }
  int64_t now() const { return now_; }
  const std::vector<int64_t>& waits(uint32_t tenant) const { return waits_[tenant]; }

 private:
  std::vector<Load> loads_;
  Scheduler scheduler_;
  int64_t now_ = 12'345;
  std::vector<int64_t> due_;
  std::vector<std::vector<int64_t>> waits_;
  std::vector<std::vector<std::pair<int64_t, int64_t>>> got_;
};

/// What tenants that always have work should get: guarantees, then class by class by weight up to the limits.
std::vector<double> Expected(const std::vector<Device::Load>& loads) {
  std::vector<double> share;
  double left = 1;
  std::set<int, std::greater<>> classes;
  for (const auto& load : loads) {
    share.push_back(std::min(load.terms.guarantee, load.terms.limit));
    left -= share.back();
    classes.insert(load.terms.priority);
  }
  for (int priority : classes) {
    std::vector<size_t> open;
    for (size_t i = 0; i < loads.size(); ++i)
      if (loads[i].terms.priority == priority) open.push_back(i);
    while (left > 1e-12 && !open.empty()) {
      double weights = 0;
      for (size_t i : open) weights += loads[i].terms.weight;
      double step = left / weights;  // by weight, until the first is at its limit
      for (size_t i : open) step = std::min(step, (loads[i].terms.limit - share[i]) / loads[i].terms.weight);
      for (size_t i : open) share[i] += step * loads[i].terms.weight;
      left -= step * weights;
      std::erase_if(open, [&](size_t i) { return loads[i].terms.limit - share[i] < 1e-12; });
    }
  }
  return share;
}

void ExpectShares(const std::vector<Device::Load>& loads, double points, double window_points) {
  Device device(loads);
  device.RunUntil(12 * kSecond);
  const std::vector<double> expected = Expected(loads);
  for (uint32_t i = 0; i < loads.size(); ++i) {
    EXPECT_NEAR(device.Share(i, kSecond, 11 * kSecond), expected[i], points / 100) << "tenant " << i;
    EXPECT_LE(device.WorstWindow(i, expected[i], kSecond, 11 * kSecond), window_points / 100)
        << "tenant " << i;
  }
}

TEST(Scheduler, TwoTenantsShareByWeight) {
  for (double part : {50.0, 30.0, 10.0, 2.0, 1.0})
    ExpectShares({{{0, 1, part, 0}}, {{0, 1, 100 - part, 0}}}, 0.1, 0.5);
}

TEST(Scheduler, EightTenantsShareByWeight) {
  std::vector<Device::Load> loads;
  for (int w = 1; w <= 8; ++w) loads.push_back({{0, 1, static_cast<double>(w), 0}});
  ExpectShares(loads, 0.1, 0.5);
}

TEST(Scheduler, TinyAndLongPiecesWeighTheSame) {
  ExpectShares({{.terms = {}, .piece_ns = 400}, {.terms = {}, .piece_ns = 5 * kMs, .sliceable = false}}, 0.2,
               1);
}

TEST(Scheduler, WhatWasForeseenWronglyIsPutRight) {
  ExpectShares({{.terms = {}, .foreseen = 0.1}, {.terms = {}, .foreseen = 5}}, 0.2, 1);
}

TEST(Scheduler, ALimitBindsAlone) {
  for (double limit : {0.02, 0.3, 0.5, 0.99}) ExpectShares({{{0, limit, 100, 0}}}, 0.2, 0.5);
  ExpectShares({{.terms = {0, 0.3, 100, 0}, .piece_ns = 5 * kMs, .sliceable = false}}, 0.5, 1);
}

TEST(Scheduler, AGuaranteeAloneIsNoLimit) { ExpectShares({{{0.3, 1, 100, 0}}}, 0.01, 0.01); }

TEST(Scheduler, AGuaranteeComesFirstAndTheRestGoesByWeight) {
  ExpectShares({{{0.3, 1, 100, 0}}, {{0, 1, 100, 0}}}, 0.5, 1);  // 65 and 35
  ExpectShares({{{0.5, 1, 1, 0}}, {{0.2, 1, 1, 0}}, {{0, 1, 1, 0}}}, 0.5, 1);
}

TEST(Scheduler, AGuaranteeHoldsUnderAHigherClass) {
  ExpectShares({{{0.2, 1, 100, -5}}, {{0, 1, 100, 5}}}, 0.3, 1);
  ExpectShares({{{0.02, 1, 100, -5}}, {{0, 1, 100, 5}}, {{0, 1, 100, 5}}}, 0.3, 1);
}

TEST(Scheduler, AHigherClassGoesFirstAndLeavesWhatItsLimitDoes) {
  ExpectShares({{{0, 1, 100, 0}}, {{0, 0.4, 100, 1}}}, 0.5, 1);
}

// Any terms at all, against the shares worked out with a pencil's method.
TEST(Scheduler, RandomTenantsGetWhatTheirTermsSay) {
  std::mt19937 rng(7);
  for (int round = 0; round < 40; ++round) {
    std::vector<Device::Load> loads;
    double promised = 0;
    const int n = std::uniform_int_distribution<>(1, 8)(rng);
    for (int i = 0; i < n; ++i) {
      Device::Load load;
      load.terms.weight = std::uniform_int_distribution<>(1, 10)(rng) * 10;
      load.terms.priority = std::uniform_int_distribution<>(0, 2)(rng);
      if (rng() % 3 == 0) load.terms.guarantee = std::uniform_int_distribution<>(1, 20)(rng) / 100.0;
      if (rng() % 3 == 0)
        load.terms.limit =
            std::max(load.terms.guarantee, std::uniform_int_distribution<>(2, 80)(rng) / 100.0);
      if (promised + load.terms.guarantee > 1) load.terms.guarantee = 0;
      promised += load.terms.guarantee;
      load.piece_ns = std::uniform_int_distribution<int64_t>(1, 3000)(rng) * 1000;
      load.sliceable = rng() % 2;
      load.foreseen = std::uniform_real_distribution<>(0.5, 2)(rng);
      loads.push_back(load);
    }
    SCOPED_TRACE("round " + std::to_string(round));
    ExpectShares(loads, 1, 2);
  }
}

TEST(Scheduler, AnIdleTenantDoesNotSaveTimeUp) {
  Device device({{.terms = {}}, {.terms = {}, .piece_ns = kMs, .period_ns = 3 * kSecond}});
  device.RunUntil(3 * kSecond);
  device.scheduler().Ready(1, device.now());
  const int64_t begin = device.now();
  device.RunUntil(begin + 100 * kMs);
  EXPECT_GT(device.Share(0, begin, begin + 20 * kMs), 0.3);
}

// A tenant of a higher class asks for 1 ms every 10 ms: it waits for no more than what is on the device.
TEST(Scheduler, AHigherClassDoesNotWaitLong) {
  Device device(
      {{.terms = {0, 1, 100, 0}, .piece_ns = 5 * kMs}, {.terms = {0, 1, 100, 5}, .period_ns = 10 * kMs}});
  device.RunUntil(5 * kSecond);
  const auto& waits = device.waits(1);
  EXPECT_GT(waits.size(), 400u);
  EXPECT_LE(*std::max_element(waits.begin() + 1, waits.end()), kMs);
  EXPECT_GT(device.Share(0, kSecond, 4 * kSecond), 0.85);
}

// One that waits for each result has its share too, as far as it asks for it: meanwhile the other gets little
// at a time.
TEST(Scheduler, WhoMayReturnAtOnceIsWaitedForWithSmallGrants) {
  Scheduler scheduler({});
  scheduler.Add(1, {0, 1, 80, 0}, 0);
  scheduler.Add(2, {0, 1, 20, 0}, 0);
  scheduler.Ready(2, 0);
  EXPECT_EQ(scheduler.Next(0)->ns, 1'000'000u);
  scheduler.Charge(2, kMs, 0);
  scheduler.Ready(1, 0);
  ASSERT_EQ(scheduler.Next(0)->tenant, 1u);
  scheduler.Charge(1, kMs, 0);
  scheduler.Idle(1, 0);
  auto grant = scheduler.Next(kMs);
  EXPECT_EQ(grant->tenant, 2u);
  EXPECT_EQ(grant->ns, 125'000u);
  EXPECT_EQ(grant->ahead_ns, 250'000u);
  EXPECT_EQ(scheduler.Next(20 * kMs)->ns, 1'000'000u) << "it does not seem to come back";
}

TEST(Scheduler, NoGrantIsShorterThanTheLeast) {
  Scheduler scheduler({.least_ns = 400'000});
  for (uint32_t i = 1; i <= 64; ++i) {
    scheduler.Add(i, {0, i == 1 ? 0.02 : 1.0, 100, 0}, 0);
    scheduler.Ready(i, 0);
  }
  for (int64_t now = 0; now < 100 * kMs;) {
    const auto grant = scheduler.Next(now);
    ASSERT_TRUE(grant);
    EXPECT_GE(grant->ns, 400'000u);
    EXPECT_GE(grant->ahead_ns, grant->ns);
    scheduler.Charge(grant->tenant, static_cast<int64_t>(grant->ns), now);
    if (grant->tenant == 2) scheduler.Idle(2, now);  // and may be back at once
    now += static_cast<int64_t>(grant->ns);
  }
  Scheduler without({});
  for (uint32_t i = 1; i <= 64; ++i) {
    without.Add(i, {}, 0);
    without.Ready(i, 0);
  }
  EXPECT_EQ(without.Next(0)->ns, 250'000u) << "so that all had a turn in 16 ms";
}

TEST(Scheduler, EqualsRotate) {
  Scheduler scheduler({});
  for (uint32_t i = 0; i < 4; ++i) {
    scheduler.Add(i, {}, 0);
    scheduler.Ready(i, 0);
  }
  std::set<uint32_t> had;
  for (int i = 0; i < 4; ++i) had.insert(scheduler.Next(0)->tenant);
  EXPECT_EQ(had.size(), 4u);
}

TEST(Scheduler, ThrottledTimeIsCounted) {
  Scheduler scheduler({});
  scheduler.Add(1, {0, 0.1, 100, 0}, 0);
  scheduler.Ready(1, 0);
  ASSERT_FALSE(scheduler.Next(0)) << "nothing yet, from nothing";
  EXPECT_EQ(scheduler.NextRelease(), 10'000'000);
  ASSERT_TRUE(scheduler.Next(10 * kMs));
  EXPECT_EQ(scheduler.TakeThrottledNs(1, 11 * kMs), 10'000'000u);
  scheduler.Charge(1, 10 * kMs, 11 * kMs);
  EXPECT_FALSE(scheduler.Next(50 * kMs));
  EXPECT_EQ(scheduler.ready(), 1u);
  EXPECT_EQ(scheduler.TakeThrottledNs(1, 53 * kMs), 42'000'000u);
  scheduler.Idle(1, 60 * kMs);
  EXPECT_EQ(scheduler.NextRelease(), INT64_MAX);
  EXPECT_EQ(scheduler.TakeThrottledNs(1, 90 * kMs), 7'000'000u);
}

TEST(Scheduler, TermsChangeWhileItRuns) {
  Device device({{.terms = {0, 1, 50, 0}}, {.terms = {0, 1, 50, 0}}});
  device.RunUntil(3 * kSecond);
  EXPECT_TRUE(device.scheduler().Change(0, {0, 1, 10, 0}, device.now()));
  EXPECT_TRUE(device.scheduler().Change(1, {0, 1, 90, 0}, device.now()));
  const int64_t begin = device.now();
  device.RunUntil(begin + 2 * kSecond);
  EXPECT_NEAR(device.Share(0, begin, begin + 200 * kMs), 0.1, 0.02) << "at once";
  EXPECT_NEAR(device.Share(0, begin, begin + 2 * kSecond), 0.1, 0.005);
  EXPECT_TRUE(device.scheduler().Change(0, {0, 1, 10, 7}, device.now()));
  const int64_t then = device.now();
  device.RunUntil(then + kSecond);
  EXPECT_GT(device.Share(0, then + 2 * kMs, then + kSecond), 0.99);
}

TEST(Scheduler, TenantsComeAndGo) {
  Scheduler scheduler({});
  EXPECT_FALSE(scheduler.Next(0));
  EXPECT_TRUE(scheduler.Add(1, {}, 0));
  EXPECT_FALSE(scheduler.Add(1, {}, 0));
  EXPECT_FALSE(scheduler.Remove(2));
  EXPECT_FALSE(scheduler.Change(2, {}, 0));
  scheduler.Ready(2, 0);
  scheduler.Idle(2, 0);
  scheduler.Charge(2, 1, 0);
  EXPECT_FALSE(scheduler.Next(0));
  scheduler.Ready(1, 0);
  EXPECT_TRUE(scheduler.Add(2, {0.5, 0.5, 1, -3}, 0));
  scheduler.Ready(2, 0);
  EXPECT_EQ(scheduler.ready(), 2u);
  EXPECT_TRUE(scheduler.Remove(1));
  EXPECT_EQ(scheduler.ready(), 1u);
  EXPECT_EQ(scheduler.Next(kSecond)->tenant, 2u);
  EXPECT_TRUE(scheduler.Remove(2));
  EXPECT_FALSE(scheduler.Next(2 * kSecond));
  EXPECT_EQ(scheduler.size(), 0u);
}

// Several on the device at once: who is held stays counted, and the next goes beside it as far as its terms
// say.
class TogetherTest : public testing::Test {
 protected:
  void Make(const std::vector<Terms>& terms) {
    for (uint32_t t = 0; t < terms.size(); ++t) {
      ASSERT_TRUE(scheduler_.Add(t, terms[t], 0));
      scheduler_.Ready(t, 0);
    }
  }
  /// Who goes next, and is then held; -1: nobody.
  int Next(int64_t now, int64_t cost = kMs) {
    last_ = scheduler_.Next(now);
    if (!last_) return -1;
    scheduler_.Charge(last_->tenant, cost, now);
    scheduler_.Hold(last_->tenant, now);
    return static_cast<int>(last_->tenant);
  }
  Scheduler scheduler_{{.together = true}};
  std::optional<Scheduler::Grant> last_;
};

TEST_F(TogetherTest, EverybodyHasSomethingOnTheDevice) {
  Make({{}, {}, {}});
  EXPECT_EQ((std::set<int>{Next(0), Next(0), Next(0)}), (std::set<int>{0, 1, 2}));
  EXPECT_EQ(Next(0), -1) << "all are held";
  EXPECT_EQ(scheduler_.ready(), 3u);
  scheduler_.Resume(1, kMs);
  EXPECT_EQ(Next(kMs), 1);
}

TEST_F(TogetherTest, WhoIsFarAheadWaitsForOneOnTheDevice) {
  Make({{}, {}});
  EXPECT_EQ(Next(0), 0);
  for (int i = 0; i < 6; ++i) {  // two slices, of its own time, and what is ahead then
    EXPECT_EQ(Next(i * kMs), 1) << i;
    scheduler_.Resume(1, i * kMs);
  }
  EXPECT_EQ(Next(6 * kMs), -1);
  scheduler_.Charge(0, 4 * kMs, 6 * kMs);
  EXPECT_EQ(Next(7 * kMs), 1);
  scheduler_.Resume(1, 8 * kMs);
  scheduler_.Idle(0, 8 * kMs);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Next((8 + i) * kMs), 1) << "nobody waits for one without work";
    scheduler_.Resume(1, (8 + i) * kMs);
  }
}

TEST_F(TogetherTest, BesideAHigherClassPiecesAreSmall) {
  Make({{.priority = 1}, {.priority = 0}});
  EXPECT_EQ(Next(0), 0);
  EXPECT_EQ(last_->ns, 1'000'000u) << "half of a slice";
  EXPECT_EQ(Next(0), 1);
  EXPECT_EQ(last_->ns, 250'000u) << "an eighth";
  EXPECT_EQ(last_->ahead_ns, 500'000u);
}

TEST_F(TogetherTest, WhoIsOwedItsGuaranteeHasTheDevice) {
  Make({{.guarantee = 0.5}, {}});
  EXPECT_EQ(Next(kMs), 0);
  EXPECT_EQ(Next(2 * kMs), 1) << "a little is lent";
  scheduler_.Resume(1, 2 * kMs);
  EXPECT_EQ(Next(100 * kMs), -1);
  scheduler_.Charge(0, 60 * kMs, 100 * kMs);
  EXPECT_EQ(Next(100 * kMs), 1);
}

TEST_F(TogetherTest, TheLimitOfOneThatIsHeldBinds) {
  Make({{.limit = 0.1}, {}});
  scheduler_.Idle(1, 0);
  EXPECT_EQ(Next(10 * kMs, 50 * kMs), 0);
  scheduler_.Resume(0, 11 * kMs);
  EXPECT_EQ(Next(11 * kMs), -1);
  // 50 ms at a tenth, less the little that it may have saved up, and what a piece worth a launch takes.
  EXPECT_GT(scheduler_.NextRelease(), 480 * kMs);
  EXPECT_LT(scheduler_.NextRelease(), 530 * kMs);
  scheduler_.Ready(1, 12 * kMs);
  EXPECT_EQ(Next(12 * kMs), 1);
}

TEST_F(TogetherTest, TurnsLetGoOfThoseThatAreHeld) {
  Make({{}, {}});
  EXPECT_NE(Next(0), -1);
  EXPECT_NE(Next(0), -1);
  EXPECT_EQ(Next(0), -1);
  scheduler_.Set({});
  EXPECT_NE(Next(kMs), -1);
}

}  // namespace
}  // namespace cuplex::policies
