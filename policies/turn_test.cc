#include "policies/turn.h"

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace cuplex::policies {
namespace {

std::vector<uint32_t> Take(Turns& turns, int n, uint64_t ns) {
  std::vector<uint32_t> order;
  for (int i = 0; i < n; ++i) {
    auto next = turns.Next();
    if (!next) break;
    order.push_back(*next);
    turns.Charge(*next, ns);
  }
  return order;
}

TEST(Turns, NobodyReadyNobodyNext) {
  Turns turns;
  EXPECT_EQ(turns.Next(), std::nullopt);
  turns.Add(1);
  EXPECT_EQ(turns.Next(), std::nullopt);
  turns.Ready(1);
  EXPECT_EQ(turns.Next(), 1u);
  turns.Idle(1);
  EXPECT_EQ(turns.Next(), std::nullopt);
}

TEST(Turns, EqualCostsRotate) {
  Turns turns;
  for (uint32_t t : {1, 2, 3}) {
    turns.Add(t);
    turns.Ready(t);
  }
  EXPECT_EQ(Take(turns, 7, 5), (std::vector<uint32_t>{1, 2, 3, 1, 2, 3, 1}));
}

TEST(Turns, EqualsRotateBeforeTheirCostIsKnown) {
  Turns turns;
  for (uint32_t t : {1, 2, 3}) {
    turns.Add(t);
    turns.Ready(t);
  }
  EXPECT_EQ(Take(turns, 6, 0), (std::vector<uint32_t>{1, 2, 3, 1, 2, 3}));
}

TEST(Turns, WhoCostMoreWaitsLonger) {
  Turns turns;
  for (uint32_t t : {1, 2}) {
    turns.Add(t);
    turns.Ready(t);
  }
  turns.Charge(1, 30);
  EXPECT_EQ(Take(turns, 4, 10), (std::vector<uint32_t>{2, 2, 2, 1}));
}

TEST(Turns, WhoIsBackFromIdleStartsAtTheLeastOfTheReady) {
  Turns turns;
  for (uint32_t t : {1, 2, 3}) turns.Add(t);
  turns.Ready(1);
  turns.Ready(2);
  turns.Charge(1, 1000);
  turns.Charge(2, 900);
  turns.Ready(3);
  EXPECT_EQ(turns.Charged(3), 900u);
}

TEST(Turns, WhoIsBackKeepsWhatItOwes) {
  Turns turns;
  for (uint32_t t : {1, 2}) {
    turns.Add(t);
    turns.Ready(t);
  }
  turns.Charge(1, 1000);
  turns.Idle(1);
  turns.Ready(1);
  EXPECT_EQ(turns.Charged(1), 1000u);
  EXPECT_EQ(turns.Next(), 2u);
}

TEST(Turns, AnEmptyQueueRemembersWhereItStood) {
  Turns turns;
  turns.Add(1);
  turns.Ready(1);
  turns.Charge(1, 1000);
  turns.Idle(1);
  turns.Add(2);
  turns.Ready(2);
  EXPECT_EQ(turns.Charged(2), 1000u) << "a newcomer has no claim on the time before it came";
}

TEST(Turns, CreditBoundsWhatTheIdleMayKeep) {
  Turns turns(/*credit_ns=*/100);
  for (uint32_t t : {1, 2}) turns.Add(t);
  turns.Ready(1);
  turns.Charge(1, 1000);
  turns.Ready(2);
  EXPECT_EQ(turns.Charged(2), 900u);
  turns.Idle(2);
  turns.Charge(2, 50);
  turns.Ready(2);
  EXPECT_EQ(turns.Charged(2), 950u) << "and no second helping";
}

TEST(Turns, RefundTakesBack) {
  Turns turns;
  turns.Add(1);
  turns.Charge(1, 100);
  turns.Refund(1, 30);
  EXPECT_EQ(turns.Charged(1), 70u);
  turns.Refund(1, 1000);
  EXPECT_EQ(turns.Charged(1), 0u);
}

TEST(Turns, ChargeSaturates) {
  Turns turns;
  turns.Add(1);
  turns.Ready(1);
  turns.Charge(1, UINT64_MAX);
  turns.Charge(1, UINT64_MAX);
  EXPECT_EQ(turns.Charged(1), UINT64_MAX);
}

TEST(Turns, WhoIsNotThereIsIgnored) {
  Turns turns;
  turns.Ready(9);
  turns.Idle(9);
  turns.Charge(9, 5);
  turns.Refund(9, 5);
  EXPECT_EQ(turns.Charged(9), 0u);
  EXPECT_FALSE(turns.Remove(9));
  EXPECT_TRUE(turns.Add(9));
  EXPECT_FALSE(turns.Add(9));
  turns.Ready(9);
  EXPECT_TRUE(turns.Remove(9));
  EXPECT_EQ(turns.Next(), std::nullopt);
  EXPECT_EQ(turns.size(), 0u);
}

/// The same rules over a plain list, looked through from end to end.
class ListedTurns {
 public:
  explicit ListedTurns(uint64_t credit) : credit_(credit) {}
  void Add(uint32_t id) { all_[id] = {See(), turn_, false}; }
  void Remove(uint32_t id) {
    See();
    all_.erase(id);
  }
  void Ready(uint32_t id) {
    One& one = all_.at(id);
    if (one.ready) return;
    uint64_t floor = See();
    one.charged = std::max(one.charged, floor < credit_ ? 0 : floor - credit_);
    one.ready = true;
  }
  void Idle(uint32_t id) {
    if (!all_.at(id).ready) return;
    See();
    all_.at(id).ready = false;
  }
  void Charge(uint32_t id, uint64_t ns) { all_.at(id).charged += ns; }
  std::optional<uint32_t> Next() {
    See();
    std::optional<uint32_t> best;
    for (auto& [id, one] : all_) {
      if (!one.ready) continue;
      if (!best || std::pair(one.charged, one.turn) < std::pair(all_[*best].charged, all_[*best].turn))
        best = id;
    }
    if (best) all_[*best].turn = ++turn_;
    return best;
  }
  uint64_t Charged(uint32_t id) { return all_.at(id).charged; }

 private:
  struct One {
    uint64_t charged, turn;
    bool ready;
  };
  uint64_t See() {
    std::optional<uint64_t> least;
    for (auto& [id, one] : all_) {
      if (one.ready && (!least || one.charged < *least)) least = one.charged;
    }
    if (least) floor_ = std::max(floor_, *least);
    return floor_;
  }
  uint64_t credit_, floor_ = 0, turn_ = 0;
  std::map<uint32_t, One> all_;
};

class TurnsProperty : public testing::TestWithParam<unsigned> {};

TEST_P(TurnsProperty, AgreesWithThePlainList) {
  std::mt19937 random(GetParam());
  const uint64_t credit = GetParam() % 3 * 100;
  Turns turns(credit);
  ListedTurns listed(credit);
  std::map<uint32_t, bool> there;
  for (int step = 0; step < 20000; ++step) {
    uint32_t id = random() % 12;
    switch (random() % 8) {
      case 0:
        if (there.try_emplace(id).second) {
          listed.Add(id);
          EXPECT_TRUE(turns.Add(id));
        }
        break;
      case 1:
        if (random() % 8 == 0 && there.erase(id)) {
          listed.Remove(id);
          EXPECT_TRUE(turns.Remove(id));
        }
        break;
      case 2:
      case 3:
        if (there.contains(id)) {
          listed.Ready(id);
          turns.Ready(id);
        }
        break;
      case 4:
        if (there.contains(id)) {
          listed.Idle(id);
          turns.Idle(id);
        }
        break;
      default: {
        auto expected = listed.Next();
        ASSERT_EQ(turns.Next(), expected) << "step " << step;
        if (expected && random() % 4) {
          uint64_t ns = random() % 1000;
          listed.Charge(*expected, ns);
          turns.Charge(*expected, ns);
        }
      }
    }
    for (auto& [t, unused] : there) ASSERT_EQ(turns.Charged(t), listed.Charged(t)) << "step " << step;
  }
}

TEST_P(TurnsProperty, TenantsThatAlwaysHaveWorkStayWithinOneSlice) {
  std::mt19937 random(GetParam());
  constexpr uint64_t kLongest = 1000;
  const uint32_t n = 2 + random() % 15;
  Turns turns;
  std::vector<uint64_t> longest(n), used(n);
  for (uint32_t t = 0; t < n; ++t) {
    turns.Add(t);
    turns.Ready(t);
    longest[t] = 1 + random() % kLongest;
  }
  for (int step = 0; step < 20000; ++step) {
    auto next = turns.Next();
    ASSERT_TRUE(next);
    uint64_t ns = 1 + random() % longest[*next];
    used[*next] += ns;
    turns.Charge(*next, ns);
    auto [least, most] = std::minmax_element(used.begin(), used.end());
    ASSERT_LE(*most - *least, kLongest) << "step " << step;
  }
}

// Two tenants always have work and others come and go. From any moment on, the two receive the same within
// one slice, and nobody who was away receives more than they did since it came back, but for three slices.
TEST_P(TurnsProperty, WhoComesAndGoesGainsNothing) {
  std::mt19937 random(GetParam());
  constexpr uint64_t kLongest = 1000;
  const uint32_t n = 8;
  Turns turns;
  std::vector<uint64_t> used(n);
  std::vector<bool> ready(n, false);
  std::vector<std::vector<uint64_t>> at_return(n, std::vector<uint64_t>(n));
  auto come = [&](uint32_t t) {
    turns.Ready(t);
    ready[t] = true;
    at_return[t] = used;
  };
  for (uint32_t t = 0; t < n; ++t) turns.Add(t);
  come(0);
  come(1);
  for (int step = 0; step < 20000; ++step) {
    uint32_t t = 2 + random() % (n - 2);
    if (random() % 20 == 0) {
      if (ready[t]) {
        turns.Idle(t);
        ready[t] = false;
      } else {
        come(t);
      }
    }
    uint32_t next = *turns.Next();
    ASSERT_TRUE(ready[next]);
    uint64_t ns = 1 + random() % kLongest;
    used[next] += ns;
    turns.Charge(next, ns);
    ASSERT_LE(std::max(used[0], used[1]) - std::min(used[0], used[1]), kLongest);
    for (uint32_t other = 2; other < n; ++other) {
      if (!ready[other]) continue;
      uint64_t its = used[other] - at_return[other][other];
      uint64_t theirs = std::min(used[0] - at_return[other][0], used[1] - at_return[other][1]);
      ASSERT_LE(its, theirs + 3 * kLongest) << "tenant " << other << " step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, TurnsProperty, testing::Range(1u, 9u));

}  // namespace
}  // namespace cuplex::policies
