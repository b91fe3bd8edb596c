#include "client/stream.h"

#include <future>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/fake_server.h"
#include "client/process.h"
#include "cuda/driver_api.h"

namespace cuplex::client {
namespace {

using testing::ElementsAre;

class StreamTest : public testing::Test {
 protected:
  ~StreamTest() override { Detach(); }
  FakeServer server_;
  CUcontext context_ = Attach(server_);
};

TEST_F(StreamTest, CreatingCostsNoReply) {
  CUstream a, b;
  unsigned flags = 9;
  int priority = 9;
  ASSERT_EQ(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreateWithPriority(&b, 0, -100), CUDA_SUCCESS);  // cut to the device's range
  EXPECT_NE(a, b);
  EXPECT_EQ(cuStreamGetFlags(a, &flags), CUDA_SUCCESS);
  EXPECT_EQ(flags, 1u);
  EXPECT_EQ(cuStreamGetPriority(b, &priority), CUDA_SUCCESS);
  EXPECT_EQ(priority, -5);
  EXPECT_EQ(cuStreamCreate(&a, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamDestroy_v2(CU_STREAM_LEGACY), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuStreamDestroy_v2(nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_THAT(server_.Seen([&] { return server_.calls; }),
              ElementsAre("wireContextCreate", "wireStreamCreate", "wireStreamCreate", "cuCtxSynchronize"));
}

TEST_F(StreamTest, AHandleIsNeverGivenTwice) {
  std::set<CUstream> seen;
  for (int i = 0; i < 100; ++i) {
    CUstream s;
    ASSERT_EQ(cuStreamCreate(&s, 0), CUDA_SUCCESS);
    EXPECT_TRUE(seen.insert(s).second);
    ASSERT_EQ(cuStreamDestroy_v2(s), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamDestroy_v2(s), CUDA_ERROR_INVALID_HANDLE);
  }
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_TRUE(server_.Seen([&] { return server_.streams.empty(); }));
}

TEST_F(StreamTest, EachThreadHasItsOwnDefaultStream) {
  CUdeviceptr p;
  ASSERT_EQ(cuMemAlloc_v2(&p, 64), CUDA_SUCCESS);
  auto fill = [&] {
    EXPECT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD8Async_ptsz(p, 1, 8, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD8_v2_ptds(p, 1, 8), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD8Async(p, 1, 8, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD8Async(p, 1, 8, nullptr), CUDA_SUCCESS);
  };
  fill();
  std::thread(fill).join();
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  const auto seen = server_.Seen([&] { return server_.fills; });
  ASSERT_EQ(seen.size(), 8u);
  const uint64_t first = seen[0].stream(), second = seen[4].stream();
  EXPECT_NE(first, second);
  EXPECT_NE(first, kLegacyStream);
  EXPECT_NE(second, kLegacyStream);
  EXPECT_EQ(seen[1].stream(), first);
  EXPECT_EQ(seen[2].stream(), first);
  EXPECT_EQ(seen[3].stream(), kLegacyStream);
  EXPECT_EQ(seen[5].stream(), second);
  EXPECT_EQ(seen[7].stream(), kLegacyStream);
  // The other thread's stream went with it.
  EXPECT_THAT(server_.Seen([&] { return server_.streams; }), ElementsAre(std::pair(first, 0u)));
}

TEST_F(StreamTest, EventsAreChecked) {
  CUevent e;
  CUstream s;
  float ms = 0;
  ASSERT_EQ(cuEventCreate(&e, CU_EVENT_DEFAULT), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&s, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(e, s), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(nullptr, s), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuStreamWaitEvent(s, e, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(s, nullptr, 0), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventQuery(e), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuEventElapsedTime(&ms, e, e), CUDA_SUCCESS);
  EXPECT_EQ(ms, 2.5f);
  EXPECT_EQ(cuEventDestroy_v2(e), CUDA_SUCCESS);
  EXPECT_EQ(cuEventRecord(e, s), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuEventDestroy_v2(e), CUDA_ERROR_INVALID_HANDLE);
}

struct Called {
  std::promise<std::pair<std::thread::id, CUresult>> promise;
};

TEST_F(StreamTest, HostFunctionsRunElsewhereAndMayNotCallCuda) {
  Called called;
  ASSERT_EQ(cuLaunchHostFunc(
                nullptr,
                [](void* p) {
                  size_t free, total;
                  static_cast<Called*>(p)->promise.set_value(
                      {std::this_thread::get_id(), cuMemGetInfo_v2(&free, &total)});
                },
                &called),
            CUDA_SUCCESS);
  const auto [thread, result] = called.promise.get_future().get();
  EXPECT_NE(thread, std::this_thread::get_id());
  EXPECT_EQ(result, CUDA_ERROR_NOT_PERMITTED);

  Called again;
  CUstream s;
  ASSERT_EQ(cuStreamCreate(&s, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamAddCallback(
                s,
                [](CUstream, CUresult status, void* p) {
                  static_cast<Called*>(p)->promise.set_value({std::this_thread::get_id(), status});
                },
                &again, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(again.promise.get_future().get().second, CUDA_SUCCESS);
  // The server is told of each once it is done, which may be a moment after the function's last word.
  while (server_.Seen([&] { return server_.host_functions_done.size(); }) < 2) std::this_thread::yield();
  EXPECT_THAT(server_.Seen([&] { return server_.host_functions_done; }), ElementsAre(1, 2));
}

}  // namespace
}  // namespace cuplex::client
