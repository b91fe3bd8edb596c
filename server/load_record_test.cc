#include "server/load_record.h"

#include <numeric>

#include "server/test_house.h"

namespace cuplex::server {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr size_t kAll = SIZE_MAX;

std::vector<LoadRecord::Row> Take(LoadRecord& record, int64_t now_ns, size_t most = kAll) {
  auto taken = record.Take(1, most, now_ns);
  EXPECT_TRUE(taken.ok()) << taken.error().sentence;
  return taken.ok() ? taken->rows : std::vector<LoadRecord::Row>();
}

const int kStream = 0;

TEST(LoadRecord, DividesWhatAnIntervalTookAsItWasForeseen) {
  LoadRecord record;
  EXPECT_FALSE(record.on());
  EXPECT_TRUE(Take(record, 1000).empty());
  EXPECT_TRUE(record.on());
  const LoadRecord::Part parts[] = {{1500, 100, 1, &kStream, false}, {900, 300, 2, &kStream, true}};
  record.Add("a", 3, parts, 800, 5000);
  const auto rows = Take(record, 6000);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at_ns, 500);
  EXPECT_EQ(rows[0].device_ns, 200u);
  EXPECT_EQ(rows[0].device, 3u);
  EXPECT_FALSE(rows[0].sliceable);
  EXPECT_EQ(rows[1].at_ns, 0) << "it was asked for before";
  EXPECT_EQ(rows[1].device_ns, 600u);
  EXPECT_TRUE(rows[1].sliceable);
  const LoadRecord::Part unforeseen[] = {{1, 0, 3, &kStream, false}, {1, 0, 4, &kStream, false}};
  record.Add("a", 0, unforeseen, 10, 7000);
  EXPECT_EQ(Take(record, 7000)[1].device_ns, 5u);
}

TEST(LoadRecord, SlicesOfAKernelAreOneRow) {
  LoadRecord record;
  Take(record, 0);
  const LoadRecord::Part kernel[] = {{10, 5, 7, &kStream, true}};
  const LoadRecord::Part others[] = {{20, 5, 7, &record, false}};
  record.Add("a", 0, kernel, 100, 200);
  record.Add("b", 0, others, 1, 210);
  record.Add("a", 0, kernel, 50, 300);
  const auto rows = Take(record, 400);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].device_ns, 150u);
  record.Add("a", 0, kernel, 30, 500);  // what was taken is gone
  EXPECT_EQ(Take(record, 600)[0].device_ns, 30u);
}

TEST(LoadRecord, IsTakenInPiecesAndEndsWithoutAsks) {
  LoadRecord record;
  Take(record, 0);
  for (uint64_t i = 0; i < 5; ++i) {
    const LoadRecord::Part part[] = {{static_cast<int64_t>(i), 1, i, &kStream, false}};
    record.Add("a", 0, part, 1, 10);
  }
  auto taken = record.Take(1, 2, 20);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->rows.size(), 2u);
  EXPECT_TRUE(taken->more);
  EXPECT_EQ(Take(record, 30, 2)[1].at_ns, 3);
  EXPECT_EQ(Take(record, 30, 2).size(), 1u);
  EXPECT_FALSE(record.Take(2, kAll, 40).ok()) << "one recorder at a time";
  const LoadRecord::Part late[] = {{1, 1, 1, &kStream, false}};
  record.Add("a", 0, late, 1, 31 + LoadRecord::kLeaseNs);
  EXPECT_FALSE(record.on());
  EXPECT_TRUE(record.Take(2, kAll, 20 * kSecond).ok()) << "then another may";
  EXPECT_TRUE(record.Take(3, kAll, 40 * kSecond).ok()) << "also where nothing was done in between";
}

TEST(LoadRecord, HasAnEnd) {
  LoadRecord record;
  Take(record, 0);
  for (size_t i = 0; i < LoadRecord::kMost + 7; ++i) {
    const LoadRecord::Part part[] = {{0, 1, i, &kStream, false}};
    record.Add("a", 0, part, 1, 1);
  }
  const auto taken = record.Take(1, kAll, 2);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->rows.size(), LoadRecord::kMost);
  EXPECT_EQ(taken->lost, 7u);
}

constexpr Handle kModule = MakeHandle(20, 0), kKernel = MakeHandle(21, 0);
const std::string kImage =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry kernel(.param .u64 a, .param .u32 "
    "b)\n{\n  ret;\n}\n";

TEST(LoadRecord, HasWhatTheClientsAskedFor) {
  TestHouse test;
  test.driver.kernel_ns = 1000;
  Tenant& one = test.AddTenant("a", 64 * kMiB);
  Tenant& two = test.AddTenant("b", 64 * kMiB);
  TestClient a(test, one), b(test, two);
  for (TestClient* client : {&a, &b}) {
    ASSERT_EQ(client->Begin(1), CUDA_SUCCESS);
    ASSERT_EQ(client->Load(kImage, kModule, kKernel), CUDA_SUCCESS);
  }
  a.Launch(kKernel, kLegacyStream);  // before the record
  EXPECT_EQ(a.Synchronize(), CUDA_SUCCESS);
  LoadRecord& record = test.house.load_record;
  ASSERT_TRUE(record.Take(9, kAll, test.clock.NowNs()).ok());
  for (int i = 0; i < 40; ++i) {
    a.Launch(kKernel, kLegacyStream, 2);
    if (i % 4 == 0) b.Launch(kKernel, kLegacyStream, 5);
  }
  EXPECT_EQ(a.Synchronize(), CUDA_SUCCESS);
  EXPECT_EQ(b.Synchronize(), CUDA_SUCCESS);
  const auto taken = record.Take(9, kAll, test.clock.NowNs());
  ASSERT_TRUE(taken.ok());
  std::map<std::string, std::pair<size_t, uint64_t>> had;
  for (const LoadRecord::Row& row : taken->rows) {
    auto& [rows, ns] = had[taken->tenants.at(row.tenant)];
    ++rows;
    ns += row.device_ns;
    EXPECT_EQ(row.device, 0u);
    EXPECT_GE(row.at_ns, 0);
  }
  EXPECT_EQ(had["a"].first, 40u);
  EXPECT_EQ(had["b"].first, 10u);
  EXPECT_NEAR(static_cast<double>(had["a"].second), 40 * 2000, 100);
  EXPECT_NEAR(static_cast<double>(had["b"].second), 10 * 5000, 100);
  EXPECT_TRUE(a.HangUp() && b.HangUp());
}

}  // namespace
}  // namespace cuplex::server
