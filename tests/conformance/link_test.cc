// Linking: what several inputs become, that the image is bytes like any others, and what is said of inputs
// that do not fit together.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "tests/conformance/driver_under_test.h"

namespace cuplex::conformance {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

// k writes three times the variable `step`, by a function of another input.
constexpr char kCalls[] = R"(.version 7.0
.target sm_50
.address_size 64
.extern .global .align 4 .u32 step;
.extern .func (.param .b32 r) thrice (.param .b32 n);
.visible .entry k(.param .u64 p)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.global.u32 %r0, [step];
  {
    .param .b32 a;
    .param .b32 b;
    st.param.b32 [a], %r0;
    call.uni (b), thrice, (a);
    ld.param.b32 %r1, [b];
  }
  ld.param.u64 %rd0, [p];
  cvta.to.global.u64 %rd1, %rd0;
  st.global.u32 [%rd1], %r1;
  ret;
}
)";
constexpr char kDefines[] = R"(.version 7.0
.target sm_50
.address_size 64
.visible .global .align 4 .u32 step = 14;
.visible .func (.param .b32 r) thrice (.param .b32 n)
{
  .reg .b32 %r<2>;
  ld.param.b32 %r0, [n];
  mul.lo.u32 %r1, %r0, 3;
  st.param.b32 [r], %r1;
  ret;
}
)";

class Links : public Body {
 protected:
  void TearDown() override {
    if (state_) EXPECT_EQ(Cu().cuLinkDestroy(state_), CUDA_SUCCESS);
    Body::TearDown();
  }
  void Create() {
    std::memset(info_, 0, sizeof(info_));
    std::memset(errors_, 0, sizeof(errors_));
    values_[0] = info_;
    values_[1] = reinterpret_cast<void*>(sizeof(info_));
    values_[2] = errors_;
    values_[3] = reinterpret_cast<void*>(sizeof(errors_));
    values_[4] = nullptr;
    MUST(Cu().cuLinkCreate_v2(5, names_, values_, &state_));
  }
  void Destroy() { MUST(Cu().cuLinkDestroy(std::exchange(state_, nullptr))); }
  CUresult Add(const std::string& text, const char* name) {
    std::vector<char> bytes(text.c_str(), text.c_str() + text.size() + 1);
    return Cu().cuLinkAddData_v2(state_, CU_JIT_INPUT_PTX, bytes.data(), bytes.size(), name, 0, nullptr,
                                 nullptr);
  }
  std::vector<char> Complete() {
    void* image = nullptr;
    size_t size = 0;
    MUST(Cu().cuLinkComplete(state_, &image, &size));
    return {static_cast<char*>(image), static_cast<char*>(image) + size};
  }
  uint32_t Run(CUmodule module) {
    CUfunction k = nullptr;
    MUST(Cu().cuModuleGetFunction(&k, module, "k"));
    DeviceMemory out(4);
    MUST(Launch(k, 1, 1, nullptr, out.at));
    return Read<uint32_t>(out.at, 1)[0];
  }

  CUlinkState state_ = nullptr;
  char info_[4096], errors_[4096];
  CUjit_option names_[5] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_WALL_TIME};
  void* values_[5] = {};
};

TEST_F(Links, TwoTextsBecomeOneModule) {
  Create();
  MUST(Add(kCalls, "calls.ptx"));
  MUST(Add(kDefines, "defines.ptx"));
  void* image = nullptr;
  size_t size = 0;
  MUST(Cu().cuLinkComplete(state_, &image, &size));
  EXPECT_GT(size, 0u);
  CUmodule module = nullptr;
  MUST(Cu().cuModuleLoadData(&module, image));
  float milliseconds = -1;
  std::memcpy(&milliseconds, &values_[4], sizeof(milliseconds));
  EXPECT_GT(milliseconds, 0);
  EXPECT_LT(milliseconds, 60'000);
  EXPECT_LE(reinterpret_cast<size_t>(values_[1]), sizeof(info_));
  EXPECT_STREQ(errors_, "");
  Destroy();
  EXPECT_EQ(Run(module), 42u);
  CUdeviceptr step = 0;
  size_t bytes = 0;
  MUST(Cu().cuModuleGetGlobal_v2(&step, &bytes, module, "step"));
  EXPECT_EQ(bytes, 4u);
  Write(step, std::vector<uint32_t>{5});
  EXPECT_EQ(Run(module), 15u);
  MUST(Cu().cuModuleUnload(module));
}

TEST_F(Links, AnImageIsBytesThatOutliveItsLink) {
  Create();
  MUST(Add(kDefines, "defines.ptx"));
  MUST(Add(kCalls, "calls.ptx"));
  const std::vector<char> image = Complete();
  EXPECT_EQ(Complete(), image) << "asked again";
  Destroy();
  const std::vector<char> elsewhere = image;
  CUmodule one = nullptr, two = nullptr;
  MUST(Cu().cuModuleLoadData(&one, elsewhere.data()));
  MUST(Cu().cuModuleLoadData(&two, image.data()));
  EXPECT_EQ(Run(one), 42u);
  EXPECT_EQ(Run(two), 42u);
  MUST(Cu().cuModuleUnload(one));
  MUST(Cu().cuModuleUnload(two));
  // Also in another context, and in a link of its own.
  CUcontext other = nullptr;
  MUST(Cu().cuCtxCreate_v2(&other, 0, 0));
  MUST(Cu().cuModuleLoadData(&one, image.data()));
  EXPECT_EQ(Run(one), 42u);
  MUST(Cu().cuCtxDestroy_v2(other));
}

TEST_F(Links, InputsOfMegabytesAndOfFiles) {
  const std::string path =
      std::filesystem::temp_directory_path() / fmt::format("cuplex_link_{}.ptx", getpid());
  std::ofstream(path) << kCalls;
  std::string large = kDefines;
  for (int i = 0; large.size() < 3'000'000; ++i) large += fmt::format("// a line that says nothing, {}\n", i);
  Create();
  MUST(Cu().cuLinkAddFile_v2(state_, CU_JIT_INPUT_PTX, path.c_str(), 0, nullptr, nullptr));
  std::filesystem::remove(path);
  MUST(Add(large, "large.ptx"));
  const std::vector<char> image = Complete();
  Destroy();
  CUmodule module = nullptr;
  MUST(Cu().cuModuleLoadData(&module, image.data()));
  EXPECT_EQ(Run(module), 42u);
  MUST(Cu().cuModuleUnload(module));
}

TEST_F(Links, AnImageOfThousandsOfKernelsComesBackWhole) {
  std::string text = ".version 7.0\n.target sm_50\n.address_size 64\n";
  for (int i = 0; i < 2000; ++i)
    text += fmt::format(
        ".visible .entry k{}(.param .u64 p)\n{{\n  .reg .b64 %rd<2>;\n  .reg .b32 %r<2>;\n"
        "  ld.param.u64 %rd0, [p];\n  mov.u32 %r0, {};\n  st.global.u32 [%rd0], %r0;\n  ret;\n}}\n",
        i, i);
  Create();
  MUST(Add(text, "many.ptx"));
  const std::vector<char> image = Complete();
  Destroy();
  CUmodule module = nullptr;
  MUST(Cu().cuModuleLoadData(&module, image.data()));
  DeviceMemory out(4);
  for (int i : {0, 777, 1999}) {
    CUfunction k = nullptr;
    MUST(Cu().cuModuleGetFunction(&k, module, fmt::format("k{}", i).c_str()));
    MUST(Launch(k, 1, 1, nullptr, out.at));
    EXPECT_EQ(Read<uint32_t>(out.at, 1)[0], static_cast<uint32_t>(i));
  }
  MUST(Cu().cuModuleUnload(module));
}

TEST_F(Links, ASymbolThatIsNowhereOrTwiceIsNamed) {
  void* image = nullptr;
  size_t size = 0;
  Create();
  MUST(Add(kCalls, "calls.ptx"));
  CUresult code = Cu().cuLinkComplete(state_, &image, &size);
  EXPECT_NE(code, CUDA_SUCCESS);
  EXPECT_THAT(errors_, AnyOf(HasSubstr("thrice"), HasSubstr("step")));
  if (Given().ours) EXPECT_EQ(code, CUDA_ERROR_INVALID_PTX);
  Destroy();
  Create();
  MUST(Add(kDefines, "defines.ptx"));
  code = Add(kDefines, "again.ptx");
  if (!code) code = Cu().cuLinkComplete(state_, &image, &size);
  EXPECT_NE(code, CUDA_SUCCESS);
  EXPECT_THAT(errors_, AnyOf(HasSubstr("thrice"), HasSubstr("step")));
  if (Given().ours) {
    EXPECT_EQ(code, CUDA_ERROR_INVALID_PTX);
    EXPECT_THAT(errors_, HasSubstr("again.ptx"));
  }
  EXPECT_GT(reinterpret_cast<size_t>(values_[3]), 0u);
  EXPECT_LE(reinterpret_cast<size_t>(values_[3]), sizeof(errors_));
}

TEST_F(Links, AFaultyInputIsRefusedWithAReason) {
  Create();
  // Whether it is looked at when it is added or when all are linked is the driver's affair.
  CUresult code = Add(".version 7.0\n.target sm_50\n.visible .entry f() { ret }\n", "bad.ptx");
  void* image = nullptr;
  size_t size = 0;
  if (!code) code = Cu().cuLinkComplete(state_, &image, &size);
  EXPECT_EQ(code, CUDA_ERROR_INVALID_PTX);
  EXPECT_THAT(errors_, HasSubstr("bad.ptx"));
  Destroy();
  Create();
  EXPECT_EQ(Cu().cuLinkAddFile_v2(state_, CU_JIT_INPUT_PTX, "/nonexistent/file.ptx", 0, nullptr, nullptr),
            CUDA_ERROR_FILE_NOT_FOUND);
  EXPECT_EQ(Cu().cuLinkComplete(state_, &image, &size), CUDA_ERROR_INVALID_VALUE) << "nothing is there";
}

TEST_F(Links, HandlesThatAreNone) {
  ONLY_OURS();
  void* image = nullptr;
  size_t size = 0;
  EXPECT_EQ(Cu().cuLinkCreate_v2(0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Cu().cuLinkComplete(nullptr, &image, &size), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Cu().cuLinkDestroy(nullptr), CUDA_ERROR_INVALID_HANDLE);
  Create();
  const CUlinkState gone = state_;
  Destroy();
  EXPECT_EQ(Cu().cuLinkDestroy(gone), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Cu().cuLinkComplete(gone, &image, &size), CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
}  // namespace cuplex::conformance
