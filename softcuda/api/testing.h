// For tests of the exported calls: a fixture with a context, and comparing codes by name.
#pragma once

#include <atomic>
#include <ostream>

#include <gtest/gtest.h>

#include "cuda/driver_api.h"
#include "cuda/errors.h"

namespace cuplex::softcuda {

struct Code {
  CUresult value;
  bool operator==(const Code&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, Code code) {
  const char* name = CuErrorName(code.value);
  return out << (name ? name : "no code");
}

#define EXPECT_CODE(call, code) \
  EXPECT_EQ(::cuplex::softcuda::Code{call}, ::cuplex::softcuda::Code{code}) << #call
#define EXPECT_CU(call) EXPECT_CODE(call, CUDA_SUCCESS)
#define ASSERT_CU(call) \
  ASSERT_EQ(::cuplex::softcuda::Code{call}, ::cuplex::softcuda::Code{CUDA_SUCCESS}) << #call

/// A context of device 0 is current.
class ContextTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_CU(cuInit(0));
    ASSERT_CU(cuCtxCreate_v4(&context, nullptr, 0, 0));
  }
  void TearDown() override { EXPECT_CU(cuCtxDestroy_v2(context)); }

  size_t FreeBytes() {
    size_t free = 0;
    EXPECT_CU(cuMemGetInfo_v2(&free, nullptr));
    return free;
  }

  CUcontext context = nullptr;
};

/// A host function that holds its stream until it is let go. The stream must come to it before the gate goes
/// out of scope.
class Gate {
 public:
  ~Gate() {
    Open();
    for (int inside; (inside = inside_.load());) inside_.wait(inside);
  }
  void Hold(CUstream stream) {
    ++inside_;
    EXPECT_CU(cuLaunchHostFunc(
        stream,
        [](void* data) {
          auto* gate = static_cast<Gate*>(data);
          gate->open_.wait(false);
          --gate->inside_;
          gate->inside_.notify_all();
        },
        this));
  }
  void Open() {
    open_ = true;
    open_.notify_all();
  }

 private:
  std::atomic<bool> open_ = false;
  std::atomic<int> inside_ = 0;
};

}  // namespace cuplex::softcuda
