#include "client/link.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/fake_server.h"
#include "client/process.h"
#include "cuda/driver_api.h"
#include "cuda/fatbin.h"

namespace cuplex::client {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class LinkTest : public testing::Test {
 protected:
  LinkTest() {
    server_.Seen([&] {
      // More than two replies hold, and no two pieces alike.
      for (int i = 0; i < 6000; ++i) server_.linked += std::to_string(i);
      return 0;
    });
  }
  ~LinkTest() override { Detach(); }
  CUlinkState Create() {
    CUlinkState state = nullptr;
    EXPECT_EQ(cuLinkCreate_v2(0, nullptr, nullptr, &state), CUDA_SUCCESS);
    return state;
  }
  CUresult Add(CUlinkState state, std::string text, const char* name = "a.ptx") {
    return cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, text.data(), text.size(), name, 0, nullptr, nullptr);
  }
  /// What the server was asked to link.
  LinkRequest Asked() {
    bytes_ = server_.Seen([&] { return server_.link_request; });
    auto request = DecodeLinkRequest(std::as_bytes(std::span(bytes_)));
    EXPECT_TRUE(request.ok());
    return request.ok() ? *request : LinkRequest{};
  }

  FakeServer server_;
  CUcontext context_ = Attach(server_);
  std::string bytes_;
};

std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_F(LinkTest, InputsTravelWhenAllAreThereAndTheImageComesBackWhole) {
  char info[64] = "x", errors[64] = "x";
  CUjit_option names[] = {CU_JIT_INFO_LOG_BUFFER,  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                          CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                          CU_JIT_WALL_TIME,        CU_JIT_THREADS_PER_BLOCK,
                          CU_JIT_MAX_REGISTERS};
  void* values[] = {info,
                    reinterpret_cast<void*>(sizeof(info)),
                    errors,
                    reinterpret_cast<void*>(sizeof(errors)),
                    nullptr,
                    reinterpret_cast<void*>(64),
                    reinterpret_cast<void*>(32)};
  CUlinkState state = nullptr;
  ASSERT_EQ(cuLinkCreate_v2(7, names, values, &state), CUDA_SUCCESS);
  CUjit_option level = CU_JIT_OPTIMIZATION_LEVEL;
  void* two = reinterpret_cast<void*>(2);
  std::string first(300'000, 'f'), second = "second";
  ASSERT_EQ(cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, first.data(), first.size(), "a.ptx", 1, &level, &two),
            CUDA_SUCCESS);
  ASSERT_EQ(
      cuLinkAddData(state, CU_JIT_INPUT_CUBIN, second.data(), second.size(), nullptr, 0, nullptr, nullptr),
      CUDA_SUCCESS);
  first.assign(first.size(), '-');  // the program may use its memory for something else
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_THAT(server_.Seen([&] { return server_.images; }), IsEmpty());

  void* image = nullptr;
  size_t size = 0;
  ASSERT_EQ(cuLinkComplete(state, &image, &size), CUDA_SUCCESS);
  const std::string linked = server_.Seen([&] { return server_.linked; });
  EXPECT_EQ(std::string(static_cast<char*>(image), size), linked);
  EXPECT_STREQ(info, "all is well");
  EXPECT_STREQ(errors, "");
  EXPECT_EQ(reinterpret_cast<size_t>(values[1]), strlen("all is well") + 1);
  EXPECT_EQ(reinterpret_cast<size_t>(values[3]), 0u);
  float milliseconds = 0;
  std::memcpy(&milliseconds, &values[4], sizeof(milliseconds));
  EXPECT_EQ(milliseconds, 2.5f);
  EXPECT_EQ(reinterpret_cast<size_t>(values[5]), 96u);

  const LinkRequest asked = Asked();
  ASSERT_EQ(asked.options.size(), 3u);
  EXPECT_EQ(asked.options[2].option, uint32_t{CU_JIT_MAX_REGISTERS});
  EXPECT_EQ(asked.options[2].value, 32u);
  ASSERT_EQ(asked.inputs.size(), 2u);
  EXPECT_EQ(asked.inputs[0].name, "a.ptx");
  EXPECT_EQ(TextOf(asked.inputs[0].data), std::string(300'000, 'f'));
  ASSERT_EQ(asked.inputs[0].options.size(), 1u);
  EXPECT_EQ(asked.inputs[0].options[0].value, 2u);
  EXPECT_EQ(asked.inputs[1].type, CU_JIT_INPUT_CUBIN);
  EXPECT_EQ(TextOf(asked.inputs[1].data), "second");

  // Asked again it is the same, and nothing can be added any more.
  void* again = nullptr;
  EXPECT_EQ(cuLinkComplete(state, &again, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(again, image);
  EXPECT_EQ(Add(state, "third"), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_THAT(server_.Seen([&] { return server_.links; }), IsEmpty()) << "the server need not keep it";
  EXPECT_EQ(std::string(static_cast<char*>(image), size), linked);
  EXPECT_EQ(cuLinkDestroy(state), CUDA_SUCCESS);
  EXPECT_EQ(cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuLinkComplete(state, &image, &size), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(LinkTest, WhatTheLinkerSaysIsHandedOn) {
  server_.Seen([&] { return server_.load_answer = CUDA_ERROR_INVALID_PTX; });
  char errors[8];
  CUjit_option names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {errors, reinterpret_cast<void*>(sizeof(errors))};
  CUlinkState state = nullptr;
  ASSERT_EQ(cuLinkCreate(2, names, values, &state), CUDA_SUCCESS);
  ASSERT_EQ(Add(state, "text"), CUDA_SUCCESS);
  void* image = nullptr;
  size_t size = 0;
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuLinkComplete(state, &image, &size), CUDA_ERROR_INVALID_PTX);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("a.ptx: a sentence"));
  EXPECT_STREQ(errors, "a.ptx: ");
  EXPECT_EQ(reinterpret_cast<size_t>(values[1]), 8u);
  EXPECT_EQ(cuLinkComplete(state, &image, &size), CUDA_ERROR_INVALID_VALUE) << "nothing is left to link";
  EXPECT_EQ(cuLinkDestroy(state), CUDA_SUCCESS);
}

TEST_F(LinkTest, FilesAreReadHere) {
  const std::string path = testing::TempDir() + "/cuplex_link_test." + std::to_string(getpid());
  std::ofstream(path) << "of a file";
  CUlinkState state = Create();
  EXPECT_EQ(cuLinkAddFile_v2(state, CU_JIT_INPUT_PTX, path.c_str(), 0, nullptr, nullptr), CUDA_SUCCESS);
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuLinkAddFile(state, CU_JIT_INPUT_PTX, "/no/such/file.ptx", 0, nullptr, nullptr),
            CUDA_ERROR_FILE_NOT_FOUND);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("/no/such/file.ptx"));
  void* image = nullptr;
  EXPECT_EQ(cuLinkComplete(state, &image, nullptr), CUDA_SUCCESS);
  std::remove(path.c_str());
  const LinkRequest asked = Asked();
  ASSERT_EQ(asked.inputs.size(), 1u);
  EXPECT_EQ(asked.inputs[0].name, path);
  EXPECT_EQ(TextOf(asked.inputs[0].data), "of a file");
  EXPECT_EQ(cuLinkDestroy(state), CUDA_SUCCESS);
}

TEST_F(LinkTest, WhatCannotBeIsRefusedBeforeItTravels) {
  CUlinkState state = nullptr;
  CUjit_option names[] = {CU_JIT_GLOBAL_SYMBOL_NAMES, static_cast<CUjit_option>(CU_JIT_NUM_OPTIONS)};
  void* values[] = {names, nullptr};
  EXPECT_EQ(cuLinkCreate_v2(0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLinkCreate_v2(1, nullptr, values, &state), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLinkCreate_v2(2, names, values, &state), CUDA_ERROR_INVALID_VALUE);
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuLinkCreate_v2(1, names, values, &state), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("names symbols"));
  state = Create();
  void* image = nullptr;
  EXPECT_EQ(cuLinkComplete(state, &image, nullptr), CUDA_ERROR_INVALID_VALUE) << "of nothing";
  EXPECT_EQ(Add(state, ""), CUDA_ERROR_INVALID_VALUE);
  char one = 'x';
  EXPECT_EQ(cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, nullptr, 1, "a", 0, nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLinkAddData_v2(state, CU_JIT_NUM_INPUT_TYPES, &one, 1, "a", 0, nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, &one, kMostImageBytes + 1, "a", 0, nullptr, nullptr),
            CUDA_ERROR_OUT_OF_MEMORY)
      << "before a byte of it is read";
  EXPECT_EQ(cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, &one, ~size_t{0}, "a", 0, nullptr, nullptr),
            CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("are to be linked"));
  ASSERT_EQ(Add(state, "good"), CUDA_SUCCESS);
  EXPECT_EQ(cuLinkComplete(state, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLinkComplete(state, &image, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuLinkDestroy(state), CUDA_SUCCESS);
  for (CUlinkState wrong : {CUlinkState{}, state, reinterpret_cast<CUlinkState>(~uintptr_t{0})}) {
    EXPECT_EQ(Add(wrong, "x"), CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(cuLinkDestroy(wrong), CUDA_ERROR_INVALID_HANDLE);
  }
}

TEST_F(LinkTest, AServerThatIsGoneIsAnError) {
  CUlinkState state = Create();
  ASSERT_EQ(Add(state, "text"), CUDA_SUCCESS);
  server_.Die();
  void* image = nullptr;
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuLinkComplete(state, &image, nullptr), CUDA_ERROR_MPS_RPC_FAILURE);
  (void)testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace cuplex::client
