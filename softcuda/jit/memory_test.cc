#include <algorithm>

#include "softcuda/jit/device_heap.h"
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

TEST_F(Memory, GridsAndBlocksHaveThreeAxes) {
  auto program = Load(R"(
.visible .entry where(.param .u64 out)
{
  .reg .b32 %r<20>; .reg .b64 %rd<4>;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;
  mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y;
  mad.lo.u32 %r6, %r3, %r5, %r2; mad.lo.u32 %r6, %r6, %r4, %r1;   // block
  mov.u32 %r7, %tid.x; mov.u32 %r8, %tid.y; mov.u32 %r9, %tid.z;
  mov.u32 %r10, %ntid.x; mov.u32 %r11, %ntid.y; mov.u32 %r12, %ntid.z;
  mad.lo.u32 %r13, %r9, %r11, %r8; mad.lo.u32 %r13, %r13, %r10, %r7;  // thread
  mul.lo.u32 %r14, %r10, %r11; mul.lo.u32 %r14, %r14, %r12;
  mad.lo.u32 %r15, %r6, %r14, %r13;
  mov.u32 %r16, %laneid; mov.u32 %r17, %warpid; shl.b32 %r17, %r17, 5; add.u32 %r16, %r16, %r17;
  shl.b32 %r18, %r6, 16; or.b32 %r18, %r18, %r16;
  ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r15, 4; add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r18;
  ret;
})");
  ASSERT_TRUE(program);
  uint32_t* out = Allocate<uint32_t>(24 * 60);
  Run(*program, "where", {{2, 3, 4}, {5, 4, 3}}, out);
  for (uint32_t b = 0; b < 24; ++b) {
    for (uint32_t t = 0; t < 60; ++t) ASSERT_EQ(out[b * 60 + t], b << 16 | t);
  }
}

TEST_F(Memory, VectorsAndNarrowTypes) {
  auto program = Load(R"(
.visible .entry copy(.param .u64 from, .param .u64 to)
{
  .reg .b64 %rd<3>; .reg .f32 %f<5>; .reg .b32 %r<3>; .reg .b16 %h<3>; .reg .f64 %d<3>;
  ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to];
  ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];
  st.global.v4.f32 [%rd2], {%f4, %f3, %f2, %f1};
  ld.global.s8 %r1, [%rd1+16]; st.global.u32 [%rd2+16], %r1;
  ld.global.u8 %r1, [%rd1+16]; st.global.u32 [%rd2+20], %r1;
  ld.global.v2.u16 {%h1, %h2}, [%rd1+16]; st.global.v2.u16 [%rd2+24], {%h2, %h1};
  ld.volatile.global.v2.f64 {%d1, %d2}, [%rd1+32]; st.relaxed.gpu.global.f64 [%rd2+32], %d2;
  ld.acquire.gpu.global.u32 %r2, [%rd1+20]; st.release.gpu.global.u32 [%rd2+40], %r2;
  ret;
})");
  ASSERT_TRUE(program);
  struct In {
    float f[4] = {1, 2, 3, 4};
    uint8_t b[16] = {0x80, 0x81, 0x82, 0x83, 1, 2, 3, 4};
    double d[2] = {5, 6};
  };
  auto* to = Allocate<uint8_t>(64);
  Run(*program, "copy", {}, Upload(std::vector<In>(1)), to);
  auto word = [&](size_t at) {
    uint32_t v;
    std::memcpy(&v, to + at, 4);
    return v;
  };
  float f[4];
  std::memcpy(f, to, 16);
  EXPECT_EQ(f[0], 4);
  EXPECT_EQ(f[3], 1);
  EXPECT_EQ(word(16), 0xffffff80u);
  EXPECT_EQ(word(20), 0x80u);
  EXPECT_EQ(word(24), 0x81808382u);
  double d;
  std::memcpy(&d, to + 32, 8);
  EXPECT_EQ(d, 6);
  EXPECT_EQ(word(40), 0x04030201u);
}

TEST_F(Memory, ParametersByValueAndTheirAddress) {
  auto program = Load(R"(
.visible .entry pick(.param .align 8 .b8 big[48], .param .u32 which, .param .u64 out)
{
  .reg .b64 %rd<8>; .reg .b32 %r<4>;
  ld.param.u32 %r1, [which]; ld.param.u64 %rd1, [out];
  mov.b64 %rd2, big;
  mul.wide.u32 %rd3, %r1, 8; add.s64 %rd4, %rd2, %rd3;
  ld.param.u64 %rd5, [%rd4]; st.global.u64 [%rd1], %rd5;
  cvta.param.u64 %rd6, %rd4; ld.u64 %rd7, [%rd6]; st.global.u64 [%rd1+8], %rd7;
  ld.param.u64 %rd7, [big+40]; st.global.u64 [%rd1+16], %rd7;
  ret;
})");
  ASSERT_TRUE(program);
  EXPECT_EQ(program->kernels()[0].param_bytes, 64u);
  struct Big {
    uint64_t v[6] = {10, 11, 12, 13, 14, 15};
  };
  uint64_t* out = Allocate<uint64_t>(3);
  std::vector<std::byte> params(64);
  Big big;
  uint32_t which = 3;
  std::memcpy(params.data(), &big, 48);
  std::memcpy(params.data() + 48, &which, 4);
  std::memcpy(params.data() + 56, &out, 8);
  Launch launch;
  launch.kernel = program->FindKernel("pick");
  launch.params = params;
  auto outcome = workers_->Run(launch);
  ASSERT_TRUE(outcome.ok()) << outcome.error().sentence;
  ASSERT_FALSE(outcome->has_value()) << (*outcome)->Sentence();
  EXPECT_EQ(out[0], 13u);
  EXPECT_EQ(out[1], 13u);
  EXPECT_EQ(out[2], 15u);
}

TEST_F(Memory, VariablesStartWithWhatTheModuleSays) {
  auto program = Load(R"(
.global .align 4 .u32 counter = 41;
.const .align 4 .f32 table[2][3] = {{1.0, 2.0, 3.0}, {4.0}};
.global .align 8 .u64 pointer = counter;
.global .align 8 .u64 into = generic(table)+4;
.global .align 1 .b8 text[6] = {104, 101, 108, 108, 111, 0};
.visible .entry use(.param .u64 out)
{
  .reg .b64 %rd<5>; .reg .b32 %r<4>; .reg .f32 %f<3>;
  ld.param.u64 %rd1, [out];
  ld.global.u64 %rd2, [pointer];
  ld.global.u32 %r1, [%rd2]; add.u32 %r1, %r1, 1; st.global.u32 [counter], %r1;
  ld.global.u32 %r2, [counter]; st.global.u32 [%rd1], %r2;
  ld.const.f32 %f1, [table+12]; st.global.f32 [%rd1+4], %f1;
  ld.global.u64 %rd3, [into]; ld.f32 %f2, [%rd3]; st.global.f32 [%rd1+8], %f2;
  mov.u64 %rd4, text; ld.global.s8 %r3, [%rd4+4]; st.global.u32 [%rd1+12], %r3;
  ret;
})");
  ASSERT_TRUE(program);
  ASSERT_EQ(program->variables().size(), 5u);
  uint32_t* out = Allocate<uint32_t>(4);
  Run(*program, "use", {}, out);
  EXPECT_EQ(out[0], 42u);
  EXPECT_EQ(out[3], uint32_t{'o'});
  float f[2];
  std::memcpy(f, out + 1, 8);
  EXPECT_EQ(f[0], 4);
  EXPECT_EQ(f[1], 2);
  EXPECT_FALSE(program->Place("counter", window_->device().base + 4096).ok());
}

TEST_F(Memory, LocalArraysAndGenericAddresses) {
  auto program = Load(R"(
.visible .entry rotate(.param .u64 out)
{
  .local .align 16 .b8 depot[64];
  .reg .b64 %SP, %SPL, %rd<8>; .reg .b32 %r<8>; .reg .pred %p<4>;
  mov.u64 %SPL, depot; cvta.local.u64 %SP, %SPL;
  mov.u32 %r1, %tid.x; mov.u32 %r2, 0;
loop:
  mul.wide.u32 %rd1, %r2, 4; add.u64 %rd2, %SPL, %rd1;
  mad.lo.u32 %r3, %r1, 100, %r2; st.local.u32 [%rd2], %r3;
  add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 16; @%p1 bra loop;
  and.b32 %r4, %r1, 15; mul.wide.u32 %rd3, %r4, 4; add.u64 %rd4, %SP, %rd3;
  ld.u32 %r5, [%rd4];
  isspacep.local %p2, %rd4; isspacep.global %p3, %rd4;
  selp.u32 %r6, 100000, 0, %p2; add.u32 %r5, %r5, %r6; selp.u32 %r6, 200000, 0, %p3; add.u32 %r5, %r5, %r6;
  ld.param.u64 %rd5, [out]; mul.wide.u32 %rd6, %r1, 4; add.u64 %rd7, %rd5, %rd6; st.global.u32 [%rd7], %r5;
  ret;
})");
  ASSERT_TRUE(program);
  EXPECT_EQ(program->kernels()[0].local_bytes, 64u);
  uint32_t* out = Allocate<uint32_t>(64);
  Run(*program, "rotate", {{1, 1, 1}, {64, 1, 1}}, out);
  for (uint32_t t = 0; t < 64; ++t) EXPECT_EQ(out[t], t * 100 + (t & 15) + 100000);
}

TEST_F(Memory, SharedStaticAndDynamic) {
  auto program = Load(R"(
.shared .align 4 .u32 fixed[32];
.extern .shared .align 16 .b8 dynamic[];
.visible .entry reverse(.param .u64 out, .param .u32 n)
{
  .reg .b64 %rd<6>; .reg .b32 %r<12>; .reg .pred %p<2>;
  mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n];
  mov.u32 %r3, dynamic; shl.b32 %r4, %r1, 2; add.u32 %r5, %r3, %r4;
  mul.lo.u32 %r6, %r1, 3; st.shared.u32 [%r5], %r6;
  and.b32 %r7, %r1, 31; shl.b32 %r7, %r7, 2; mov.u32 %r8, fixed; add.u32 %r8, %r8, %r7; st.shared.u32 [%r8], %r1;
  bar.sync 0;
  sub.u32 %r9, %r2, %r1; shl.b32 %r9, %r9, 2; add.u32 %r9, %r9, %r3; ld.shared.u32 %r10, [%r9+-4];
  cvt.u64.u32 %rd1, %r9; cvta.shared.u64 %rd2, %rd1; ld.u32 %r11, [%rd2+-4]; add.u32 %r10, %r10, %r11;
  ld.param.u64 %rd3, [out]; mul.wide.u32 %rd4, %r1, 4; add.u64 %rd5, %rd3, %rd4; st.global.u32 [%rd5], %r10;
  ret;
})");
  ASSERT_TRUE(program);
  EXPECT_EQ(program->kernels()[0].static_shared, 128u);
  uint32_t* out = Allocate<uint32_t>(200);
  Run(*program, "reverse", {{2, 1, 1}, {200, 1, 1}, 800}, out, 200u);
  for (uint32_t t = 0; t < 200; ++t) EXPECT_EQ(out[t], 2 * 3 * (199 - t)) << t;
}

TEST_F(Memory, ANamedVariableSaysInWhichSpaceItLies) {
  auto program = Load(R"(
.shared .align 8 .u32 together[2];
.visible .entry named(.param .u64 out)
{
  .local .align 4 .u32 own; .reg .b64 %rd; .reg .b32 %r<4>;
  mov.u32 %r1, 7; st.u32 [together+4], %r1; st.u32 [own], 5;
  atom.add.u32 %r2, [together+4], 2;
  ld.shared.u32 %r2, [together+4]; ld.local.u32 %r3, [own];
  ld.param.u64 %rd, [out]; st.global.v2.u32 [%rd], {%r2, %r3};
  ret;
})");
  ASSERT_TRUE(program);
  uint32_t* out = Allocate<uint32_t>(2);
  Run(*program, "named", {}, out);
  EXPECT_EQ(out[0], 9u);
  EXPECT_EQ(out[1], 5u);
}

TEST_F(Memory, RegisteredHostMemory) {
  auto program = Load(kVectorAdd);
  ASSERT_TRUE(program);
  std::vector<float> host(16, 2.0f), result(16);
  auto begin = reinterpret_cast<uintptr_t>(host.data());
  Fault fault =
      RunToFault(*program, "add", {{1, 1, 1}, {16, 1, 1}}, host.data(), host.data(), result.data(), 16);
  EXPECT_EQ(fault.kind, Fault::Kind::kIllegalAddress);
  EXPECT_EQ(fault.address, begin);
  auto out = reinterpret_cast<uintptr_t>(result.data());
  ASSERT_TRUE(window_->RegisterHostRange(begin, begin + 64).ok());
  ASSERT_TRUE(window_->RegisterHostRange(out, out + 64).ok());
  Run(*program, "add", {{1, 1, 1}, {16, 1, 1}}, host.data(), host.data(), result.data(), 16);
  EXPECT_EQ(result, std::vector<float>(16, 4.0f));
}

TEST_F(Memory, OneCheckOfManyAccessesSeesTheirWholeExtent) {
  // The first access lies in registered memory, a later one of the same straight line does not.
  auto program = Load(R"(
.visible .entry spread(.param .u64 at)
{
  .reg .b64 %rd<2>; .reg .b32 %r<4>;
  ld.param.u64 %rd1, [at];
  st.global.u32 [%rd1], 1; st.global.u32 [%rd1+8], 2; st.global.u32 [%rd1+64], 3; ret;
}
.visible .entry within(.param .u64 at)
{
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [at];
  st.global.u32 [%rd1+4], 1; st.global.u64 [%rd1+-8], 2; st.global.u32 [%rd1+12], 3; ret;
}
.visible .entry shared(.param .u32 at, .param .u64 out)
{
  .shared .align 16 .b8 box[64];
  .reg .b64 %rd<2>; .reg .b32 %r<6>;
  ld.param.u32 %r1, [at]; mov.u32 %r2, box; add.u32 %r2, %r2, %r1;
  st.shared.u32 [%r2+4], 7; st.shared.v2.u32 [%r2+-8], {8, 9}; st.shared.u32 [%r2], 10;
  ld.shared.u32 %r3, [%r2+4]; ld.shared.u32 %r4, [%r2+-4]; add.u32 %r3, %r3, %r4; ld.shared.u32 %r4, [%r2]; add.u32 %r3, %r3, %r4;
  ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], %r3; ret;
})");
  ASSERT_TRUE(program);
  alignas(16) uint32_t host[64] = {};
  auto begin = reinterpret_cast<uintptr_t>(host);
  ASSERT_TRUE(window_->RegisterHostRange(begin, begin + 64).ok());
  EXPECT_EQ(RunToFault(*program, "spread", {}, begin).kind, Fault::Kind::kIllegalAddress);
  EXPECT_EQ(host[16], 0u);
  Run(*program, "within", {}, begin + 32);
  EXPECT_EQ(host[6], 2u);
  EXPECT_EQ(host[9], 1u);
  EXPECT_EQ(host[11], 3u);
  EXPECT_EQ(RunToFault(*program, "within", {}, begin).kind, Fault::Kind::kIllegalAddress);
  EXPECT_EQ(RunToFault(*program, "within", {}, begin + 56).kind, Fault::Kind::kIllegalAddress);
  EXPECT_EQ(RunToFault(*program, "within", {}, begin + 28).kind, Fault::Kind::kMisalignedAddress);

  auto* out = Allocate<uint32_t>(1);
  for (uint32_t at : {8u, 16u, 56u}) {
    *out = 0;
    Run(*program, "shared", {}, at, out);
    EXPECT_EQ(*out, 7u + 9 + 10) << at;
  }
  EXPECT_EQ(RunToFault(*program, "shared", {}, 0u, out).kind, Fault::Kind::kIllegalAddress);
  EXPECT_EQ(RunToFault(*program, "shared", {}, 64u, out).kind, Fault::Kind::kIllegalAddress);
  EXPECT_EQ(RunToFault(*program, "shared", {}, 12u, out).kind, Fault::Kind::kMisalignedAddress);
}

constexpr char kHeapKernels[] = R"(
.extern .func (.param .b64 r) malloc (.param .b64 n);
.extern .func free (.param .b64 p);
.visible .entry take(.param .u64 at, .param .u64 bytes)
{
  .reg .b64 %rd<6>; .reg .b32 %r;
  ld.param.u64 %rd1, [at]; ld.param.u64 %rd2, [bytes]; mov.u32 %r, %tid.x;
  { .param .b64 a; .param .b64 b; st.param.b64 [a], %rd2; call.uni (b), malloc, (a); ld.param.b64 %rd3, [b]; }
  mul.wide.u32 %rd4, %r, 8; add.u64 %rd1, %rd1, %rd4; st.global.u64 [%rd1], %rd3; ret;
}
.visible .entry give(.param .u64 at)
{
  .reg .b64 %rd<6>; .reg .b32 %r;
  ld.param.u64 %rd1, [at]; mov.u32 %r, %tid.x; mul.wide.u32 %rd4, %r, 8; add.u64 %rd1, %rd1, %rd4;
  ld.global.u64 %rd3, [%rd1];
  { .param .b64 a; st.param.b64 [a], %rd3; call.uni free, (a); } ret;
}
.visible .entry plain() { ret; }
)";

TEST_F(Memory, KernelsAllocate) {
  auto program = Load(kHeapKernels);
  ASSERT_TRUE(program);
  EXPECT_TRUE(program->Info(program->FindKernel("take")).uses_heap);
  EXPECT_TRUE(program->Info(program->FindKernel("give")).uses_heap);
  EXPECT_FALSE(program->Info(program->FindKernel("plain")).uses_heap);
  auto* at = Allocate<uint64_t>(64);
  Run(*program, "take", {{1, 1, 1}, {64, 1, 1}}, at, uint64_t{8});
  EXPECT_EQ(at[0], 0u) << "there is no heap";
  auto* room = Allocate<std::byte>(4096, 4096);
  DeviceHeap heap(reinterpret_cast<uintptr_t>(room), 4096);
  heap_ = &heap;
  Run(*program, "take", {{1, 1, 1}, {64, 1, 1}}, at, uint64_t{200});  // 208 with what is lost
  std::vector<uint64_t> given;
  for (int i = 0; i < 64; ++i) {
    if (at[i]) given.push_back(at[i]);
  }
  EXPECT_EQ(given.size(), 4096u / 208);
  std::sort(given.begin(), given.end());
  for (size_t i = 1; i < given.size(); ++i) EXPECT_GE(given[i], given[i - 1] + 200);
  Run(*program, "give", {{1, 1, 1}, {64, 1, 1}}, at);  // null pointers among them
  EXPECT_EQ(heap.used(), 0u);
  Fault f = RunToFault(*program, "give", {{1, 1, 1}, {64, 1, 1}}, at);  // once more
  EXPECT_EQ(f.kind, Fault::Kind::kIllegalAddress);
  EXPECT_NE(f.detail.find("free"), std::string::npos) << f.Sentence();
}

}  // namespace
}  // namespace cuplex::softcuda
