#include <numeric>

#include "softcuda/jit/test_rig.h"

namespace cuplex::softcuda {
namespace {

class Atomic : public TestRig {
 protected:
  /// A kernel whose every thread does `code` with %rd1 = cell, %r1 = its number in the grid; %r2 = block.
  std::shared_ptr<Program> Kernel(const std::string& code) {
    return Load(R"(
.visible .entry run(.param .u64 cell)
{
  .reg .b64 %rd<8>; .reg .b32 %r<12>; .reg .f32 %f<4>; .reg .f64 %d<4>; .reg .b16 %h<4>; .reg .pred %p<4>;
  ld.param.u64 %rd1, [cell]; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r1, %r2, %r3, %r4;
)" + code + "\n  ret;\n}\n");
  }
};

TEST_F(Atomic, SumsOverManyWorkers) {
  StartWorkers(3);
  auto program = Kernel(R"(
    atom.global.add.u32 %r5, [%rd1], %r1;
    red.global.add.u64 [%rd1+8], 3;
    atom.global.add.f32 %f1, [%rd1+16], 0f3F800000;
    atom.global.add.f64 %d1, [%rd1+24], 0d3FE0000000000000;
    atom.global.max.s32 %r6, [%rd1+32], %r1;
    atom.global.min.u32 %r6, [%rd1+36], %r1;
    and.b32 %r7, %r1, 31; mov.u32 %r8, 1; shl.b32 %r8, %r8, %r7;
    red.global.or.b32 [%rd1+40], %r8;
    atom.global.inc.u32 %r9, [%rd1+44], 6;
    cvt.rn.f16.f32 %h1, 0f3F800000;
    mov.b16 %h2, 0x3c00; atom.global.add.noftz.f16 %h3, [%rd1+48], %h2;)");
  ASSERT_TRUE(program);
  constexpr uint32_t n = 64 * 128;
  auto* cell = Allocate<uint32_t>(16);
  cell[8] = static_cast<uint32_t>(-5);
  cell[9] = 77;
  Run(*program, "run", {{64, 1, 1}, {128, 1, 1}}, cell);
  EXPECT_EQ(cell[0], n / 2 * (n - 1));
  uint64_t sum;
  std::memcpy(&sum, cell + 2, 8);
  EXPECT_EQ(sum, 3u * n);
  float f;
  std::memcpy(&f, cell + 4, 4);
  EXPECT_EQ(f, static_cast<float>(n));
  double d;
  std::memcpy(&d, cell + 6, 8);
  EXPECT_EQ(d, n * 0.5);
  EXPECT_EQ(cell[8], n - 1);
  EXPECT_EQ(cell[9], 0u);
  EXPECT_EQ(cell[10], ~0u);
  EXPECT_EQ(cell[11], n % 7);
  // A half stops growing where adding one is lost: at 2048.
  EXPECT_EQ(cell[12] & 0xffff, 0x6800u);
}

TEST_F(Atomic, EveryTicketIsDrawnOnce) {
  StartWorkers(3);
  auto program = Kernel(R"(
    atom.global.add.u32 %r5, [%rd1], 1;
    mul.wide.u32 %rd2, %r5, 4; add.u64 %rd3, %rd1, %rd2;
    atom.global.add.u32 %r6, [%rd3+4], 1;)");
  ASSERT_TRUE(program);
  constexpr uint32_t n = 32 * 256;
  auto* cell = Allocate<uint32_t>(n + 1);
  Run(*program, "run", {{32, 1, 1}, {256, 1, 1}}, cell);
  EXPECT_EQ(cell[0], n);
  for (uint32_t i = 1; i <= n; ++i) ASSERT_EQ(cell[i], 1u) << i;
}

TEST_F(Atomic, CompareAndSwapLoops) {
  StartWorkers(2);
  // A product by compare and swap, as atomicMul is written.
  auto program = Kernel(R"(
    ld.global.u64 %rd2, [%rd1];
  again:
    mul.lo.u64 %rd3, %rd2, 3;
    atom.global.cas.b64 %rd4, [%rd1], %rd2, %rd3;
    setp.ne.u64 %p1, %rd4, %rd2; mov.u64 %rd2, %rd4; @%p1 bra again;)");
  ASSERT_TRUE(program);
  auto* cell = Allocate<uint64_t>(1);
  *cell = 1;
  Run(*program, "run", {{20, 1, 1}, {64, 1, 1}}, cell);
  uint64_t want = 1;
  for (int i = 0; i < 20 * 64; ++i) want *= 3;
  EXPECT_EQ(*cell, want);
}

TEST_F(Atomic, VectorsAndHalves) {
  auto program = Kernel(R"(
    .reg .b32 %s<8>;
    mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0f40000000;
    atom.global.v2.f32.add {%f2, %f3}, [%rd1], {%f0, %f1};
    st.global.v2.f32 [%rd1+32], {%f2, %f3};
    red.global.add.v4.f32 [%rd1+16], {%f0, %f1, %f0, %f1};
    mov.b32 %s0, 0x3c00c000; mov.b32 %s1, 0x7e008000;
    atom.global.min.noftz.f16x2 %s2, [%rd1+48], %s0; red.global.max.noftz.f16x2 [%rd1+52], %s1;
    red.global.min.noftz.bf16x2 [%rd1+56], %s0; red.global.add.noftz.v2.bf16x2 [%rd1+64], {%s0, %s0};
    st.global.u32 [%rd1+60], %s2;)");
  ASSERT_TRUE(program);
  auto* cell = Allocate<uint32_t>(32);
  auto put = [&](int i, float f) { std::memcpy(cell + i, &f, 4); };
  put(0, 10), put(1, 20), put(4, 1), put(5, 2), put(6, 3), put(7, 4);
  cell[12] = 0x40007c01;  // 2.0 and a NaN; with 1.0 and -2.0
  cell[13] = 0x3c000000;  // 1.0 and +0; with a NaN and -0
  cell[14] = 0x3f80bf80;  // 1.0 and -1.0; 0x3c00 and 0xc000 are 2^-7 and -2.0
  cell[16] = 0x3c004000;  // 2^-7 and 2.0, plus 2^-7 and -2.0
  cell[17] = 0;
  Run(*program, "run", {{1, 1, 1}, {1, 1, 1}}, cell);
  auto get = [&](int i) {
    float f;
    std::memcpy(&f, cell + i, 4);
    return f;
  };
  EXPECT_EQ(get(0), 11.0f);
  EXPECT_EQ(get(1), 22.0f);
  EXPECT_EQ(get(8), 10.0f);
  EXPECT_EQ(get(9), 20.0f);
  EXPECT_EQ(get(4), 2.0f);
  EXPECT_EQ(get(5), 4.0f);
  EXPECT_EQ(get(6), 4.0f);
  EXPECT_EQ(get(7), 6.0f);
  EXPECT_EQ(cell[12], 0x3c00c000u);
  EXPECT_EQ(cell[13], 0x3c000000u);
  EXPECT_EQ(cell[14], 0x3c00c000u);
  EXPECT_EQ(cell[15], 0x40007c01u);
  EXPECT_EQ(cell[16], 0x3c800000u);
  EXPECT_EQ(cell[17], 0x3c00c000u);
}

TEST_F(Atomic, HundredAndTwentyEightBits) {
  auto program = Load(R"(
.visible .entry run(.param .u64 cell)
{
  .reg .b64 %rd<8>; .reg .b128 %q<4>; .reg .b32 %r<8>; .shared .align 16 .b8 smem[64];
  ld.param.u64 %rd1, [cell];
  mov.u64 %rd2, 3; mov.u64 %rd3, 4; mov.b128 %q0, {%rd2, %rd3};
  ld.global.b128 %q1, [%rd1];
  atom.global.cas.b128 %q2, [%rd1], %q1, %q0; st.global.b128 [%rd1+16], %q2;
  atom.global.cas.b128 %q2, [%rd1], %q1, %q1;
  atom.global.exch.b128 %q3, [%rd1+32], %q0; st.global.b128 [%rd1+48], %q3;
  st.shared.b128 [smem], %q1; atom.shared.exch.b128 %q3, [smem], %q0; ld.shared.b128 %q2, [smem];
  mov.b128 {%rd4, %rd5}, %q2; st.global.v2.u64 [%rd1+64], {%rd4, %rd5}; st.global.b128 [%rd1+80], %q3;
  ret;
})");
  ASSERT_TRUE(program);
  auto* cell = Allocate<uint64_t>(16);
  for (uint64_t i = 0; i < 12; ++i) cell[i] = 100 + i;
  Run(*program, "run", {{1, 1, 1}, {1, 1, 1}}, cell);
  EXPECT_EQ(std::vector<uint64_t>(cell, cell + 12),
            (std::vector<uint64_t>{3, 4, 100, 101, 3, 4, 104, 105, 3, 4, 100, 101}));
}

TEST_F(Atomic, SharedHistogram) {
  auto program = Load(R"(
.visible .entry histogram(.param .u64 in, .param .u64 out)
{
  .shared .align 4 .u32 bins[16];
  .reg .b64 %rd<8>; .reg .b32 %r<12>; .reg .pred %p<3>;
  mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 16; shl.b32 %r2, %r1, 2; mov.u32 %r3, bins; add.u32 %r4, %r3, %r2;
  @!%p1 st.shared.u32 [%r4], 0;
  bar.sync 0;
  ld.param.u64 %rd1, [in]; mov.u32 %r5, %ctaid.x; mov.u32 %r6, %ntid.x; mad.lo.u32 %r7, %r5, %r6, %r1;
  cvt.u64.u32 %rd2, %r7; add.u64 %rd3, %rd1, %rd2; ld.global.u8 %r8, [%rd3];
  and.b32 %r8, %r8, 15; shl.b32 %r8, %r8, 2; add.u32 %r8, %r8, %r3;
  atom.shared.add.u32 %r9, [%r8], 1;
  bar.sync 0;
  @%p1 ret;
  ld.shared.u32 %r10, [%r4]; ld.param.u64 %rd4, [out]; mul.wide.u32 %rd5, %r1, 4; add.u64 %rd6, %rd4, %rd5;
  red.global.add.u32 [%rd6], %r10;
  ret;
})");
  ASSERT_TRUE(program);
  std::vector<uint8_t> in(8 * 256);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(i * i * 7 + i / 3);
  std::vector<uint32_t> want(16);
  for (uint8_t v : in) ++want[v & 15];
  auto* out = Allocate<uint32_t>(16);
  Run(*program, "histogram", {{8, 1, 1}, {256, 1, 1}}, Upload(in), out);
  EXPECT_EQ(std::vector<uint32_t>(out, out + 16), want);
}

}  // namespace
}  // namespace cuplex::softcuda
