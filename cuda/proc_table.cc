#include "cuda/proc_table.h"

#include <algorithm>
#include <cstring>

namespace cuplex {

void* FindProc(const ProcRow* rows, size_t count, const char* name, int version, uint64_t flags,
               CUdriverProcAddressQueryResult* status) {
  const ProcRow* end = rows + count;
  const ProcRow* row = std::lower_bound(
      rows, end, name, [](const ProcRow& r, const char* n) { return std::strcmp(r.base, n) < 0; });
  *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  void* found = nullptr;
  for (; row != end && std::strcmp(row->base, name) == 0; ++row) {
    if (row->version > version) {
      if (!found) *status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
      continue;
    }
    const bool per_thread =
        (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) && row->twin && row->twin_version <= version;
    found = per_thread ? row->twin : row->function;
    *status = CU_GET_PROC_ADDRESS_SUCCESS;
  }
  return found;
}

}  // namespace cuplex
