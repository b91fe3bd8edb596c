// Handles that are null, stale or never were; and null for every argument of every call.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>

#include "tests/conformance/driver_under_test.h"

namespace cuplex::conformance {
namespace {

using Handles = Body;

TEST_F(Handles, StaleOnesAreKnownAsSuch) {
  ONLY_OURS();
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUmodule module = nullptr;
  MUST(Cu().cuStreamCreate(&stream, 0));
  MUST(Cu().cuStreamDestroy_v2(stream));
  MUST(Cu().cuEventCreate(&event, 0));
  MUST(Cu().cuEventDestroy_v2(event));
  EXPECT_EQ(Cu().cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Cu().cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Cu().cuStreamDestroy_v2(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Cu().cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Cu().cuEventSynchronize(event), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Cu().cuEventRecord(event, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Cu().cuEventDestroy_v2(event), CUDA_ERROR_INVALID_HANDLE);
  // What comes after them in their place is something else.
  Stream again;
  Event event_again;
  EXPECT_NE(again.handle, stream);
  EXPECT_EQ(Cu().cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Cu().cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Cu().cuEventRecord(event_again, stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Cu().cuStreamWaitEvent(again, event, 0), CUDA_ERROR_INVALID_HANDLE);
  DeviceMemory words(4);
  CUfunction add = Kernel("add");
  EXPECT_EQ(Launch(add, 1, 1, stream, words.at, 1u, 1u), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Cu().cuMemsetD8Async(words.at, 0, 4, stream), CUDA_ERROR_INVALID_HANDLE);

  MUST(Cu().cuModuleLoadData(
      &module, ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry f()\n{\n\tret;\n}\n"));
  CUfunction function = nullptr;
  MUST(Cu().cuModuleGetFunction(&function, module, "f"));
  MUST(Launch(function, 1, 1, nullptr));
  MUST(Cu().cuCtxSynchronize());
  MUST(Cu().cuModuleUnload(module));
  EXPECT_EQ(Cu().cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Cu().cuModuleGetFunction(&function, module, "f"), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Launch(function, 1, 1, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Cu().cuCtxSynchronize(), CUDA_SUCCESS) << "none of this is a fault of the context";
}

TEST_F(Handles, OnesThatNeverWere) {
  ONLY_OURS();
  for (uintptr_t bits :
       {uintptr_t{0x10}, uintptr_t{0xfffff}, uintptr_t{0x7f0000001000}, ~uintptr_t{0}, uintptr_t{3}}) {
    const auto at = [bits](auto handle) { return reinterpret_cast<decltype(handle)>(bits); };
    CUfunction function = nullptr;
    int value = 0;
    EXPECT_EQ(Cu().cuStreamQuery(at(CUstream{})), CUDA_ERROR_INVALID_HANDLE) << bits;
    EXPECT_EQ(Cu().cuEventQuery(at(CUevent{})), CUDA_ERROR_INVALID_HANDLE) << bits;
    EXPECT_EQ(Cu().cuModuleGetFunction(&function, at(CUmodule{}), "f"), CUDA_ERROR_INVALID_HANDLE) << bits;
    EXPECT_EQ(Cu().cuModuleUnload(at(CUmodule{})), CUDA_ERROR_INVALID_HANDLE) << bits;
    EXPECT_EQ(Cu().cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, at(CUfunction{})),
              CUDA_ERROR_INVALID_HANDLE)
        << bits;
    EXPECT_EQ(Launch(at(CUfunction{}), 1, 1, nullptr), CUDA_ERROR_INVALID_HANDLE) << bits;
    EXPECT_EQ(Cu().cuStreamWaitEvent(nullptr, at(CUevent{}), 0), CUDA_ERROR_INVALID_HANDLE) << bits;
    EXPECT_EQ(Cu().cuLibraryUnload(at(CUlibrary{})), CUDA_ERROR_INVALID_HANDLE) << bits;
    EXPECT_EQ(Cu().cuCtxSetCurrent(at(CUcontext{})), CUDA_ERROR_INVALID_CONTEXT) << bits;
  }
}

/// The name of the call that is about to be made, where a crash would leave it.
const char* volatile now_calling = "";

template <typename... A>
CUresult WithNothing(const char* name, CUresult (*call)(A...)) {
  now_calling = name;
  return call(A{}...);
}

/// These two would take the context away from the calls that follow.
[[gnu::noinline]] bool LeftOut(const char* name) {
  return std::strcmp(name, "cuCtxDetach") == 0 || std::strcmp(name, "cuCtxSetCurrent") == 0;
}

TEST_F(Handles, NullForEveryArgumentOfEveryCallIsAnAnswer) {
  ONLY_OURS();
  struct sigaction before{}, handler{};
  handler.sa_handler = [](int) {
    // Names the call in what is left of this process.
    const char* name = now_calling;
    size_t length = 0;
    while (name[length]) ++length;
    (void)!write(2, "crashed in ", 11);
    (void)!write(2, name, length);
    (void)!write(2, "\n", 1);
    _exit(99);
  };
  sigaction(SIGSEGV, &handler, &before);
  unsigned calls = 0;
  std::string wrong;
  // Out of line: 540 copies of it in one function would keep the compiler busy for minutes.
  const std::function<void(const char*, CUresult)> look = [&](const char* name, CUresult code) {
    const char* text = nullptr;
    if (code == CUDA_ERROR_UNKNOWN || Cu().cuGetErrorName(code, &text) != CUDA_SUCCESS)
      wrong += std::string(name) + " answered " + std::to_string(code) + "\n";
    ++calls;
    (void)Cu().cuCtxSetCurrent(context_);
  };
#define CUPLEX_CALL(name) \
  if (!LeftOut(#name)) look(#name, WithNothing(#name, Cu().name));
  CUPLEX_DRIVER_CALLS(CUPLEX_CALL)
#undef CUPLEX_CALL
  sigaction(SIGSEGV, &before, nullptr);
  EXPECT_EQ(wrong, "");
  EXPECT_GT(calls, 400u);
  EXPECT_EQ(Cu().cuCtxSynchronize(), CUDA_SUCCESS);
  DeviceMemory words(4);
  Write(words.at, std::vector<uint32_t>{3});
  EXPECT_EQ(Read<uint32_t>(words.at, 1)[0], 3u);
}

}  // namespace
}  // namespace cuplex::conformance
