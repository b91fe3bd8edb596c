// A libcuda.so.1 for tests of libcudart's life in a process: a driver that does nothing, and that ends the
// process with status 99 when it is called after its own end.
#include <unistd.h>

#include <cstring>

#include "cuda/driver_types.h"

namespace {

struct Life {
  bool ended = false;
  ~Life() { ended = true; }
};
Life life;
thread_local CUcontext current = nullptr;

CUresult Alive() {
  if (!life.ended) return CUDA_SUCCESS;
  static const char sentence[] = "mock libcuda: called after the process's exit tore it down\n";
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, sentence, strlen(sentence));
  _exit(99);
}

}  // namespace

#define EXPORTED __attribute__((visibility("default")))

extern "C" {
EXPORTED CUresult cuInit(unsigned) { return Alive(); }
EXPORTED CUresult cuDriverGetVersion(int* version) { return *version = 13000, Alive(); }
EXPORTED CUresult cuDeviceGetCount(int* count) { return *count = 1, Alive(); }
EXPORTED CUresult cuDeviceGet(CUdevice* device, int) { return *device = 0, Alive(); }
EXPORTED CUresult cuCtxGetDevice(CUdevice* device) { return *device = 0, Alive(); }
EXPORTED CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  return *context = reinterpret_cast<CUcontext>(0x1000), Alive();
}
EXPORTED CUresult cuCtxGetCurrent(CUcontext* context) { return *context = current, Alive(); }
EXPORTED CUresult cuCtxSetCurrent(CUcontext context) { return current = context, Alive(); }
EXPORTED CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t) { return *address = 0x100000, Alive(); }
EXPORTED CUresult cuMemFree_v2(CUdeviceptr) { return Alive(); }
EXPORTED CUresult cuModuleLoadData(CUmodule* module, const void*) {
  return *module = reinterpret_cast<CUmodule>(0x2000), Alive();
}
EXPORTED CUresult cuModuleUnload(CUmodule) { return Alive(); }
EXPORTED CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char*) {
  return *function = reinterpret_cast<CUfunction>(0x3000), Alive();
}
EXPORTED CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 unsigned, CUstream, void**, void**) {
  return Alive();
}
}
