#include "server/queue.h"

#include <numeric>

#include "server/test_house.h"

namespace cuplex::server {
namespace {

constexpr Handle kModule = MakeHandle(20, 0), kKernel = MakeHandle(21, 0);
const std::string kImage =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry kernel(.param .u64 a, .param .u32 "
    "b)\n{\n  ret;\n}\n";

constexpr QueueBounds kBounds;

class QueueTest : public testing::Test {
 protected:
  void SetUp() override {
    for (TestClient* client : {&a_, &b_}) {
      ASSERT_EQ(client->Begin(1), CUDA_SUCCESS);
      ASSERT_EQ(client->Load(kImage, kModule, kKernel), CUDA_SUCCESS);
    }
    test_.driver.log.clear();
    test_.driver.grids.clear();
  }
  void TearDown() override { EXPECT_TRUE(a_.HangUp() && b_.HangUp()); }
  size_t Launched() const {
    return static_cast<size_t>(std::count_if(test_.driver.log.begin(), test_.driver.log.end(),
                                             [](const auto& line) { return line.starts_with("launch"); }));
  }
  static metrics::TenantDeviceCounters& Of(Tenant& tenant) { return tenant.holdings[0]->counters(); }

  TestHouse test_;
  Tenant& one_ = test_.AddTenant("a", 64 * kMiB);
  Tenant& two_ = test_.AddTenant("b", 64 * kMiB);
  TestClient a_{test_, one_}, b_{test_, two_};
};

TEST_F(QueueTest, ALoneTenantIsChargedWhatItsKernelsTook) {
  test_.driver.kernel_ns = 700;
  for (int i = 0; i < 1000; ++i) a_.Launch(kKernel, kLegacyStream, 1 + i % 3);
  EXPECT_EQ(a_.Synchronize(), CUDA_SUCCESS);
  uint64_t expected = 0;
  for (int i = 0; i < 1000; ++i) expected += 700 * (1 + i % 3);
  EXPECT_NEAR(static_cast<double>(Of(one_).device_ns.value()), static_cast<double>(expected), 100);
  EXPECT_EQ(Of(one_).launches.value(), 1000u);
  EXPECT_EQ(Of(two_).device_ns.value(), 0u);
}

TEST_F(QueueTest, ALoneTenantRunsFarAheadAndTwoDoNot) {
  test_.driver.kernel_ns = 1000;
  for (int i = 0; i < 200; ++i) a_.Launch(kKernel, kLegacyStream);
  EXPECT_EQ(a_.Synchronize(), CUDA_SUCCESS);  // now its kernels are known to be short
  test_.driver.log.clear();
  test_.driver.Hold();
  for (int i = 0; i < 2000; ++i) a_.Launch(kKernel, kLegacyStream);
  test_.Settle();
  EXPECT_GT(Launched(), 1000u) << "no bubble where nobody else wants the device";
  test_.driver.Release();
  test_.Settle();
  EXPECT_EQ(Launched(), 2000u);

  test_.driver.log.clear();
  test_.driver.Hold();
  for (int i = 0; i < 500; ++i) {
    a_.Launch(kKernel, kLegacyStream);
    b_.Launch(kKernel, kLegacyStream);
  }
  test_.Settle();
  EXPECT_LE(Launched(), kBounds.slice_ns / test_.driver.kernel_ns);
  EXPECT_GT(Launched(), 0u);
  test_.driver.Release();
  test_.Settle();
  EXPECT_EQ(Launched(), 1000u);
}

// One tenant's kernels are ten times as long as the other's: both get the same time, not the same turns.
TEST_F(QueueTest, TenantsGetTheSameDeviceTime) {
  test_.driver.kernel_ns = 20'000;
  test_.driver.Hold();
  uint64_t after_start_one = 0, after_start_two = 0;
  for (int round = 0; round < 400; ++round) {
    while (a_.session->queued() < 200) a_.Launch(kKernel, kLegacyStream, 10);
    while (b_.session->queued() < 200) b_.Launch(kKernel, kLegacyStream, 1);
    test_.driver.Finish();
    test_.queue().Poll();
    test_.queue().Pump();
    if (round == 50) {
      after_start_one = Of(one_).device_ns.value();
      after_start_two = Of(two_).device_ns.value();
    }
  }
  const double one = static_cast<double>(Of(one_).device_ns.value() - after_start_one);
  const double two = static_cast<double>(Of(two_).device_ns.value() - after_start_two);
  EXPECT_GT(one, 1e8);
  EXPECT_NEAR(one / (one + two), 0.5, 0.02);
  test_.driver.Release();
  test_.Settle();
}

class ConcurrentQueueTest : public QueueTest {
 protected:
  void SetUp() override {
    QueueTest::SetUp();
    QueueBounds bounds;
    bounds.concurrent = true;
    test_.queue().SetBounds(bounds);
    test_.driver.kernel_ns = 10'000;
    for (TestClient* client : {&a_, &b_}) {  // so that their kernels are known
      for (int i = 0; i < 100; ++i) client->Launch(kKernel, kLegacyStream);
      EXPECT_EQ(client->Synchronize(), CUDA_SUCCESS);
    }
    test_.driver.log.clear();
  }
  /// Lets both have work for some rounds, and gives what each was charged in the later ones.
  std::pair<double, double> Charged() {
    test_.driver.Hold();
    std::pair<uint64_t, uint64_t> before;
    for (int round = 0; round < 1000; ++round) {
      while (a_.session->queued() < 400) a_.Launch(kKernel, kLegacyStream);
      while (b_.session->queued() < 400) b_.Launch(kKernel, kLegacyStream);
      test_.driver.Finish();
      test_.queue().Poll();
      test_.queue().Pump();
      if (round == 100) before = {Of(one_).device_ns.value(), Of(two_).device_ns.value()};
    }
    const std::pair charged(static_cast<double>(Of(one_).device_ns.value() - before.first),
                            static_cast<double>(Of(two_).device_ns.value() - before.second));
    test_.driver.Release();
    test_.clock.Advance(1'000'000'000);  // whoever is held by a limit may go
    test_.Settle();
    return charged;
  }
};

TEST_F(ConcurrentQueueTest, EachHasASliceOnTheDevice) {
  test_.driver.Hold();
  for (int i = 0; i < 1000; ++i) a_.Launch(kKernel, kLegacyStream);
  test_.Settle();
  const size_t of_one = Launched();
  EXPECT_GE(of_one, kBounds.slice_ns / 2 / 10'000);
  EXPECT_LE(of_one, kBounds.slice_ns / 10'000);
  // The other does not wait for the first one's slice.
  for (int i = 0; i < 1000; ++i) b_.Launch(kKernel, kLegacyStream);
  test_.Settle();
  EXPECT_GE(Launched() - of_one, kBounds.slice_ns / 2 / 10'000);
  EXPECT_LE(Launched(), 2 * kBounds.slice_ns / 10'000);
  test_.driver.Release();
  test_.Settle();
  EXPECT_EQ(Launched(), 2000u);
}

TEST_F(ConcurrentQueueTest, EqualWeightsAreEqualTime) {
  const auto [one, two] = Charged();
  EXPECT_GT(one, 1e8);
  EXPECT_NEAR(one / (one + two), 0.5, 0.02);
}

TEST_F(ConcurrentQueueTest, WeightsHold) {
  one_.terms.terms.time.weight = 300;
  test_.queue().TermsChanged(one_);
  const auto [one, two] = Charged();
  EXPECT_NEAR(one / (one + two), 0.75, 0.02);
}

TEST_F(ConcurrentQueueTest, ALimitBinds) {
  two_.terms.terms.time.limit = 0.2;
  test_.queue().TermsChanged(two_);
  const auto [one, two] = Charged();
  EXPECT_NEAR(two / (one + two), 0.2, 0.02);
}

TEST_F(ConcurrentQueueTest, TurnsCanComeBack) {
  test_.driver.Hold();
  for (int i = 0; i < 1000; ++i) {
    a_.Launch(kKernel, kLegacyStream);
    b_.Launch(kKernel, kLegacyStream);
  }
  test_.Settle();
  test_.queue().SetBounds(kBounds);
  test_.Settle();
  EXPECT_LE(Launched(), 2 * kBounds.slice_ns / 10'000);
  test_.driver.Finish();
  const size_t before = Launched();
  test_.Settle();
  EXPECT_LE(Launched() - before, kBounds.slice_ns / 10'000);
  test_.driver.Release();
  test_.Settle();
  EXPECT_EQ(Launched(), 2000u);
}

TEST_F(QueueTest, ATurnThatDoesNotEndIsChargedAsItGoes) {
  test_.driver.Hold();
  a_.Launch(kKernel, kLegacyStream);
  test_.Settle();
  test_.driver.Finish(1);  // the event before the kernel: it runs
  test_.Settle();
  test_.clock.Advance(2 * kBounds.overdue_ns);
  test_.queue().Settle();
  EXPECT_NEAR(static_cast<double>(Of(one_).device_ns.value()), 2.0 * kBounds.overdue_ns, 1e6);
  // It stands in nobody's way: the other gets as much as ever.
  for (int i = 0; i < 500; ++i) b_.Launch(kKernel, kLegacyStream);
  test_.Settle();
  EXPECT_EQ(Launched(), 1u + kBounds.shared_turns) << "whose kernels are not known either";
  test_.driver.Release();
  test_.Settle();
  EXPECT_NEAR(static_cast<double>(Of(one_).device_ns.value()), 2.0 * kBounds.overdue_ns, 1e6)
      << "and not twice";
}

TEST_F(QueueTest, ATurnThatWaitsForAnotherIsNotCharged) {
  test_.driver.Hold();
  a_.Launch(kKernel, kLegacyStream);
  test_.Settle();
  test_.driver.Finish(1);
  test_.Settle();
  b_.Launch(kKernel, kLegacyStream);  // behind the other on the device: not even its first event comes
  test_.Settle();
  test_.clock.Advance(10 * kBounds.overdue_ns);
  for (int i = 0; i < 3; ++i) {
    test_.queue().Poll();
    test_.queue().Settle();
  }
  EXPECT_NEAR(static_cast<double>(Of(one_).device_ns.value()), 10.0 * kBounds.overdue_ns, 1e6);
  EXPECT_EQ(Of(two_).device_ns.value(), 0u);
  test_.driver.Release();
  test_.Settle();
}

TEST_F(QueueTest, ALongKernelRunsInSlicesWhereOthersMayCome) {
  test_.driver.kernel_ns = 10'000;
  a_.Launch(kKernel, kLegacyStream, 1000);
  EXPECT_EQ(a_.Synchronize(), CUDA_SUCCESS);
  std::vector<uint64_t> slices = test_.driver.grids;
  EXPECT_GE(slices.size(), 10'000'000 / kBounds.slice_ns);
  EXPECT_EQ(std::accumulate(slices.begin(), slices.end(), uint64_t{0}), 1000u);
  for (uint64_t blocks : slices) EXPECT_LE(blocks * 10'000, kBounds.slice_ns);
  EXPECT_NEAR(static_cast<double>(Of(one_).device_ns.value()), 10e6, 1e3);
  EXPECT_EQ(Of(one_).launches.value(), 1u);
  EXPECT_EQ(Of(one_).slices.value(), slices.size());
}

TEST_F(QueueTest, AKernelThatEndsSoonRunsWhole) {
  test_.driver.kernel_ns = 10;
  for (int i = 0; i < 3; ++i) {
    test_.driver.grids.clear();
    a_.Launch(kKernel, kLegacyStream, 1000);
    EXPECT_EQ(a_.Synchronize(), CUDA_SUCCESS);
  }
  EXPECT_EQ(test_.driver.grids, std::vector<uint64_t>{1000});
}

TEST_F(QueueTest, ACooperativeKernelRunsWhole) {
  test_.driver.kernel_ns = 10'000;
  const std::byte parameters[12] = {};
  a_.OneWay(Op::wireLaunch, wire::wireLaunchArgs(kKernel, kLegacyStream, 1000, 1, 1, 1, 1, 1, 0, 1, 12),
            parameters);
  EXPECT_EQ(a_.Synchronize(), CUDA_SUCCESS);
  EXPECT_EQ(test_.driver.grids, std::vector<uint64_t>{1000});
  a_.OneWay(Op::wireLaunch, wire::wireLaunchArgs(kKernel, kLegacyStream, 1000, 1, 1, 1, 1, 1, 0, 1, 12),
            parameters);
  EXPECT_EQ(a_.Synchronize(), CUDA_SUCCESS);
  std::map<std::string, uint64_t> named;
  Of(one_).whole_kernels.ForEach(
      [&](const std::string& name, const metrics::Count& count) { named[name] = count.value(); });
  EXPECT_EQ(named, (std::map<std::string, uint64_t>{{"kernel", 1}})) << "once it is known to be long";
}

TEST_F(QueueTest, QueueDepthsAreCounted) {
  test_.driver.Hold();
  for (int i = 0; i < 500; ++i) {
    a_.Launch(kKernel, kLegacyStream);
    b_.Launch(kKernel, kLegacyStream);
  }
  test_.Settle();
  test_.queue().CountQueued();
  EXPECT_EQ(Of(one_).queue_depth.value(), a_.session->queued());
  EXPECT_EQ(a_.session->queued() + b_.session->queued(), 1000 - Launched());
  test_.driver.Release();
  test_.Settle();
  test_.queue().CountQueued();
  EXPECT_EQ(Of(one_).queue_depth.value(), 0u);
}

TEST_F(QueueTest, WhoWaitsForABusyDeviceNeedNotWakeTheServerForMore) {
  constexpr int64_t kLeast = 30'000;
  test_.driver.kernel_ns = 200'000;
  for (int i = 0; i < 10; ++i) a_.Launch(kKernel, kLegacyStream);
  EXPECT_EQ(a_.Synchronize(), CUDA_SUCCESS);  // now it is known how long they take
  EXPECT_FALSE(a_.session->MayWait(test_.clock.NowNs(), kLeast));
  test_.driver.Hold();
  for (int i = 0; i < 100; ++i) a_.Launch(kKernel, kLegacyStream);
  test_.Settle();
  EXPECT_GT(a_.session->queued(), 0u);
  EXPECT_TRUE(a_.session->MayWait(test_.clock.NowNs(), kLeast));
  // Who has nothing there does not wait: what it asks for may go first.
  EXPECT_FALSE(b_.session->MayWait(test_.clock.NowNs(), kLeast));
  test_.driver.Release();
  test_.Settle();
  EXPECT_FALSE(a_.session->MayWait(test_.clock.NowNs(), kLeast));
}

}  // namespace
}  // namespace cuplex::server
