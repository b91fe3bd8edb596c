#include "protocol/handle.h"

#include <memory>

#include <gtest/gtest.h>

namespace cuplex {
namespace {

TEST(Handle, AReusedIdHasANewGeneration) {
  HandleSource source;
  const Handle a = source.Take();
  const Handle b = source.Take();
  EXPECT_NE(a, b);
  EXPECT_GE(HandleId(a), kFirstHandleId);
  source.Return(a);
  const Handle again = source.Take();
  EXPECT_EQ(HandleId(again), HandleId(a));
  EXPECT_NE(again, a);
}

TEST(Handle, ATableKnowsOnlyTheLiving) {
  HandleTable<std::unique_ptr<int>> table;
  const Handle h = MakeHandle(40, 0);
  ASSERT_TRUE(table.Insert(h, std::make_unique<int>(5)));
  EXPECT_FALSE(table.Insert(MakeHandle(40, 1), nullptr)) << "the id is taken";
  EXPECT_EQ(**table.Find(h), 5);
  EXPECT_EQ(table.Find(MakeHandle(40, 1)), nullptr);
  EXPECT_EQ(table.Find(MakeHandle(41, 0)), nullptr);
  EXPECT_EQ(table.Find(~0ull), nullptr);
  ASSERT_TRUE(table.Erase(h));
  EXPECT_FALSE(table.Erase(h));
  EXPECT_EQ(table.Find(h), nullptr);
  EXPECT_EQ(table.size(), 0u);
}

TEST(Handle, ATableRefusesIdsOutOfRange) {
  HandleTable<int> table;
  for (uint32_t id : {0u, 1u, 2u, kFirstHandleId - 1, kMaxHandleId, 0xffffffffu})
    EXPECT_FALSE(table.Insert(MakeHandle(id, 0), 1)) << id;
  EXPECT_TRUE(table.Insert(MakeHandle(kMaxHandleId - 1, 7), 1));
}

}  // namespace
}  // namespace cuplex
