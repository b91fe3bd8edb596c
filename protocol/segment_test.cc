#include "protocol/segment.h"

#include <cstring>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace cuplex {
namespace {

TEST(Segment, BothEndsSeeTheSameBytesAndTheRingTwice) {
  auto server = Segment::Create(SegmentGeometry{});
  ASSERT_TRUE(server.ok()) << server.error().sentence;
  auto client = Segment::Map(UniqueFd(dup(server->fd())), server->geometry());
  ASSERT_TRUE(client.ok()) << client.error().sentence;
  std::memcpy(client->staging() + 100, "hello", 5);
  EXPECT_EQ(std::memcmp(server->staging() + 100, "hello", 5), 0);
  const uint32_t n = server->geometry().ring_bytes;
  client->ring()[n + 3] = std::byte{42};
  EXPECT_EQ(server->ring()[3], std::byte{42});
}

TEST(Segment, CannotBeShrunkByThePeer) {
  auto s = Segment::Create(SegmentGeometry{});
  ASSERT_TRUE(s.ok());
  EXPECT_EQ(ftruncate(s->fd(), 4096), -1);
  EXPECT_EQ(ftruncate(s->fd(), 1 << 30), -1);
}

TEST(Segment, RefusesGeometryThatDoesNotFit) {
  auto s = Segment::Create(SegmentGeometry{});
  ASSERT_TRUE(s.ok());
  auto map = [&](auto change) {
    SegmentGeometry g = s->geometry();
    change(g);
    return Segment::Map(UniqueFd(dup(s->fd())), g).ok();
  };
  EXPECT_TRUE(map([](SegmentGeometry&) {}));
  EXPECT_FALSE(map([](SegmentGeometry& g) { g.ring_bytes = 3 << 20; }));
  EXPECT_FALSE(map([](SegmentGeometry& g) { g.ring_offset += 4096; }));
  EXPECT_FALSE(map([](SegmentGeometry& g) { g.slot_count = 65; }));
  EXPECT_FALSE(map([](SegmentGeometry& g) { g.block_count = 0; }));
  EXPECT_FALSE(map([](SegmentGeometry& g) {
    g = SegmentGeometry{.ring_bytes = 2 << 20}.Laid();
  }));  // longer than the memory
}

}  // namespace
}  // namespace cuplex
