#include "softcuda/jit/device_heap.h"

#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace cuplex::softcuda {
namespace {

TEST(DeviceHeaps, GiveAlignedPiecesUntilThereAreNone) {
  DeviceHeap heap(0x10000, 4096);
  std::vector<uintptr_t> pieces;
  while (uintptr_t at = heap.Allocate(100)) pieces.push_back(at);
  EXPECT_EQ(pieces.size(), 4096u / 112);
  for (size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(pieces[i] % 16, 0u);
    EXPECT_GE(pieces[i], 0x10000u);
    EXPECT_LE(pieces[i] + 100, 0x11000u);
    for (size_t j = 0; j < i; ++j) EXPECT_TRUE(pieces[i] >= pieces[j] + 100 || pieces[j] >= pieces[i] + 100);
  }
  for (uintptr_t at : pieces) EXPECT_TRUE(heap.Free(at));
  EXPECT_EQ(heap.used(), 0u);
  EXPECT_EQ(heap.Allocate(4096), 0x10000u) << "neighbours have become one piece again";
}

TEST(DeviceHeaps, RefuseWhatCannotBe) {
  DeviceHeap heap(0x10000, 4096);
  EXPECT_EQ(heap.Allocate(4097), 0u);
  EXPECT_EQ(heap.Allocate(~uint64_t{0}), 0u);
  EXPECT_TRUE(heap.Free(0));
  EXPECT_FALSE(heap.Free(0x10010));
  uintptr_t at = heap.Allocate(0);
  EXPECT_NE(at, 0u);
  EXPECT_TRUE(heap.Free(at));
  EXPECT_FALSE(heap.Free(at));
}

TEST(DeviceHeaps, AreForManyThreads) {
  DeviceHeap heap(0x100000, 1 << 20);
  std::vector<std::thread> threads;
  std::atomic<bool> overlap{false};
  std::vector<std::atomic<uint8_t>> owner((1 << 20) / 16);
  for (unsigned t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<std::pair<uintptr_t, size_t>> mine;
      auto mark = [&](uintptr_t at, size_t bytes, unsigned from, unsigned to) {
        for (size_t i = (at - 0x100000) / 16; i < (at - 0x100000 + bytes + 15) / 16; ++i) {
          if (owner[i].exchange(static_cast<uint8_t>(to)) != from) overlap = true;
        }
      };
      for (int step = 0; step < 4000; ++step) {
        if (mine.size() < 20 && random() % 2) {
          size_t bytes = 1 + random() % 5000;
          if (uintptr_t at = heap.Allocate(bytes)) mark(at, bytes, 0, t), mine.emplace_back(at, bytes);
        } else if (!mine.empty()) {
          size_t i = random() % mine.size();
          mark(mine[i].first, mine[i].second, t, 0);
          EXPECT_TRUE(heap.Free(mine[i].first));
          mine[i] = mine.back();
          mine.pop_back();
        }
      }
      for (auto [at, bytes] : mine) mark(at, bytes, t, 0), heap.Free(at);
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_FALSE(overlap);
  EXPECT_EQ(heap.used(), 0u);
}

}  // namespace
}  // namespace cuplex::softcuda
