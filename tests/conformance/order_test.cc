// Who waits for whom: streams, default streams, events, host functions. Work is held back by gates (host
// functions that wait), so what must not have happened yet cannot have happened, whatever the speed of the
// machine.
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/conformance/driver_under_test.h"

namespace cuplex::conformance {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;
using Order = Body;

double MillisecondsSince(steady_clock::time_point then) {
  return duration<double, std::milli>(steady_clock::now() - then).count();
}

TEST_F(Order, AStreamKeepsItsOrder) {
  DeviceMemory x(64), y(64);
  Stream stream;
  CUfunction slow = Kernel("slow_write"), copy = Kernel("copy_word");
  for (unsigned i = 1; i <= 20; ++i) {
    MUST(Launch(slow, 1, 1, stream, x.at, i, 2000u));
    MUST(Launch(copy, 1, 1, stream, y.at + 4 * (i % 16), x.at));
  }
  MUST(Cu().cuStreamSynchronize(stream));
  const auto seen = Read<uint32_t>(y.at, 16);
  for (unsigned i = 5; i <= 20; ++i) EXPECT_EQ(seen[i % 16], i);
}

TEST_F(Order, TheLegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  DeviceMemory x(4);
  Stream one, two;
  Gate gate(one);
  MUST(Cu().cuMemsetD32Async(x.at, 1, 1, one));
  MUST(Cu().cuMemsetD32Async(x.at, 2, 1, nullptr));  // behind `one`
  MUST(Cu().cuMemsetD32Async(x.at, 3, 1, two));      // behind the legacy stream
  EXPECT_EQ(Cu().cuStreamQuery(two), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(Cu().cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
  gate.Open();
  MUST(Cu().cuStreamSynchronize(two));
  EXPECT_EQ(Read<uint32_t>(x.at, 1)[0], 3u);
}

TEST_F(Order, CuStreamLegacyIsTheNullStream) {
  DeviceMemory x(4);
  Stream one;
  Gate gate(one);
  MUST(Cu().cuMemsetD32Async(x.at, 2, 1, CU_STREAM_LEGACY));
  EXPECT_EQ(Cu().cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
  gate.Open();
  MUST(Cu().cuStreamSynchronize(CU_STREAM_LEGACY));
}

TEST_F(Order, ANonBlockingStreamWaitsForNobody) {
  DeviceMemory x(8);
  Stream held(CU_STREAM_NON_BLOCKING), free(CU_STREAM_NON_BLOCKING);
  Gate gate(held);
  MUST(Cu().cuMemsetD32Async(x.at, 1, 1, nullptr));
  MUST(Cu().cuStreamSynchronize(nullptr));  // would hang if it waited for `held`
  MUST(Cu().cuMemsetD32Async(x.at + 4, 5, 1, free));
  MUST(Cu().cuStreamSynchronize(free));
  EXPECT_EQ(Cu().cuStreamQuery(held), CUDA_ERROR_NOT_READY);
  gate.Open();
  MUST(Cu().cuStreamSynchronize(held));
  EXPECT_EQ(Read<uint32_t>(x.at, 2), (std::vector<uint32_t>{1, 5}));
}

TEST_F(Order, BlockingStreamsDoNotWaitForOneAnother) {
  DeviceMemory x(4);
  Stream held, other;
  Gate gate(held);
  MUST(Cu().cuMemsetD32Async(x.at, 9, 1, other));
  MUST(Cu().cuStreamSynchronize(other));
  EXPECT_EQ(Cu().cuStreamQuery(other), CUDA_SUCCESS);
  EXPECT_EQ(Cu().cuStreamQuery(held), CUDA_ERROR_NOT_READY);
  gate.Open();
}

TEST_F(Order, AnEventCarriesOrderFromStreamToStream) {
  DeviceMemory x(64), y(4);
  Stream first(CU_STREAM_NON_BLOCKING), second(CU_STREAM_NON_BLOCKING);
  Event event;
  MUST(Cu().cuMemsetD32_v2(x.at, 0, 16));
  MUST(Cu().cuCtxSynchronize());  // non-blocking streams do not wait for the legacy stream's fill
  Gate gate(first);
  MUST(Launch(Kernel("slow_write"), 1, 1, first, x.at, 41u, 20000u));
  MUST(Cu().cuEventRecord(event, first));
  MUST(Cu().cuStreamWaitEvent(second, event, 0));
  MUST(Launch(Kernel("copy_word"), 1, 1, second, y.at, x.at));
  EXPECT_EQ(Cu().cuStreamQuery(second), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(Cu().cuEventQuery(event), CUDA_ERROR_NOT_READY);
  gate.Open();
  MUST(Cu().cuStreamSynchronize(second));
  EXPECT_EQ(Read<uint32_t>(y.at, 1)[0], 41u);
  EXPECT_EQ(Cu().cuEventQuery(event), CUDA_SUCCESS);
}

TEST_F(Order, AnEventMeansItsLastRecordAtTheTimeOfTheWait) {
  Stream held(CU_STREAM_NON_BLOCKING), waiting(CU_STREAM_NON_BLOCKING), other(CU_STREAM_NON_BLOCKING);
  Event event;
  // Nothing recorded yet: nothing to wait for.
  MUST(Cu().cuStreamWaitEvent(waiting, event, 0));
  MUST(Cu().cuStreamSynchronize(waiting));
  EXPECT_EQ(Cu().cuEventQuery(event), CUDA_SUCCESS);
  Gate gate(held);
  MUST(Cu().cuEventRecord(event, held));
  MUST(Cu().cuStreamWaitEvent(waiting, event, 0));
  MUST(Cu().cuEventRecord(event, other));
  MUST(Cu().cuEventSynchronize(event));  // of `other` now
  EXPECT_EQ(Cu().cuStreamQuery(waiting), CUDA_ERROR_NOT_READY);
  gate.Open();
  MUST(Cu().cuStreamSynchronize(waiting));
}

TEST_F(Order, TimesOfEventsAreTimes) {
  Stream stream;
  Event a, b, c;
  const auto began = steady_clock::now();
  MUST(Cu().cuEventRecord(a, stream));
  double held_ms = 0;
  {
    Gate gate(stream);
    MUST(Cu().cuEventRecord(b, stream));
    float early = 0;
    EXPECT_EQ(Cu().cuEventElapsedTime_v2(&early, a, b), CUDA_ERROR_NOT_READY);
    gate.AwaitArrival();
    const auto arrived = steady_clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // time is what is measured here
    held_ms = MillisecondsSince(arrived);
    gate.Open();
  }
  MUST(Cu().cuEventRecord(c, stream));
  MUST(Cu().cuStreamSynchronize(stream));
  const double all_ms = MillisecondsSince(began);
  float ab = 0, bc = 0, ac = 0, ba = 0;
  MUST(Cu().cuEventElapsedTime_v2(&ab, a, b));
  MUST(Cu().cuEventElapsedTime_v2(&bc, b, c));
  MUST(Cu().cuEventElapsedTime_v2(&ac, a, c));
  MUST(Cu().cuEventElapsedTime_v2(&ba, b, a));
  EXPECT_GE(ab, held_ms - 1);
  EXPECT_GE(bc, 0);
  EXPECT_LE(ac, all_ms + 1);
  EXPECT_NEAR(ab + bc, ac, 0.01);
  EXPECT_NEAR(ba, -ab, 0.01);
}

TEST_F(Order, EventsWithoutTimeSaySo) {
  Event timed, untimed(CU_EVENT_DISABLE_TIMING), never;
  MUST(Cu().cuEventRecord(timed, nullptr));
  MUST(Cu().cuEventRecord(untimed, nullptr));
  MUST(Cu().cuCtxSynchronize());
  float ms = 0;
  EXPECT_EQ(Cu().cuEventElapsedTime_v2(&ms, timed, untimed), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Cu().cuEventElapsedTime_v2(&ms, timed, never), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Order, HostFunctionsRunInOrderBetweenKernels) {
  void* host = nullptr;
  MUST(Cu().cuMemHostAlloc(&host, 4, CU_MEMHOSTALLOC_DEVICEMAP));
  auto* word = static_cast<volatile unsigned*>(host);
  *word = 1;
  CUdeviceptr device = 0;
  MUST(Cu().cuMemHostGetDevicePointer_v2(&device, host, 0));
  Stream stream;
  struct Seen {
    volatile unsigned* word;
    std::vector<unsigned> values;
    std::thread::id thread;
  } seen{word, {}, {}};
  for (int i = 0; i < 5; ++i) {
    MUST(Launch(Kernel("add"), 1, 1, stream, device, 10u, 1u));
    MUST(Cu().cuLaunchHostFunc(
        stream,
        [](void* p) {
          auto* s = static_cast<Seen*>(p);
          s->values.push_back(unsigned{*s->word});
          *s->word = *s->word * 2;
          s->thread = std::this_thread::get_id();
        },
        &seen));
  }
  MUST(Cu().cuStreamSynchronize(stream));
  // By hand: (1+10)=11 ->22 ->32 ->64 ->74 ->148 ->158 ->316 ->326 ->652
  EXPECT_EQ(seen.values, (std::vector<unsigned>{11, 32, 74, 158, 326}));
  EXPECT_EQ(*word, 652u);
  EXPECT_NE(seen.thread, std::thread::id());
  MUST(Cu().cuMemFreeHost(host));
}

TEST_F(Order, CallbacksAreToldHowItWent) {
  Stream stream;
  struct Told {
    CUresult code = CUDA_ERROR_UNKNOWN;
    CUstream stream = nullptr;
  } told;
  MUST(Cu().cuStreamAddCallback(
      stream,
      [](CUstream s, CUresult code, void* p) {
        static_cast<Told*>(p)->code = code;
        static_cast<Told*>(p)->stream = s;
      },
      &told, 0));
  MUST(Cu().cuStreamSynchronize(stream));
  EXPECT_EQ(told.code, CUDA_SUCCESS);
  EXPECT_EQ(told.stream, stream.handle);
}

TEST_F(Order, EachThreadHasADefaultStreamOfItsOwn) {
  auto launch_ptsz = reinterpret_cast<Gate::Launch>(Exported("cuLaunchHostFunc_ptsz"));
  auto sync_ptsz = reinterpret_cast<CUresult (*)(CUstream)>(Exported("cuStreamSynchronize_ptsz"));
  auto query_ptsz = reinterpret_cast<CUresult (*)(CUstream)>(Exported("cuStreamQuery_ptsz"));
  ASSERT_TRUE(launch_ptsz && sync_ptsz && query_ptsz);
  Gate gate(nullptr, launch_ptsz);  // holds this thread's
  EXPECT_EQ(query_ptsz(nullptr), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(Cu().cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
  CUresult theirs = CUDA_ERROR_UNKNOWN, by_name = CUDA_ERROR_UNKNOWN;
  std::thread([&] {
    MUST(Cu().cuCtxSetCurrent(context_));
    theirs = sync_ptsz(nullptr);  // would hang if it were the same stream
    by_name = Cu().cuStreamSynchronize(CU_STREAM_PER_THREAD);
  }).join();
  EXPECT_EQ(theirs, CUDA_SUCCESS);
  EXPECT_EQ(by_name, CUDA_SUCCESS);
  // The legacy stream waits for it as for any blocking stream.
  DeviceMemory x(4);
  MUST(Cu().cuMemsetD32Async(x.at, 1, 1, nullptr));
  EXPECT_EQ(Cu().cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
  gate.Open();
  MUST(sync_ptsz(nullptr));
  MUST(Cu().cuCtxSynchronize());
}

TEST_F(Order, ADestroyedStreamFinishesItsWork) {
  DeviceMemory x(4);
  MUST(Cu().cuMemsetD32_v2(x.at, 0, 1));
  MUST(Cu().cuCtxSynchronize());  // the stream below does not wait for the legacy stream's fill
  CUstream stream = nullptr;
  MUST(Cu().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  {
    Gate gate(stream);
    MUST(Cu().cuMemsetD32Async(x.at, 77, 1, stream));
    MUST(Cu().cuStreamDestroy_v2(stream));  // would hang if it waited
  }
  MUST(Cu().cuCtxSynchronize());
  EXPECT_EQ(Read<uint32_t>(x.at, 1)[0], 77u);
}

TEST_F(Order, AContextWaitsForAllItsStreams) {
  DeviceMemory x(64);
  std::vector<std::unique_ptr<Stream>> streams;
  CUfunction slow = Kernel("slow_write");
  MUST(Cu().cuMemsetD32_v2(x.at, 0, 16));
  MUST(Cu().cuCtxSynchronize());  // non-blocking streams do not wait for the legacy stream's fill
  for (unsigned i = 0; i < 6; ++i) {
    streams.push_back(std::make_unique<Stream>(i % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
    MUST(Launch(slow, 1, 1, *streams[i], x.at + 8 * i, i + 1, 30000u));
  }
  MUST(Cu().cuCtxSynchronize());
  for (auto& stream : streams) EXPECT_EQ(Cu().cuStreamQuery(*stream), CUDA_SUCCESS);
  const auto words = Read<uint32_t>(x.at, 12);
  for (unsigned i = 0; i < 6; ++i) EXPECT_EQ(words[2 * i], i + 1);
}

TEST_F(Order, StreamsRememberHowTheyWereMade) {
  int least = 0, greatest = 0;
  MUST(Cu().cuCtxGetStreamPriorityRange(&least, &greatest));
  EXPECT_GE(least, greatest);
  CUstream stream = nullptr;
  MUST(Cu().cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest));
  unsigned flags = 0;
  int priority = 99;
  CUcontext context = nullptr;
  unsigned long long id = 0, other = 0;
  MUST(Cu().cuStreamGetFlags(stream, &flags));
  EXPECT_EQ(flags, static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
  MUST(Cu().cuStreamGetPriority(stream, &priority));
  EXPECT_EQ(priority, greatest);
  MUST(Cu().cuStreamGetCtx(stream, &context));
  EXPECT_EQ(context, context_);
  Stream second;
  MUST(Cu().cuStreamGetId(stream, &id));
  MUST(Cu().cuStreamGetId(second, &other));
  EXPECT_NE(id, other);
  EXPECT_EQ(Cu().cuStreamCreate(&stream, 0x80), CUDA_ERROR_INVALID_VALUE);
  MUST(Cu().cuStreamDestroy_v2(stream));
}

TEST_F(Order, ManyThreadsAtOnce) {
  constexpr unsigned kThreads = 8, kRounds = 60;
  DeviceMemory words(kThreads * 256);
  MUST(Cu().cuMemsetD8_v2(words.at, 0, kThreads * 256));
  MUST(Cu().cuCtxSynchronize());
  CUfunction add = Kernel("add");
  std::atomic<unsigned> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      if (Cu().cuCtxSetCurrent(context_)) return void(++wrong);
      CUstream stream = nullptr;
      if (Cu().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) return void(++wrong);
      for (unsigned i = 0; i < kRounds; ++i) {
        if (Launch(add, 1, 32, stream, words.at + t * 256, t + 1, 32u)) ++wrong;
        unsigned got[32];
        if (Cu().cuMemcpyDtoHAsync_v2(got, words.at + t * 256, sizeof(got), stream)) ++wrong;
        if (Cu().cuStreamSynchronize(stream)) ++wrong;
        if (got[0] != (i + 1) * (t + 1) || got[31] != (i + 1) * (t + 1)) ++wrong;
      }
      if (Cu().cuStreamDestroy_v2(stream)) ++wrong;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace cuplex::conformance
