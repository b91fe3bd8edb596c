#include "softcuda/address_ranges.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace cuplex::softcuda {
namespace {

constexpr uintptr_t kBase = 0x10000;

TEST(AddressRanges, LowAndHighStartAtTheEnds) {
  AddressRanges ranges(kBase, 0x10000);
  EXPECT_EQ(ranges.TakeLow(0x100, 1), kBase);
  EXPECT_EQ(ranges.TakeHigh(0x100, 1), kBase + 0xff00);
  EXPECT_EQ(ranges.TakeLow(0x100, 0x1000), kBase + 0x1000);
  EXPECT_EQ(ranges.TakeHigh(0x100, 0x1000), kBase + 0xf000);
  EXPECT_EQ(ranges.TakeLow(0x10, 1), kBase + 0x100);
}

TEST(AddressRanges, AFixedRangeIsTakenOnce) {
  AddressRanges ranges(kBase, 0x10000);
  EXPECT_TRUE(ranges.TakeAt(kBase + 0x4000, 0x1000));
  EXPECT_FALSE(ranges.TakeAt(kBase + 0x4000, 0x1000));
  EXPECT_FALSE(ranges.TakeAt(kBase + 0x3fff, 2));
  EXPECT_FALSE(ranges.TakeAt(kBase + 0x4fff, 1));
  EXPECT_FALSE(ranges.TakeAt(kBase - 1, 1));
  EXPECT_FALSE(ranges.TakeAt(kBase + 0xffff, 2));
  EXPECT_FALSE(ranges.TakeAt(kBase + 0x8000, SIZE_MAX));
  EXPECT_TRUE(ranges.TakeAt(kBase + 0xffff, 1));
}

TEST(AddressRanges, WithoutRoomNothingIsTaken) {
  AddressRanges ranges(kBase, 0x1000);
  EXPECT_FALSE(ranges.TakeLow(0x1001, 1));
  EXPECT_FALSE(ranges.TakeHigh(0x1001, 1));
  EXPECT_FALSE(ranges.TakeLow(1, uintptr_t{1} << 40));
  EXPECT_FALSE(ranges.TakeLow(0, 1));
  EXPECT_EQ(ranges.FreeBytes(), 0x1000u);
}

// Reference: one bool a byte.
TEST(AddressRanges, NeverGivesAByteTwice) {
  constexpr size_t kSize = 4096;
  AddressRanges ranges(kBase, kSize);
  std::vector<bool> taken(kSize);
  std::vector<std::pair<uintptr_t, size_t>> held;
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    if (random() % 2 && !held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      auto [base, size] = held.back();
      held.pop_back();
      for (size_t b = 0; b < size; ++b) taken[base - kBase + b] = false;
      ranges.Give(base, size);
    } else {
      size_t size = 1 + random() % 200, alignment = size_t{1} << random() % 8;
      std::optional<uintptr_t> base;
      if (unsigned way = random() % 3; way == 2) {
        uintptr_t at = kBase + random() % kSize;
        bool fits = at + size <= kBase + kSize;
        for (size_t b = 0; fits && b < size; ++b) fits = !taken[at - kBase + b];
        ASSERT_EQ(ranges.TakeAt(at, size), fits);
        if (!fits) continue;
        base = at;
      } else {
        base = way ? ranges.TakeLow(size, alignment) : ranges.TakeHigh(size, alignment);
        if (!base) continue;
        ASSERT_EQ(*base % alignment, 0u);
      }
      for (size_t b = 0; b < size; ++b) {
        ASSERT_FALSE(taken[*base - kBase + b]);
        taken[*base - kBase + b] = true;
      }
      held.emplace_back(*base, size);
    }
    size_t free = 0;
    for (bool t : taken) free += !t;
    ASSERT_EQ(ranges.FreeBytes(), free);
  }
}

}  // namespace
}  // namespace cuplex::softcuda
