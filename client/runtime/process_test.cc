// libcudart.so in a process as nvcc builds it: registered before main, forked, torn down at exit. The first
// argument says which of these to play; the exit status is 0 where all went well. The driver underneath is
// mock_libcuda.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "client/runtime/exports.h"

namespace {

#define EXPECT(condition)                                                     \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

const uint32_t container[4] = {0xba55ed50, 0x00100001, 0, 0};
struct {
  uint32_t magic = 0x466243b1, version = 1;
  const void* data = container;
  const void* rest = nullptr;
} wrapper;
char kernel;
void** handle;

// As nvcc's host code does: register before main, unregister in an exit handler made there.
__attribute__((constructor)) void RegisterAll() {
  handle = __cudaRegisterFatBinary(&wrapper);
  __cudaRegisterFunction(handle, &kernel, nullptr, "kernel", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  __cudaRegisterFatBinaryEnd(handle);
  atexit([] { __cudaUnregisterFatBinary(handle); });
}

// A program's own static object, made before the first CUDA call and so destroyed after the driver.
struct Holder {
  void* memory = nullptr;
  ~Holder() {
    if (memory && cudaFree(memory) != cudaErrorCudartUnloading) _exit(98);
  }
} holder;

cudaError_t Launch() { return cudaLaunchKernel(&kernel, {1, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr); }

int StatusOf(pid_t child) {
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

void PlayExit() {
  EXPECT(cudaMalloc(&holder.memory, 16) == cudaSuccess);
  EXPECT(Launch() == cudaSuccess);
}

// The child of a program that uses CUDA is refused, and its exit harms nobody.
void PlayFork() {
  EXPECT(Launch() == cudaSuccess);
  pid_t child = fork();
  EXPECT(child >= 0);
  if (child == 0) {
    EXPECT(cudaFree(nullptr) == cudaErrorInitializationError);
    EXPECT(Launch() == cudaErrorInitializationError);
    exit(0);
  }
  EXPECT(StatusOf(child) == 0);
  EXPECT(Launch() == cudaSuccess);
}

// Forking before the first call leaves both free to use CUDA.
void PlayForkFirst() {
  pid_t child = fork();
  EXPECT(child >= 0);
  if (child == 0) {
    EXPECT(Launch() == cudaSuccess);
    exit(0);
  }
  EXPECT(Launch() == cudaSuccess);
  EXPECT(StatusOf(child) == 0);
}

// As Python's ctypes does it: loaded late, by path, and asked for a version's name.
void PlayLoad(const char* library, const char* version) {
  void* loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!loaded) fprintf(stderr, "%s\n", dlerror());
  EXPECT(loaded);
  auto count = reinterpret_cast<cudaError_t (*)(int*)>(dlvsym(loaded, "cudaGetDeviceCount", version));
  EXPECT(count);
  EXPECT(!dlvsym(loaded, "cudaGetDeviceCount", "libcudart.so.11"));
  int devices = 0;
  EXPECT(count(&devices) == cudaSuccess && devices == 1);
  EXPECT(dlclose(loaded) == 0);
}

}  // namespace

int main(int argc, char** argv) {
  EXPECT(argc >= 2);
  if (strcmp(argv[1], "exit") == 0)
    PlayExit();
  else if (strcmp(argv[1], "fork") == 0)
    PlayFork();
  else if (strcmp(argv[1], "fork_first") == 0)
    PlayForkFirst();
  else if (strcmp(argv[1], "load") == 0 && argc == 4)
    PlayLoad(argv[2], argv[3]);
  else
    return 2;
  return 0;
}
