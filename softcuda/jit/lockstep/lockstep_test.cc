// Kernels whose lanes part and meet in every way, on each path, against plain C++.
#include <algorithm>

#include "softcuda/jit/test_rig.h"

namespace cuplex::softcuda {
namespace {

constexpr uint32_t kMost = 1024;

class Lockstep : public TestRig, public ::testing::WithParamInterface<Path> {
 protected:
  /// `body` with %i the thread's number in its block and %t the result, 0 before; runs blocks of several
  /// shapes and compares each thread's result with expected(i, threads).
  template <typename F>
  void Expect(const std::string& body, F&& expected, const std::string& before = "") {
    auto program = Load(before + R"(
.visible .entry run(.param .u64 out, .param .u64 data)
{
  .reg .pred %p<10>; .reg .b32 %i, %t, %x, %y, %z, %r<20>, %n; .reg .b64 %o, %d, %a<10>; .reg .f32 %f<8>;
  .shared .align 16 .b8 tile[8192];
  ld.param.u64 %o, [out]; ld.param.u64 %d, [data];
  mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; mov.u32 %z, %tid.z;
  mov.u32 %r0, %ntid.x; mov.u32 %r1, %ntid.y;
  mad.lo.u32 %i, %z, %r1, %y; mad.lo.u32 %i, %i, %r0, %x;
  mov.u32 %n, %ntid.z; mul.lo.u32 %n, %n, %r1; mul.lo.u32 %n, %n, %r0;
  mov.u32 %t, 0;
)" + body + R"(
store:
  mul.wide.u32 %a9, %i, 4; add.u64 %a9, %a9, %o; st.global.u32 [%a9], %t;
end:
  ret;
}
)",
                        {.path = GetParam()});
    ASSERT_TRUE(program);
    auto* out = Allocate<uint32_t>(kMost);
    auto* data = Allocate<uint32_t>(4 * kMost);
    for (std::array<uint32_t, 3> block : std::vector<std::array<uint32_t, 3>>{
             {32, 1, 1}, {1, 1, 1}, {70, 1, 1}, {256, 1, 1}, {16, 4, 1}, {8, 3, 5}, {5, 7, 2}, {64, 2, 2}}) {
      uint32_t threads = block[0] * block[1] * block[2];
      std::fill_n(out, kMost, 0xdeadbeef);
      for (uint32_t i = 0; i < 4 * kMost; ++i) data[i] = i * 2654435761u >> 7;
      Run(*program, "run", {{1, 1, 1}, block}, out, data);
      for (uint32_t i = 0; i < threads; ++i) {
        ASSERT_EQ(out[i], expected(i, threads))
            << "thread " << i << " of " << block[0] << "x" << block[1] << "x" << block[2];
      }
      ASSERT_EQ(out[threads], 0xdeadbeef);
    }
  }
};

TEST_P(Lockstep, BothWaysOfABranch) {
  Expect(R"(
  and.b32 %r2, %i, 3;
  setp.eq.u32 %p1, %r2, 1;
  @%p1 bra odd;
  add.u32 %t, %i, 100;
  setp.gt.u32 %p2, %i, 20;
  @%p2 bra store;
  add.u32 %t, %t, 1;
  bra store;
odd:
  mul.lo.u32 %t, %i, 7;
)",
         [](uint32_t i, uint32_t) { return (i & 3) == 1 ? i * 7 : i + 100 + (i > 20 ? 0 : 1); });
}

TEST_P(Lockstep, LoopsThatLanesLeaveAtDifferentTurns) {
  Expect(R"(
  mov.u32 %r2, 0;
  mov.u32 %r3, %i;
again:
  setp.eq.u32 %p1, %r3, 0;
  @%p1 bra store;
  and.b32 %r4, %r3, 1;
  setp.eq.u32 %p2, %r4, 1;
  @%p2 bra skip;
  add.u32 %t, %t, %r3;
skip:
  shr.u32 %r3, %r3, 1;
  add.u32 %t, %t, 1;
  bra again;
)",
         [](uint32_t i, uint32_t) {
           uint32_t t = 0;
           for (uint32_t v = i; v; v >>= 1) t += (v & 1 ? 0 : v) + 1;
           return t;
         });
}

TEST_P(Lockstep, NestedLoopsWithTwoExits) {
  Expect(R"(
  mov.u32 %r2, 0;
outer:
  mov.u32 %r3, 0;
inner:
  mad.lo.u32 %r4, %r2, 5, %r3;
  add.u32 %t, %t, %r4;
  setp.gt.u32 %p1, %t, 200;
  @%p1 bra store;
  add.u32 %r3, %r3, 1;
  rem.u32 %r5, %i, 7;
  setp.le.u32 %p2, %r3, %r5;
  @%p2 bra inner;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p3, %r2, 6;
  @%p3 bra outer;
  add.u32 %t, %t, 1000;
)",
         [](uint32_t i, uint32_t) {
           uint32_t t = 0;
           for (uint32_t a = 0; a < 6; ++a) {
             for (uint32_t b = 0; b <= i % 7; ++b) {
               t += a * 5 + b;
               if (t > 200) return t;
             }
           }
           return t + 1000;
         });
}

TEST_P(Lockstep, AGuardedReturnBeforeABarrier) {
  Expect(R"(
  shr.u32 %r2, %n, 1;
  setp.ge.u32 %p1, %i, %r2;
  mov.u32 %t, 77;
  @%p1 bra store;
  shl.b32 %r3, %i, 2;
  mov.u32 %r4, tile;
  add.u32 %r3, %r3, %r4;
  st.shared.u32 [%r3], %i;
  bar.sync 0;
  ld.shared.u32 %t, [%r4];
  ld.shared.u32 %r5, [%r3];
  mad.lo.u32 %t, %t, 3, %r5;
)",
         [](uint32_t i, uint32_t n) { return i >= n / 2 ? 77 : i; });
}

TEST_P(Lockstep, IndicesThatWrapInsideAWarp) {
  // tid - 1 as an unsigned number: lane 0 would be 4 GiB further on, and is not there.
  Expect(R"(
  mul.wide.u32 %a1, %i, 4; add.u64 %a1, %a1, %d; ld.global.u32 %t, [%a1];
  setp.eq.u32 %p1, %i, 0;
  @%p1 bra store;
  sub.u32 %r2, %i, 1;
  mul.wide.u32 %a2, %r2, 4; add.u64 %a2, %a2, %d; ld.global.u32 %r3, [%a2];
  sub.u32 %t, %t, %r3;
)",
         [](uint32_t i, uint32_t) {
           auto at = [](uint32_t k) { return k * 2654435761u >> 7; };
           return i ? at(i) - at(i - 1) : at(0);
         });
}

TEST_P(Lockstep, IndicesThatWrapForAllLanes) {
  // 2^32 - 8 + i, modulo 2^32 for the lanes from 8 on; the others read at 2^32 - 8 + i less 2^32.
  Expect(R"(
  add.u32 %r2, %i, 0xfffffff8;
  cvt.s64.s32 %a1, %r2;
  shl.b64 %a1, %a1, 2; add.u64 %a1, %a1, %d; add.u64 %a1, %a1, 64;
  ld.global.u32 %t, [%a1];
  mul.wide.s32 %a2, %r2, 4; add.u64 %a2, %a2, %d; add.u64 %a2, %a2, 4096;
  st.global.u32 [%a2], %i;
  ld.global.u32 %r3, [%a2];
  add.u32 %t, %t, %r3;
)",
         [](uint32_t i, uint32_t) { return ((i + 8) * 2654435761u >> 7) + i; });
}

TEST_P(Lockstep, IndicesHeldBelowABound) {
  Expect(R"(
  min.u32 %r2, %i, 37;
  mul.wide.u32 %a1, %r2, 4; add.u64 %a1, %a1, %d; ld.global.u32 %t, [%a1];
  sub.s32 %r3, %i, 40; max.s32 %r3, %r3, -3;
  mul.wide.s32 %a2, %r3, 4; add.u64 %a2, %a2, %d; ld.global.u32 %r4, [%a2+12];
  add.u32 %t, %t, %r4;
)",
         [](uint32_t i, uint32_t) {
           auto at = [](uint32_t k) { return k * 2654435761u >> 7; };
           int32_t j = std::max(static_cast<int32_t>(i) - 40, -3);
           return at(std::min(i, 37u)) + at(static_cast<uint32_t>(j + 3));
         });
}

TEST_P(Lockstep, VectorsOfALane) {
  Expect(R"(
  and.b32 %r9, %i, 255;
  mul.wide.u32 %a1, %r9, 16; add.u64 %a1, %a1, %d;
  ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%a1];
  xor.b32 %t, %r2, %r3; xor.b32 %t, %t, %r4; xor.b32 %t, %t, %r5;
  and.b32 %r6, %i, 5;
  setp.eq.u32 %p1, %r6, 4;
  @%p1 bra store;
  st.global.v2.u32 [%a1], {%r4, %r5};
  ld.global.v2.u32 {%r7, %r8}, [%a1];
  sub.u32 %t, %r7, %r8;
)",
         [](uint32_t i, uint32_t) {
           auto at = [&](uint32_t k) { return ((i & 255) * 4 + k) * 2654435761u >> 7; };
           return (i & 5) == 4 ? at(0) ^ at(1) ^ at(2) ^ at(3) : at(2) - at(3);
         });
}

TEST_P(Lockstep, BytesFromAnywhere) {
  Expect(R"(
  mul.lo.u32 %r2, %i, 2654435761;
  and.b32 %r2, %r2, 4095;
  cvt.u64.u32 %a1, %r2; add.u64 %a1, %a1, %d;
  ld.global.u8 %r3, [%a1];
  and.b32 %r4, %r2, 0xffe; cvt.u64.u32 %a2, %r4; add.u64 %a2, %a2, %d;
  ld.global.s16 %r5, [%a2];
  add.u32 %t, %r3, %r5;
)",
         [](uint32_t i, uint32_t) {
           auto byte = [](uint32_t k) { return (k / 4 * 2654435761u >> 7) >> (k % 4 * 8) & 255; };
           uint32_t at = i * 2654435761u & 4095, even = at & 0xffe;
           auto half = static_cast<int16_t>(byte(even) | byte(even + 1) << 8);
           return byte(at) + static_cast<uint32_t>(int32_t{half});
         });
}

TEST_P(Lockstep, AtomicsOfManyLanesAtOnePlace) {
  Expect(R"(
  mov.u32 %r4, tile;
  setp.eq.u32 %p1, %i, 0;
  mov.u32 %r2, 0;
  @%p1 st.shared.v2.u32 [%r4], {%r2, %r2};
  bar.sync 0;
  add.u32 %r3, %i, 1;
  atom.shared.add.u32 %r5, [%r4], %r3;
  atom.shared.max.u32 %r6, [%r4+4], %r3;
  bar.sync 0;
  ld.shared.v2.u32 {%t, %r7}, [%r4];
  mad.lo.u32 %t, %r7, 65536, %t;
)",
         [](uint32_t, uint32_t n) { return n * 65536 + n * (n + 1) / 2; });
}

TEST_P(Lockstep, CompareAndSwapThatRetries) {
  Expect(R"(
  mov.u32 %r4, tile;
  setp.eq.u32 %p1, %i, 0;
  mov.u32 %r2, 1;
  @%p1 st.shared.u32 [%r4], %r2;
  bar.sync 0;
  ld.shared.u32 %r5, [%r4];
retry:
  mov.u32 %r6, %r5;
  mad.lo.u32 %r7, %i, 2, %r6;
  atom.shared.cas.b32 %r5, [%r4], %r6, %r7;
  setp.ne.u32 %p2, %r5, %r6;
  @%p2 bra retry;
  bar.sync 0;
  ld.shared.u32 %t, [%r4];
)",
         [](uint32_t, uint32_t n) { return 1 + n * (n - 1); });
}

TEST_P(Lockstep, ASpinLockInAWarp) {
  Expect(R"(
  mov.u32 %r4, tile;
  setp.eq.u32 %p1, %i, 0;
  mov.u32 %r2, 0;
  @%p1 st.shared.v2.u32 [%r4], {%r2, %r2};
  bar.sync 0;
lock:
  atom.shared.cas.b32 %r5, [%r4], 0, 1;
  setp.ne.u32 %p2, %r5, 0;
  @%p2 bra lock;
  ld.volatile.shared.u32 %r6, [%r4+4];
  add.u32 %r6, %r6, 1;
  st.volatile.shared.u32 [%r4+4], %r6;
  atom.shared.exch.b32 %r7, [%r4], 0;
  bar.sync 0;
  ld.shared.u32 %t, [%r4+4];
)",
         [](uint32_t, uint32_t n) { return n; });
}

TEST_P(Lockstep, ShufflesByNumbersOnlyKnownLate) {
  Expect(R"(
  mov.u32 %r2, %laneid;
  rem.u32 %r3, %n, 5;
  add.u32 %r3, %r3, 1;
  mul.lo.u32 %r4, %i, 3;
  shfl.sync.bfly.b32 %r5|%p1, %r4, %r3, 0x1f, -1;
  shfl.sync.down.b32 %r6|%p2, %r4, 1, 0x1f, -1;
  selp.u32 %r7, 1, 0, %p2;
  setp.lt.u32 %p3, %r2, 31; add.u32 %r8, %i, 1; setp.lt.u32 %p4, %r8, %n; and.pred %p3, %p3, %p4;
  selp.u32 %r6, %r6, 0, %p3;
  mov.u32 %t, %r6;
  mad.lo.u32 %t, %r7, 100000, %t;
  xor.b32 %r9, %r2, %r3; sub.u32 %r9, %r9, %r2; add.u32 %r9, %r9, %i;
  setp.lt.u32 %p5, %r9, %n;
  @%p5 add.u32 %t, %t, %r5;
)",
         [](uint32_t i, uint32_t n) {
           uint32_t lane = i % 32, by = n % 5 + 1;
           uint32_t t = (lane < 31 && i + 1 < n ? (i + 1) * 3 : 0) + (lane < 31 ? 100000 : 0);
           uint32_t other = (lane ^ by) - lane + i;
           return t + (other < n ? other * 3 : 0);
         });
}

TEST_P(Lockstep, VotesAndReductionsOfLanesThatAreThere) {
  Expect(R"(
  and.b32 %r2, %i, 1; setp.eq.u32 %p1, %r2, 0;
  vote.sync.ballot.b32 %r3, %p1, -1;
  popc.b32 %t, %r3;
  redux.sync.max.u32 %r4, %i, -1;
  mad.lo.u32 %t, %r4, 100, %t;
  match.any.sync.b32 %r5, %r2, -1;
  popc.b32 %r6, %r5;
  mad.lo.u32 %t, %r6, 1000000, %t;
)",
         [](uint32_t i, uint32_t n) {
           uint32_t first = i / 32 * 32, last = std::min(first + 32, n);
           uint32_t even = 0, same = 0;
           for (uint32_t k = first; k < last; ++k) even += k % 2 == 0, same += k % 2 == i % 2;
           return even + (last - 1) * 100 + same * 1000000;
         });
}

TEST_P(Lockstep, ACollectiveBehindAWarpsOwnBranch) {
  Expect(R"(
  setp.ge.u32 %p1, %i, 32;
  @%p1 bra store;
  mov.u32 %r3, %i;
  shfl.sync.up.b32 %r4, %r3, 1, 0, -1;
  mov.u32 %r2, %laneid;
  setp.eq.u32 %p2, %r2, 0;
  selp.u32 %t, 500, %r4, %p2;
)",
         [](uint32_t i, uint32_t) { return i >= 32 ? 0
                                           : i     ? i - 1
                                                   : 500; });
}

TEST_P(Lockstep, AnArrayOfEachThread) {
  Expect(R"(
  .local .align 8 .b8 own[64];
  mov.u32 %r2, own;
  mov.u32 %r3, 0;
fill:
  shl.b32 %r4, %r3, 2; add.u32 %r4, %r4, %r2;
  mad.lo.u32 %r5, %r3, %r3, %i;
  st.local.u32 [%r4], %r5;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p1, %r3, 16;
  @%p1 bra fill;
  and.b32 %r6, %i, 15; shl.b32 %r6, %r6, 2; add.u32 %r6, %r6, %r2;
  bar.sync 0;
  ld.local.u32 %t, [%r6];
)",
         [](uint32_t i, uint32_t) { return (i & 15) * (i & 15) + i; });
}

TEST_P(Lockstep, FunctionsAndTablesOfBranches) {
  Expect(
      R"(
  and.b32 %r2, %i, 3;
  ways: .branchtargets zero, one, two, three;
  brx.idx %r2, ways;
zero:
  mov.u32 %t, 10; bra on;
one:
  { .param .u32 a; .param .u32 b; st.param.u32 [a], %i; call (b), depth, (a); ld.param.u32 %t, [b]; }
  bra on;
two:
  mov.u32 %t, %i; bra on;
three:
  add.u32 %t, %i, %i;
on:
  add.u32 %t, %t, 1;
)",
      [](uint32_t i, uint32_t) {
        uint32_t depth = 0;
        for (uint32_t v = i; v; v /= 3) ++depth;
        return ((i & 3) == 0 ? 10 : (i & 3) == 1 ? depth : (i & 3) == 2 ? i : 2 * i) + 1;
      },
      R"(
.func (.param .u32 result) depth(.param .u32 value)
{
  .reg .b32 %r<4>; .reg .pred %p;
  ld.param.u32 %r0, [value];
  mov.u32 %r1, 0;
  setp.eq.u32 %p, %r0, 0;
  @%p bra done;
  div.u32 %r0, %r0, 3;
  { .param .u32 a; .param .u32 b; st.param.u32 [a], %r0; call (b), depth, (a); ld.param.u32 %r1, [b]; }
  add.u32 %r1, %r1, 1;
done:
  st.param.u32 [result], %r1;
  ret;
}
)");
}

TEST_P(Lockstep, BarriersInALoopThatAllWarpsRunTogether) {
  Expect(R"(
  mov.u32 %r4, tile;
  shl.b32 %r5, %i, 2; add.u32 %r5, %r5, %r4;
  st.shared.u32 [%r5], %i;
  mov.u32 %r2, 1;
  mov.u32 %t, %i;
sweep:
  bar.sync 0;
  setp.lt.u32 %p1, %i, %r2;
  mov.u32 %r7, 0;
  @%p1 bra none;
  shl.b32 %r6, %r2, 2; sub.u32 %r6, %r5, %r6;
  ld.shared.u32 %r7, [%r6];
none:
  bar.sync 0;
  add.u32 %t, %t, %r7;
  st.shared.u32 [%r5], %t;
  shl.b32 %r2, %r2, 1;
  setp.lt.u32 %p2, %r2, %n;
  @%p2 bra sweep;
)",
         [](uint32_t i, uint32_t) { return i * (i + 1) / 2; });
}

TEST_P(Lockstep, AVoteOfTheBlock) {
  Expect(R"(
  rem.u32 %r2, %i, 3; setp.eq.u32 %p1, %r2, 0;
  bar.red.popc.u32 %t, 0, %p1;
  setp.lt.u32 %p2, %i, 5000;
  bar.red.and.pred %p3, 0, %p2;
  selp.u32 %r3, 1000, 0, %p3;
  add.u32 %t, %t, %r3;
)",
         [](uint32_t, uint32_t n) { return (n + 2) / 3 + 1000; });
}

TEST_P(Lockstep, CarriesAndLongProducts) {
  Expect(R"(
  mul.lo.u32 %r2, %i, 2654435761;
  add.cc.u32 %r3, %r2, 0xf0000000;
  addc.u32 %r4, %i, 0;
  cvt.u64.u32 %a1, %r2; shl.b64 %a1, %a1, 31; or.b64 %a1, %a1, 12345;
  mul.hi.u64 %a2, %a1, 0x123456789abcdef;
  cvt.u32.u64 %r5, %a2;
  add.u32 %t, %r4, %r5; xor.b32 %t, %t, %r3;
)",
         [](uint32_t i, uint32_t) {
           uint32_t a = i * 2654435761u;
           uint64_t sum = uint64_t{a} + 0xf0000000u;
           uint64_t wide = uint64_t{a} << 31 | 12345;
           auto high =
               static_cast<uint64_t>(static_cast<unsigned __int128>(wide) * 0x123456789abcdefull >> 64);
           return (i + static_cast<uint32_t>(sum >> 32) + static_cast<uint32_t>(high)) ^
                  static_cast<uint32_t>(sum);
         });
}

INSTANTIATE_TEST_SUITE_P(Paths, Lockstep, ::testing::Values(Path::kAuto, Path::kLoop, Path::kSteps),
                         [](const auto& info) {
                           return info.param == Path::kAuto   ? "Auto"
                                  : info.param == Path::kLoop ? "Loop"
                                                              : "Steps";
                         });

}  // namespace
}  // namespace cuplex::softcuda
