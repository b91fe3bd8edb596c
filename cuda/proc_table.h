// ProcRow and FindProc: what cuGetProcAddress answers, for libraries of ours that are drivers. Data: any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/driver_types.h"

namespace cuplex {

/// One version of one entry point. Rows are sorted by base name, then version.
struct ProcRow {
  const char* base;  // the name asked for, without a version suffix
  int version;       // CUDA version that brought this form, as 12080 for 12.8
  void* function;
  void* twin;  // the per-thread-stream form, or nullptr
  int twin_version;
  bool carried;
};

/// The newest form of `name` that CUDA `version` knows. `flags` are CUdriverProcAddress_flags. Sets
/// `*status`; nullptr where there is none.
void* FindProc(const ProcRow* rows, size_t count, const char* name, int version, uint64_t flags,
               CUdriverProcAddressQueryResult* status);

}  // namespace cuplex
