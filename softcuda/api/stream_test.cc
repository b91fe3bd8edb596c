#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "softcuda/api/kernels.h"
#include "softcuda/api/testing.h"

namespace cuplex::softcuda {
namespace {

class Streams : public ContextTest {
 protected:
  CUstream Make(unsigned flags = CU_STREAM_DEFAULT, int priority = 0) {
    CUstream stream = nullptr;
    EXPECT_CU(cuStreamCreateWithPriority(&stream, flags, priority));
    return stream;
  }
  // Writes down the order in which streams come by.
  struct Note {
    std::vector<int>* order;
    int number;
  };
  void Write(CUstream stream, Note* note) {
    EXPECT_CU(cuLaunchHostFunc(
        stream,
        [](void* data) {
          auto* note = static_cast<Note*>(data);
          note->order->push_back(note->number);
        },
        note));
  }
};

TEST_F(Streams, RunBesideTheCaller) {
  CUstream stream = Make();
  EXPECT_CU(cuStreamQuery(stream));
  Gate gate;
  gate.Hold(stream);
  EXPECT_CODE(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  gate.Open();
  EXPECT_CU(cuStreamSynchronize(stream));
  EXPECT_CU(cuStreamQuery(stream));
}

TEST_F(Streams, KeepTheirOrder) {
  CUstream stream = Make();
  std::vector<int> order;
  std::vector<Note> notes;
  for (int i = 0; i < 200; ++i) notes.push_back({&order, i});
  for (auto& note : notes) Write(stream, &note);
  EXPECT_CU(cuStreamSynchronize(stream));
  ASSERT_EQ(order.size(), 200u);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(order[i], i);
}

TEST_F(Streams, DoNotWaitForOneAnother) {
  CUstream held = Make(), free = Make();
  Gate gate;
  gate.Hold(held);
  std::vector<int> order;
  Note note{&order, 1};
  Write(free, &note);
  EXPECT_CU(cuStreamSynchronize(free));
  EXPECT_EQ(order.size(), 1u);
  EXPECT_CODE(cuStreamQuery(held), CUDA_ERROR_NOT_READY);
}

TEST_F(Streams, ManyHeldOnesDoNotStarveTheRest) {
  Gate gate;
  std::vector<CUstream> held;
  for (int i = 0; i < 20; ++i) {
    held.push_back(Make(CU_STREAM_NON_BLOCKING));
    gate.Hold(held.back());
  }
  CUstream free = Make(CU_STREAM_NON_BLOCKING);
  std::vector<int> order;
  Note note{&order, 1};
  Write(free, &note);
  EXPECT_CU(cuStreamSynchronize(free));
  gate.Open();
  EXPECT_CU(cuCtxSynchronize());
}

TEST_F(Streams, TheLegacyStreamWaitsForBlockingOnesAndTheyForIt) {
  CUstream a = Make(), b = Make();
  std::vector<int> order;
  Note first{&order, 1}, second{&order, 2}, third{&order, 3};
  Gate gate;
  gate.Hold(a);
  Write(a, &first);
  Write(nullptr, &second);
  Write(b, &third);
  EXPECT_CODE(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
  EXPECT_CODE(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
  gate.Open();
  EXPECT_CU(cuStreamSynchronize(b));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST_F(Streams, NonBlockingOnesAndTheLegacyStreamIgnoreOneAnother) {
  CUstream stream = Make(CU_STREAM_NON_BLOCKING);
  Gate gate;
  gate.Hold(stream);
  std::vector<int> order;
  Note note{&order, 1}, other{&order, 2};
  Write(nullptr, &note);
  EXPECT_CU(cuStreamSynchronize(nullptr));
  EXPECT_EQ(order.size(), 1u);
  gate.Open();
  EXPECT_CU(cuStreamSynchronize(stream));
  Gate legacy;
  legacy.Hold(CU_STREAM_LEGACY);
  Write(stream, &other);
  EXPECT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(order.size(), 2u);
}

TEST_F(Streams, EveryThreadHasADefaultStreamOfItsOwn) {
  Gate gate;
  gate.Hold(CU_STREAM_PER_THREAD);
  EXPECT_CODE(cuStreamQuery_ptsz(nullptr), CUDA_ERROR_NOT_READY);
  unsigned long long mine = 0, its = 0;
  EXPECT_CU(cuStreamGetId_ptsz(nullptr, &mine));
  std::thread([&] {
    EXPECT_CU(cuCtxSetCurrent(context));
    EXPECT_CU(cuStreamQuery_ptsz(nullptr));
    EXPECT_CU(cuStreamGetId_ptsz(nullptr, &its));
  }).join();
  EXPECT_NE(mine, its);
  // The per-thread form of a call without a stream waits for the thread's own stream.
  CUdeviceptr memory;
  EXPECT_CU(cuMemAlloc_v2(&memory, 4));
  uint32_t value = 0;
  std::thread opener([&] { gate.Open(); });
  EXPECT_CU(cuMemsetD32Async_ptsz(memory, 77, 1, nullptr));
  EXPECT_CU(cuMemcpyDtoH_v2_ptds(&value, memory, 4));
  EXPECT_EQ(value, 77u);
  opener.join();
}

TEST_F(Streams, DestroyedWithWorkTheyStillFinish) {
  CUstream stream = Make();
  std::vector<int> order;
  Note note{&order, 1};
  Gate gate;
  gate.Hold(stream);
  Write(stream, &note);
  EXPECT_CU(cuStreamDestroy_v2(stream));
  EXPECT_CODE(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(cuStreamDestroy_v2(stream), CUDA_ERROR_INVALID_HANDLE);
  gate.Open();
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_EQ(order.size(), 1u);
}

TEST_F(Streams, CallbacksHearOfTheStream) {
  CUstream stream = Make();
  struct Heard {
    CUstream stream = nullptr;
    CUresult result = CUDA_ERROR_UNKNOWN;
  } heard;
  EXPECT_CU(cuStreamAddCallback(
      stream,
      [](CUstream stream, CUresult result, void* data) { *static_cast<Heard*>(data) = {stream, result}; },
      &heard, 0));
  EXPECT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(heard.stream, stream);
  EXPECT_CODE(heard.result, CUDA_SUCCESS);
}

TEST_F(Streams, WhatTheyAreAsked) {
  CUstream stream = Make(CU_STREAM_NON_BLOCKING, -3);
  unsigned flags = 0;
  int priority = 0;
  CUcontext owner = nullptr;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  EXPECT_CU(cuStreamGetFlags(stream, &flags));
  EXPECT_EQ(flags, unsigned{CU_STREAM_NON_BLOCKING});
  EXPECT_CU(cuStreamGetPriority(stream, &priority));
  EXPECT_EQ(priority, -3);
  EXPECT_CU(cuStreamGetCtx(stream, &owner));
  EXPECT_EQ(owner, context);
  EXPECT_CU(cuStreamIsCapturing(stream, &capture));
  EXPECT_EQ(capture, CU_STREAM_CAPTURE_STATUS_NONE);
  CUstream eager = Make(0, -1000);  // out of range: as near as there is
  EXPECT_CU(cuStreamGetPriority(eager, &priority));
  EXPECT_EQ(priority, -5);
}

TEST_F(Streams, WrongHandlesAreRefused) {
  auto junk = reinterpret_cast<CUstream>(uintptr_t{0x5555});
  unsigned flags;
  EXPECT_CODE(cuStreamQuery(junk), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(cuStreamSynchronize(junk), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(cuStreamGetFlags(junk, &flags), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(cuStreamDestroy_v2(junk), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(cuStreamDestroy_v2(nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(cuMemsetD8Async(0, 0, 0, junk), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(cuStreamCreate(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuStreamCreate(&junk, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuLaunchHostFunc(nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Streams, AStreamOfAnotherContextTakesWorkForThatContext) {
  CUstream stream = Make();
  CUcontext other;
  EXPECT_CU(cuCtxCreate_v2(&other, 0, 0));
  CUcontext owner;
  EXPECT_CU(cuStreamGetCtx(stream, &owner));
  EXPECT_EQ(owner, context);
  CUdeviceptr memory;
  EXPECT_CU(cuMemAlloc_v2(&memory, 4));
  EXPECT_CU(cuMemsetD32Async(memory, 5, 1, stream));
  EXPECT_CU(cuStreamSynchronize(stream));
  EXPECT_CU(cuCtxDestroy_v2(other));
}

// ------------------------------------------------------------------------------------------------ events

class Events : public Streams {
 protected:
  CUevent MakeEvent(unsigned flags = CU_EVENT_DEFAULT) {
    CUevent event = nullptr;
    EXPECT_CU(cuEventCreate(&event, flags));
    return event;
  }
};

TEST_F(Events, AreDoneWhenTheStreamHasComeBy) {
  CUstream stream = Make();
  CUevent event = MakeEvent();
  EXPECT_CU(cuEventQuery(event));  // never recorded
  EXPECT_CU(cuEventSynchronize(event));
  Gate gate;
  gate.Hold(stream);
  EXPECT_CU(cuEventRecord(event, stream));
  EXPECT_CODE(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  gate.Open();
  EXPECT_CU(cuEventSynchronize(event));
  EXPECT_CU(cuEventQuery(event));
}

TEST_F(Events, OrderStreams) {
  CUstream a = Make(CU_STREAM_NON_BLOCKING), b = Make(CU_STREAM_NON_BLOCKING);
  CUevent event = MakeEvent(CU_EVENT_DISABLE_TIMING);
  std::vector<int> order;
  Note first{&order, 1}, second{&order, 2};
  Gate gate;
  gate.Hold(a);
  Write(a, &first);
  EXPECT_CU(cuEventRecord(event, a));
  EXPECT_CU(cuStreamWaitEvent(b, event, 0));
  Write(b, &second);
  // Recorded again elsewhere: what was waited for stays what it was.
  CUstream c = Make(CU_STREAM_NON_BLOCKING);
  EXPECT_CU(cuEventRecord(event, c));
  EXPECT_CU(cuEventSynchronize(event));
  EXPECT_CODE(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
  EXPECT_CU(cuEventDestroy_v2(event));
  gate.Open();
  EXPECT_CU(cuStreamSynchronize(b));
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_F(Events, OrderStreamsOfTwoContextsAndDevices) {
  CUstream a = Make();
  CUevent event = MakeEvent();
  std::vector<int> order;
  Note first{&order, 1}, second{&order, 2};
  Gate gate;
  gate.Hold(a);
  Write(a, &first);
  EXPECT_CU(cuEventRecord(event, a));
  CUcontext other;
  EXPECT_CU(cuCtxCreate_v2(&other, 0, 1));
  CUstream b = Make();
  EXPECT_CU(cuStreamWaitEvent(b, event, 0));
  Write(b, &second);
  EXPECT_CODE(cuEventRecord(event, b), CUDA_ERROR_INVALID_HANDLE);  // the event is not this context's
  gate.Open();
  EXPECT_CU(cuStreamSynchronize(b));
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_CU(cuCtxDestroy_v2(other));
}

TEST_F(Events, TellTheTimeBetween) {
  CUstream stream = Make();
  CUevent start = MakeEvent(), end = MakeEvent(), silent = MakeEvent(CU_EVENT_DISABLE_TIMING);
  float ms = -1;
  EXPECT_CODE(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_INVALID_HANDLE);  // never recorded
  auto sleep = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  auto before = std::chrono::steady_clock::now();
  EXPECT_CU(cuEventRecord(start, stream));
  EXPECT_CU(cuLaunchHostFunc(stream, sleep, nullptr));
  EXPECT_CU(cuEventRecord(end, stream));
  EXPECT_CODE(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_NOT_READY);
  EXPECT_CU(cuEventSynchronize(end));
  float outside = std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - before).count();
  EXPECT_CU(cuEventElapsedTime_v2(&ms, start, end));
  EXPECT_GE(ms, 20.0f);
  EXPECT_LE(ms, outside);
  EXPECT_CU(cuEventElapsedTime(&ms, end, start));
  EXPECT_LE(ms, -20.0f);
  EXPECT_CU(cuEventRecord(silent, stream));
  EXPECT_CU(cuEventSynchronize(silent));
  EXPECT_CODE(cuEventElapsedTime(&ms, start, silent), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Events, WrongOnesAreRefused) {
  auto junk = reinterpret_cast<CUevent>(uintptr_t{0x5555});
  CUevent event;
  EXPECT_CODE(cuEventQuery(junk), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(cuEventSynchronize(nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(cuEventRecord(junk, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(cuStreamWaitEvent(nullptr, junk, 0), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(cuEventDestroy_v2(junk), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(cuEventCreate(&event, 0x100), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuEventCreate(&event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuEventCreate(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Events, ManyThreadsRecordWaitAndDestroy) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      EXPECT_CU(cuCtxSetCurrent(context));
      CUdeviceptr memory;
      EXPECT_CU(cuMemAlloc_v2(&memory, 4));
      for (int i = 0; i < 300; ++i) {
        CUstream a = Make(i % 2), b = Make((i / 2) % 2);
        CUevent event = MakeEvent();
        EXPECT_CU(cuMemsetD32Async(memory, i, 1, a));
        EXPECT_CU(cuEventRecord(event, a));
        EXPECT_CU(cuStreamWaitEvent(b, event, 0));
        EXPECT_CU(cuEventDestroy_v2(event));
        EXPECT_CU(cuStreamDestroy_v2(a));
        CUdeviceptr copy;
        EXPECT_CU(cuMemAllocAsync(&copy, 4, b));
        EXPECT_CU(cuMemcpyDtoDAsync_v2(copy, memory, 4, b));
        int found = -1;
        EXPECT_CU(cuMemcpyDtoHAsync_v2(&found, copy, 4, b));
        EXPECT_EQ(found, i);
        EXPECT_CU(cuMemFreeAsync(copy, b));
        EXPECT_CU(cuStreamDestroy_v2(b));
        if (i % 10 == 0) EXPECT_CU(cuCtxSynchronize());
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace cuplex::softcuda
