// For tests: PTX that is small enough to check by reading.
#pragma once

namespace cuplex::softcuda {

inline constexpr char kKernels[] = R"(
.version 7.8
.target sm_75
.address_size 64

.visible .global .align 4 .u32 counter = 5;
.visible .global .align 8 .u64 pointer_to_counter = counter;
.visible .const .align 4 .u32 scale = 3;

.visible .entry empty()
{
  ret;
}

// out[i] = in[i] + add, for i < n
.visible .entry add(
  .param .u64 out, .param .u64 in, .param .u32 add, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [in];
  ld.param.u32 %r1, [add];
  ld.param.u32 %r2, [n];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r6, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r6, %r2;
  @%p1 bra DONE;
  mul.wide.u32 %rd3, %r6, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.u32 %r7, [%rd4];
  add.s32 %r7, %r7, %r1;
  add.s64 %rd5, %rd1, %rd3;
  st.global.u32 [%rd5], %r7;
DONE:
  ret;
}

// *out = value
.visible .entry store(.param .u64 out, .param .u32 value)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  st.global.u32 [%rd1], %r1;
  ret;
}

// counter = counter * scale
.visible .entry grow()
{
  .reg .b32 %r<4>;
  ld.global.u32 %r1, [counter];
  ld.const.u32 %r2, [scale];
  mul.lo.s32 %r3, %r1, %r2;
  st.global.u32 [counter], %r3;
  ret;
}

.visible .entry small_blocks() .maxntid 64, 1, 1
{
  ret;
}

.visible .entry exact_blocks() .reqntid 32, 2, 1
{
  ret;
}

.extern .shared .align 16 .b8 dynamic[];

// out[0] = the last byte of its dynamic shared memory after writing it, bytes > 0
.visible .entry shared_end(.param .u64 out, .param .u32 bytes)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  .shared .align 4 .b8 own[1024];
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [bytes];
  mov.u32 %r2, dynamic;
  add.s32 %r3, %r2, %r1;
  st.shared.u8 [%r3+-1], %r1;
  ld.shared.u8 %r4, [%r3+-1];
  st.global.u32 [%rd1], %r4;
  ret;
}

// *out = sum of a structure {u8 a; u64 b; u16 c} and x
.visible .entry structure(.param .u64 out, .param .align 8 .b8 s[24], .param .u8 x)
{
  .reg .b16 %rs<4>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [out];
  ld.param.u8 %rs1, [s];
  ld.param.u64 %rd2, [s+8];
  ld.param.u16 %rs2, [s+16];
  ld.param.u8 %rs3, [x];
  cvt.u64.u16 %rd3, %rs1;
  cvt.u64.u16 %rd4, %rs2;
  cvt.u64.u16 %rd5, %rs3;
  add.s64 %rd6, %rd2, %rd3;
  add.s64 %rd7, %rd6, %rd4;
  add.s64 %rd8, %rd7, %rd5;
  st.global.u64 [%rd1], %rd8;
  ret;
}

.visible .entry barrier()
{
  bar.sync 0;
  ret;
}

.visible .entry trap()
{
  trap;
  ret;
}
)";

}  // namespace cuplex::softcuda
