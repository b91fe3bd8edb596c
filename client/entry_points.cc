// Initialization, versions, and entry points by name.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <string>

#include "base/log.h"
#include "client/exports.h"

namespace cuplex::client {
namespace {

constexpr cuuint64_t kProcFlags =
    CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

CUresult GetProc(const char* symbol, void** pfn, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult* status) {
  if (!symbol || !pfn || (flags & ~kProcFlags) || flags == kProcFlags) return CUDA_ERROR_INVALID_VALUE;
  *pfn = FindProc(kProcRows, kProcRowCount, symbol, version, flags, status);
  return *pfn ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // namespace

CUresult NotCarried(const char* name) {
  static std::mutex mutex;
  static auto* said =
      new std::set<std::string, std::less<>>;  // see base/log.cc: threads outlive static objects
  std::lock_guard lock(mutex);
  if (said->insert(name).second)
    Log().warn("{} is not carried by cuplex and answers CUDA_ERROR_NOT_SUPPORTED; docs/api.md lists what is.",
               name);
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace cuplex::client

using namespace cuplex::client;

extern "C" {

CUresult cuInit(unsigned int Flags) {
  if (Flags) return CUDA_ERROR_INVALID_VALUE;
  return Initialize();
}

CUresult cuDriverGetVersion(int* version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  Session* session = Attached();
  // A newer server's driver has names that this library does not export.
  *version = session ? std::min(session->snapshot().driver_version, CUDA_VERSION) : CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* symbolStatus) {
  CUdriverProcAddressQueryResult unasked;
  return GetProc(symbol, pfn, cudaVersion, flags, symbolStatus ? symbolStatus : &unasked);
}

CUresult cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags) {
  return cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, nullptr);
}

CUresult cuGetExportTable(const void** ppExportTable, const CUuuid* pExportTableId) {
  if (!ppExportTable || !pExportTableId) return CUDA_ERROR_INVALID_VALUE;
  *ppExportTable = nullptr;
  static std::atomic<bool> said{false};
  if (!said.exchange(true))
    cuplex::Log().error(
        "cuGetExportTable is not supported: NVIDIA's own cudart verifies its driver by an undocumented table "
        "that "
        "a forwarding client does not imitate; use cuplex's libcudart (nvcc -cudart shared).");
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuProfilerInitialize(const char*, const char*, CUoutput_mode) { return CUDA_SUCCESS; }
CUresult cuProfilerStart() { return CUDA_SUCCESS; }
CUresult cuProfilerStop() { return CUDA_SUCCESS; }

}  // extern "C"

// For who opens a libcuda.so.1 and must know whether it is this one: the server looks for a driver under that
// name.
extern "C" CUPLEX_EXPORT const int cuplex_is_client = 1;
