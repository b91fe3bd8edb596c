// What compiled programs call without defining it: vprintf, __assertfail, malloc and free. Whose output it
// is, and when it appears.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <set>
#include <thread>

#include "tests/conformance/driver_under_test.h"

namespace cuplex::conformance {
namespace {

// say: thread i of block b prints "b.i x=i*0.5 c=A+i s=text 64-bit\n" in turn, which the test sees to by
// launching one thread at a time.
constexpr char kPtx[] = R"(.version 7.0
.target sm_50
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
.extern .func (.param .b64 r) malloc (.param .b64 n);
.extern .func free (.param .b64 p);
.global .align 1 .b8 form[45] = {37, 100, 32, 37, 43, 46, 50, 102, 32, 37, 99, 32, 37, 115, 32, 37, 108, 108, 100, 32, 37, 48, 56, 120,
  32, 37, 45, 53, 117, 124, 32, 37, 103, 32, 37, 101, 32, 37, 37, 32, 37, 53, 115, 10, 0};
.global .align 1 .b8 word[5] = {119, 97, 114, 112, 0};
.global .align 1 .b8 what[8] = {120, 32, 61, 61, 32, 52, 50, 0};
.global .align 1 .b8 file[9] = {107, 101, 114, 110, 46, 99, 117, 0, 0};
.global .align 1 .b8 func[14] = {118, 111, 105, 100, 32, 99, 104, 101, 99, 107, 40, 41, 0, 0};

.visible .entry say(.param .u32 number)
{
  .local .align 8 .b8 room[80];
  .reg .b64 %rd<8>; .reg .b32 %r<8>; .reg .f64 %d<4>;
  mov.u64 %rd1, room; cvta.local.u64 %rd2, %rd1;
  ld.param.u32 %r1, [number];
  st.local.u32 [%rd1], %r1;
  cvt.rn.f64.s32 %d1, %r1; mul.f64 %d2, %d1, 0d3FE0000000000000; st.local.f64 [%rd1+8], %d2;
  add.u32 %r2, %r1, 65; st.local.u32 [%rd1+16], %r2;
  mov.u64 %rd3, word; cvta.global.u64 %rd3, %rd3; st.local.u64 [%rd1+24], %rd3;
  mov.u64 %rd4, -1234567890123; st.local.u64 [%rd1+32], %rd4;
  mov.u32 %r3, 0xbeef; st.local.u32 [%rd1+40], %r3;
  mov.u32 %r4, 7; st.local.u32 [%rd1+44], %r4;
  mov.f64 %d3, 0d3FC0000000000000; st.local.f64 [%rd1+48], %d3; st.local.f64 [%rd1+56], %d3;
  st.local.u64 [%rd1+64], %rd3;
  mov.u64 %rd5, form; cvta.global.u64 %rd5, %rd5;
  { .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %rd5; st.param.b64 [a], %rd2;
    call.uni (r), vprintf, (f, a); ld.param.b32 %r5, [r]; }
  ret;
}
.visible .entry check(.param .u32 value)
{
  .reg .b64 %rd<4>; .reg .b32 %r; .reg .pred %p;
  ld.param.u32 %r, [value]; setp.eq.u32 %p, %r, 42; @%p ret;
  mov.u32 %r, %tid.x; setp.ne.u32 %p, %r, 3; @%p ret;
  mov.u64 %rd1, what; cvta.global.u64 %rd1, %rd1; mov.u64 %rd2, file; cvta.global.u64 %rd2, %rd2;
  mov.u64 %rd3, func; cvta.global.u64 %rd3, %rd3;
  { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
    st.param.b64 [a], %rd1; st.param.b64 [b], %rd2; st.param.b32 [c], 77; st.param.b64 [d], %rd3; st.param.b64 [e], 1;
    call.uni __assertfail, (a, b, c, d, e); }
  ret;
}
.visible .entry take(.param .u64 at, .param .u64 bytes)
{
  .reg .b64 %rd<6>; .reg .b32 %r<5>; .reg .pred %p;
  ld.param.u64 %rd1, [at]; ld.param.u64 %rd2, [bytes];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r1, %r2, %r3, %r1;
  { .param .b64 a; .param .b64 b; st.param.b64 [a], %rd2; call.uni (b), malloc, (a); ld.param.b64 %rd3, [b]; }
  mul.wide.u32 %rd4, %r1, 8; add.u64 %rd1, %rd1, %rd4; st.global.u64 [%rd1], %rd3;
  setp.eq.u64 %p, %rd3, 0; @%p ret; st.u32 [%rd3], %r1; ret;
}
.visible .entry look(.param .u64 at, .param .u64 out)
{
  .reg .b64 %rd<6>; .reg .b32 %r<5>; .reg .pred %p;
  ld.param.u64 %rd1, [at]; ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r1, %r2, %r3, %r1;
  mul.wide.u32 %rd4, %r1, 8; add.u64 %rd1, %rd1, %rd4; ld.global.u64 %rd3, [%rd1];
  mov.u32 %r4, 0xffffffff; setp.eq.u64 %p, %rd3, 0; @!%p ld.u32 %r4, [%rd3];
  mul.wide.u32 %rd4, %r1, 4; add.u64 %rd2, %rd2, %rd4; st.global.u32 [%rd2], %r4;
  { .param .b64 a; st.param.b64 [a], %rd3; call.uni free, (a); } ret;
}
)";

std::string Line(int i) {
  // By the C library: the conversions are C's.
  char text[256];
  std::snprintf(text, sizeof(text), "%d %+.2f %c %s %lld %08x %-5u| %g %e %% %5s\n", i, i * 0.5, 'A' + i,
                "warp", -1234567890123LL, 0xbeefu, 7u, 0.125, 0.125, "warp");
  return text;
}

class DeviceFunctions : public Body {
 protected:
  void SetUp() override {
    Body::SetUp();
    MUST(Cu().cuModuleLoadData(&module_, kPtx));
  }
  CUfunction Function(const char* name) {
    CUfunction function = nullptr;
    MUST(Cu().cuModuleGetFunction(&function, module_, name));
    return function;
  }
  CUmodule module_ = nullptr;
};

class Output {
 public:
  Output() {
    std::fflush(stdout);
    testing::internal::CaptureStdout();
  }
  std::string Text() {
    std::fflush(stdout);
    return testing::internal::GetCapturedStdout();
  }
};

TEST_F(DeviceFunctions, KernelsPrintWhereTheProgramWaits) {
  CUfunction say = Function("say");
  Output output;
  std::printf("before\n");
  for (int i = 0; i < 3; ++i) MUST(Launch(say, 1, 1, nullptr, static_cast<uint32_t>(i)));
  std::printf("between\n");
  MUST(Cu().cuCtxSynchronize());
  std::printf("after\n");
  EXPECT_EQ(output.Text(), "before\nbetween\n" + Line(0) + Line(1) + Line(2) + "after\n");
}

TEST_F(DeviceFunctions, EveryWayToWaitShowsIt) {
  CUfunction say = Function("say");
  DeviceMemory memory(1 << 20);
  Stream stream;
  Event event;
  std::vector<uint8_t> host(1 << 20);
  const std::function<void()> ways[] = {
      [&] { MUST(Cu().cuStreamSynchronize(stream)); },
      [&] {
        MUST(Cu().cuEventRecord(event, stream));
        MUST(Cu().cuEventSynchronize(event));
      },
      [&] { MUST(Cu().cuMemcpyDtoH_v2(host.data(), memory.at, host.size())); },
  };
  for (const auto& wait : ways) {
    Output output;
    MUST(Launch(say, 1, 1, stream, 5u));
    wait();
    EXPECT_EQ(output.Text(), Line(5));
  }
}

TEST_F(DeviceFunctions, MuchTextComesWhole) {
  CUfunction say = Function("say");
  Output output;
  std::string expected;
  for (int i = 0; i < 400; ++i) {
    MUST(Launch(say, 1, 1, nullptr, static_cast<uint32_t>(i % 20)));
    expected += Line(i % 20);
  }
  MUST(Cu().cuCtxSynchronize());
  EXPECT_EQ(output.Text(), expected);
}

TEST_F(DeviceFunctions, TextBeyondTheBufferPushesOutTheOldest) {
  ONLY_OURS();
  size_t bytes = 0;
  MUST(Cu().cuCtxGetLimit(&bytes, CU_LIMIT_PRINTF_FIFO_SIZE));
  EXPECT_EQ(bytes, size_t{1} << 20);
  const size_t room = 5 * Line(1).size();
  MUST(Cu().cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, room));
  MUST(Cu().cuCtxGetLimit(&bytes, CU_LIMIT_PRINTF_FIFO_SIZE));
  EXPECT_EQ(bytes, room);
  CUfunction say = Function("say");
  Output output;
  // All of one length; eight threads of one grid, which say the same.
  MUST(Launch(say, 8, 1, nullptr, 1u));
  MUST(Cu().cuCtxSynchronize());
  std::string expected;
  for (int i = 0; i < 5; ++i) expected += Line(1);
  EXPECT_EQ(output.Text(), expected);
}

TEST_F(DeviceFunctions, AContextThatEndsShowsWhatItsKernelsSaid) {
  ONLY_OURS();
  CUcontext other = nullptr;
  MUST(Cu().cuCtxCreate_v2(&other, 0, 0));
  CUmodule module = nullptr;
  CUfunction say = nullptr;
  MUST(Cu().cuModuleLoadData(&module, kPtx));
  MUST(Cu().cuModuleGetFunction(&say, module, "say"));
  Output output;
  MUST(Launch(say, 1, 1, nullptr, 9u));
  // Looking does not wait, so it shows nothing.
  while (Cu().cuStreamQuery(nullptr) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
  MUST(Cu().cuCtxDestroy_v2(other));
  EXPECT_EQ(output.Text(), Line(9));
}

TEST_F(DeviceFunctions, TheHeapIsSharedByKernelsAndHasAnEnd) {
  constexpr unsigned kThreads = 256;
  size_t limit = 0;
  MUST(Cu().cuCtxGetLimit(&limit, CU_LIMIT_MALLOC_HEAP_SIZE));
  EXPECT_EQ(limit, size_t{8} << 20);
  MUST(Cu().cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, size_t{16} << 20));
  MUST(Cu().cuCtxGetLimit(&limit, CU_LIMIT_MALLOC_HEAP_SIZE));
  EXPECT_EQ(limit, size_t{16} << 20);
  DeviceMemory at(kThreads * 8), out(kThreads * 4);
  CUfunction take = Function("take"), look = Function("look");
  for (int round = 0; round < 2; ++round) {  // what is given back is there again
    MUST(Launch(take, 8, kThreads / 8, nullptr, at.at, uint64_t{1000}));
    const auto pointers = Read<uint64_t>(at.at, kThreads);
    EXPECT_EQ(std::set<uint64_t>(pointers.begin(), pointers.end()).size(), kThreads);
    EXPECT_THAT(pointers, testing::Each(testing::Ne(0u)));
    MUST(Launch(look, 8, kThreads / 8, nullptr, at.at, out.at));
    const auto seen = Read<uint32_t>(out.at, kThreads);
    for (unsigned i = 0; i < kThreads; ++i) EXPECT_EQ(seen[i], i);
  }
  // A quarter of the threads at most can have a sixty-fourth each.
  MUST(Launch(take, 8, kThreads / 8, nullptr, at.at, uint64_t{limit / 64}));
  auto pointers = Read<uint64_t>(at.at, kThreads);
  const auto given = std::count_if(pointers.begin(), pointers.end(), [](uint64_t p) { return p != 0; });
  EXPECT_GT(given, 32);
  EXPECT_LE(given, 64);
  MUST(Launch(look, 8, kThreads / 8, nullptr, at.at, out.at));
  MUST(Cu().cuCtxSynchronize());
  EXPECT_EQ(Cu().cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, size_t{8} << 20), CUDA_ERROR_INVALID_VALUE)
      << "it is in use";
}

TEST(DeviceFunctionsThatFail, AnAssertionSaysWhereAndEndsTheContext) {
  ONLY_OURS();
  CUcontext context = nullptr;
  MUST(Cu().cuCtxCreate_v2(&context, 0, 0));
  CUmodule module = nullptr;
  CUfunction check = nullptr;
  MUST(Cu().cuModuleLoadData(&module, kPtx));
  MUST(Cu().cuModuleGetFunction(&check, module, "check"));
  uint32_t value = 42;
  void* parameters[] = {&value};
  MUST(Cu().cuLaunchKernel(check, 1, 1, 1, 8, 1, 1, 0, nullptr, parameters, nullptr));
  MUST(Cu().cuCtxSynchronize());
  value = 41;
  testing::internal::CaptureStderr();
  MUST(Cu().cuLaunchKernel(check, 1, 1, 1, 8, 1, 1, 0, nullptr, parameters, nullptr));
  EXPECT_EQ(Cu().cuCtxSynchronize(), CUDA_ERROR_ASSERT);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr(
                  "kern.cu:77: void check(): block: [0,0,0], thread: [3,0,0] Assertion `x == 42` failed.\n"));
  CUdeviceptr at = 0;
  EXPECT_EQ(Cu().cuMemAlloc_v2(&at, 64), CUDA_ERROR_ASSERT) << "it stays";
  (void)Cu().cuCtxDestroy_v2(context);
}

}  // namespace
}  // namespace cuplex::conformance
