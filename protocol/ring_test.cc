#include "protocol/ring.h"

#include <thread>

#include <gtest/gtest.h>

namespace cuplex {
namespace {

class RingTest : public testing::Test {
 protected:
  void SetUp() override {
    SegmentGeometry g;
    g.ring_bytes = 256 * 1024;  // room for one longest frame and a bit
    auto made = Segment::Create(g);
    ASSERT_TRUE(made.ok()) << made.error().sentence;
    segment_ = std::move(*made);
  }
  Segment segment_;
};

void Fill(std::byte* at, uint32_t bytes, uint16_t op) {
  FrameHeader h;
  h.bytes = bytes;
  h.op = op;
  std::memcpy(at, &h, sizeof(h));
  for (uint32_t i = sizeof(h); i < bytes; ++i) at[i] = static_cast<std::byte>(op * 31 + i);
}

void Expect(std::span<const std::byte> frame, uint32_t bytes, uint16_t op) {
  ASSERT_EQ(frame.size(), bytes);
  FrameHeader h;
  std::memcpy(&h, frame.data(), sizeof(h));
  ASSERT_EQ(h.op, op);
  for (uint32_t i = sizeof(h); i < bytes; ++i) ASSERT_EQ(frame[i], static_cast<std::byte>(op * 31 + i)) << i;
}

TEST_F(RingTest, KeepsOrderAndContentAcrossTheWrapWithTwoThreads) {
  constexpr int kFrames = 20000;
  auto size_of = [](int i) { return static_cast<uint32_t>(16 + 8 * ((i * 7919) % 500)); };
  std::thread client([&] {
    RingWriter w(segment_);
    for (int i = 0; i < kFrames; ++i) {
      std::byte* at;
      while (!(at = w.Begin(size_of(i))))
        RingWriter::AwaitSpace(segment_.header(), w.seen_head(), 1'000'000'000);
      Fill(at, size_of(i), static_cast<uint16_t>(i));
      (void)w.Commit(size_of(i), false);
    }
  });
  RingReader r(segment_);
  for (int i = 0; i < kFrames;) {
    auto next = r.Next();
    ASSERT_TRUE(next.ok()) << next.error().sentence;
    if (!*next) {
      std::this_thread::yield();
      continue;
    }
    Expect(**next, size_of(i), static_cast<uint16_t>(i));
    ++i;
    r.Release();
  }
  client.join();
  EXPECT_TRUE(r.Empty());
}

TEST_F(RingTest, IsFullWhenItIsFull) {
  RingWriter w(segment_);
  uint32_t written = 0;
  while (std::byte* at = w.Begin(4096)) {
    Fill(at, 4096, 1);
    (void)w.Commit(4096, false);
    written += 4096;
  }
  EXPECT_EQ(written, segment_.geometry().ring_bytes);
  RingReader r(segment_);
  ASSERT_TRUE(*r.Next());
  EXPECT_EQ(w.Begin(4096), nullptr);
  r.Release();
  EXPECT_NE(w.Begin(4096), nullptr);
}

TEST_F(RingTest, RingsASleepingReaderOnce) {
  RingWriter w(segment_);
  RingReader r(segment_);
  ASSERT_TRUE(r.Sleep());
  Fill(w.Begin(16), 16, 1);
  EXPECT_TRUE(w.Commit(16, false));
  Fill(w.Begin(16), 16, 1);
  EXPECT_FALSE(w.Commit(16, false));
  EXPECT_FALSE(r.Sleep());  // there is work
}

TEST_F(RingTest, RingsANappingReaderForWhatCannotWait) {
  RingWriter w(segment_);
  RingReader r(segment_);
  ASSERT_TRUE(r.Sleep(/*naps=*/true));
  Fill(w.Begin(16), 16, 1);
  EXPECT_FALSE(w.Commit(16, false));
  Fill(w.Begin(16), 16, 1);
  EXPECT_TRUE(w.Commit(16, true));
  Fill(w.Begin(16), 16, 1);
  EXPECT_FALSE(w.Commit(16, true));  // it is awake
  while (*r.Next()) {
  }
  r.Release();
  // One that fills up is rung for, or its client would wait for space.
  ASSERT_TRUE(r.Sleep(/*naps=*/true));
  const uint32_t most = segment_.geometry().ring_bytes;
  uint32_t written = 0;
  bool rung = false;
  while (!rung && written + 4096 <= most) {
    Fill(w.Begin(4096), 4096, 1);
    rung = w.Commit(4096, false);
    written += 4096;
  }
  EXPECT_TRUE(rung);
  EXPECT_GT(written, most / 2);
  EXPECT_LE(written, most / 2 + 4096);
}

TEST_F(RingTest, RefusesNonsense) {
  struct Case {
    uint64_t tail;
    uint32_t bytes;
  };
  for (const Case& c : {Case{8, 8}, Case{1ull << 40, 16}, Case{~0ull, 16}, Case{64, 0}, Case{64, 15},
                        Case{64, 20}, Case{64, 72}, Case{64, 0xfffffff8}, Case{262144, 131080}}) {
    RingReader r(segment_);
    std::memcpy(segment_.ring(), &c.bytes, sizeof(c.bytes));
    segment_.header()->ring_tail = c.tail;
    EXPECT_FALSE(r.Next().ok()) << c.tail << " " << c.bytes;
  }
}

}  // namespace
}  // namespace cuplex
