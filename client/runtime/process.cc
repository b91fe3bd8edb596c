// Errors, versions, the driver's entry points, and what belongs to no noun.
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "client/runtime/calls.h"
#include "client/runtime/exported.h"
#include "client/runtime/notice.h"
#include "client/runtime/runtime.h"

namespace cuplex::runtime {

cudaError_t Refuse(const char* name) {
  TellOnce(name, fmt::format("{} is not carried by this libcudart; it answers cudaErrorNotSupported.", name));
  return cudaErrorNotSupported;
}

cudaError_t GetLastError() { return std::exchange(this_thread.last_error, cudaSuccess); }

cudaError_t PeekAtLastError() { return this_thread.last_error; }

const char* GetErrorName(cudaError_t error) {
  const char* name = NameOf(error);
  return name ? name : "unrecognized error code";
}

const char* GetErrorString(cudaError_t error) {
  const char* sentence = SentenceOf(error);
  return sentence ? sentence : "unrecognized error code";
}

cudaError_t DriverGetVersion(int* version) {
  if (!version) return cudaErrorInvalidValue;
  *version = 0;
  cudaError_t error = InDriver([&](const DriverTable& cu) { return cu.cuDriverGetVersion(version); });
  return error == cudaErrorInsufficientDriver ? cudaSuccess : error;  // no driver is version 0
}

cudaError_t RuntimeGetVersion(int* version) {
  if (!version) return cudaErrorInvalidValue;
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t GetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int version,
                                         unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  if (!symbol || !function) return cudaErrorInvalidValue;
  return InDriver([&](const DriverTable& cu) {
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    *function = nullptr;
    CUresult result = cu.cuGetProcAddress_v2(symbol, function, static_cast<int>(version), flags, &found);
    if (status) {
      *status = static_cast<cudaDriverEntryPointQueryResult>(found);
      // The caller reads of a missing name in the status.
      if (result == CUDA_ERROR_NOT_FOUND) return cudaSuccess;
    }
    return FromDriver(result);
  });
}

cudaError_t GetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                cudaDriverEntryPointQueryResult* status) {
  return GetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, status);
}

// Undocumented tables are the driver's to answer; the runtime has none of its own.
cudaError_t GetExportTable(const void** table, const cudaUUID_t* id) {
  if (!table || !id) return cudaErrorInvalidValue;
  return InDriver([&](const DriverTable& cu) { return cu.cuGetExportTable(table, id); });
}

cudaError_t ProfilerStart() {
  return InContext([](const DriverTable& cu) { return cu.cuProfilerStart(); });
}

cudaError_t ProfilerStop() {
  return InContext([](const DriverTable& cu) { return cu.cuProfilerStop(); });
}

cudaChannelFormatDesc CreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f) {
  return {x, y, z, w, f};
}

}  // namespace cuplex::runtime
