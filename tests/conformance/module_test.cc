// Modules from every kind of image, their functions and variables, and what is said of a faulty one.
#include <cstring>
#include <fstream>
#include <set>
#include <string>

#include "tests/conformance/driver_under_test.h"
#include "tests/conformance/kernels_ptx.h"

namespace cuplex::conformance {
namespace {

using Modules = Body;

std::vector<char> Image(const char* name) {
  std::ifstream in(std::string(CUPLEX_CUDA_TESTDATA "/") + name, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  EXPECT_FALSE(bytes.empty()) << name;
  return bytes;
}

TEST_F(Modules, FatbinsCarryTheirPtxPlainOrPacked) {
  for (const char* name : {"saxpy_plain.fatbin", "saxpy_zstd.fatbin", "saxpy_lz4.fatbin"}) {
    SCOPED_TRACE(name);
    const auto image = Image(name);
    CUmodule module = nullptr;
    MUST(Cu().cuModuleLoadData(&module, image.data()));
    CUfunction saxpy = nullptr;
    MUST(Cu().cuModuleGetFunction(&saxpy, module, "saxpy"));
    DeviceMemory x(100 * 4), y(100 * 4);
    std::vector<float> xs(100), expected(100);
    for (int i = 0; i < 100; ++i) {
      xs[i] = static_cast<float>(i);
      expected[i] = 2.5f * static_cast<float>(i) + 1;
    }
    Write(x.at, xs);
    Write(y.at, std::vector<float>(100, 1));
    MUST(Launch(saxpy, 4, 32, nullptr, 100, 2.5f, x.at, y.at));
    EXPECT_EQ(Read<float>(y.at, 100), expected);
    MUST(Cu().cuModuleUnload(module));
    MUST(Cu().cuModuleLoadFatBinary(&module, image.data()));
    MUST(Cu().cuModuleUnload(module));
  }
}

TEST_F(Modules, MachineCodeAloneHasNoBinaryForThisDevice) {
  ONLY_OURS();
  for (const char* name : {"saxpy_code.fatbin", "saxpy.cubin"}) {
    SCOPED_TRACE(name);
    CUmodule module = nullptr;
    EXPECT_EQ(Cu().cuModuleLoadData(&module, Image(name).data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
  }
}

TEST_F(Modules, AFaultyTextIsRefusedWithAReason) {
  const char text[] = R"(.version 7.0
.target sm_50
.address_size 64
.visible .entry broken(.param .u64 p)
{
  .reg .u32 %r<2>;
  nonsense.u32 %r1, %r0;
  ret;
}
)";
  char log[2048] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log))};
  CUmodule module = nullptr;
  // An instruction that nobody knows may be one that only newer drivers know.
  const auto refused = testing::AnyOf(CUDA_ERROR_INVALID_PTX, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT_THAT(Cu().cuModuleLoadDataEx(&module, text, 2, options, values), refused);
  EXPECT_THAT(log, testing::HasSubstr("7")) << "the line";
  EXPECT_THAT(log, testing::HasSubstr("nonsense"));
  EXPECT_EQ(strnlen(log, sizeof(log)), strlen(log));
  // A small buffer is filled and no more.
  char small[32];
  memset(small, '#', sizeof(small));
  values[0] = small;
  values[1] = reinterpret_cast<void*>(8);
  EXPECT_THAT(Cu().cuModuleLoadDataEx(&module, text, 2, options, values), refused);
  for (int i = 8; i < 32; ++i) EXPECT_EQ(small[i], '#');
  EXPECT_EQ(Cu().cuModuleLoadData(&module, ".version 7.0\n.target sm_50\n.visible .entry f() { ret }\n"),
            CUDA_ERROR_INVALID_PTX)
      << "a semicolon is missing";
  // The good module still loads.
  MUST(Cu().cuModuleLoadData(&module, kPtx));
  MUST(Cu().cuModuleUnload(module));
}

TEST_F(Modules, WhatIsNoImageIsRefused) {
  CUmodule module = nullptr;
  EXPECT_EQ(Cu().cuModuleLoadData(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(Cu().cuModuleLoadData(&module, "this is no module at all, nor was it ever one"),
              testing::AnyOf(CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_INVALID_PTX));
  EXPECT_EQ(Cu().cuModuleLoad(&module, "/nonexistent/file.ptx"), CUDA_ERROR_FILE_NOT_FOUND);
  EXPECT_EQ(Cu().cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(Modules, NamesThatAreNotThere) {
  CUfunction function = nullptr;
  CUdeviceptr at = 0;
  size_t bytes = 0;
  EXPECT_EQ(Cu().cuModuleGetFunction(&function, Kernels(), "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(Cu().cuModuleGetGlobal_v2(&at, &bytes, Kernels(), "no_such_variable"), CUDA_ERROR_NOT_FOUND);
  const std::string long_name(100'000, 'x');
  EXPECT_EQ(Cu().cuModuleGetFunction(&function, Kernels(), long_name.c_str()), CUDA_ERROR_NOT_FOUND);
}

TEST_F(Modules, EachLoadHasVariablesOfItsOwn) {
  CUmodule one = nullptr, two = nullptr;
  MUST(Cu().cuModuleLoadData(&one, kPtx));
  MUST(Cu().cuModuleLoadData(&two, kPtx));
  CUdeviceptr first = 0, second = 0;
  size_t bytes = 0;
  MUST(Cu().cuModuleGetGlobal_v2(&first, &bytes, one, "counter"));
  MUST(Cu().cuModuleGetGlobal_v2(&second, &bytes, two, "counter"));
  EXPECT_NE(first, second);
  Write(first, std::vector<uint32_t>{99});
  EXPECT_EQ(Read<uint32_t>(second, 1)[0], 7u);
  MUST(Cu().cuModuleUnload(one));
  EXPECT_EQ(Read<uint32_t>(second, 1)[0], 7u);
  MUST(Cu().cuModuleUnload(two));
}

TEST_F(Modules, FunctionsSayWhatTheyNeed) {
  int value = -1;
  MUST(Cu().cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, Kernel("small_blocks")));
  EXPECT_EQ(value, 64);
  MUST(Cu().cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, Kernel("static_shared")));
  EXPECT_EQ(value, 1024);
  MUST(Cu().cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, Kernel("add")));
  EXPECT_EQ(value, 0);
  MUST(Cu().cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, Kernel("add")));
  EXPECT_GT(value, 0);
  EXPECT_LE(value, 255);
  EXPECT_EQ(Cu().cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(9999), Kernel("add")),
            CUDA_ERROR_INVALID_VALUE);
  CUmodule module = nullptr;
  MUST(Cu().cuFuncGetModule(&module, Kernel("add")));
  EXPECT_EQ(module, Kernels());
  const char* name = nullptr;
  MUST(Cu().cuFuncGetName(&name, Kernel("follow")));
  EXPECT_STREQ(name, "follow");
  // More dynamic shared memory than every launch may have has to be asked for.
  int most = 0;
  MUST(Cu().cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
  CUfunction reverse = Kernel("reverse");
  MUST(Cu().cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most));
  MUST(Cu().cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, reverse));
  EXPECT_EQ(value, most);
  DeviceMemory words(4);
  Write(words.at, std::vector<uint32_t>{3});
  void* parameters[] = {&words.at};
  MUST(Cu().cuLaunchKernel(reverse, 1, 1, 1, 1, 1, 1, most, nullptr, parameters, nullptr));
  EXPECT_EQ(Read<uint32_t>(words.at, 1)[0], 3u);
}

TEST_F(Modules, ParametersLieWhereTheAbiPutsThem) {
  const std::vector<std::pair<size_t, size_t>> expected = {{0, 1}, {8, 32}, {40, 2}, {48, 8}};
  CUfunction take = Kernel("take_struct");
  for (size_t i = 0; i < expected.size(); ++i) {
    size_t offset = 0, size = 0;
    MUST(Cu().cuFuncGetParamInfo(take, i, &offset, &size));
    EXPECT_EQ(std::pair(offset, size), expected[i]) << i;
  }
  size_t offset = 0;
  EXPECT_EQ(Cu().cuFuncGetParamInfo(take, 4, &offset, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Cu().cuFuncGetParamInfo(Kernel("nothing"), 0, &offset, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Modules, FunctionsCanBeListed) {
  unsigned count = 0;
  MUST(Cu().cuModuleGetFunctionCount(&count, Kernels()));
  // Those of kernels.cu.
  const std::set<std::string> expected = {"add",          "sum",           "where",     "take_struct",
                                          "follow",       "reverse",       "nothing",   "slow_write",
                                          "copy_word",    "use_variables", "wild_read", "wild_write",
                                          "small_blocks", "static_shared"};
  ASSERT_EQ(count, expected.size());
  std::vector<CUfunction> functions(count);
  MUST(Cu().cuModuleEnumerateFunctions(functions.data(), count, Kernels()));
  std::set<std::string> names;
  for (CUfunction f : functions) {
    const char* name = nullptr;
    MUST(Cu().cuFuncGetName(&name, f));
    names.insert(name);
  }
  EXPECT_EQ(names, expected);
}

TEST_F(Modules, LibrariesHoldKernels) {
  CUlibrary library = nullptr;
  MUST(Cu().cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel = nullptr;
  MUST(Cu().cuLibraryGetKernel(&kernel, library, "add"));
  CUfunction function = nullptr;
  MUST(Cu().cuKernelGetFunction(&function, kernel));
  DeviceMemory words(4);
  Write(words.at, std::vector<uint32_t>{3});
  MUST(Launch(function, 1, 1, nullptr, words.at, 4u, 1u));
  EXPECT_EQ(Read<uint32_t>(words.at, 1)[0], 7u);
  // A kernel stands for its function in the current context.
  MUST(Launch(reinterpret_cast<CUfunction>(kernel), 1, 1, nullptr, words.at, 4u, 1u));
  EXPECT_EQ(Read<uint32_t>(words.at, 1)[0], 11u);
  EXPECT_EQ(Cu().cuLibraryGetKernel(&kernel, library, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
  MUST(Cu().cuLibraryUnload(library));
}

}  // namespace
}  // namespace cuplex::conformance
