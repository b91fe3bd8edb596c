#include "policies/partition.h"

#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cuplex::policies {
namespace {

using testing::ElementsAre;

// What NVIDIA documents for green contexts: groups of 8 and more in steps of 8 on compute capability 9.
constexpr Multiprocessors kH100{132, 8, 8};

Partition Divided(const Multiprocessors& device, const std::vector<PartitionTenant>& tenants,
                  const Partition* before = nullptr) {
  auto partition = Divide(device, tenants, before);
  EXPECT_TRUE(partition.ok()) << partition.error().sentence;
  return partition.ok() ? *partition : Partition{};
}

std::string Refusal(const Multiprocessors& device, const std::vector<PartitionTenant>& tenants) {
  auto partition = Divide(device, tenants);
  return partition.ok() ? "" : partition.error().sentence;
}

TEST(Part, ParsesAndPrints) {
  EXPECT_EQ(ParsePart("2of7"), (Part{2, 7}));
  EXPECT_EQ(ParsePart("64of64"), (Part{64, 64}));
  for (std::string_view text : {"", "of", "2", "of7", "2of", "0of7", "8of7", "1of65", "-1of7", "2 of 7",
                                "2of7of7", "2OF7", "2/7", "+2of7"})
    EXPECT_EQ(ParsePart(text), std::nullopt) << text;
  EXPECT_EQ(PrintPart({2, 7}), "2of7");
}

// The multiprocessors of MIG's profiles with one, two and four of seven compute slices on an H100: 16,
// 32, 64.
TEST(Partition, SeventhsOfALargeDevice) {
  const Partition p = Divided(kH100, {{"a", {1, 7}}, {"b", {2, 7}}, {"c", {4, 7}}});
  EXPECT_EQ(std::tuple(p.groups, p.group_multiprocessors, p.left_over), std::tuple(7u, 16u, 20u));
  EXPECT_THAT(p.places,
              ElementsAre(Partition::Place{"a", {0}, 16, false}, Partition::Place{"b", {1, 2}, 32, false},
                          Partition::Place{"c", {3, 4, 5, 6}, 64, false}));
  EXPECT_EQ(p.Find("b"), &p.places[1]);
  EXPECT_EQ(p.Find("d"), nullptr);
}

TEST(Partition, WhoHasAllPartsHasTheWholeDevice) {
  EXPECT_THAT(Divided(kH100, {{"a", {7, 7}}}).places,
              ElementsAre(Partition::Place{"a", {0, 1, 2, 3, 4, 5, 6}, 132, true}));
  // Also where the driver could not split it.
  EXPECT_THAT(Divided({2, 2, 2}, {{"a", {2, 2}}}).places,
              ElementsAre(Partition::Place{"a", {0, 1}, 2, true}));
}

TEST(Partition, GranularityRoundsDown) {
  struct Row {
    Multiprocessors device;
    uint32_t of, each, left;
  };
  // By hand: count / of, down to a multiple of the alignment.
  for (const Row& row : {Row{{108, 4, 2}, 7, 14, 10}, Row{{108, 4, 2}, 3, 36, 0}, Row{{80, 2, 2}, 7, 10, 10},
                         Row{{28, 1, 1}, 3, 9, 1}, Row{{4, 1, 1}, 4, 1, 0}, Row{{132, 8, 8}, 16, 8, 4},
                         Row{{142, 4, 2}, 2, 70, 2}}) {
    const Partition p = Divided(row.device, {{"a", {1, row.of}}});
    EXPECT_EQ(std::tuple(p.groups, p.group_multiprocessors, p.left_over),
              std::tuple(row.of, row.each, row.left))
        << row.device.count;
  }
}

TEST(Partition, WhatCannotBeHadIsRefusedWithNames) {
  EXPECT_EQ(
      Refusal(kH100, {{"a", {4, 7}}, {"b", {2, 7}}, {"c", {2, 7}}}),
      "The tenants together want 8 parts of one device (a 4of7, b 2of7, c 2of7); at most 7 were expected.");
  EXPECT_EQ(
      Refusal(kH100, {{"a", {1, 7}}, {"b", {1, 4}}}),
      "The tenants \"a\" with 1of7 and \"b\" with 1of4 divide one device in different ways; as many parts in "
      "all for both were expected.");
  EXPECT_EQ(Refusal(kH100, {{"a", {1, 17}}}),
            "The tenant \"a\" wants 1of17 of a device with 132 multiprocessors, of which the driver takes "
            "groups of "
            "8 and more, in steps of 8; at most 16 parts were expected.");
  EXPECT_EQ(Refusal({10, 4, 2}, {{"a", {1, 3}}}),
            "The tenant \"a\" wants 1of3 of a device with 10 multiprocessors, of which the driver takes "
            "groups of 4 "
            "and more, in steps of 2; at most 2 parts were expected.");
}

TEST(Partition, NobodyHasAPart) { EXPECT_EQ(Divided(kH100, {}), Partition{}); }

TEST(Partition, AnUnchangedTenantKeepsItsPart) {
  const Partition first = Divided(kH100, {{"a", {2, 7}}, {"b", {2, 7}}, {"c", {2, 7}}});
  // `b` goes and `d` comes first in the file: the others stay, and what is free is in two pieces.
  const Partition second = Divided(kH100, {{"d", {3, 7}}, {"c", {2, 7}}, {"a", {2, 7}}}, &first);
  EXPECT_EQ(second.Find("a")->groups, first.Find("a")->groups);
  EXPECT_EQ(second.Find("c")->groups, first.Find("c")->groups);
  EXPECT_THAT(second.Find("d")->groups, ElementsAre(2, 3, 6));
  // One that grows keeps what it had, one that shrinks keeps the first of it.
  const Partition third = Divided(kH100, {{"a", {3, 7}}, {"c", {1, 7}}, {"d", {3, 7}}}, &second);
  EXPECT_THAT(third.Find("d")->groups, ElementsAre(2, 3, 6));
  EXPECT_THAT(third.Find("a")->groups, ElementsAre(0, 1, 5));
  EXPECT_THAT(third.Find("c")->groups, ElementsAre(4));
}

TEST(Partition, AnotherSplitBeginsAnew) {
  const Partition sevenths = Divided(kH100, {{"a", {5, 7}}, {"b", {2, 7}}});
  const std::vector<PartitionTenant> halves = {{"b", {1, 2}}, {"a", {1, 2}}};
  EXPECT_EQ(Divided(kH100, halves, &sevenths), Divided(kH100, halves));
}

TEST(Partition, TheBestHoleIsTaken) {
  const Partition first =
      Divided({80, 2, 2}, {{"a", {1, 8}}, {"x", {3, 8}}, {"b", {1, 8}}, {"y", {1, 8}}, {"c", {1, 8}}});
  const Partition second =
      Divided({80, 2, 2}, {{"a", {1, 8}}, {"b", {1, 8}}, {"c", {1, 8}}, {"z", {1, 8}}}, &first);
  EXPECT_THAT(second.Find("z")->groups, ElementsAre(5)) << "of the holes of three, one and one";
}

// Whatever comes and goes: everybody has its number of groups, nobody two of one, and who stays keeps its
// own.
TEST(Partition, HoldsWhateverComesAndGoes) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const uint32_t of = 1 + random() % kMostParts;
    const Multiprocessors device{of * (1 + static_cast<uint32_t>(random() % 8)), 1, 1};
    Partition before;
    std::vector<PartitionTenant> tenants;
    for (int step = 0; step < 20; ++step) {
      if (!tenants.empty() && random() % 3 == 0) tenants.erase(tenants.begin() + random() % tenants.size());
      uint32_t sum = 0;
      for (const auto& tenant : tenants) sum += tenant.part.parts;
      if (sum < of && random() % 2)
        tenants.insert(tenants.begin() + random() % (tenants.size() + 1),
                       {"t" + std::to_string(step), {1 + static_cast<uint32_t>(random() % (of - sum)), of}});
      const Partition now = Divided(device, tenants, &before);
      std::set<uint32_t> taken;
      for (size_t t = 0; t < tenants.size(); ++t) {
        ASSERT_EQ(now.places[t].tenant, tenants[t].name);
        ASSERT_EQ(now.places[t].groups.size(), tenants[t].part.parts);
        for (uint32_t group : now.places[t].groups) {
          ASSERT_LT(group, of);
          ASSERT_TRUE(taken.insert(group).second);
        }
        if (const Partition::Place* had = before.Find(tenants[t].name)) {
          ASSERT_EQ(had->groups, now.places[t].groups);
        }
      }
      before = now;
    }
  }
}

}  // namespace
}  // namespace cuplex::policies
