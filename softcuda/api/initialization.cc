// Starting, versions, errors and the addresses of entry points.
#include <mutex>
#include <set>
#include <string>

#include "base/log.h"
#include "cuda/errors.h"
#include "softcuda/exports.h"

namespace cuplex::softcuda {

CUresult NotCarried(const char* name) {
  static std::mutex lock;
  static auto& named = *new std::set<std::string>;
  std::lock_guard guard(lock);
  if (named.insert(name).second) Log().warn("{}: softcuda does not carry this call", name);
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace cuplex::softcuda

using namespace cuplex;
using namespace cuplex::softcuda;

CUresult cuInit(unsigned int Flags) {
  if (Flags) return CUDA_ERROR_INVALID_VALUE;
  return Guarded([] { return StartDriver(); });
}

CUresult cuDriverGetVersion(int* driverVersion) {
  if (!driverVersion) return CUDA_ERROR_INVALID_VALUE;
  *driverVersion = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** pStr) {
  if (!pStr) return CUDA_ERROR_INVALID_VALUE;
  *pStr = CuErrorName(error);
  return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char** pStr) {
  if (!pStr) return CUDA_ERROR_INVALID_VALUE;
  *pStr = CuErrorText(error);
  return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* symbolStatus) {
  constexpr cuuint64_t kKnown =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (!symbol || !pfn || flags & ~kKnown || flags == kKnown) return CUDA_ERROR_INVALID_VALUE;
  CUdriverProcAddressQueryResult status;
  *pfn = FindProc(kProcRows, kProcRowCount, symbol, cudaVersion, flags, &status);
  if (symbolStatus) *symbolStatus = status;
  // With a status to write to, the call itself succeeds.
  return *pfn || symbolStatus ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags) {
  return cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, nullptr);
}

CUresult cuGetExportTable(const void** ppExportTable, const CUuuid* pExportTableId) {
  if (!ppExportTable || !pExportTableId) return CUDA_ERROR_INVALID_VALUE;
  *ppExportTable = nullptr;
  static std::once_flag once;
  std::call_once(once, [] {
    Log().error(
        "NVIDIA's own libcudart asks the driver for a private table, which softcuda does not have: build the "
        "program "
        "with `nvcc -cudart shared` and let it find cuplex's libcudart first (LD_LIBRARY_PATH)");
  });
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuProfilerInitialize(const char*, const char*, CUoutput_mode) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuProfilerStart() {
  return InContext([](Context&) { return CUDA_SUCCESS; });
}
CUresult cuProfilerStop() {
  return InContext([](Context&) { return CUDA_SUCCESS; });
}

// For who opens this library and wants to know: memory of cuMemCreate is fresh from the kernel, so it reads
// as zero.
extern "C" CUPLEX_EXPORT const int cuplex_memory_begins_zero = 1;

// cuda/device_text.h. What was the receiver stays, since a kernel may be about to call it.
extern "C" CUPLEX_EXPORT void cuplex_give_device_text(DeviceTextReceiver* receiver, void* user) {
  Driver::text_receiver.store(receiver ? new Driver::TextReceiver{receiver, user} : nullptr);
}
