#include "softcuda/window.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace cuplex::softcuda {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(AddressWindow, RangesFollowEachOther) {
  auto window = AddressWindow::Reserve({0, 64 * kMiB, 32 * kMiB, 16 * kMiB});
  ASSERT_TRUE(window.ok()) << window.error().sentence;
  EXPECT_EQ((*window)->device().end(), (*window)->host().base);
  EXPECT_EQ((*window)->host().end(), (*window)->aperture().base);
  EXPECT_EQ((*window)->all().size, 112 * kMiB);
}

TEST(AddressWindow, FindsAnotherBaseWhereTheFirstIsTaken) {
  auto first = AddressWindow::Reserve({0, 64 * kMiB, 32 * kMiB, 16 * kMiB});
  ASSERT_TRUE(first.ok());
  auto second = AddressWindow::Reserve({(*first)->all().base, 64 * kMiB, 32 * kMiB, 16 * kMiB});
  ASSERT_TRUE(second.ok()) << second.error().sentence;
  EXPECT_GE((*second)->all().base, (*first)->all().end());
}

TEST(AddressWindow, RefusesSizesThatAreNotWholeUnits) {
  auto window = AddressWindow::Reserve({0, 4096, 32 * kMiB, 16 * kMiB});
  ASSERT_FALSE(window.ok());
  EXPECT_NE(window.error().sentence.find("2 MiB"), std::string::npos);
}

TEST(AddressWindow, AperturePiecesComeBack) {
  auto window = AddressWindow::Reserve({0, 64 * kMiB, 32 * kMiB, 8 * kMiB});
  ASSERT_TRUE(window.ok());
  auto a = (*window)->TakeAperture(1);
  auto b = (*window)->TakeAperture(6 * kMiB);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->size, 2 * kMiB);
  EXPECT_EQ(a->end(), b->base);
  EXPECT_FALSE((*window)->TakeAperture(1).ok());
  // Memory of a piece is gone once it is given back: mapping it anew must read zero.
  auto* mem = static_cast<char*>(mmap(reinterpret_cast<void*>(a->base), 4096, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
  mem[0] = 7;
  (*window)->GiveAperture(*a);
  auto again = (*window)->TakeAperture(2 * kMiB);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->base, a->base);
  ASSERT_EQ(mprotect(reinterpret_cast<void*>(again->base), 4096, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(mem[0], 0);
}

TEST(AddressWindow, HostRanges) {
  auto window = AddressWindow::Reserve({0, 64 * kMiB, 32 * kMiB, 8 * kMiB});
  ASSERT_TRUE(window.ok());
  auto& w = **window;
  ASSERT_TRUE(w.RegisterHostRange(0x1000, 0x2000).ok());
  ASSERT_TRUE(w.RegisterHostRange(0x3000, 0x4000).ok());
  EXPECT_FALSE(w.RegisterHostRange(0x1800, 0x2800).ok());
  EXPECT_FALSE(w.RegisterHostRange(0x800, 0x5000).ok());
  EXPECT_TRUE(w.InHostRange(0x1000, 0x1000));
  EXPECT_TRUE(w.InHostRange(0x1ffc, 4));
  EXPECT_FALSE(w.InHostRange(0x1ffd, 4));
  EXPECT_FALSE(w.InHostRange(0x2000, 1));
  EXPECT_FALSE(w.InHostRange(0xfff, 1));
  EXPECT_TRUE(w.InHostRange(0x3000, 1));
  w.ForgetHostRange(0x1000);
  EXPECT_FALSE(w.InHostRange(0x1000, 1));
}

}  // namespace
}  // namespace cuplex::softcuda
