#include "protocol/slot.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "protocol/staging.h"

namespace cuplex {
namespace {

class SlotTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = Segment::Create(SegmentGeometry{});
    ASSERT_TRUE(made.ok());
    segment_ = std::move(*made);
  }
  Segment segment_;
  std::atomic<bool> gone_ = false;
};

TEST_F(SlotTest, AReplyReachesASpinnerAndASleeper) {
  for (int spins : {100000000, 0}) {
    SlotHeader* slot = SlotAt(segment_, 7);
    ArmSlot(slot);
    std::thread server([&] {
      while (spins == 0 && slot->state.load() != SlotHeader::kAsleep) std::this_thread::yield();
      const std::byte payload[] = {std::byte{1}, std::byte{2}, std::byte{3}};
      CompleteSlot(segment_, 7, CUDA_ERROR_NOT_FOUND, payload);
    });
    EXPECT_TRUE(AwaitSlot(slot, spins, gone_));
    EXPECT_EQ(slot->result, CUDA_ERROR_NOT_FOUND);
    EXPECT_EQ(slot->bytes, 3u);
    EXPECT_EQ(SlotPayload(slot)[2], std::byte{3});
    server.join();
  }
}

TEST_F(SlotTest, APayloadIsCutToTheSlot) {
  std::vector<std::byte> big(100000, std::byte{9});
  CompleteSlot(segment_, 0, CUDA_SUCCESS, big);
  EXPECT_EQ(SlotAt(segment_, 0)->bytes, SlotCapacity(segment_));
  EXPECT_EQ(SlotAt(segment_, 1)->state, SlotHeader::kIdle);
}

TEST_F(SlotTest, WaitingEndsWhenTheServerIsGone) {
  SlotHeader* slot = SlotAt(segment_, 0);
  ArmSlot(slot);
  std::thread watcher([&] {
    while (slot->state.load() != SlotHeader::kAsleep) std::this_thread::yield();
    gone_ = true;
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(AwaitSlot(slot, 0, gone_));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  watcher.join();
}

TEST_F(SlotTest, SlotsAreClaimedOnce) {
  SlotPool pool(64);
  uint64_t seen = 0;
  for (int i = 0; i < 64; ++i) seen |= 1ull << pool.Claim();
  EXPECT_EQ(seen, ~0ull);
  EXPECT_EQ(pool.Claim(), SlotPool::kNoFree);
  pool.Free(13);
  EXPECT_EQ(pool.Claim(), 13u);
  SlotPool small(3);
  EXPECT_EQ(small.Claim(), 0u);
  EXPECT_EQ(small.Claim(), 1u);
  EXPECT_EQ(small.Claim(), 2u);
  EXPECT_EQ(small.Claim(), SlotPool::kNoFree);
}

TEST_F(SlotTest, ABlockGoesBackAndForth) {
  StagingBlock* block = BlockAt(segment_, 5);
  block->state = StagingBlock::kInFlight;
  std::thread server([&] {
    while (block->state.load() != StagingBlock::kInFlightAsleep) std::this_thread::yield();
    FinishBlock(segment_, 5, StagingBlock::kDone, CUDA_ERROR_ILLEGAL_ADDRESS);
  });
  EXPECT_TRUE(AwaitBlock(block, 0, gone_));
  EXPECT_EQ(block->state, StagingBlock::kDone);
  EXPECT_EQ(block->result, CUDA_ERROR_ILLEGAL_ADDRESS);
  server.join();
  block->state = StagingBlock::kInFlight;
  gone_ = true;
  EXPECT_FALSE(AwaitBlock(block, 0, gone_));
}

}  // namespace
}  // namespace cuplex
