// alloca, stacksave, stackrestore.
#include "softcuda/jit/test_rig.h"

namespace cuplex::softcuda {
namespace {

class Stack : public TestRig {};

// Sums n words that it lays down in memory of its own, in a function called in a loop.
constexpr const char* kSums = R"(
.func (.reg .b32 sum) summed (.reg .b32 n)
{
  .reg .b32 %i, %v, %at, %bytes; .reg .pred %p;
  shl.b32 %bytes, n, 2; alloca.u32 %at, %bytes, 4;
  mov.u32 %i, 0; mov.u32 sum, 0;
fill:
  st.local.u32 [%at], %i; add.u32 %at, %at, 4; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, n; @%p bra fill;
add:
  add.u32 %at, %at, -4; ld.local.u32 %v, [%at]; add.u32 sum, sum, %v; add.u32 %i, %i, -1; setp.ne.u32 %p, %i, 0; @%p bra add;
  ret;
}
.visible .entry run(.param .u64 out)
{
  .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p;
  ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd0, %rd0, %rd1;
  mov.u32 %r1, 0; mov.u32 %r2, 0; add.u32 %r3, %r0, 100;
again:
  call.uni (%r4), summed, (%r3); add.u32 %r2, %r2, %r4;
  add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, 200; @%p bra again;
  BARRIER
  st.global.u32 [%rd0], %r2; ret;
})";

TEST_F(Stack, IsGivenBackWhenAFunctionReturns) {
  for (const char* barrier : {"", "bar.sync 0;"}) {
    std::string text = kSums;
    text.replace(text.find("BARRIER"), 7, barrier);
    auto program = Load(text);
    ASSERT_TRUE(program);
    auto* out = Allocate<uint32_t>(40);
    Run(*program, "run", {{1, 1, 1}, {40, 1, 1}}, out);
    for (uint32_t t = 0; t < 40; ++t) EXPECT_EQ(out[t], 200 * ((100 + t) * (99 + t) / 2)) << t;
  }
}

TEST_F(Stack, SavesAndRestores) {
  auto program = Load(R"(
.visible .entry run(.param .u64 out)
{
  .reg .pred %p; .reg .b64 %rd<12>; .reg .b32 %r<8>; .local .align 8 .b8 frame[24];
  ld.param.u64 %rd0, [out];
  mov.u32 %r0, 7; st.local.u32 [frame], %r0;
  stacksave.u64 %rd1; alloca.u64 %rd2, 100; alloca.u64 %rd3, 8, 64; stackrestore.u64 %rd1; alloca.u64 %rd4, 100;
  sub.u64 %rd5, %rd2, %rd4; and.b64 %rd6, %rd3, 63; sub.u64 %rd7, %rd3, %rd2;
  setp.lt.u64 %p, %rd7, 100; selp.u64 %rd7, 1, 0, %p;
  mov.u32 %r1, 9; st.local.u32 [%rd4], %r1; cvta.local.u64 %rd8, %rd4; ld.u32 %r2, [%rd8]; ld.local.u32 %r3, [frame];
  st.global.v2.u64 [%rd0], {%rd5, %rd6}; st.global.u64 [%rd0+16], %rd7; st.global.v2.u32 [%rd0+24], {%r2, %r3};
  ret;
})");
  if (!program) GTEST_FAIL();
  auto* out = Allocate<uint64_t>(4);
  Run(*program, "run", {{1, 1, 1}, {1, 1, 1}}, out);
  EXPECT_EQ(out[0], 0u);
  EXPECT_EQ(out[1], 0u);
  EXPECT_EQ(out[2], 0u);
  EXPECT_EQ(out[3], 7ull << 32 | 9);
}

TEST_F(Stack, MoreThanThereIsFaults) {
  auto program = Load(R"(
.visible .entry run(.param .u64 bytes)
{
  .reg .b64 %rd<4>; .reg .b32 %r;
  ld.param.u64 %rd0, [bytes]; alloca.u64 %rd1, %rd0; add.u64 %rd2, %rd1, %rd0; mov.u32 %r, 1;
  st.local.u32 [%rd2+-4], %r;
  ret;
})");
  ASSERT_TRUE(program);
  Run(*program, "run", {{1, 1, 1}, {1, 1, 1}}, uint64_t{4096});
  EXPECT_EQ(RunToFault(*program, "run", {{1, 1, 1}, {1, 1, 1}}, uint64_t{1} << 20).kind,
            Fault::Kind::kIllegalAddress);
  EXPECT_EQ(RunToFault(*program, "run", {{1, 1, 1}, {1, 1, 1}}, uint64_t{1} << 40).kind,
            Fault::Kind::kIllegalAddress);
}

}  // namespace
}  // namespace cuplex::softcuda
