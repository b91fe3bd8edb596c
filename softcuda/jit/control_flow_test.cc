#include "softcuda/jit/test_rig.h"

namespace cuplex::softcuda {
namespace {

class ControlFlow : public TestRig {};

TEST_F(ControlFlow, LoopsBranchesAndTables) {
  auto program = Load(R"(
.visible .entry collatz(.param .u64 out)
{
  .reg .b64 %rd<4>; .reg .b32 %r<8>; .reg .pred %p<4>;
  mov.u32 %r1, %tid.x; add.u32 %r2, %r1, 1; mov.u32 %r3, 0;
again:
  setp.eq.u32 %p1, %r2, 1; @%p1 bra end;
  and.b32 %r4, %r2, 1;
  targets: .branchtargets even, odd;
  brx.idx %r4, targets;
even:
  shr.u32 %r2, %r2, 1; bra.uni next;
odd:
  mad.lo.u32 %r2, %r2, 3, 1;
next:
  add.u32 %r3, %r3, 1; bra again;
end:
  ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r3;
  exit;
})");
  ASSERT_TRUE(program);
  uint32_t* out = Allocate<uint32_t>(100);
  Run(*program, "collatz", {{1, 1, 1}, {100, 1, 1}}, out);
  for (uint32_t t = 0; t < 100; ++t) {
    uint32_t steps = 0;
    for (uint64_t v = t + 1; v != 1; v = v & 1 ? 3 * v + 1 : v / 2) ++steps;
    EXPECT_EQ(out[t], steps) << t;
  }
}

constexpr const char* kFunctions = R"(
.func (.param .b32 result) fibonacci(.param .b32 n)
{
  .reg .b32 %r<6>; .reg .pred %p;
  ld.param.u32 %r1, [n];
  setp.lt.u32 %p, %r1, 2;
  @%p bra small;
  sub.u32 %r2, %r1, 1;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call.uni (b), fibonacci, (a); ld.param.b32 %r3, [b]; }
  sub.u32 %r2, %r1, 2;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call.uni (b), fibonacci, (a); ld.param.b32 %r4, [b]; }
  add.u32 %r5, %r3, %r4; st.param.b32 [result], %r5; ret;
small:
  st.param.b32 [result], %r1; ret;
}
.func (.reg .u32 out) square(.reg .u32 in) { mul.lo.u32 out, in, in; ret; }
.func (.reg .u32 out) cube(.reg .u32 in) { .reg .u32 s; mul.lo.u32 s, in, in; mul.lo.u32 out, s, in; ret; }
.global .align 8 .u64 table[2] = {square, cube};
.func (.param .b32 sum) total(.param .align 4 .b8 triple[12])
{
  .local .align 4 .b8 copy[12]; .reg .b32 %r<5>;
  ld.param.u32 %r1, [triple]; ld.param.u32 %r2, [triple+4]; ld.param.u32 %r3, [triple+8];
  st.local.u32 [copy], %r1; st.local.u32 [copy+4], %r2; st.local.u32 [copy+8], %r3;
  ld.local.u32 %r1, [copy+8]; add.u32 %r4, %r1, %r2; ld.local.u32 %r1, [copy]; add.u32 %r4, %r4, %r1;
  st.param.b32 [sum], %r4; ret;
}
.visible .entry run(.param .u64 out)
{
  .reg .b64 %rd<8>; .reg .b32 %r<8>;
  .local .align 4 .b8 mine[16];
  mov.u32 %r1, %tid.x; st.local.u32 [mine+12], %r1;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), fibonacci, (a); ld.param.b32 %r2, [b]; }
  and.b32 %r3, %r1, 1; mul.wide.u32 %rd1, %r3, 8; mov.u64 %rd2, table; add.u64 %rd3, %rd2, %rd1; ld.global.u64 %rd4, [%rd3];
  proto: .callprototype (.reg .u32 _) _ (.reg .u32 _);
  call (%r4), %rd4, (%r1), proto;
  { .param .align 4 .b8 t[12]; .param .b32 s;
    st.param.b32 [t], %r1; st.param.b32 [t+4], 10; st.param.b32 [t+8], %r1;
    call.uni (s), total, (t); ld.param.b32 %r5, [s]; }
  ld.local.u32 %r6, [mine+12];
  ld.param.u64 %rd5, [out]; mul.wide.u32 %rd6, %r1, 16; add.u64 %rd7, %rd5, %rd6;
  st.global.v4.u32 [%rd7], {%r2, %r4, %r5, %r6};
  ret;
})";

TEST_F(ControlFlow, CallsRecursionAndPointers) {
  auto program = Load(kFunctions);
  ASSERT_TRUE(program);
  uint32_t* out = Allocate<uint32_t>(4 * 20);
  Run(*program, "run", {{1, 1, 1}, {20, 1, 1}}, out);
  uint32_t a = 0, b = 1;
  for (uint32_t t = 0; t < 20; ++t) {
    EXPECT_EQ(out[4 * t], a);
    EXPECT_EQ(out[4 * t + 1], t & 1 ? t * t * t : t * t);
    EXPECT_EQ(out[4 * t + 2], 2 * t + 10);
    EXPECT_EQ(out[4 * t + 3], t);
    b = std::exchange(a, b) + b;
  }
}

TEST_F(ControlFlow, FunctionsThatWaitAreInlined) {
  auto program = Load(R"(
.shared .align 4 .u32 box[64];
.func (.param .b32 got) swap(.param .b32 given)
{
  .reg .b32 %r<8>;
  mov.u32 %r1, %tid.x; ld.param.b32 %r2, [given];
  shl.b32 %r3, %r1, 2; mov.u32 %r4, box; add.u32 %r5, %r4, %r3; st.shared.u32 [%r5], %r2;
  bar.sync 0;
  xor.b32 %r6, %r3, 4; add.u32 %r6, %r6, %r4; ld.shared.u32 %r7, [%r6];
  bar.sync 0;
  st.param.b32 [got], %r7; ret;
}
.visible .entry twice(.param .u64 out)
{
  .reg .b64 %rd<4>; .reg .b32 %r<8>;
  mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, 7; add.u32 %r6, %r1, 1000;
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call.uni (b), swap, (a); ld.param.b32 %r3, [b]; }
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r6; call.uni (b), swap, (a); ld.param.b32 %r4, [b]; }
  mad.lo.u32 %r5, %r4, 1000, %r3; add.u32 %r5, %r5, %r2;
  ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r5;
  ret;
})");
  ASSERT_TRUE(program);
  EXPECT_TRUE(program->kernels()[0].waits);
  uint32_t* out = Allocate<uint32_t>(64);
  Run(*program, "twice", {{1, 1, 1}, {64, 1, 1}}, out);
  for (uint32_t t = 0; t < 64; ++t) EXPECT_EQ(out[t], ((t ^ 1) + 1000) * 1000 + (t ^ 1) * 7 + t * 7) << t;
}

TEST_F(ControlFlow, ExitInsideAFunctionEndsTheThread) {
  auto program = Load(R"(
.func leave(.param .b32 x) { .reg .b32 %r; .reg .pred %p; ld.param.b32 %r, [x]; setp.gt.u32 %p, %r, 3; @%p exit; ret; }
.visible .entry run(.param .u64 out)
{
  .reg .b64 %rd<4>; .reg .b32 %r<3>;
  mov.u32 %r1, %tid.x;
  { .param .b32 a; st.param.b32 [a], %r1; call.uni leave, (a); }
  ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], 1;
  ret;
})");
  ASSERT_TRUE(program);
  uint32_t* out = Allocate<uint32_t>(8);
  Run(*program, "run", {{1, 1, 1}, {8, 1, 1}}, out);
  for (uint32_t t = 0; t < 8; ++t) EXPECT_EQ(out[t], t > 3 ? 0u : 1u);
}

TEST_F(ControlFlow, PrintfFormatsWhatItIsGiven) {
  auto program = Load(R"(
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .align 1 .b8 fmt[36] = {37,100,32,37,53,46,50,102,32,37,115,32,37,108,108,120,32,37,37,32,37,45,52,117,124,32,37,99,10,0};
.global .align 1 .b8 word[4] = {97,98,99,0};
.visible .entry say(.param .u64 out)
{
  .local .align 8 .b8 pack[48]; .reg .b64 %rd<6>; .reg .b32 %r<3>; .reg .f64 %d;
  mov.u32 %r1, -5; st.local.u32 [pack], %r1;
  mov.f64 %d, 0d400921FB54442D18; st.local.f64 [pack+8], %d;
  mov.u64 %rd1, word; cvta.global.u64 %rd2, %rd1; st.local.u64 [pack+16], %rd2;
  mov.u64 %rd3, 0xabcdef0123; st.local.u64 [pack+24], %rd3;
  mov.u32 %r1, 7; st.local.u32 [pack+32], %r1; mov.u32 %r1, 122; st.local.u32 [pack+36], %r1;
  mov.u64 %rd4, pack; cvta.local.u64 %rd4, %rd4; mov.u64 %rd5, fmt;
  { .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %rd5; st.param.b64 [b], %rd4;
    call.uni (c), vprintf, (a, b); ld.param.b32 %r2, [c]; }
  ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], %r2;
  ret;
})");
  ASSERT_TRUE(program);
  uint32_t* out = Allocate<uint32_t>(1);
  testing::internal::CaptureStdout();
  Run(*program, "say", {}, out);
  fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "-5  3.14 abc abcdef0123 % 7   | z\n");
  EXPECT_EQ(out[0], 6u);
}

TEST_F(ControlFlow, RefusesByNameAndLine) {
  auto refused = [&](const std::string& body) {
    auto program = TryCompile(body);
    EXPECT_FALSE(program.ok());
    return program.ok() ? std::string() : program.error().sentence;
  };
  std::string texture = refused(R"(.visible .entry k() {
  .reg .f32 %f<5>; .reg .b32 %r<3>; .reg .b64 %t;
  tex.2dms.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%t, {%r0, %r0, %r1, %r1}];
  ret; })");
  EXPECT_NE(texture.find("tex.2dms.v4.f32.s32"), std::string::npos) << texture;
  EXPECT_NE(texture.find("line 6"), std::string::npos) << texture;
  std::string extern_call = refused(R"(.extern .func (.param .b64 r) borrow (.param .b64 n);
.visible .entry k() { .reg .b64 %rd;
  { .param .b64 a; .param .b64 b; st.param.b64 [a], %rd; call.uni (b), borrow, (a); } ret; })");
  EXPECT_NE(extern_call.find("borrow"), std::string::npos) << extern_call;
  std::string modifier =
      refused(".visible .entry k() { .reg .f32 %f<3>; tanh.approx.relu.f32 %f0, %f1; ret; }");
  EXPECT_NE(modifier.find("relu"), std::string::npos) << modifier;
  std::string recursion =
      refused(".func f() { bar.sync 0; call.uni f; ret; } .visible .entry k() { call.uni f; ret; }");
  EXPECT_NE(recursion.find("calls itself"), std::string::npos) << recursion;
}

}  // namespace
}  // namespace cuplex::softcuda
