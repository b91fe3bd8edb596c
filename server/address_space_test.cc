#include "server/address_space.h"

#include <random>
#include <set>

namespace cuplex::server {
namespace {

TEST(AddressSpace, TakesTheLowestAlignedPlaceAndJoinsWhatComesBack) {
  AddressSpace space(0x1000, 0x1000);
  EXPECT_EQ(space.Take(0x100, 1), 0x1000u);
  EXPECT_EQ(space.Take(0x200, 0x200), 0x1200u);
  EXPECT_EQ(space.Take(0x100, 1), 0x1100u) << "the gap before the aligned one is still there";
  EXPECT_EQ(space.Take(0xd00, 1), std::nullopt);
  EXPECT_EQ(space.Take(0xc00, 1), 0x1400u);
  EXPECT_EQ(space.Take(1, 1), std::nullopt);
  space.Give(0x1100, 0x100);
  space.Give(0x1400, 0xc00);
  space.Give(0x1200, 0x200);
  EXPECT_EQ(space.Take(0xf00, 0x100), 0x1100u);
  space.Give(0x1100, 0xf00);
  EXPECT_FALSE(space.Empty());
  space.Give(0x1000, 0x100);
  EXPECT_TRUE(space.Empty());
}

TEST(AddressSpace, NeverGivesAnAddressTwice) {
  std::mt19937 random(7);
  AddressSpace space(0, 4096);
  std::map<uint64_t, uint64_t> taken;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 2 || taken.empty()) {
      const uint64_t bytes = 1 + random() % 200;
      const uint64_t alignment = uint64_t{1} << (random() % 7);
      auto at = space.Take(bytes, alignment);
      if (!at) continue;
      ASSERT_EQ(*at % alignment, 0u);
      ASSERT_LE(*at + bytes, 4096u);
      auto after = taken.lower_bound(*at);
      if (after != taken.end()) ASSERT_LE(*at + bytes, after->first);
      if (after != taken.begin()) ASSERT_LE(std::prev(after)->first + std::prev(after)->second, *at);
      taken.emplace(*at, bytes);
    } else {
      auto it = std::next(taken.begin(), random() % taken.size());
      space.Give(it->first, it->second);
      taken.erase(it);
    }
  }
  for (auto [base, bytes] : taken) space.Give(base, bytes);
  EXPECT_TRUE(space.Empty());
}

}  // namespace
}  // namespace cuplex::server
