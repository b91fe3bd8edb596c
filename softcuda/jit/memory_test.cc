#include "softcuda/jit/test_rig.h"

namespace cuplex::softcuda {
namespace {

class Memory : public TestRig {};

constexpr const char* kVectorAdd = R"(
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
  .reg .pred %p<2>; .reg .f32 %f<4>; .reg .b32 %r<6>; .reg .b64 %rd<11>;
  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u32 %r2, [n];
  mov.u32 %r3, %ntid.x; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %tid.x;
  mad.lo.s32 %r1, %r4, %r3, %r5;
  setp.ge.s32 %p1, %r1, %r2;
  @%p1 bra $done;
  cvta.to.global.u64 %rd4, %rd1;
  mul.wide.s32 %rd5, %r1, 4;
  add.s64 %rd6, %rd4, %rd5;
  cvta.to.global.u64 %rd7, %rd2; add.s64 %rd8, %rd7, %rd5;
  ld.global.f32 %f1, [%rd8]; ld.global.f32 %f2, [%rd6];
  add.f32 %f3, %f2, %f1;
  cvta.to.global.u64 %rd9, %rd3; add.s64 %rd10, %rd9, %rd5;
  st.global.f32 [%rd10], %f3;
$done:
  ret;
}
)";

TEST_F(Memory, VectorAdd) {
  auto program = Load(kVectorAdd);
  ASSERT_TRUE(program);
  constexpr int n = 1000;
  std::vector<float> a(n), b(n);
  for (int i = 0; i < n; ++i) a[i] = 0.5f * i, b[i] = 1000.0f - i;
  float* c = Allocate<float>(n + 24);
  Run(*program, "add", {{4, 1, 1}, {256, 1, 1}}, Upload(a), Upload(b), c, n);
  for (int i = 0; i < n; ++i) ASSERT_EQ(c[i], a[i] + b[i]) << i;
  for (int i = n; i < n + 24; ++i) ASSERT_EQ(c[i], 0) << i;
}

}  // namespace
}  // namespace cuplex::softcuda
