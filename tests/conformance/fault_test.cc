// Kernels that touch what they must not: CUDA's code for it, in their context alone.
#include "tests/conformance/driver_under_test.h"

namespace cuplex::conformance {
namespace {

using Faults = Body;

TEST_F(Faults, AWildPointerEndsItsContextAndNoOther) {
  ONLY_OURS();
  static volatile unsigned of_this_process = 0x600d600d;
  DeviceMemory mapped(4096);
  for (const uint64_t address :
       {uint64_t{0xdead0000}, uint64_t{0}, reinterpret_cast<uint64_t>(&of_this_process), ~uint64_t{3},
        uint64_t{mapped.at} + (uint64_t{1} << 33)}) {
    for (const char* kernel : {"wild_write", "wild_read"}) {
      SCOPED_TRACE(std::string(kernel) + " at " + std::to_string(address));
      CUcontext context = nullptr;
      MUST(Cu().cuCtxCreate_v2(&context, 0, 0));
      CUmodule module = nullptr;
      MUST(Cu().cuModuleLoad(&module, CUPLEX_KERNELS_PTX));
      CUfunction function = nullptr;
      MUST(Cu().cuModuleGetFunction(&function, module, kernel));
      CUdeviceptr out = 0;
      MUST(Cu().cuMemAlloc_v2(&out, 64));
      if (std::string(kernel) == "wild_write")
        MUST(Launch(function, 1, 1, nullptr, address, 0xbadu));
      else
        MUST(Launch(function, 1, 1, nullptr, address, out));
      EXPECT_EQ(Cu().cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
      CUdeviceptr at = 0;
      EXPECT_EQ(Cu().cuMemAlloc_v2(&at, 64), CUDA_ERROR_ILLEGAL_ADDRESS) << "it stays";
      EXPECT_EQ(Cu().cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS) << "it stays";
      EXPECT_EQ(Cu().cuMemcpyHtoD_v2(out, &at, 8), CUDA_ERROR_ILLEGAL_ADDRESS) << "it stays";
      (void)Cu().cuCtxDestroy_v2(context);
      MUST(Cu().cuCtxSetCurrent(context_));
      // The context beside it goes on.
      Write(mapped.at, std::vector<uint32_t>{5});
      MUST(Launch(Kernel("add"), 1, 1, nullptr, mapped.at, 1u, 1u));
      EXPECT_EQ(Read<uint32_t>(mapped.at, 1)[0], 6u);
      EXPECT_EQ(of_this_process, 0x600d600du);
    }
  }
}

TEST_F(Faults, StreamsAndEventsOfAFailedContextSaySo) {
  ONLY_OURS();
  CUcontext context = nullptr;
  MUST(Cu().cuCtxCreate_v2(&context, 0, 0));
  {
    Stream stream(CU_STREAM_NON_BLOCKING);
    Event event;
    CUmodule module = nullptr;
    MUST(Cu().cuModuleLoad(&module, CUPLEX_KERNELS_PTX));
    CUfunction function = nullptr;
    MUST(Cu().cuModuleGetFunction(&function, module, "wild_write"));
    Gate gate(stream);
    MUST(Launch(function, 1, 1, stream, uint64_t{0xdead0000}, 1u));
    MUST(Cu().cuEventRecord(event, stream));
    gate.Open();
    EXPECT_EQ(Cu().cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(Cu().cuEventSynchronize(event), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(Cu().cuStreamQuery(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  (void)Cu().cuCtxDestroy_v2(context);
  MUST(Cu().cuCtxSetCurrent(context_));
  EXPECT_EQ(Cu().cuCtxSynchronize(), CUDA_SUCCESS);
}

}  // namespace
}  // namespace cuplex::conformance
