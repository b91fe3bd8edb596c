#include "softcuda/jit/test_rig.h"

namespace cuplex::softcuda {
namespace {

class Plain : public TestRig {};

TEST_F(Plain, VectorRegisters) {
  auto program = Load(R"(
.func (.reg .v2 .u32 result) swap(.reg .v2 .u32 given, .reg .u32 more)
{
  .reg .v2 .u32 t;
  mov.v2.u32 t, given;
  add.u32 t.x, t.x, more;
  mov.v2.u32 result, {t.y, t.x};
  ret;
}
.visible .entry parts(.param .u64 out)
{
  .reg .b64 %rd<3>; .reg .v2 .u32 pair<2>; .reg .v4 .u32 four; .reg .u32 c;
  ld.param.u64 %rd1, [out];
  ld.global.v4.u32 four, [%rd1];
  mov.v4.u32 four, {four.w, four.x, four.y, four.z};
  st.global.v4.u32 [%rd1+16], four;
  mov.u32 pair0.x, four.x;
  mov.u32 pair0.y, 7;
  mov.u32 c, 100;
  call (pair1), swap, (pair0, c);
  mov.b64 %rd2, pair1;
  st.global.u64 [%rd1+32], %rd2;
  ret;
})");
  ASSERT_TRUE(program);
  uint32_t* memory = Upload<uint32_t>({1, 2, 3, 4, 0, 0, 0, 0, 0, 0});
  Run(*program, "parts", {}, memory);
  const std::vector<uint32_t> expected = {1, 2, 3, 4, 4, 1, 2, 3, 7, 104};
  EXPECT_EQ(std::vector<uint32_t>(memory, memory + 10), expected);
}

TEST_F(Plain, AGuardedVectorMoveMovesAllOrNothing) {
  auto program = Load(R"(
.visible .entry guarded(.param .u64 out)
{
  .reg .b64 %rd<4>; .reg .b32 %r<5>; .reg .pred %p;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x; setp.eq.u32 %p, %r1, 1;
  mov.u32 %r2, 20; mov.u32 %r3, 30;
  @%p mov.v2.b32 {%r2, %r3}, {%r3, %r2};
  mul.wide.u32 %rd2, %r1, 8; add.u64 %rd3, %rd1, %rd2;
  st.global.v2.u32 [%rd3], {%r2, %r3};
  ret;
})");
  ASSERT_TRUE(program);
  uint32_t* out = Allocate<uint32_t>(4);
  Run(*program, "guarded", {{1, 1, 1}, {2, 1, 1}}, out);
  EXPECT_EQ(std::vector<uint32_t>(out, out + 4), (std::vector<uint32_t>{20, 30, 30, 20}));
}

TEST_F(Plain, APartThatAVectorDoesNotHaveIsRefused) {
  auto program = TryCompile(R"(
.visible .entry wrong()
{
  .reg .v2 .u32 pair;
  mov.u32 pair.z, 1;
  ret;
})");
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().sentence,
            "line 8: `mov.u32` takes a part of a vector register that has 2 of them");
}

TEST_F(Plain, VariablesOfFunctionsInGlobalMemory) {
  auto program = Load(R"(
.visible .entry counts(.param .u64 out)
{
  .global .u32 count = 40;
  .const .u32 steps[2] = {1, 2};
  .reg .b64 %rd<3>; .reg .b32 %r<4>;
  ld.param.u64 %rd1, [out];
  ld.const.u32 %r1, [steps+4];
  atom.global.add.u32 %r2, [count], %r1;
  st.global.u32 [%rd1], %r2;
  ret;
}
.visible .entry other(.param .u64 out)
{
  .global .u32 count;
  .reg .b64 %rd<3>; .reg .b32 %r<4>;
  ld.param.u64 %rd1, [out];
  ld.global.u32 %r1, [count];
  st.global.u32 [%rd1], %r1;
  ret;
})");
  ASSERT_TRUE(program);
  uint32_t* out = Allocate<uint32_t>(3);
  Run(*program, "counts", {}, out);
  Run(*program, "counts", {}, out + 1);
  Run(*program, "other", {}, out + 2);
  EXPECT_EQ(std::vector<uint32_t>(out, out + 3), (std::vector<uint32_t>{40, 42, 0}));
}

}  // namespace
}  // namespace cuplex::softcuda
