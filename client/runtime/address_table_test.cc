#include "client/runtime/address_table.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace cuplex::runtime {
namespace {

TEST(AddressTable, FindsReplacesAndForgets) {
  AddressTable<int> table;
  int one = 1, two = 2;
  EXPECT_EQ(table.Find(&one), nullptr);
  table.Insert(&one, &one);
  table.Insert(&two, &one);
  table.Insert(&two, &two);
  EXPECT_EQ(table.Find(&one), &one);
  EXPECT_EQ(table.Find(&two), &two);
  table.Erase(&one);
  table.Erase(&table);
  EXPECT_EQ(table.Find(&one), nullptr);
  EXPECT_EQ(table.Find(&two), &two);
  table.Insert(&one, &two);
  EXPECT_EQ(table.Find(&one), &two);
}

TEST(AddressTable, NothingIsKnownOfNull) {
  AddressTable<int> table;
  EXPECT_EQ(table.Find(nullptr), nullptr);
}

TEST(AddressTable, KeepsAllWhileItGrowsAndErases) {
  AddressTable<int> table;
  std::vector<int> values(20000);
  for (size_t i = 0; i < values.size(); ++i) {
    table.Insert(&values[i], &values[i]);
    if (i % 3 == 2) table.Erase(&values[i - 1]);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    bool erased = i % 3 == 1 && i + 1 < values.size();
    EXPECT_EQ(table.Find(&values[i]), erased ? nullptr : &values[i]);
  }
}

TEST(AddressTable, ReadersNeverMissWhatStandsWhileItGrows) {
  AddressTable<int> table;
  std::vector<int> values(50000);
  int steady = 0;
  table.Insert(&steady, &steady);
  std::atomic<bool> done = false;
  std::atomic<size_t> inserted = 0;
  std::atomic<int> missed = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!done.load()) {
        missed += table.Find(&steady) != &steady;
        if (size_t n = inserted.load()) missed += table.Find(&values[n - 1]) != &values[n - 1];
      }
    });
  }
  for (size_t i = 0; i < values.size(); ++i) {
    table.Insert(&values[i], &values[i]);
    inserted = i + 1;
  }
  done = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(missed, 0);
}

}  // namespace
}  // namespace cuplex::runtime
