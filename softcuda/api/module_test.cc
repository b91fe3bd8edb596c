#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "softcuda/api/kernels.h"
#include "softcuda/api/testing.h"

namespace cuplex::softcuda {
namespace {

class Modules : public ContextTest {
 protected:
  CUmodule Load(const char* ptx = kKernels) {
    CUmodule module = nullptr;
    EXPECT_CU(cuModuleLoadData(&module, ptx));
    return module;
  }
  CUfunction Function(CUmodule module, const char* name) {
    CUfunction function = nullptr;
    EXPECT_CU(cuModuleGetFunction(&function, module, name));
    return function;
  }
};

TEST_F(Modules, FunctionsAreFoundByName) {
  CUmodule module = Load();
  CUfunction function = Function(module, "add");
  EXPECT_CODE(cuModuleGetFunction(&function, module, "no_such"), CUDA_ERROR_NOT_FOUND);
  EXPECT_CODE(cuModuleGetFunction(&function, module, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuModuleGetFunction(nullptr, module, "add"), CUDA_ERROR_INVALID_VALUE);
  const char* name = nullptr;
  CUmodule owner = nullptr;
  EXPECT_CU(cuFuncGetName(&name, function));
  EXPECT_STREQ(name, "add");
  EXPECT_CU(cuFuncGetModule(&owner, function));
  EXPECT_EQ(owner, module);
  unsigned count = 0;
  EXPECT_CU(cuModuleGetFunctionCount(&count, module));
  EXPECT_EQ(count, 10u);
  std::vector<CUfunction> all(count);
  EXPECT_CU(cuModuleEnumerateFunctions(all.data(), count, module));
  std::set<std::string> names;
  for (CUfunction f : all) {
    EXPECT_CU(cuFuncGetName(&name, f));
    names.insert(name);
  }
  EXPECT_EQ(names, (std::set<std::string>{"empty", "add", "store", "grow", "small_blocks", "exact_blocks",
                                          "shared_end", "structure", "barrier", "trap"}));
}

TEST_F(Modules, VariablesHaveAddressesAndInitialValues) {
  CUmodule module = Load();
  CUdeviceptr counter, pointer, scale;
  size_t size = 0;
  EXPECT_CU(cuModuleGetGlobal_v2(&counter, &size, module, "counter"));
  EXPECT_EQ(size, 4u);
  EXPECT_CU(cuModuleGetGlobal_v2(&pointer, &size, module, "pointer_to_counter"));
  EXPECT_EQ(size, 8u);
  EXPECT_CU(cuModuleGetGlobal_v2(&scale, nullptr, module, "scale"));
  EXPECT_CODE(cuModuleGetGlobal_v2(&scale, nullptr, module, "no_such"), CUDA_ERROR_NOT_FOUND);
  uint32_t value = 0;
  uint64_t address = 0;
  EXPECT_CU(cuMemcpyDtoH_v2(&value, counter, 4));
  EXPECT_EQ(value, 5u);
  EXPECT_CU(cuMemcpyDtoH_v2(&address, pointer, 8));
  EXPECT_EQ(address, counter);
  // A constant is written as any variable is; the kernel sees it.
  uint32_t four = 4;
  EXPECT_CU(cuMemcpyHtoD_v2(scale, &four, 4));
  EXPECT_CU(cuLaunchKernel(Function(module, "grow"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_CU(cuMemcpyDtoH_v2(&value, counter, 4));
  EXPECT_EQ(value, 20u);
}

TEST_F(Modules, EachLoadHasVariablesOfItsOwn) {
  CUmodule a = Load(), b = Load();
  CUdeviceptr of_a, of_b;
  EXPECT_CU(cuModuleGetGlobal_v2(&of_a, nullptr, a, "counter"));
  EXPECT_CU(cuModuleGetGlobal_v2(&of_b, nullptr, b, "counter"));
  EXPECT_NE(of_a, of_b);
  EXPECT_CU(cuLaunchKernel(Function(a, "grow"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  uint32_t value = 0;
  EXPECT_CU(cuMemcpyDtoH_v2(&value, of_a, 4));
  EXPECT_EQ(value, 15u);
  EXPECT_CU(cuMemcpyDtoH_v2(&value, of_b, 4));
  EXPECT_EQ(value, 5u);
}

TEST_F(Modules, UnloadingFreesThemAndVoidsTheirHandles) {
  size_t before = FreeBytes();
  CUmodule module = Load();
  EXPECT_LT(FreeBytes(), before);
  CUfunction function = Function(module, "empty");
  EXPECT_CU(cuModuleUnload(module));
  EXPECT_EQ(FreeBytes(), before);
  EXPECT_CODE(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
              CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(cuModuleGetFunction(&function, module, "empty"), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Modules, WhatIsNotPtxIsRefusedByKind) {
  CUmodule module;
  std::vector<unsigned char> elf(4096);
  std::memcpy(elf.data(),
              "\x7f"
              "ELF\x02\x01\x01",
              7);
  elf[18] = 190;  // EM_CUDA
  elf[20] = 1;
  elf[52] = 64;
  EXPECT_CODE(cuModuleLoadData(&module, elf.data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_CODE(cuModuleLoadData(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CODE(cuModuleLoadData(&module, "hello, this is no module at all, just text"),
              CUDA_ERROR_INVALID_IMAGE);
  EXPECT_CODE(cuModuleLoad(&module, "/no/such/file.ptx"), CUDA_ERROR_FILE_NOT_FOUND);
}

TEST_F(Modules, AKernelThatCannotRunLeavesTheOthersOfItsModule) {
  const char* mixed = R"(.version 7.8
.target sm_75
.address_size 64
.visible .entry bad() { .reg .b32 %r1; frobnicate.s32 %r1, 2; ret; }
.visible .entry good() { ret; }
)";
  char log[512] = {};
  CUjit_option names[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log))};
  CUmodule module;
  ASSERT_CU(cuModuleLoadDataEx(&module, mixed, 2, names, values));
  EXPECT_NE(std::string(log).find("kernel `bad` cannot run: line 4: `frobnicate.s32`"), std::string::npos)
      << log;
  CUfunction function;
  EXPECT_CODE(cuModuleGetFunction(&function, module, "bad"), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  ASSERT_CU(cuModuleGetFunction(&function, module, "good"));
  EXPECT_CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  // Listed, it can be had; it cannot be launched.
  CUfunction all[2] = {};
  ASSERT_CU(cuModuleEnumerateFunctions(all, 2, module));
  EXPECT_CODE(cuLaunchKernel(all[0], 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
              CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_CU(cuModuleUnload(module));

  CUlibrary library;
  ASSERT_CU(cuLibraryLoadData(&library, mixed, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel;
  ASSERT_CU(cuLibraryGetKernel(&kernel, library, "bad"));
  EXPECT_CODE(
      cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
      CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  ASSERT_CU(cuLibraryGetKernel(&kernel, library, "good"));
  EXPECT_CU(
      cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_CU(cuLibraryUnload(library));
}

TEST_F(Modules, SeveralInputsBecomeOneModule) {
  char calls[] = R"(.version 7.8
.target sm_75
.address_size 64
.extern .func (.param .b32 r) twice (.param .b32 n);
.extern .global .align 4 .u32 step;
.visible .entry k(.param .u64 p)
{
  .reg .b32 %r<3>; .reg .b64 %rd;
  ld.global.u32 %r0, [step];
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r0; call.uni (b), twice, (a); ld.param.b32 %r1, [b]; }
  ld.param.u64 %rd, [p]; st.global.u32 [%rd], %r1; ret;
}
)";
  char defines[] = R"(.version 7.8
.target sm_75
.address_size 64
.visible .global .align 4 .u32 step = 21;
.visible .func (.param .b32 r) twice (.param .b32 n)
{ .reg .b32 %r; ld.param.b32 %r, [n]; add.u32 %r, %r, %r; st.param.b32 [r], %r; ret; }
)";
  char log[512] = {};
  CUjit_option names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log))};
  CUlinkState state;
  ASSERT_CU(cuLinkCreate_v2(2, names, values, &state));
  void* image = nullptr;
  size_t size = 0;
  EXPECT_CODE(cuLinkComplete(state, &image, &size), CUDA_ERROR_INVALID_VALUE) << "nothing is there";
  EXPECT_CU(
      cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, calls, sizeof(calls), "calls.ptx", 0, nullptr, nullptr));
  EXPECT_CU(cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, defines, sizeof(defines), "defines.ptx", 0, nullptr,
                             nullptr));
  ASSERT_CU(cuLinkComplete(state, &image, &size));
  EXPECT_GT(size, 0u);
  CUmodule module;
  ASSERT_CU(cuModuleLoadData(&module, image));
  EXPECT_CU(cuLinkDestroy(state));
  EXPECT_CODE(cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE);
  CUfunction k;
  ASSERT_CU(cuModuleGetFunction(&k, module, "k"));
  CUdeviceptr out, step;
  size_t bytes = 0;
  ASSERT_CU(cuMemAlloc_v2(&out, 4));
  void* parameters[] = {&out};
  ASSERT_CU(cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  uint32_t got = 0;
  EXPECT_CU(cuMemcpyDtoH_v2(&got, out, 4));
  EXPECT_EQ(got, 42u);
  EXPECT_CU(cuModuleGetGlobal_v2(&step, &bytes, module, "step"));
  EXPECT_EQ(bytes, 4u);
  EXPECT_CU(cuMemFree_v2(out));
  EXPECT_CU(cuModuleUnload(module));

  values[1] = reinterpret_cast<void*>(sizeof(log));
  ASSERT_CU(cuLinkCreate_v2(2, names, values, &state));
  EXPECT_CU(
      cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, calls, sizeof(calls), "calls.ptx", 0, nullptr, nullptr));
  EXPECT_CODE(cuLinkComplete(state, &image, &size), CUDA_ERROR_INVALID_PTX);
  EXPECT_NE(std::string(log).find("in `calls.ptx`"), std::string::npos) << log;
  EXPECT_CU(cuLinkDestroy(state));
  values[1] = reinterpret_cast<void*>(sizeof(log));
  ASSERT_CU(cuLinkCreate_v2(2, names, values, &state));
  char bad[] = ".version 7.8\n.target sm_75\n.visible .entry k() { ret }\n";
  EXPECT_CODE(cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, bad, sizeof(bad), "bad.ptx", 0, nullptr, nullptr),
              CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(std::string(log).find("bad.ptx: "), 0u) << log;
  EXPECT_CODE(cuLinkAddFile_v2(state, CU_JIT_INPUT_PTX, "/no/such/file.ptx", 0, nullptr, nullptr),
              CUDA_ERROR_FILE_NOT_FOUND);
  EXPECT_CU(cuLinkDestroy(state));
}

TEST_F(Modules, ManagedVariablesAreTheProgramsToo) {
  const char* managed = R"(.version 7.8
.target sm_75
.address_size 64
.visible .global .attribute(.managed) .align 4 .u32 counter = 5;
.visible .entry count() { .reg .b32 %r; ld.global.u32 %r, [counter]; add.u32 %r, %r, 1; st.global.u32 [counter], %r; ret; }
)";
  CUmodule module;
  ASSERT_CU(cuModuleLoadData(&module, managed));
  CUdeviceptr at;
  size_t bytes = 0;
  ASSERT_CU(cuModuleGetGlobal_v2(&at, &bytes, module, "counter"));
  auto* counter = reinterpret_cast<volatile uint32_t*>(at);
  EXPECT_EQ(*counter, 5u);
  *counter = 41;
  CUfunction count;
  ASSERT_CU(cuModuleGetFunction(&count, module, "count"));
  ASSERT_CU(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_EQ(*counter, 42u);
  EXPECT_CU(cuModuleUnload(module));
}

TEST_F(Modules, TheLogNamesWhatIsWrongAndWhere) {
  const char* bad = R"(.version 7.8
.target sm_75
.address_size 64
.visible .entry k()
{
  frobnicate.s32 %r1, 2;
  ret;
}
)";
  char log[256];
  CUjit_option names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log))};
  CUmodule module;
  CUresult result = cuModuleLoadDataEx(&module, bad, 2, names, values);
  EXPECT_TRUE(result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION) << result;
  EXPECT_EQ(reinterpret_cast<size_t>(values[1]), std::strlen(log) + 1);
  EXPECT_NE(std::string(log).find("6"), std::string::npos) << log;  // the line
  // Without room the sentence is cut, and always ends.
  values[1] = reinterpret_cast<void*>(8);
  log[8] = 'x';
  EXPECT_NE(cuModuleLoadDataEx(&module, bad, 2, names, values), CUDA_SUCCESS);
  EXPECT_EQ(std::strlen(log), 7u);
  EXPECT_EQ(log[8], 'x');
  EXPECT_CODE(cuModuleLoadDataEx(&module, kKernels, 1, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Modules, AFileLoads) {
  char path[] = "/tmp/softcuda_module_XXXXXX";
  int fd = mkstemp(path);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(write(fd, kKernels, sizeof(kKernels) - 1), static_cast<ssize_t>(sizeof(kKernels) - 1));
  close(fd);
  CUmodule module = nullptr;
  EXPECT_CU(cuModuleLoad(&module, path));
  unlink(path);
  Function(module, "add");
}

TEST_F(Modules, AttributesOfFunctions) {
  CUmodule module = Load();
  auto get = [&](const char* name, CUfunction_attribute attribute) {
    int value = -1;
    EXPECT_CU(cuFuncGetAttribute(&value, attribute, Function(module, name)));
    return value;
  };
  EXPECT_EQ(get("add", CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
  EXPECT_EQ(get("small_blocks", CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 64);
  EXPECT_EQ(get("shared_end", CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 1024);
  EXPECT_EQ(get("shared_end", CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), 48 * 1024 - 1024);
  int value;
  EXPECT_CODE(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX, Function(module, "add")),
              CUDA_ERROR_INVALID_VALUE);
  size_t offset = 0, size = 0;
  CUfunction structure = Function(module, "structure");
  EXPECT_CU(cuFuncGetParamInfo(structure, 1, &offset, &size));
  EXPECT_EQ(offset, 8u);
  EXPECT_EQ(size, 24u);
  EXPECT_CU(cuFuncGetParamInfo(structure, 2, &offset, &size));
  EXPECT_EQ(offset, 32u);
  EXPECT_EQ(size, 1u);
  EXPECT_CODE(cuFuncGetParamInfo(structure, 3, &offset, &size), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Modules, OccupancyFollowsTheAttributes) {
  CUfunction function = Function(Load(), "shared_end");
  int blocks = 0;
  // 1536 threads a multiprocessor.
  EXPECT_CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 512, 0));
  EXPECT_EQ(blocks, 3);
  // 100 KiB of shared memory, of which a block of this takes 1 + 1 + 30.
  EXPECT_CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 32, 30 << 10));
  EXPECT_EQ(blocks, 3);
  EXPECT_CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 32, 200 << 10));
  EXPECT_EQ(blocks, 0);
  EXPECT_CODE(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 0, 0), CUDA_ERROR_INVALID_VALUE);
  int grid = 0, size = 0;
  EXPECT_CU(cuOccupancyMaxPotentialBlockSize(&grid, &size, function, nullptr, 0, 0));
  EXPECT_EQ(1536 % size, 0);
  EXPECT_EQ(grid % (1536 / size), 0);
}

TEST_F(Modules, LibrariesBelongToNoContext) {
  CUlibrary library;
  EXPECT_CU(cuLibraryLoadData(&library, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel, missing;
  EXPECT_CU(cuLibraryGetKernel(&kernel, library, "grow"));
  EXPECT_CODE(cuLibraryGetKernel(&missing, library, "no_such"), CUDA_ERROR_NOT_FOUND);
  unsigned count = 0;
  EXPECT_CU(cuLibraryGetKernelCount(&count, library));
  EXPECT_EQ(count, 10u);
  // Each context has variables of its own; a kernel launches wherever it is asked to.
  CUcontext other;
  EXPECT_CU(
      cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  CUdeviceptr here, there;
  uint32_t value = 0;
  EXPECT_CU(cuLibraryGetGlobal(&here, nullptr, library, "counter"));
  EXPECT_CU(cuMemcpyDtoH_v2(&value, here, 4));
  EXPECT_EQ(value, 15u);
  EXPECT_CU(cuCtxCreate_v2(&other, 0, 1));
  EXPECT_CU(cuLibraryGetGlobal(&there, nullptr, library, "counter"));
  EXPECT_NE(here, there);
  EXPECT_CU(cuMemcpyDtoH_v2(&value, there, 4));
  EXPECT_EQ(value, 5u);
  CUfunction function;
  EXPECT_CU(cuKernelGetFunction(&function, kernel));
  EXPECT_CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_CU(cuMemcpyDtoH_v2(&value, there, 4));
  EXPECT_EQ(value, 15u);
  EXPECT_CU(cuCtxDestroy_v2(other));
  EXPECT_CU(cuLibraryUnload(library));
  EXPECT_CODE(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CODE(
      cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
      CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
}  // namespace cuplex::softcuda
