#include "softcuda/jit/texture_table.h"

#include <atomic>
#include <memory>
#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace cuplex::softcuda {
namespace {

/// A header that shows whether it is whole: every level says the same number.
TextureHeader Numbered(uint64_t n) {
  TextureHeader h;
  for (TextureLevel& level : h.level) level.base = level.row_pitch = level.plane_pitch = n;
  return h;
}
bool IsWhole(const TextureHeader& h) {
  for (const TextureLevel& level : h.level)
    if (level.base != h.level[0].base || level.plane_pitch != h.level[0].base) return false;
  return true;
}

TEST(TextureTable, KnowsWhatItWasGivenAndNothingElse) {
  TextureTable table(1), other(2);
  auto found = std::make_unique<TextureHeader>();
  for (uint64_t handle : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 48, ~uint64_t{0}})
    EXPECT_FALSE(table.Read(handle, found.get())) << handle;
  const uint64_t a = table.Add(Numbered(11)), b = table.Add(Numbered(12));
  EXPECT_NE(a, b);
  ASSERT_TRUE(table.Read(a, found.get()));
  EXPECT_EQ(found->level[3].base, 11u);
  ASSERT_TRUE(table.Read(b, found.get()));
  EXPECT_EQ(found->level[3].base, 12u);
  EXPECT_FALSE(table.Read(a + 1 == b ? a + 2 : a + 1, found.get()));
  EXPECT_FALSE(other.Read(a, found.get()));
  const uint64_t c = other.Add(Numbered(13));
  EXPECT_FALSE(table.Read(c, found.get()));
}

TEST(TextureTable, GivesNoHandleTwice) {
  TextureTable table(1);
  auto found = std::make_unique<TextureHeader>();
  std::set<uint64_t> given;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t handle = table.Add(Numbered(1));
    EXPECT_TRUE(given.insert(handle).second);
    EXPECT_TRUE(table.Holds(handle));
    EXPECT_TRUE(table.Remove(handle));
    EXPECT_FALSE(table.Remove(handle));
    EXPECT_FALSE(table.Holds(handle));
    EXPECT_FALSE(table.Read(handle, found.get()));
  }
}

TEST(TextureTable, ReadersSeeWholeHeadersOrNone) {
  TextureTable table(1);
  std::atomic<uint64_t> handle = table.Add(Numbered(1));
  std::atomic<bool> done = false;
  std::atomic<uint64_t> seen = 0;
  std::thread reader([&] {
    auto found = std::make_unique<TextureHeader>();
    while (!done) {
      if (!table.Read(handle.load(), found.get())) continue;
      EXPECT_TRUE(IsWhole(*found));
      ++seen;
    }
  });
  for (uint64_t n = 2; n < 20000 || seen < 100; ++n) {
    const uint64_t before = handle.load();
    handle = table.Add(Numbered(n));
    table.Remove(before);
  }
  done = true;
  reader.join();
}

}  // namespace
}  // namespace cuplex::softcuda
