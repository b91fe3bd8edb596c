// Kernels that touch what they must not: CUDA's code for it, in their context alone.
#include "tests/conformance/driver_under_test.h"

namespace cuplex::conformance {
namespace {

/// CUDA promises nothing to the other contexts of a process whose kernel faulted; a process that lets go of
/// all of them may begin anew. So each case has one context and no other.
class Faults : public testing::Test {
 protected:
  void SetUp() override {
    ONLY_OURS();
    Begin();
  }
  void TearDown() override {
    if (context_) (void)Cu().cuCtxDestroy_v2(context_);
  }
  void Begin() {
    MUST(Cu().cuCtxCreate_v2(&context_, 0, 0));
    MUST(Cu().cuModuleLoad(&module_, CUPLEX_KERNELS_PTX));
    MUST(Cu().cuMemAlloc_v2(&out_, 4096));
  }
  /// The context goes, and with it what it failed of.
  void BeginAnew() {
    (void)Cu().cuCtxDestroy_v2(context_);
    context_ = nullptr;
    Begin();
    Write(out_, std::vector<uint32_t>{5});
    MUST(Launch("add", nullptr, out_, 1u, 1u));
    EXPECT_EQ(Read<uint32_t>(out_, 1)[0], 6u);
  }
  template <typename... A>
  CUresult Launch(const char* kernel, CUstream stream, A... arguments) {
    CUfunction function = nullptr;
    MUST(Cu().cuModuleGetFunction(&function, module_, kernel));
    void* parameters[] = {&arguments...};
    return Cu().cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
  }

  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUdeviceptr out_ = 0;
};

TEST_F(Faults, AWildPointerEndsItsContext) {
  static volatile unsigned of_this_process = 0x600d600d;
  for (const uint64_t address :
       {uint64_t{0xdead0000}, uint64_t{0}, reinterpret_cast<uint64_t>(&of_this_process), ~uint64_t{3},
        uint64_t{out_} + (uint64_t{1} << 33)}) {
    for (const bool write : {true, false}) {
      SCOPED_TRACE(std::string(write ? "written" : "read") + " at " + std::to_string(address));
      MUST(write ? Launch("wild_write", nullptr, address, 0xbadu)
                 : Launch("wild_read", nullptr, address, out_));
      EXPECT_EQ(Cu().cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
      CUdeviceptr at = 0;
      EXPECT_EQ(Cu().cuMemAlloc_v2(&at, 64), CUDA_ERROR_ILLEGAL_ADDRESS) << "it stays";
      EXPECT_EQ(Cu().cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS) << "it stays";
      EXPECT_EQ(Cu().cuMemcpyHtoD_v2(out_, &at, 8), CUDA_ERROR_ILLEGAL_ADDRESS) << "it stays";
      EXPECT_EQ(of_this_process, 0x600d600du);
      BeginAnew();
    }
  }
}

TEST_F(Faults, StreamsAndEventsOfAFailedContextSaySo) {
  Stream stream(CU_STREAM_NON_BLOCKING);
  Event event;
  {
    Gate gate(stream);
    MUST(Launch("wild_write", stream, uint64_t{0xdead0000}, 1u));
    MUST(Cu().cuEventRecord(event, stream));
  }
  EXPECT_EQ(Cu().cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(Cu().cuEventSynchronize(event), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(Cu().cuStreamQuery(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  BeginAnew();
}

}  // namespace
}  // namespace cuplex::conformance
