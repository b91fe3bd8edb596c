#include <numeric>
#include <random>

#include "softcuda/jit/instruction_rig.h"

namespace cuplex::softcuda {
namespace {

using Words = std::vector<uint32_t>;

class Warp : public InstructionRig {
 protected:
  static Words Values(size_t n) {
    std::mt19937 random(17);
    Words v(n);
    for (uint32_t& x : v) x = random();
    return v;
  }
};

TEST_F(Warp, ShufflesInEveryModeWidthAndDistance) {
  Words a = Values(64);
  struct Mode {
    const char* name;
    int kind;
  };
  for (Mode mode : {Mode{"up", 0}, Mode{"down", 1}, Mode{"bfly", 2}, Mode{"idx", 3}}) {
    for (uint32_t width : {32u, 16u, 8u, 1u}) {
      for (uint32_t b : {0u, 1u, 3u, 8u, 31u}) {
        // As the compiler packs width into c.
        uint32_t c = (32 - width) << 8 | (mode.kind == 0 ? 0 : 31);
        auto got =
            Each<uint32_t>(fmt::format("shfl.sync.{}.b32 %t0|%p, %a, {}, {}, -1; selp.u32 %t1, 1, 0, %p; "
                                       "xor.b32 %d, %t0, %t1;",
                                       mode.name, b, c),
                           a);
        for (uint32_t t = 0; t < 64; ++t) {
          int lane = static_cast<int>(t & 31),
              group = lane / static_cast<int>(width) * static_cast<int>(width);
          int rank = lane - group, w = static_cast<int>(width), k = static_cast<int>(b);
          int from = mode.kind == 0   ? rank - k
                     : mode.kind == 1 ? rank + k
                     : mode.kind == 2 ? rank ^ k
                                      : k % w;
          bool inside = from >= 0 && from < w;
          if (mode.kind == 2) {
            // Butterfly stays inside where the partner does not pass the section's end; below it may leave
            // it.
            int partner = lane ^ k;
            inside = partner <= group + w - 1;
            from = partner - group;
          }
          uint32_t source = inside ? static_cast<uint32_t>(static_cast<int>(t & ~31u) + group + from) : t;
          ASSERT_EQ(got[t], a[source] ^ (inside ? 1 : 0))
              << mode.name << " width " << width << " b " << b << " t " << t;
        }
      }
    }
  }
}

TEST_F(Warp, Votes) {
  Words a(64);
  for (uint32_t t = 0; t < 64; ++t) a[t] = t < 32 ? t % 3 == 0 : 1;
  std::string p = "setp.ne.u32 %p, %a, 0; ";
  auto ballot = Each<uint32_t>(p + "vote.sync.ballot.b32 %d, %p, -1;", a);
  auto old_order = Each<uint32_t>(p + "vote.ballot.sync.b32 %d, !%p, 0xffffffff;", a);
  auto all = Each<uint32_t>(p + "vote.sync.all.pred %q, %p, -1; selp.u32 %d, 1, 0, %q;", a);
  auto any = Each<uint32_t>(p + "vote.sync.any.pred %q, %p, -1; selp.u32 %d, 1, 0, %q;", a);
  auto uni = Each<uint32_t>(p + "vote.sync.uni.pred %q, %p, -1; selp.u32 %d, 1, 0, %q;", a);
  uint32_t thirds = 0;
  for (uint32_t t = 0; t < 32; t += 3) thirds |= 1u << t;
  for (uint32_t t = 0; t < 64; ++t) {
    EXPECT_EQ(ballot[t], t < 32 ? thirds : ~0u);
    EXPECT_EQ(old_order[t], t < 32 ? ~thirds : 0);
    EXPECT_EQ(all[t], t < 32 ? 0u : 1u);
    EXPECT_EQ(any[t], 1u);
    EXPECT_EQ(uni[t], t < 32 ? 0u : 1u);
  }
}

TEST_F(Warp, MatchReduceElect) {
  Words a(32);
  for (uint32_t t = 0; t < 32; ++t) a[t] = t % 5 - 2;
  auto any = Each<uint32_t>("match.any.sync.b32 %d, %a, -1;", a);
  auto all = Each<uint32_t>("match.all.sync.b32 %d|%p, %a, -1;", a);
  auto one = Each<uint32_t>("mov.u32 %t0, 9; match.all.sync.b32 %d|%p, %t0, -1;", a);
  auto sum = Each<uint32_t>("redux.sync.add.s32 %d, %a, -1;", a);
  auto min = Each<uint32_t>("redux.sync.min.s32 %d, %a, -1;", a);
  auto max = Each<uint32_t>("redux.sync.max.u32 %d, %a, -1;", a);
  auto elect = Each<uint32_t>("elect.sync %t0|%p, 0xffffffff; selp.u32 %d, 77, %t0, %p;", a);
  uint32_t total = std::accumulate(a.begin(), a.end(), 0u);
  for (uint32_t t = 0; t < 32; ++t) {
    uint32_t same = 0;
    for (uint32_t k = 0; k < 32; ++k) same |= a[k] == a[t] ? 1u << k : 0;
    EXPECT_EQ(any[t], same);
    EXPECT_EQ(all[t], 0u);
    EXPECT_EQ(one[t], ~0u);
    EXPECT_EQ(sum[t], total);
    EXPECT_EQ(min[t], static_cast<uint32_t>(-2));
    EXPECT_EQ(max[t], ~0u);
    EXPECT_EQ(elect[t], t == 0 ? 77u : 0u);
  }
}

TEST_F(Warp, DivergentHalvesMeetUnderTheirOwnMasks) {
  Words a = Values(32);
  auto got = Each<uint32_t>(R"(
    and.b32 %t0, %i, 1; setp.eq.u32 %p, %t0, 0;
    @%p bra even;
    shfl.sync.idx.b32 %d, %a, 1, 31, 0xaaaaaaaa; bra done;
  even:
    shfl.sync.idx.b32 %d, %a, 30, 31, 0x55555555;
  done:
    bar.warp.sync -1;)",
                            a);
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(got[t], t & 1 ? a[1] : a[30]);
}

TEST_F(Warp, ActivemaskIsWhoeverTookTheBranch) {
  Words a(32, 0);
  auto got = Each<uint32_t>(R"(
    mov.u32 %d, 0; setp.lt.u32 %p, %i, 10;
    @!%p bra done;
    activemask.b32 %d;
  done:)",
                            a);
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(got[t], t < 10 ? 0x3ffu : 0u);
}

TEST_F(Warp, LanesThatLeftAreNotWaitedFor) {
  Words a = Values(32);
  auto got = Each<uint32_t>(R"(
    mov.u32 %d, %a; setp.ge.u32 %p, %i, 20;
    @%p bra done;
    shfl.sync.bfly.b32 %d, %a, 1, 31, -1;
  done:)",
                            a);
  // Threads of the second half go on to store and end, which lets the others' full mask be met.
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(got[t], t < 20 ? a[t ^ 1] : a[t]);
}

// ---------------------------------------------------------------------------------------------- barriers

constexpr const char* kReduce = R"(
.shared .align 4 .u32 part[1024];
.visible .entry reduce(.param .u64 in, .param .u64 out)
{
  .reg .b64 %rd<8>; .reg .b32 %r<16>; .reg .pred %p<4>;
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %ctaid.x;
  mad.lo.u32 %r4, %r3, %r2, %r1;
  ld.param.u64 %rd1, [in]; mul.wide.u32 %rd2, %r4, 4; add.u64 %rd3, %rd1, %rd2; ld.global.u32 %r5, [%rd3];
  shl.b32 %r6, %r1, 2; mov.u32 %r7, part; add.u32 %r8, %r7, %r6; st.shared.u32 [%r8], %r5;
  bar.sync 0;
  shr.u32 %r9, %r2, 1;
loop:
  setp.eq.u32 %p1, %r9, 0; @%p1 bra done;
  setp.ge.u32 %p2, %r1, %r9; @%p2 bra skip;
  shl.b32 %r10, %r9, 2; add.u32 %r11, %r8, %r10; ld.shared.u32 %r12, [%r11]; ld.shared.u32 %r13, [%r8];
  add.u32 %r13, %r13, %r12; st.shared.u32 [%r8], %r13;
skip:
  bar.sync 0;
  shr.u32 %r9, %r9, 1; bra loop;
done:
  setp.ne.u32 %p3, %r1, 0; @%p3 ret;
  ld.shared.u32 %r14, [part]; ld.param.u64 %rd4, [out]; mul.wide.u32 %rd5, %r3, 4; add.u64 %rd6, %rd4, %rd5;
  st.global.u32 [%rd6], %r14;
  ret;
})";

TEST_F(Warp, TreeReductionOverBlocksAndWorkers) {
  for (unsigned helpers : {0u, 3u}) {
    StartWorkers(helpers);
    auto program = Load(kReduce);
    ASSERT_TRUE(program);
    Words a = Values(512 * 40);
    uint32_t* out = Allocate<uint32_t>(40);
    Run(*program, "reduce", {{40, 1, 1}, {512, 1, 1}}, Upload(a), out);
    for (size_t b = 0; b < 40; ++b) {
      EXPECT_EQ(out[b], std::accumulate(a.begin() + static_cast<ptrdiff_t>(b * 512),
                                        a.begin() + static_cast<ptrdiff_t>((b + 1) * 512), 0u));
    }
  }
}

TEST_F(Warp, BarriersCountThreadsThatLeft) {
  Words a(96, 1);
  // The last warp and some lanes of the second leave before the barrier.
  auto got = Each<uint32_t>(R"(
    .shared .align 4 .u32 cell;
    mov.u32 %d, 5; setp.ge.u32 %p, %i, 40; @%p bra leave;
    setp.eq.u32 %q, %i, 39; @%q st.shared.u32 [cell], 1234;
    bar.sync 0;
    ld.shared.u32 %d, [cell];
  leave:)",
                            a);
  for (uint32_t t = 0; t < 96; ++t) EXPECT_EQ(got[t], t < 40 ? 1234u : 5u);
}

TEST_F(Warp, NamedBarriersPassWorkBetweenWarps) {
  // Warp 0 produces into a cell, warp 1 consumes: two barriers with counts of 64, one side arriving without
  // waiting.
  Words a(64, 0);
  auto got = Each<uint32_t>(R"(
    .shared .align 4 .u32 cell;
    .reg .b32 %k, %sum; .reg .pred %more;
    mov.u32 %k, 0; mov.u32 %sum, 0;
    setp.lt.u32 %p, %i, 32; @!%p bra consumer;
  produce:
    bar.sync 1, 64;
    setp.eq.u32 %q, %i, 0; mul.lo.u32 %t0, %k, 10; @%q st.shared.u32 [cell], %t0;
    bar.arrive 2, 64;
    add.u32 %k, %k, 1; setp.lt.u32 %more, %k, 5; @%more bra produce;
    bra done;
  consumer:
    bar.arrive 1, 64;
    bar.sync 2, 64;
    ld.shared.u32 %t0, [cell]; add.u32 %sum, %sum, %t0;
    add.u32 %k, %k, 1; setp.lt.u32 %more, %k, 5; @%more bra consumer;
  done:
    mov.u32 %d, %sum;)",
                            a);
  for (uint32_t t = 0; t < 64; ++t) EXPECT_EQ(got[t], t < 32 ? 0u : 0u + 10 + 20 + 30 + 40);
}

TEST_F(Warp, BarriersVote) {
  Words a(96);
  for (uint32_t t = 0; t < 96; ++t) a[t] = t % 4 == 0;
  std::string p = "setp.ne.u32 %p, %a, 0; ";
  EXPECT_EQ(Each<uint32_t>(p + "bar.red.popc.u32 %d, 0, %p;", a), Words(96, 24));
  EXPECT_EQ(Each<uint32_t>(p + "barrier.red.popc.u32 %d, 3, 96, !%p;", a), Words(96, 72));
  EXPECT_EQ(Each<uint32_t>(p + "bar.red.or.pred %q, 0, %p; selp.u32 %d, 1, 0, %q;", a), Words(96, 1));
  EXPECT_EQ(Each<uint32_t>(p + "bar.red.and.pred %q, 0, %p; selp.u32 %d, 1, 0, %q;", a), Words(96, 0));
}

TEST_F(Warp, BarriersInBothBranches) {
  Words a(64, 0);
  auto got = Each<uint32_t>(R"(
    .shared .align 4 .u32 cells[64];
    shl.b32 %t0, %i, 2; mov.u32 %t1, cells; add.u32 %t1, %t1, %t0; st.shared.u32 [%t1], %i;
    and.b32 %t2, %i, 1; setp.eq.u32 %p, %t2, 0;
    @%p bra even;
    barrier.sync 0; bra after;
  even:
    barrier.sync 0;
  after:
    xor.b32 %t0, %t0, 252; mov.u32 %t1, cells; add.u32 %t1, %t1, %t0; ld.shared.u32 %d, [%t1];)",
                            a);
  for (uint32_t t = 0; t < 64; ++t) EXPECT_EQ(got[t], 63 - t);
}

TEST_F(Warp, SpinLocksInsideAWarp) {
  // Each lane takes the lock in turn; the one that holds it must be able to go on while others spin.
  Words a(64, 0);
  auto got = Each<uint32_t>(R"(
    .shared .align 4 .u32 lock; .shared .align 4 .u32 count;
    setp.eq.u32 %p, %i, 0; @%p st.shared.u32 [lock], 0; @%p st.shared.u32 [count], 0;
    bar.sync 0;
  take:
    atom.shared.cas.b32 %t0, [lock], 0, 1; setp.ne.u32 %p, %t0, 0; @%p bra take;
    ld.volatile.shared.u32 %t1, [count]; add.u32 %t1, %t1, 1; st.volatile.shared.u32 [count], %t1;
    bar.warp.sync 0;
    atom.shared.exch.b32 %t0, [lock], 0;
    bar.sync 0;
    ld.shared.u32 %d, [count];)",
                            a);
  EXPECT_EQ(got, Words(64, 64));
}

TEST_F(Warp, BlocksThatWaitForLaterBlocks) {
  // Every block announces itself and waits for all others: more blocks than workers.
  for (unsigned helpers : {0u, 2u}) {
    StartWorkers(helpers);
    auto program = Load(R"(
.visible .entry meet(.param .u64 count, .param .u64 out)
{
  .reg .b64 %rd<6>; .reg .b32 %r<8>; .reg .pred %p<3>;
  ld.param.u64 %rd1, [count]; mov.u32 %r1, %nctaid.x; mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %tid.x; setp.ne.u32 %p1, %r3, 0; @%p1 bra waited;
  atom.add.release.gpu.global.u32 %r4, [%rd1], 1;
wait:
  ld.acquire.gpu.global.u32 %r5, [%rd1]; setp.lt.u32 %p2, %r5, %r1; @%p2 bra wait;
waited:
  bar.sync 0;
  ld.relaxed.gpu.global.u32 %r6, [%rd1];
  ld.param.u64 %rd2, [out]; mov.u32 %r7, %ntid.x; mad.lo.u32 %r7, %r2, %r7, %r3;
  mul.wide.u32 %rd3, %r7, 4; add.u64 %rd4, %rd2, %rd3; st.global.u32 [%rd4], %r6;
  ret;
})");
    ASSERT_TRUE(program);
    uint32_t* count = Allocate<uint32_t>(1);
    uint32_t* out = Allocate<uint32_t>(50 * 64);
    Run(*program, "meet", {{50, 1, 1}, {64, 1, 1}}, count, out);
    for (size_t i = 0; i < 50 * 64; ++i) ASSERT_EQ(out[i], 50u);
  }
}

TEST_F(Warp, ManyValuesLiveAcrossManyBarriers) {
  // So many that they stay in the thread's record instead of being saved at each suspension.
  std::string code = ".reg .b32 %v<200>;\n";
  for (int i = 0; i < 200; ++i) code += fmt::format("mad.lo.u32 %v{}, %a, {}, {};\n", i, i + 1, i * 3);
  for (int k = 0; k < 150; ++k) {
    code +=
        fmt::format("shfl.sync.bfly.b32 %t0, %v{}, 1, 31, -1; add.u32 %v{}, %v{}, %t0;\n", k, k + 20, k + 20);
  }
  code += "mov.u32 %d, 0;\n";
  for (int i = 0; i < 200; ++i) code += fmt::format("mad.lo.u32 %d, %d, 31, %v{};\n", i);
  Words a = Values(32);
  auto got = Each<uint32_t>(code, a);
  std::vector<Words> v(32, Words(200));
  for (uint32_t t = 0; t < 32; ++t) {
    for (uint32_t i = 0; i < 200; ++i) v[t][i] = a[t] * (i + 1) + i * 3;
  }
  for (uint32_t k = 0; k < 150; ++k) {
    std::vector<Words> before = v;
    for (uint32_t t = 0; t < 32; ++t) v[t][k + 20] += before[t ^ 1][k];
  }
  for (uint32_t t = 0; t < 32; ++t) {
    uint32_t want = 0;
    for (uint32_t x : v[t]) want = want * 31 + x;
    EXPECT_EQ(got[t], want);
  }
}

TEST_F(Warp, BarriersInMemoryHandWorkOver) {
  // The first warp fills a cell and arrives; the second waits for each phase by its parity.
  Words a(64, 0);
  auto got = Each<uint32_t>(R"(
    .shared .align 8 .b64 full; .shared .align 8 .b64 empty; .shared .align 4 .u32 cell;
    .reg .b32 %k, %sum, %parity; .reg .b64 %state; .reg .pred %more, %done;
    setp.eq.u32 %p, %i, 0; @!%p bra ready;
    mbarrier.init.shared::cta.b64 [full], 32; mbarrier.init.shared::cta.b64 [empty], 32;
  ready:
    bar.sync 0;
    mov.u32 %k, 0; mov.u32 %sum, 0; mov.u32 %parity, 0;
    setp.lt.u32 %p, %i, 32; @!%p bra consumer;
  produce:
    setp.eq.u32 %q, %i, 0; mad.lo.u32 %t0, %k, 10, 1; @%q st.shared.u32 [cell], %t0;
    mbarrier.arrive.shared.b64 %state, [full];
  wait_empty:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [empty], %parity; @!%done bra wait_empty;
    xor.b32 %parity, %parity, 1;
    add.u32 %k, %k, 1; setp.lt.u32 %more, %k, 5; @%more bra produce;
    bra done;
  consumer:
    mbarrier.test_wait.parity.shared.b64 %done, [full], %parity; @!%done bra consumer;
    xor.b32 %parity, %parity, 1;
    ld.shared.u32 %t0, [cell]; add.u32 %sum, %sum, %t0;
    mbarrier.arrive.release.cta.shared.b64 _, [empty];
    add.u32 %k, %k, 1; setp.lt.u32 %more, %k, 5; @%more bra consumer;
  done:
    mov.u32 %d, %sum;)",
                            a);
  for (uint32_t t = 0; t < 64; ++t) EXPECT_EQ(got[t], t < 32 ? 0u : 1u + 11 + 21 + 31 + 41);
}

TEST_F(Warp, AsynchronousCopies) {
  Words a = Values(32);
  auto got = Each<uint32_t>(R"(
    .shared .align 16 .b8 buffer[512];
    ld.param.u64 %u0, [pa]; mul.wide.u32 %u1, %i, 4; add.u64 %u0, %u0, %u1;
    mov.u32 %t0, buffer; shl.b32 %t1, %i, 2; add.u32 %t0, %t0, %t1;
    cp.async.ca.shared.global [%t0], [%u0], 4;
    and.b32 %t2, %i, 1; shl.b32 %t2, %t2, 1;
    cp.async.ca.shared.global [%t0+128], [%u0], 4, %t2;
    cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
    xor.b32 %t1, %t1, 124; mov.u32 %t0, buffer; add.u32 %t0, %t0, %t1; ld.shared.u32 %d, [%t0];
    ld.shared.u32 %t1, [%t0+128]; sub.u32 %d, %d, %t1;)",
                            a);
  for (uint32_t t = 0; t < 32; ++t)
    EXPECT_EQ(got[t], a[31 - t] - ((31 - t) & 1 ? a[31 - t] & 0xffff : 0)) << t;
}

}  // namespace
}  // namespace cuplex::softcuda
