#include "server/house.h"

#include "server/test_house.h"

namespace cuplex::server {
namespace {

constexpr Handle kModule = MakeHandle(20, 0), kKernel = MakeHandle(21, 0), kStream = MakeHandle(30, 0);
constexpr char kImage[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry kernel(.param .u64 a, .param .u32 b)\n"
    "{\n  ret;\n}\n";

class DividedDevice : public testing::Test {
 protected:
  DividedDevice() { Divide({2, 7}, {5, 7}); }
  void Divide(policies::Part left, policies::Part right) {
    const policies::PartitionTenant tenants[] = {{"left", left}, {"right", right}};
    test_.house.divisions[0] = policies::Divide({.count = 7}, tenants).value();
  }

  void Start(TestClient& client) {
    ASSERT_EQ(client.Begin(1), CUDA_SUCCESS);
    ASSERT_EQ(client.Load(kImage, kModule, kKernel), CUDA_SUCCESS);
    client.OneWay(Op::wireStreamCreate, wire::wireStreamCreateArgs(kStream, 1, 0));
  }

  TestHouse test_;
  Tenant& left_ = test_.AddTenant("left", 64 * kMiB);
  Tenant& right_ = test_.AddTenant("right", 64 * kMiB);
  Tenant& third_ = test_.AddTenant("third", 64 * kMiB);
};

TEST_F(DividedDevice, ContextsAreConfinedToTheirTenantsPart) {
  TestClient left(test_, left_), right(test_, right_), third(test_, third_);
  Start(left);
  Start(right);
  Start(third);
  std::multiset<unsigned> counts;
  for (auto [context, count] : test_.driver.confined) counts.insert(count);
  EXPECT_EQ(counts, (std::multiset<unsigned>{2, 5}));
  EXPECT_EQ(test_.driver.contexts.size(), 3u);
  // Each part is a queue of its own; who has none takes turns on the device's.
  DeviceQueue& of_left = test_.house.QueueFor(left_, 0);
  EXPECT_NE(&of_left, &test_.queue());
  EXPECT_NE(&of_left, &test_.house.QueueFor(right_, 0));
  EXPECT_EQ(&test_.house.QueueFor(third_, 0), &test_.queue());
  EXPECT_EQ(of_left.bounds().multiprocessors, 2u);
  EXPECT_TRUE(left.HangUp());
  EXPECT_TRUE(right.HangUp());
  EXPECT_TRUE(third.HangUp());
}

TEST_F(DividedDevice, NobodyWaitsForAnothersPart) {
  TestClient left(test_, left_), right(test_, right_);
  Start(left);
  Start(right);
  test_.driver.log.clear();
  test_.driver.kernel_ns = 50'000'000;  // far more than what may be on a device together
  test_.driver.Hold();
  for (int i = 0; i < 4; ++i) left.Launch(kKernel, kStream);
  test_.Settle();
  const auto launches = [&] {
    return std::ranges::count_if(test_.driver.log,
                                 [](const auto& line) { return line.starts_with("launch"); });
  };
  const auto before = launches();
  right.Launch(kKernel, kStream);
  test_.Settle();
  EXPECT_EQ(launches(), before + 1);
  test_.driver.Release();
  test_.Settle();
  EXPECT_EQ(launches(), 5);
  EXPECT_EQ(test_.house.Queued(left_, 0), 0u);
  EXPECT_TRUE(left.HangUp());
  EXPECT_TRUE(right.HangUp());
}

TEST_F(DividedDevice, ProcessesOfOneTenantDoNotHaveMoreTogether) {
  TestClient first(test_, left_), second(test_, left_);
  Start(first);
  Start(second);
  test_.driver.kernel_ns = 1'000'000;
  for (TestClient* client : {&first, &second}) {
    client->Launch(kKernel, kStream);
    ASSERT_EQ(client->Synchronize(), CUDA_SUCCESS);
  }
  const auto in_flight = [&](const TestClient& client) {
    return std::ranges::any_of(client.session->contexts(), [](const Context* c) { return c->InFlight(); });
  };
  test_.driver.Hold();
  for (int i = 0; i < 20; ++i) {
    first.Launch(kKernel, kStream);
    second.Launch(kKernel, kStream);
  }
  test_.Settle();
  bool had_first = false, had_second = false;
  for (int i = 0; i < 1000 && (first.session->queued() || second.session->queued()); ++i) {
    EXPECT_FALSE(in_flight(first) && in_flight(second));
    had_first |= in_flight(first) && second.session->queued() > 0;
    had_second |= in_flight(second) && first.session->queued() > 0;
    test_.driver.Finish(1);
    test_.Settle();
  }
  EXPECT_TRUE(had_first && had_second) << "each has its turns while the other waits";
  EXPECT_EQ(first.session->queued() + second.session->queued(), 0u);
  test_.driver.Release();
  test_.Settle();
  EXPECT_TRUE(first.HangUp());
  EXPECT_TRUE(second.HangUp());
}

TEST_F(DividedDevice, AQueueThatNobodyHasAnyMoreIsUsedAgain) {
  {
    TestClient left(test_, left_);
    Start(left);
    EXPECT_TRUE(left.HangUp());
  }
  DeviceQueue* queue = &test_.house.QueueFor(left_, 0);
  const size_t queues = test_.house.queues.size();
  left_.leaving = true;
  test_.house.MayForget(left_);
  EXPECT_EQ(&test_.house.QueueFor(right_, 0), queue);
  EXPECT_EQ(queue->bounds().multiprocessors, 5u);
  EXPECT_EQ(test_.house.queues.size(), queues);
  // A part that has become another is so for what runs from here on.
  Divide({2, 7}, {3, 7});
  test_.house.SetBounds();
  EXPECT_EQ(queue->bounds().multiprocessors, 3u);
}

class PolicyAccounts final : public policies::Accounts {
 public:
  std::optional<uint32_t> Uid(const std::string&) const override { return std::nullopt; }
  std::optional<uint32_t> Gid(const std::string&) const override { return std::nullopt; }
};

policies::Policy Divided() {
  return policies::ParsePolicy(
             "version: 1\ndevices: [{index: 0, mode: partition}]\ntenants:\n"
             "  - {name: left, memory: 64MiB, partition: 1of4}\n  - {name: right, memory: 64MiB, partition: "
             "2of4}\n",
             "test", PolicyAccounts())
      .value();
}

TEST_F(DividedDevice, APolicySaysHow) {
  ASSERT_EQ(test_.house.devices[0].multiprocessors.count, 16u);
  const auto made = test_.house.Divide(Divided());
  ASSERT_TRUE(made.ok()) << made.error().sentence;
  ASSERT_EQ((*made)[0].places.size(), 2u);
  EXPECT_EQ((*made)[0].Find("left")->multiprocessors, 4u);
  EXPECT_EQ((*made)[0].Find("right")->multiprocessors, 8u);
  EXPECT_TRUE(test_.driver.contexts.empty());
}

TEST(UndividedDevice, ADriverThatRefusesAfterAllIsFoundOut) {
  class Refuses final : public CallHook {
   public:
    CUresult Before(const char* call) override {
      return std::string_view(call) == "cuCtxCreate_v3" ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : CUDA_SUCCESS;
    }
  } refuses;
  TestHouse test(&refuses);
  const auto made = test.house.Divide(Divided());
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().sentence, testing::HasSubstr("answers 224"));
}

TEST(UndividedDevice, ADriverThatCannotConfineIsSaidSo) {
  TestHouse test(nullptr, /*confines=*/false);
  const auto made = test.house.Divide(Divided());
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().sentence, testing::HasSubstr("cannot do it"));
}

}  // namespace
}  // namespace cuplex::server
