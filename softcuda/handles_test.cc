#include "softcuda/handles.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace cuplex::softcuda {
namespace {

struct Thing {
  explicit Thing(int value, std::atomic<int>* alive) : value(value), alive(alive) { ++*alive; }
  ~Thing() { --*alive; }
  int value;
  std::atomic<int>* alive;
};

class HandleTableTest : public testing::Test {
 protected:
  std::atomic<int> alive = 0;
  HandleTable<Thing> table{1024};
  int owner = 0, stranger = 0;
};

TEST_F(HandleTableTest, FindsWhatIsLiveAndNothingElse) {
  Ref<Thing> made = table.Make(&owner, 7, &alive);
  ASSERT_TRUE(made);
  EXPECT_EQ(table.Find(made.get())->value, 7);
  EXPECT_EQ(table.Peek(made.get(), &owner), made.get());
  EXPECT_EQ(table.Peek(made.get(), &stranger), nullptr);
  auto at = reinterpret_cast<uintptr_t>(made.get());
  for (uintptr_t junk : {uintptr_t{0}, uintptr_t{1}, at + 1, at - 8, at + (1u << 20), UINTPTR_MAX}) {
    EXPECT_FALSE(table.Find(reinterpret_cast<void*>(junk))) << junk;
  }
}

TEST_F(HandleTableTest, AnObjectLivesUntilItsLastReference) {
  Ref<Thing> made = table.Make(&owner, 1, &alive);
  Thing* handle = made.get();
  EXPECT_TRUE(HandleTable<Thing>::Retire(handle));
  EXPECT_FALSE(HandleTable<Thing>::Retire(handle));
  EXPECT_FALSE(table.Find(handle));
  EXPECT_EQ(alive, 1);
  made = {};
  EXPECT_EQ(alive, 0);
  EXPECT_FALSE(table.Find(handle));
}

TEST_F(HandleTableTest, AFullTableSaysSoAndRecovers) {
  std::vector<Ref<Thing>> things;
  while (Ref<Thing> made = table.Make(&owner, 0, &alive)) things.push_back(std::move(made));
  EXPECT_EQ(things.size(), 1024u);
  HandleTable<Thing>::Retire(things.back().get());
  things.pop_back();
  EXPECT_EQ(alive, 1023);
  Ref<Thing> again = table.Make(&owner, 5, &alive);
  ASSERT_TRUE(again);
  things.push_back(again);
  for (auto& thing : things) HandleTable<Thing>::Retire(thing.get());
}

TEST_F(HandleTableTest, FindingRacesWithRetiring) {
  std::atomic<bool> stop = false;
  std::atomic<void*> handle = nullptr;
  std::atomic<int> wrong = 0;
  std::thread reader([&] {
    while (!stop) {
      if (Ref<Thing> found = table.Find(handle)) wrong += found->value != 42;
    }
  });
  for (int i = 0; i < 20000; ++i) {
    Ref<Thing> made = table.Make(&owner, 42, &alive);
    handle = made.get();
    HandleTable<Thing>::Retire(made.get());
  }
  stop = true;
  reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace cuplex::softcuda
