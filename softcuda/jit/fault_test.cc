#include <thread>

#include "softcuda/jit/test_rig.h"

namespace cuplex::softcuda {
namespace {

using Kind = Fault::Kind;

class Faults : public TestRig {
 protected:
  void SetUp() override {
    TestRig::SetUp();
    program_ = Load(R"(
.visible .entry poke(.param .u64 at, .param .u32 who)
{
  .reg .b64 %rd<3>; .reg .b32 %r<4>; .reg .pred %p;
  ld.param.u64 %rd1, [at]; ld.param.u32 %r1, [who]; mov.u32 %r2, %tid.x; setp.ne.u32 %p, %r1, %r2; @%p ret;
  st.global.u32 [%rd1], 5; ret;
}
.visible .entry poke_waiting(.param .u64 at, .param .u32 who)
{
  .reg .b64 %rd<3>; .reg .b32 %r<4>; .reg .pred %p;
  ld.param.u64 %rd1, [at]; ld.param.u32 %r1, [who]; bar.sync 0; mov.u32 %r2, %tid.x; setp.ne.u32 %p, %r1, %r2; @%p ret;
  ld.u32 %r3, [%rd1+8]; bar.sync 0; st.global.u32 [%rd1], %r3; ret;
}
.visible .entry poke_shared(.param .u32 at)
{
  .shared .align 4 .b8 buffer[100];
  .reg .b32 %r<3>; .reg .b64 %rd;
  ld.param.u32 %r1, [at]; mov.u32 %r2, buffer; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], 1; ret;
}
.visible .entry trap_in(.param .u32 block)
{
  .reg .b32 %r<3>; .reg .pred %p; ld.param.u32 %r1, [block]; mov.u32 %r2, %ctaid.y; setp.eq.u32 %p, %r1, %r2; @%p trap; ret;
}
.visible .entry endless(.param .u64 started)
{
  .reg .b64 %rd; ld.param.u64 %rd, [started]; st.volatile.global.u32 [%rd], 1;
again: bra again;
}
.visible .entry endless_waiting(.param .u64 started, .param .u64 never)
{
  .reg .b64 %rd<3>; .reg .b32 %r; .reg .pred %p;
  ld.param.u64 %rd1, [started]; ld.param.u64 %rd2, [never]; st.volatile.global.u32 [%rd1], 1;
again: ld.volatile.global.u32 %r, [%rd2]; setp.eq.u32 %p, %r, 0; @%p bra again; ret;
}
.visible .entry stuck()
{
  .reg .b32 %r; .reg .pred %p; mov.u32 %r, %tid.x; setp.eq.u32 %p, %r, 0; @%p bar.sync 1, 64; bar.sync 0; ret;
}
.visible .entry good(.param .u64 at) { .reg .b64 %rd; ld.param.u64 %rd, [at]; st.global.u32 [%rd], 42; ret; }
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
.global .align 1 .b8 text[5] = {110, 32, 62, 32, 0};
.visible .entry asserts()
{
  .reg .b64 %rd;
  mov.u64 %rd, text;
  { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
    st.param.b64 [a], %rd; st.param.b64 [b], %rd; st.param.b32 [c], 12; st.param.b64 [d], %rd; st.param.b64 [e], 1;
    call.uni __assertfail, (a, b, c, d, e); }
  ret;
}
)");
    ASSERT_TRUE(program_);
  }

  /// The process is alive and kernels still run.
  void ExpectAlive() {
    auto* p = Allocate<uint32_t>(1);
    Run(*program_, "good", {}, p);
    EXPECT_EQ(*p, 42u);
  }

  std::shared_ptr<Program> program_;
};

TEST_F(Faults, WildPointers) {
  static uint32_t host = 1;
  uintptr_t mapped = window_->device().base;
  for (uintptr_t at :
       {uintptr_t{0}, uintptr_t{8}, reinterpret_cast<uintptr_t>(&host), ~uintptr_t{7}, window_->all().end(),
        window_->all().base - 8, mapped + kMapped, window_->host().base, window_->aperture().end() - 8}) {
    for (const char* kernel : {"poke", "poke_waiting"}) {
      Fault f = RunToFault(*program_, kernel, {{1, 1, 1}, {8, 4, 1}}, at, 3u);
      EXPECT_EQ(f.kind, Kind::kIllegalAddress) << f.Sentence();
      EXPECT_EQ(f.kernel, kernel);
      EXPECT_EQ(f.thread[1], 0u);
      EXPECT_LE(f.thread[0], 3u);
      EXPECT_GT(f.thread[0] + f.threads, 3u) << f.Sentence();
      EXPECT_TRUE(f.address == at || f.address == at + 8) << f.Sentence();
    }
  }
  EXPECT_EQ(host, 1u);
  ExpectAlive();
}

TEST_F(Faults, MisalignedAddresses) {
  auto* p = Allocate<uint32_t>(4);
  Fault f = RunToFault(*program_, "poke", {{2, 2, 1}, {1, 1, 1}}, reinterpret_cast<uintptr_t>(p) + 2, 0u);
  EXPECT_EQ(f.kind, Kind::kMisalignedAddress);
  EXPECT_EQ(f.address, reinterpret_cast<uintptr_t>(p) + 2);
  EXPECT_NE(f.Sentence().find("misaligned"), std::string::npos);
  ExpectAlive();
}

TEST_F(Faults, SharedMemoryHasAnEnd) {
  Run(*program_, "poke_shared", {}, 96u);
  EXPECT_EQ(RunToFault(*program_, "poke_shared", {}, 112u).kind, Kind::kIllegalAddress);
  EXPECT_EQ(RunToFault(*program_, "poke_shared", {}, 0xfffffff0u).kind, Kind::kIllegalAddress);
  EXPECT_EQ(RunToFault(*program_, "poke_shared", {}, 1u).kind, Kind::kMisalignedAddress);
  ExpectAlive();
}

TEST_F(Faults, TrapsAndAssertions) {
  Fault f = RunToFault(*program_, "trap_in", {{1, 3, 1}, {1, 1, 1}}, 2u);
  EXPECT_EQ(f.kind, Kind::kTrap);
  EXPECT_EQ(f.block, (std::array<uint32_t, 3>{0, 2, 0}));
  testing::internal::CaptureStderr();
  f = RunToFault(*program_, "asserts", {});
  EXPECT_EQ(f.kind, Kind::kAssert);
  EXPECT_NE(f.detail.find("`n > `"), std::string::npos) << f.detail;
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "n > :12: n > : block: [0,0,0], thread: [0,0,0] Assertion `n > ` failed.\n");
  ExpectAlive();
}

TEST_F(Faults, ThreadsThatWaitForNobody) {
  Fault f = RunToFault(*program_, "stuck", {{1, 1, 1}, {32, 1, 1}});
  EXPECT_EQ(f.kind, Kind::kLaunchFailure);
  EXPECT_NE(f.detail.find("barrier"), std::string::npos);
  ExpectAlive();
}

TEST_F(Faults, EndlessKernelsCanBeAborted) {
  StartWorkers(2);
  auto* never = Allocate<uint32_t>(1);
  for (const char* kernel : {"endless", "endless_waiting"}) {
    auto* started = Allocate<uint32_t>(1);
    std::thread aborts([&] {
      while (!*static_cast<volatile uint32_t*>(started)) std::this_thread::yield();
      control_.Abort();
    });
    Fault f = RunToFault(*program_, kernel, {{8, 1, 1}, {32, 1, 1}}, started, never);
    aborts.join();
    EXPECT_EQ(f.kind, Kind::kAborted) << f.Sentence();
    control_.Reset();
    ExpectAlive();
  }
}

TEST_F(Faults, AbortBeforeTheStart) {
  control_.Abort();
  auto* p = Allocate<uint32_t>(1);
  EXPECT_EQ(RunToFault(*program_, "good", {}, p).kind, Kind::kAborted);
  EXPECT_EQ(*p, 0u);
  control_.Reset();
  ExpectAlive();
}

TEST_F(Faults, EndlessRecursionEndsTheKernelAlone) {
  auto program = Load(R"(
.func (.param .b32 r) deep(.param .b32 n)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [n];
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), deep, (a); ld.param.b32 %r2, [b]; }
  mad.lo.u32 %r2, %r2, 3, %r1; st.param.b32 [r], %r2; ret;
}
.visible .entry run(.param .u64 out)
{
  .reg .b64 %rd; .reg .b32 %r;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], 1; call.uni (b), deep, (a); ld.param.b32 %r, [b]; }
  ld.param.u64 %rd, [out]; st.global.u32 [%rd], %r; ret;
})");
  ASSERT_TRUE(program);
  auto* out = Allocate<uint32_t>(1);
  Fault f = RunToFault(*program, "run", {}, out);
  EXPECT_TRUE(f.kind == Kind::kIllegalAddress || f.kind == Kind::kLaunchFailure) << f.Sentence();
  ExpectAlive();
}

TEST_F(Faults, DeepRecursionWithLargeFramesEndsTheKernelAlone) {
  // Parameters of 20 KB lie on the stack of the host, several of its pages at once.
  auto program = Load(R"(
.func (.param .b32 r) deep(.param .b32 n, .param .align 8 .b8 much[20000])
{
  .reg .b32 %r<3>; .reg .pred %p;
  ld.param.b32 %r1, [n]; setp.eq.u32 %p, %r1, 0; @%p bra done;
  sub.u32 %r2, %r1, 1;
  { .param .b32 a; .param .align 8 .b8 c[20000]; .param .b32 b; st.param.b32 [a], %r2; st.param.b32 [c+16], %r1;
    call.uni (b), deep, (a, c); ld.param.b32 %r2, [b]; }
  add.u32 %r1, %r1, %r2;
done: st.param.b32 [r], %r1; ret;
}
.visible .entry run(.param .u64 out, .param .u32 depth)
{
  .reg .b64 %rd; .reg .b32 %r<2>;
  ld.param.u32 %r1, [depth];
  { .param .b32 a; .param .align 8 .b8 c[20000]; .param .b32 b; st.param.b32 [a], %r1; st.param.b32 [c], %r1;
    call.uni (b), deep, (a, c); ld.param.b32 %r0, [b]; }
  ld.param.u64 %rd, [out]; st.global.u32 [%rd], %r0; ret;
})");
  ASSERT_TRUE(program);
  auto* out = Allocate<uint32_t>(1);
  Run(*program, "run", {}, out, 20u);
  EXPECT_EQ(*out, 210u);
  Fault f = RunToFault(*program, "run", {}, out, 100000u);
  EXPECT_EQ(f.kind, Kind::kIllegalAddress) << f.Sentence();
  EXPECT_EQ(f.kernel, "run");
  EXPECT_NE(f.detail.find("nested too deep"), std::string::npos) << f.Sentence();
  ExpectAlive();
}

TEST_F(Faults, LaunchesThatCannotBe) {
  auto refused = [&](Shape shape) {
    auto outcome = TryRun(*program_, "good", shape, uint64_t{0});
    EXPECT_FALSE(outcome.ok());
    return outcome.ok() ? std::string() : outcome.error().sentence;
  };
  EXPECT_NE(refused({{1, 1, 1}, {1025, 1, 1}}).find("1025"), std::string::npos);
  EXPECT_NE(refused({{1, 65536, 1}, {1, 1, 1}}).find("65536"), std::string::npos);
  EXPECT_NE(refused({{0, 1, 1}, {1, 1, 1}}).find("0x1x1"), std::string::npos);
  EXPECT_NE(refused({{1, 1, 1}, {1, 1, 1}, kMaxShared + 1}).find("shared"), std::string::npos);
  auto outcome = TryRun(*program_, "good", {});
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.error().sentence.find("8 expected"), std::string::npos);
}

}  // namespace
}  // namespace cuplex::softcuda
