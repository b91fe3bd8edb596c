#include "softcuda/stream.h"

#include <atomic>
#include <latch>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "softcuda/partition.h"

namespace cuplex::softcuda {
namespace {

/// Streams without a context: this lock stands for the context's.
class StreamTest : public testing::Test {
 protected:
  Ref<Stream> Make(int priority = 0) {
    // A stream only hands its context on to whoever asks.
    alignas(16) static std::byte nothing[16];
    return streams.Make(nullptr, reinterpret_cast<Context&>(nothing), *partition, fault,
                        Stream::Kind::kNonBlocking, priority, uint64_t{1}, nullptr);
  }
  template <typename F>
  uint64_t Push(const Ref<Stream>& stream, F&& f, bool always = false) {
    std::unique_lock guard(lock);
    stream->Push(std::forward<F>(f), always);
    uint64_t number = stream->submitted();
    bool push = stream->Activate();
    guard.unlock();
    if (push) partition->streams().Push(stream.get());
    return number;
  }
  uint64_t PushWait(const Ref<Stream>& stream, const Ref<Stream>& other, uint64_t number) {
    return Push(stream, [other, number](Stream& self) {
      return other->Done(number) || !other->WakeWhenDone(number, self) ? Progress::kDone : Progress::kParked;
    });
  }

  std::mutex lock;
  std::atomic<int> fault = 0;
  HandleTable<Stream> streams{4096};
  std::unique_ptr<AddressWindow> window = std::move(*AddressWindow::Reserve());
  std::unique_ptr<Partition> partition = std::move(*Partition::Start(2, {2, 1}, *window));
};

TEST_F(StreamTest, OperationsAreNumberedFromOne) {
  Ref<Stream> stream = Make();
  EXPECT_TRUE(stream->Idle());
  EXPECT_TRUE(stream->Done(0));
  EXPECT_FALSE(stream->Done(1));
  EXPECT_EQ(Push(stream, [](Stream&) { return Progress::kDone; }), 1u);
  EXPECT_EQ(Push(stream, [](Stream&) { return Progress::kDone; }), 2u);
  stream->Wait(2);
  EXPECT_EQ(stream->completed(), 2u);
  HandleTable<Stream>::Retire(stream.get());
}

TEST_F(StreamTest, WhatAnOperationHoldsIsDroppedWhenItIsDone) {
  Ref<Stream> stream = Make();
  auto held = std::make_shared<int>(1);
  std::weak_ptr<int> watch = held;
  stream->Wait(Push(stream, [held = std::move(held)](Stream&) { return Progress::kDone; }));
  EXPECT_TRUE(watch.expired());
  HandleTable<Stream>::Retire(stream.get());
}

TEST_F(StreamTest, AfterAFaultOnlyWhatMustRuns) {
  Ref<Stream> stream = Make();
  std::atomic<int> ran = 0;
  fault = 700;
  Push(stream, [&](Stream&) { return ran += 1, Progress::kDone; });
  stream->Wait(Push(stream, [&](Stream&) { return ran += 10, Progress::kDone; }, /*always=*/true));
  EXPECT_EQ(ran, 10);
  HandleTable<Stream>::Retire(stream.get());
}

TEST_F(StreamTest, ManyHostCallsThatWaitForOneAnotherAllRun) {
  // Far more than there are threads, and none ends before all have begun.
  constexpr int kCalls = 20;
  std::latch all(kCalls);
  std::vector<Ref<Stream>> made;
  for (int i = 0; i < kCalls; ++i) {
    made.push_back(Make());
    Push(made.back(), [&](Stream& self) {
      self.pool().BeginHostCall();
      all.arrive_and_wait();
      self.pool().EndHostCall();
      return Progress::kDone;
    });
  }
  for (auto& stream : made) {
    stream->Wait(1);
    HandleTable<Stream>::Retire(stream.get());
  }
}

TEST_F(StreamTest, NoMoreStreamsRunThanThePoolMay) {
  std::atomic<int> running = 0, most = 0;
  std::vector<Ref<Stream>> made;
  for (int i = 0; i < 10; ++i) {
    made.push_back(Make());
    for (int n = 0; n < 50; ++n) {
      Push(made.back(), [&](Stream&) {
        int now = ++running, seen = most;
        while (seen < now && !most.compare_exchange_weak(seen, now)) {
        }
        std::this_thread::yield();
        --running;
        return Progress::kDone;
      });
    }
  }
  for (auto& stream : made) {
    stream->Wait(50);
    HandleTable<Stream>::Retire(stream.get());
  }
  EXPECT_LE(most, 2);
}

// Reference: each stream's values, and every wait, checked against numbers noted when they were submitted.
TEST_F(StreamTest, RandomWaitsBetweenStreamsAreKept) {
  constexpr int kStreams = 6, kSteps = 4000;
  std::vector<Ref<Stream>> made;
  std::vector<std::atomic<uint64_t>> done(kStreams);
  for (int i = 0; i < kStreams; ++i) made.push_back(Make(-(i % 6)));
  std::vector<uint64_t> last(kStreams), operations(kStreams);
  std::atomic<int> wrong = 0;
  std::mt19937 random(3);
  for (int step = 0; step < kSteps; ++step) {
    int at = static_cast<int>(random() % kStreams), other = static_cast<int>(random() % kStreams);
    uint64_t must = 0;
    if (other != at && random() % 2) {
      PushWait(made[at], made[other], last[other]);
      must = operations[other];
    }
    uint64_t mine = ++operations[at];
    last[at] = Push(made[at], [&, at, other, must, mine](Stream&) {
      wrong += done[other] < must;
      wrong += done[at].exchange(mine) != mine - 1;
      return Progress::kDone;
    });
    if (step % 97 == 0) made[at]->Wait(last[at]);
  }
  for (int i = 0; i < kStreams; ++i) {
    made[i]->Wait(last[i]);
    EXPECT_EQ(done[i], operations[i]);
    HandleTable<Stream>::Retire(made[i].get());
  }
  EXPECT_EQ(wrong, 0);
}

TEST_F(StreamTest, SeveralThreadsWaitForOneOperation) {
  Ref<Stream> stream = Make();
  std::latch go(1);
  uint64_t number = Push(stream, [&](Stream& self) {
    self.pool().BeginHostCall();
    go.wait();
    self.pool().EndHostCall();
    return Progress::kDone;
  });
  std::vector<std::thread> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.emplace_back([&] {
      stream->Wait(number);
      EXPECT_TRUE(stream->Done(number));
    });
  }
  go.count_down();
  for (auto& waiter : waiters) waiter.join();
  HandleTable<Stream>::Retire(stream.get());
}

TEST_F(StreamTest, RetiredWhileItHasWorkItFinishes) {
  std::atomic<int> ran = 0;
  for (int i = 0; i < 500; ++i) {
    Ref<Stream> stream = Make();
    for (int n = 0; n < 3; ++n) Push(stream, [&](Stream&) { return ++ran, Progress::kDone; });
    HandleTable<Stream>::Retire(stream.get());
  }
  while (ran < 1500) std::this_thread::yield();
  EXPECT_EQ(ran, 1500);
}

TEST(PartitionTest, ThreadsComeToTheMultiprocessorsPart) {
  for (unsigned workers : {1u, 2u, 7u, 64u}) {
    for (unsigned all : {1u, 2u, 7u, 108u}) {
      for (unsigned some = 1; some <= all; ++some) {
        const auto [count, duty] = Partition::ThreadsFor(some, all, workers);
        EXPECT_NEAR(count * duty, static_cast<double>(some) * workers / all, 1e-9);
        EXPECT_GT(duty, 0);
        EXPECT_LE(duty, 1);
      }
    }
  }
}

}  // namespace
}  // namespace cuplex::softcuda
