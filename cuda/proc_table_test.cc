#include "cuda/proc_table.h"

#include <gtest/gtest.h>

namespace cuplex {
namespace {

int alloc_1, alloc_2, copy, copy_twin;

const ProcRow kRows[] = {
    {"cuMemAlloc", 2000, &alloc_1, nullptr, 0, true},
    {"cuMemAlloc", 3020, &alloc_2, nullptr, 0, true},
    {"cuMemcpy", 4000, &copy, &copy_twin, 7000, true},
};

void* Find(const char* name, int version, uint64_t flags, CUdriverProcAddressQueryResult* status) {
  return FindProc(kRows, 3, name, version, flags, status);
}

TEST(ProcTable, GivesTheFormOfTheVersionAskedFor) {
  CUdriverProcAddressQueryResult status;
  EXPECT_EQ(Find("cuMemAlloc", 13000, 0, &status), &alloc_2);
  EXPECT_EQ(Find("cuMemAlloc", 3000, 0, &status), &alloc_1);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
}

TEST(ProcTable, TellsTooOldFromUnknown) {
  CUdriverProcAddressQueryResult status;
  EXPECT_EQ(Find("cuMemcpy", 3020, 0, &status), nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  EXPECT_EQ(Find("cuMemAllo", 13000, 0, &status), nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(Find("cuZebra", 13000, 0, &status), nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

TEST(ProcTable, GivesTheTwinOnlyWhereAskedForAndKnown) {
  CUdriverProcAddressQueryResult status;
  const auto per_thread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  EXPECT_EQ(Find("cuMemcpy", 13000, 0, &status), &copy);
  EXPECT_EQ(Find("cuMemcpy", 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status), &copy);
  EXPECT_EQ(Find("cuMemcpy", 13000, per_thread, &status), &copy_twin);
  EXPECT_EQ(Find("cuMemcpy", 6000, per_thread, &status), &copy);
  EXPECT_EQ(Find("cuMemAlloc", 13000, per_thread, &status), &alloc_2);
}

}  // namespace
}  // namespace cuplex
