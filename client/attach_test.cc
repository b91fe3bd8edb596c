#include <cstdlib>
#include <cstring>

#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/fake_server.h"
#include "client/process.h"
#include "cuda/driver_api.h"

namespace cuplex::client {
namespace {

using testing::HasSubstr;

class AttachTest : public testing::Test {
 protected:
  void TearDown() override { Detach(); }
};

/// What `f` leaves on standard error.
std::string Said(const std::function<void()>& f) {
  testing::internal::CaptureStderr();
  f();
  return testing::internal::GetCapturedStderr();
}

int Lines(const std::string& text) { return static_cast<int>(std::ranges::count(text, '\n')); }

TEST_F(AttachTest, SeesTheDevicesOfTheWelcome) {
  FakeServer server({.devices = 2});
  Attach(server);
  int count = 0, value = 0, major = 0, minor = 0, version = 0;
  size_t bytes = 0;
  char name[16], place[5];
  CUuuid uuid;
  CUdevice device = -7;
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(cuDeviceGet(&device, 1), CUDA_SUCCESS);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuDeviceGetName(name, sizeof(name), 1), CUDA_SUCCESS);
  EXPECT_STREQ(name, "Fake GPU 1");
  EXPECT_EQ(cuDeviceGetPCIBusId(place, sizeof(place), 1), CUDA_SUCCESS);
  EXPECT_STREQ(place, "0000");  // cut to the buffer
  EXPECT_EQ(cuDeviceGetByPCIBusId(&device, "01:00.0"), CUDA_SUCCESS);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(cuDeviceGetByPCIBusId(&device, "0000:09:00.0"), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuDeviceGetUuid_v2(&uuid, 1), CUDA_SUCCESS);
  EXPECT_EQ(uuid.bytes[0], 1);
  EXPECT_EQ(uuid.bytes[15], 1);
  EXPECT_EQ(cuDeviceTotalMem_v2(&bytes, 0), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 300u << 20);
  EXPECT_EQ(cuDeviceComputeCapability(&major, &minor, 0), CUDA_SUCCESS);
  EXPECT_EQ(major * 10 + minor, 121);
  EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0), CUDA_SUCCESS);
  EXPECT_EQ(value, 7);
  EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0), CUDA_SUCCESS);
  EXPECT_EQ(value, 0);  // the device has it, and the client does not carry it
  EXPECT_EQ(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(9999), 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuDriverGetVersion(&version), CUDA_SUCCESS);
  EXPECT_EQ(version, 12090);
}

TEST_F(AttachTest, NullNeverCrashes) {
  FakeServer server;
  Attach(server);
  size_t total = 0;
  EXPECT_EQ(cuMemGetInfo_v2(nullptr, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, 222u);
  EXPECT_EQ(cuMemGetInfo_v2(nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuDeviceGetCount(nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuDeviceGetName(nullptr, 10, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAlloc_v2(nullptr, 10), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuModuleLoadData(nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuLaunchKernelEx(nullptr, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpy2D_v2(nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamCreate(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuCtxSetCurrent(reinterpret_cast<CUcontext>(0x1234)), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuPointerGetAttributes(1, nullptr, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(AttachTest, BeforeInitNothingIsAnswered) {
  int count, version = 0;
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(cuDriverGetVersion(&version), CUDA_SUCCESS);
  EXPECT_EQ(version, 13000);
  EXPECT_EQ(cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(AttachTest, ARefusalIsSaidInItsOwnWords) {
  FakeServer server({.refusal = CUDA_ERROR_NOT_PERMITTED, .sentence = "uid 7 matches no tenant."});
  setenv("CUPLEX_SOCKET", server.path().c_str(), 1);
  const std::string said = Said([] { EXPECT_EQ(cuInit(0), CUDA_ERROR_NOT_PERMITTED); });
  EXPECT_THAT(said, HasSubstr("uid 7 matches no tenant."));
  EXPECT_EQ(Lines(said), 1);
}

TEST_F(AttachTest, NobodyListens) {
  setenv("CUPLEX_SOCKET", "/nonexistent/cuplex.sock", 1);
  const std::string said = Said([] { EXPECT_EQ(cuInit(0), CUDA_ERROR_MPS_CONNECTION_FAILED); });
  EXPECT_THAT(said, HasSubstr("/nonexistent/cuplex.sock"));
  EXPECT_EQ(Lines(said), 1);
}

TEST_F(AttachTest, AServerThatDiesInACallIsAnErrorForAllLaterOnes) {
  FakeServer server;
  Attach(server);
  server.Seen([&] {
    server.on_synchronize = [&] { server.Die(); };
    return 0;
  });
  const std::string said = Said([] {
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_MPS_RPC_FAILURE);
    size_t free, total;
    CUdeviceptr p;
    EXPECT_EQ(cuMemGetInfo_v2(&free, &total), CUDA_ERROR_MPS_RPC_FAILURE);
    EXPECT_EQ(cuMemAlloc_v2(&p, 100), CUDA_ERROR_MPS_RPC_FAILURE);
    EXPECT_EQ(cuStreamSynchronize(nullptr), CUDA_ERROR_MPS_RPC_FAILURE);
  });
  EXPECT_THAT(said, HasSubstr("hung up"));
  EXPECT_EQ(Lines(said), 1);
}

TEST_F(AttachTest, AChildAfterForkIsNotInitialized) {
  FakeServer server;
  Attach(server);
  const pid_t child = fork();
  if (child == 0) {
    int count;
    const bool ok = cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED &&
                    cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                    cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED;
    _exit(ok ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);  // the parent goes on
}

TEST_F(AttachTest, AChildDoesNotKeepTheSessionOpen) {
  FakeServer server;
  Attach(server);
  int keep[2];
  ASSERT_EQ(pipe(keep), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(keep[1]);
    char c;
    _exit(read(keep[0], &c, 1) == 0 ? 0 : 1);  // lives until the parent lets it go
  }
  Detach();  // the server's end hangs up although the child lives: its destructor would wait otherwise
  close(keep[0]);
  close(keep[1]);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(AttachTest, ContextsStackAndEnd) {
  FakeServer server;
  CUcontext primary = Attach(server);
  CUcontext made, current;
  CUdevice device = -1;
  EXPECT_EQ(cuCtxCreate_v2(&made, CU_CTX_SCHED_SPIN, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, made);
  EXPECT_EQ(cuCtxGetDevice(&device), CUDA_SUCCESS);
  EXPECT_EQ(device, 0);
  std::thread([&] {
    EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);  // current is a thread's own
    EXPECT_EQ(cuCtxSetCurrent(made), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxDestroy_v2(made), CUDA_SUCCESS);
  }).join();
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(cuCtxDestroy_v2(made), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxPopCurrent_v2(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, made);
  EXPECT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, primary);
  EXPECT_EQ(cuCtxDestroy_v2(primary), CUDA_ERROR_INVALID_CONTEXT);
  unsigned flags;
  int active;
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
  EXPECT_EQ(active, 0);
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

TEST_F(AttachTest, AFaultStaysAndAFailedOneWayCallIsToldOnce) {
  FakeServer server;
  Attach(server);
  server.header()->deferred_error.store(CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  server.header()->sticky_error.store(CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdeviceptr p;
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuMemAlloc_v2(&p, 64), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

}  // namespace
}  // namespace cuplex::client
