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
  DividedDevice() { test_.house.divided[0] = {{"left", 2}, {"right", 5}}; }

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
  test_.house.divided[0]["right"] = 3;
  test_.house.SetBounds();
  EXPECT_EQ(queue->bounds().multiprocessors, 3u);
}

}  // namespace
}  // namespace cuplex::server
