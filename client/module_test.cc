#include "client/module.h"

#include <cstring>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/fake_server.h"
#include "client/process.h"
#include "cuda/driver_api.h"

namespace cuplex::client {
namespace {

std::string Ptx(size_t comment_bytes) {
  return ".version 7.0\n.target sm_70\n.address_size 64\n//" + std::string(comment_bytes, '-') +
         "\n.visible .entry f()\n{\n ret;\n}\n";
}

class ModuleTest : public testing::Test {
 protected:
  ~ModuleTest() override { Detach(); }
  int Count(const std::string& call) {
    return server_.Seen([&] { return static_cast<int>(std::ranges::count(server_.calls, call)); });
  }
  FakeServer server_;
  CUcontext context_ = Attach(server_);
};

TEST_F(ModuleTest, BytesTravelOnceAndWhole) {
  const std::string ptx = Ptx(200'000);
  CUmodule a, b;
  ASSERT_EQ(cuModuleLoadData(&a, ptx.c_str()), CUDA_SUCCESS);
  const int writes = Count("wireImageWrite");
  EXPECT_EQ(writes, 4);  // of 64 KiB
  ASSERT_EQ(cuModuleLoadData(&b, ptx.c_str()), CUDA_SUCCESS);
  EXPECT_EQ(Count("wireImageWrite"), writes);
  EXPECT_NE(a, b);
  server_.Seen([&] {
    EXPECT_EQ(server_.images.size(), 1u);
    EXPECT_EQ(server_.images.begin()->second, ptx);
    return 0;
  });
}

TEST_F(ModuleTest, WhatTheCompilerSaidIsHandedOn) {
  server_.Seen([&] { return server_.load_answer = CUDA_ERROR_INVALID_PTX; });
  char log[10], long_log[100];
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log))};
  CUmodule m;
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuModuleLoadDataEx(&m, Ptx(1).c_str(), 2, options, values), CUDA_ERROR_INVALID_PTX);
  EXPECT_STREQ(log, "line 7: a");  // cut, and ended
  EXPECT_EQ(reinterpret_cast<size_t>(values[1]), 10u);
  values[0] = long_log;
  values[1] = reinterpret_cast<void*>(sizeof(long_log));
  EXPECT_EQ(cuModuleLoadDataEx(&m, Ptx(1).c_str(), 2, options, values), CUDA_ERROR_INVALID_PTX);
  EXPECT_STREQ(long_log, "line 7: a sentence");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("line 7: a sentence"));
  EXPECT_EQ(cuModuleLoadData(&m, "no image"), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(cuModuleLoad(&m, "/nonexistent/file.ptx"), CUDA_ERROR_FILE_NOT_FOUND);
}

TEST_F(ModuleTest, FunctionsAndGlobals) {
  CUmodule m, of;
  CUfunction f, again;
  ASSERT_EQ(cuModuleLoadData(&m, Ptx(1).c_str()), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleGetFunction(&f, m, "f"), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleGetFunction(&again, m, "f"), CUDA_SUCCESS);
  EXPECT_EQ(f, again);
  EXPECT_EQ(cuModuleGetFunction(&again, m, "absent"), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuFuncGetModule(&of, f), CUDA_SUCCESS);
  EXPECT_EQ(of, m);
  const char* name = nullptr;
  int threads = 0;
  EXPECT_EQ(cuFuncGetName(&name, f), CUDA_SUCCESS);
  EXPECT_STREQ(name, "f");
  EXPECT_EQ(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f), CUDA_SUCCESS);
  EXPECT_EQ(threads, 512);
  unsigned count = 0;
  CUfunction all[2];
  EXPECT_EQ(cuModuleGetFunctionCount(&count, m), CUDA_SUCCESS);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(cuModuleEnumerateFunctions(all, 2, m), CUDA_SUCCESS);
  EXPECT_EQ(cuFuncGetName(&name, all[1]), CUDA_SUCCESS);
  EXPECT_STREQ(name, "function1");
  CUdeviceptr global;
  size_t bytes = 0;
  EXPECT_EQ(cuModuleGetGlobal_v2(&global, &bytes, m, "g"), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 40u);
  EXPECT_EQ(cuMemFree_v2(global), CUDA_ERROR_INVALID_VALUE);  // it is the module's
}

TEST_F(ModuleTest, AKernelBecomesAFunctionInEachContext) {
  CUlibrary library;
  CUkernel kernel;
  CUfunction here, there;
  CUcontext other;
  ASSERT_EQ(cuLibraryLoadData(&library, Ptx(2).c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_SUCCESS);
  ASSERT_EQ(cuLibraryGetKernel(&kernel, library, "f"), CUDA_SUCCESS);
  ASSERT_EQ(cuKernelGetFunction(&here, kernel), CUDA_SUCCESS);
  EXPECT_EQ(
      cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
      CUDA_SUCCESS);
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(
      cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
      CUDA_SUCCESS);
  ASSERT_EQ(cuKernelGetFunction(&there, kernel), CUDA_SUCCESS);
  EXPECT_NE(here, there);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(Count("wireModuleLoad"), 2);
  const auto launches = server_.Seen([&] { return server_.launches; });
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0].function, reinterpret_cast<uint64_t>(here));
  EXPECT_EQ(launches[0].context, 1u);
  EXPECT_EQ(launches[1].function, reinterpret_cast<uint64_t>(there));
  EXPECT_EQ(launches[1].context, 2u);
  ASSERT_EQ(cuCtxDestroy_v2(other), CUDA_SUCCESS);
  EXPECT_EQ(cuLibraryGetKernel(&kernel, library, "absent"), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuLibraryUnload(library), CUDA_SUCCESS);
  EXPECT_EQ(cuKernelGetFunction(&here, kernel), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
}  // namespace cuplex::client
