// Copies that complete later, the barriers in memory that tell, and what belongs to clusters.
#include <bit>
#include <cmath>

#include "softcuda/jit/instruction_rig.h"

namespace cuplex::softcuda {
namespace {

using Words = std::vector<uint32_t>;

class Async : public InstructionRig {
 protected:
  /// Runs `body` in a block of `threads`: %rd0 points to `in`, %rd1 to the output (1 KiB of words), %i is the
  /// thread; smem has 1 KiB, bar two mbarriers.
  Words RunBody(const std::string& body, const Words& in, uint32_t threads = 1) {
    auto program = Load(Text(body));
    if (!program) return {};
    auto* out = Allocate<uint32_t>(256);
    std::fill(out, out + 256, 0);
    Run(*program, "run", {{1, 1, 1}, {threads, 1, 1}}, Upload(in), out);
    return {out, out + 256};
  }
  Fault::Kind FaultOf(const std::string& body) {
    auto program = Load(Text(body));
    if (!program) return Fault::Kind::kTrap;
    return RunToFault(*program, "run", {{1, 1, 1}, {1, 1, 1}}, Upload(Words(64)), Allocate<uint32_t>(256))
        .kind;
  }
  static std::string Text(const std::string& body) {
    return ".visible .entry run(.param .u64 in, .param .u64 out)\n{\n"
           ".reg .b32 %i, %r<16>; .reg .b64 %rd<16>; .reg .pred %p<8>; .reg .f32 %f<8>;\n"
           ".shared .align 128 .b8 smem[1024]; .shared .align 8 .b64 bar[2];\n"
           "mov.u32 %i, %tid.x; ld.param.u64 %rd0, [in]; ld.param.u64 %rd1, [out];\n" +
           body + "\nret;\n}\n";
  }
  static Words Counting(uint32_t n, uint32_t from = 1) {
    Words v(n);
    for (uint32_t i = 0; i < n; ++i) v[i] = from + i;
    return v;
  }
  static Words Head(const Words& v, size_t n) {
    return {v.begin(), v.begin() + static_cast<ptrdiff_t>(std::min(n, v.size()))};
  }
};

TEST_F(Async, SmallCopiesOfEveryForm) {
  auto got = RunBody(R"(
    mov.u32 %r0, 0xffffffff;
    st.shared.u32 [smem+32], %r0; st.shared.u32 [smem+36], %r0; st.shared.u32 [smem+40], %r0; st.shared.u32 [smem+44], %r0;
    mov.u32 %r1, 6; setp.eq.u32 %p0, %r1, 6; mov.u64 %rd5, 3; mov.u64 %rd6, 0;
    createpolicy.fractional.L2::evict_first.b64 %rd7, 1.0;
    cp.async.cg.shared.global [smem], [%rd0], 16;
    cp.async.ca.shared::cta.global.L2::128B [smem+16], [%rd0+16], 8;
    cp.async.ca.shared.global.L2::cache_hint [smem+24], [%rd0+24], 4, %rd7;
    cp.async.ca.shared.global [smem+32], [%rd0], 8, %r1;
    cp.async.cg.shared.global [smem+48], [%rd5], 16, 0;
    cp.async.ca.shared.global [smem+64], [%rd6], 4, %p0;
    cp.async.ca.shared.global.L2::cache_hint [smem+68], [%rd0+4], 4, !%p0, %rd7;
    cp.async.ca.shared.global.L2::cache_hint [smem+72], [%rd0+8], 8, 8, %rd7;
    cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all;
    mov.u32 %r2, 0; mov.u32 %r3, smem;
  more:
    ld.shared.u32 %r4, [%r3]; st.global.u32 [%rd1], %r4; add.u32 %r3, %r3, 4; add.u64 %rd1, %rd1, 4;
    add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 20; @%p1 bra more;)",
                     {0x11223344, 0x55667788, 3, 4, 5, 6, 7, 8});
  // 6 of 8 bytes and zeros; a source that is not read may lie anywhere; what the predicate ignores is zero.
  EXPECT_EQ(Head(got, 20), (Words{0x11223344, 0x55667788, 3, 4, 5, 6, 7, 0,          0x11223344, 0x7788,
                                  ~0u,        ~0u,        0, 0, 0, 0, 0, 0x55667788, 3,          4}));
}

TEST_F(Async, BulkCopyTellsItsBarrier) {
  // Thread 0 asks for the bytes, all wait for them, each takes one word and hands it on; then the block's
  // words go back by a bulk copy in a group.
  auto got = RunBody(R"(
    setp.ne.u32 %p0, %i, 0;
    @%p0 bra wait;
    mbarrier.init.shared::cta.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
  wait:
    bar.sync 0;
    @%p0 bra poll;
    mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [bar], 256;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [smem], [%rd0], 128, [bar];
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [smem+128], [%rd0+128], 128, [bar];
  poll:
    mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [bar], 0, 1000;
    @!%p1 bra poll;
    shl.b32 %r0, %i, 2; mov.u32 %r1, smem; add.u32 %r1, %r1, %r0;
    ld.shared.u32 %r2, [%r1]; add.u32 %r2, %r2, 1000; st.shared.u32 [%r1+256], %r2;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%p0 bra done;
    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [smem+256], 256;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;
  done:)",
                     Counting(64), 64);
  EXPECT_EQ(Head(got, 64), Counting(64, 1001));
}

TEST_F(Async, BulkCopiesInsideTheClusterAndByMask) {
  auto got = RunBody(R"(
    mbarrier.init.shared.b64 [bar], 1; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 96;
    mov.u64 %rd5, 0;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [smem], [%rd0], 32, [bar], 1, %rd5;
    mov.u32 %r6, smem; mapa.shared::cluster.u32 %r6, %r6, 0; mov.u32 %r7, bar;
    cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r6+64], [smem], 32, [%r7];
    mbarrier.arrive.shared::cta.b64 %rd6, [bar];
    mbarrier.test_wait.shared::cta.b64 %p0, [bar], %rd6; selp.u32 %r0, 1, 0, %p0;
    cp.async.bulk.prefetch.L2.global [%rd0], 32;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [smem+96], [%rd0+16], 32, [bar];
    mbarrier.test_wait.shared::cta.b64 %p0, [bar], %rd6; selp.u32 %r1, 1, 0, %p0;
    st.global.v2.u32 [%rd1], {%r0, %r1};
    ld.shared.u32 %r0, [smem+64]; ld.shared.u32 %r1, [smem+92]; ld.shared.u32 %r2, [smem+96]; ld.shared.u32 %r3, [smem+124];
    st.global.v4.u32 [%rd1+16], {%r0, %r1, %r2, %r3};)",
                     Counting(16));
  EXPECT_EQ(Head(got, 8), (Words{0, 1, 0, 0, 1, 8, 5, 12}));
}

TEST_F(Async, BarrierPhasesCountArrivalsAndBytes) {
  // Each line of `got` is test_wait of parity 0 after one more step.
  auto got = RunBody(R"(
    mbarrier.init.shared.b64 [bar], 2;
    mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 48;
    mbarrier.arrive.shared.b64 %rd5, [bar]; mbarrier.pending_count.b64 %r5, %rd5; st.global.u32 [%rd1+64], %r5;
    mbarrier.test_wait.parity.shared.b64 %p0, [bar], 0; selp.u32 %r0, 1, 0, %p0; st.global.u32 [%rd1], %r0;
    mbarrier.arrive.expect_tx.shared.b64 %rd6, [bar], 32; mbarrier.pending_count.b64 %r6, %rd6; st.global.u32 [%rd1+68], %r6;
    mbarrier.test_wait.parity.shared.b64 %p0, [bar], 0; selp.u32 %r0, 1, 0, %p0; st.global.u32 [%rd1+4], %r0;
    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16;
    mbarrier.test_wait.parity.shared.b64 %p0, [bar], 0; selp.u32 %r0, 1, 0, %p0; st.global.u32 [%rd1+8], %r0;
    mbarrier.test_wait.shared.b64 %p0, [bar], %rd6; selp.u32 %r0, 1, 0, %p0; st.global.u32 [%rd1+12], %r0;
    mbarrier.arrive_drop.shared.b64 %rd7, [bar];
    mbarrier.arrive.noComplete.shared.b64 %rd7, [bar], 1;
    mbarrier.test_wait.parity.shared.b64 %p0, [bar], 1; selp.u32 %r0, 1, 0, %p0; st.global.u32 [%rd1+16], %r0;
    mbarrier.arrive.shared.b64 %rd7, [bar];
    mbarrier.test_wait.parity.shared.b64 %p0, [bar], 0; selp.u32 %r0, 1, 0, %p0; st.global.u32 [%rd1+20], %r0;
    mbarrier.inval.shared.b64 [bar];)",
                     {0});
  // Bytes may be told of before they are asked for. One phase is over after the second step's missing 16
  // bytes were asked for; then one of two arrivals drops out, the phase after it takes one arrival alone.
  EXPECT_EQ(Head(got, 6), (Words{0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(got[16], 2u);
  EXPECT_EQ(got[17], 1u);
}

TEST_F(Async, BulkReductions) {
  std::string prefix = R"(
    mov.u32 %r0, 5; mov.u32 %r1, 0xfffffffe; mov.u32 %r2, 100; mov.u32 %r3, 0x3c003800;
    st.shared.v4.u32 [smem], {%r0, %r1, %r2, %r3};
    ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd0]; st.global.v4.u32 [%rd1], {%r4, %r5, %r6, %r7};
  )";
  auto run = [&](const std::string& what, const Words& in) {
    return Head(RunBody(prefix + "cp.reduce.async.bulk.global.shared::cta.bulk_group." + what +
                            " [%rd1], [smem], 16; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
                        in),
                4);
  };
  Words in = {7, 3, 0xffffffff, 1};
  EXPECT_EQ(run("add.u32", in), (Words{12, 1, 99, 0x3c003801}));
  EXPECT_EQ(run("min.s32", in), (Words{5, 0xfffffffe, 0xffffffff, 1}));
  EXPECT_EQ(run("max.u32", in), (Words{7, 0xfffffffe, 0xffffffff, 0x3c003800}));
  EXPECT_EQ(run("inc.u32", in), (Words{0, 4, 0, 2}));
  EXPECT_EQ(run("dec.u32", in), (Words{5, 2, 100, 0}));
  EXPECT_EQ(run("and.b32", in), (Words{5, 2, 100, 0}));
  EXPECT_EQ(run("xor.b32", in), (Words{2, 0xfffffffd, 0xffffff9b, 0x3c003801}));
  EXPECT_EQ(run("add.u64", in), (Words{12, 1, 99, 0x3c003802}));  // the carry of the upper pair
  // 1.0 and 0.5 to 2.0 and 1.0; elsewhere numbers that add to themselves with zeros.
  EXPECT_EQ(run("add.noftz.f16", {0, 0, 0, 0x40003c00})[3], 0x42003e00u);
  // 0x3c00 as bf16 is 2^-7, 0x3800 is 2^-15.
  EXPECT_EQ(run("max.bf16", {0, 0, 0, 0x3c803000})[3], 0x3c803800u);
  EXPECT_EQ(run("add.f32", {0, 0, 0, std::bit_cast<uint32_t>(1.0f)})[3],
            std::bit_cast<uint32_t>(1.0f + std::bit_cast<float>(0x3c003800u)));
}

TEST_F(Async, BulkCopiesAreChecked) {
  std::string copy = "mbarrier.init.shared.b64 [bar], 1; ";
  EXPECT_EQ(
      FaultOf(copy +
              "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [smem], [%rd0], 24, [bar];"),
      Fault::Kind::kMisalignedAddress);
  EXPECT_EQ(
      FaultOf(
          copy +
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [smem], [%rd0+4], 16, [bar];"),
      Fault::Kind::kMisalignedAddress);
  EXPECT_EQ(FaultOf(copy + "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [smem+512], "
                           "[%rd0], 1024, [bar];"),
            Fault::Kind::kIllegalAddress);
  EXPECT_EQ(FaultOf("mov.u64 %rd5, 4096; cp.async.bulk.global.shared::cta.bulk_group [%rd5], [smem], 16;"),
            Fault::Kind::kIllegalAddress);
  EXPECT_EQ(FaultOf("mov.u64 %rd5, 4096; cp.async.ca.shared.global [smem], [%rd5], 4, 4;"),
            Fault::Kind::kIllegalAddress);
}

TEST_F(Async, StoresAndReductionsThatTellABarrier) {
  auto got = RunBody(R"(
    mbarrier.init.shared.b64 [bar], 1; mov.u32 %r5, bar; mov.u32 %r6, smem;
    mbarrier.arrive.expect_tx.shared.b64 %rd5, [bar], 16;
    mov.u32 %r0, 7; mov.u32 %r1, 8;
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%r6], {%r0, %r1}, [%r5];
    st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r6+8], %r0, [%r5];
    mbarrier.test_wait.shared.b64 %p0, [bar], %rd5; selp.u32 %r2, 1, 0, %p0;
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r6+8], %r1, [%r5];
    mbarrier.test_wait.shared.b64 %p0, [bar], %rd5; selp.u32 %r3, 1, 0, %p0;
    st.global.v2.u32 [%rd1], {%r2, %r3};
    ld.shared.v2.u32 {%r0, %r1}, [smem]; st.global.v2.u32 [%rd1+8], {%r0, %r1};
    ld.shared.u32 %r0, [smem+8]; st.global.u32 [%rd1+16], %r0;)",
                     {0});
  EXPECT_EQ(Head(got, 5), (Words{0, 1, 7, 8, 15}));
}

TEST_F(Async, BulkStoreClears) {
  auto got = RunBody(R"(
    mov.u32 %r0, 7; st.shared.v4.u32 [smem], {%r0, %r0, %r0, %r0};
    mov.u64 %rd5, 8; st.bulk.weak.shared::cta [smem+8], %rd5, 0;
    ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [smem]; st.global.v4.u32 [%rd1], {%r0, %r1, %r2, %r3};)",
                     {0});
  EXPECT_EQ(Head(got, 4), (Words{7, 7, 0, 0}));
}

// ---------------------------------------------------------------------------------------------- clusters

TEST_F(Async, ClusterBarrierSplitsArrivalAndWait) {
  // Every thread publishes, arrives, does something else and waits; then it reads its neighbour's. Twice, so
  // that the second phase is told from the first.
  auto got = RunBody(R"(
    shl.b32 %r0, %i, 2; mov.u32 %r1, smem; add.u32 %r1, %r1, %r0;
    add.u32 %r2, %i, 1; and.b32 %r2, %r2, 63; shl.b32 %r2, %r2, 2; mov.u32 %r3, smem; add.u32 %r3, %r3, %r2;
    add.u32 %r4, %i, 100; st.shared.u32 [%r1], %r4;
    barrier.cluster.arrive.release; setp.lt.u32 %p0, %i, 32; @%p0 bra first; bar.warp.sync -1;
  first:
    barrier.cluster.wait.acquire;
    ld.shared.u32 %r5, [%r3];
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    add.u32 %r5, %r5, 1000; st.shared.u32 [%r1], %r5;
    barrier.cluster.arrive.relaxed; barrier.cluster.wait;
    ld.shared.u32 %r6, [%r3];
    mul.wide.u32 %rd5, %i, 4; add.u64 %rd5, %rd5, %rd1; st.global.u32 [%rd5], %r6;)",
                     {0}, 64);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(got[i], 1100 + (i + 2) % 64) << i;
}

TEST_F(Async, ClusterOfOneBlock) {
  auto text = [](const std::string& directive) {
    return ".visible .entry run(.param .u64 out)\n" + directive + R"(
{
  .reg .b32 %r<16>; .reg .b64 %rd<4>; .reg .pred %p; .shared .align 4 .b8 smem[64];
  ld.param.u64 %rd0, [out];
  mov.u32 %r0, %cluster_ctarank; mov.u32 %r1, %cluster_nctarank; mov.u32 %r2, %cluster_ctaid.x; mov.u32 %r3, %cluster_nctaid.y;
  mov.u32 %r4, %clusterid.x; mov.u32 %r5, %nclusterid.x; mov.pred %p, %is_explicit_cluster; selp.u32 %r6, 1, 0, %p;
  mov.u32 %r8, smem; mapa.shared::cluster.u32 %r9, %r8, 0; sub.u32 %r7, %r9, %r8;
  getctarank.shared::cluster.u32 %r10, %r8; add.u32 %r7, %r7, %r10;
  st.global.v4.u32 [%rd0], {%r0, %r1, %r2, %r3}; st.global.v4.u32 [%rd0+16], {%r4, %r5, %r6, %r7};
  ret;
})";
  };
  auto program = Load(text(".explicitcluster .reqnctapercluster 1, 1, 1"));
  ASSERT_TRUE(program);
  auto* out = Allocate<uint32_t>(8);
  Run(*program, "run", {{1, 1, 1}, {1, 1, 1}}, out);
  EXPECT_EQ(Words(out, out + 8), (Words{0, 1, 0, 1, 0, 1, 1, 0}));
  auto two = TryCompile(text(".reqnctapercluster 2, 1, 1"));
  ASSERT_FALSE(two.ok());
  EXPECT_NE(two.error().sentence.find("clusters of more than one block"), std::string::npos);
}

// ------------------------------------------------------------------------------- registers and cache words

TEST_F(Async, SystemSharedMemoryLiesApart) {
  auto got = RunBody(R"(
    mov.u32 %r0, %reserved_smem_offset_1; mov.u32 %r1, smem;
    mov.u32 %r2, 17; st.shared.u32 [smem], %r2; mov.u32 %r2, 18; st.shared.u32 [%r0+284], %r2;
    cvt.u64.u32 %rd5, %r0; cvta.shared.u64 %rd5, %rd5; ld.u32 %r3, [%rd5+284];
    ld.shared.u32 %r4, [smem]; st.global.v2.u32 [%rd1], {%r3, %r4};
    mov.u32 %r5, %total_smem_size; mov.u32 %r6, %aggr_smem_size; sub.u32 %r6, %r6, %r5; st.global.v2.u32 [%rd1+8], {%r5, %r6};
    mov.u32 %r7, %pm0; mov.u64 %rd6, %pm7_64; mov.u32 %r8, %envreg7; mov.u32 %r9, %dynamic_smem_size; st.global.u32 [%rd1+16], %r9;)",
                     {0});
  EXPECT_EQ(Head(got, 5), (Words{18, 17, 1040, 1024, 0}));
}

TEST_F(Async, CacheWordsChangeNothing) {
  auto got = RunBody(R"(
    createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %rd5, [%rd0], 0x10, 0x20;
    createpolicy.cvt.L2.b64 %rd5, 0x10;
    createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %rd6, 0.5;
    ld.global.L2::cache_hint.u32 %r0, [%rd0], %rd5;
    ld.global.nc.L1::no_allocate.L2::cache_hint.L2::256B.v4.u32 {%r4, %r5, %r6, %r7}, [%rd0], %rd6;
    prefetch.global.L2 [%rd0]; prefetch.global.L2::evict_last [%rd0]; prefetchu.L1 [%rd0];
    applypriority.global.L2::evict_normal [%rd0], 128; 
    st.global.L2::cache_hint.u32 [%rd1], %r0, %rd5; st.global.L1::evict_last.u32 [%rd1+4], %r7;
    atom.global.add.L2::cache_hint.u32 %r1, [%rd1], %r0, %rd5; st.global.u32 [%rd1+8], %r1;
    red.global.add.L2::cache_hint.u32 [%rd1], %r0, %rd5;
    discard.global.L2 [%rd0], 128;
    setmaxnreg.inc.sync.aligned.u32 128; pmevent 3; pmevent.mask 5; griddepcontrol.wait; griddepcontrol.launch_dependents;)",
                     {5, 6, 7, 8});
  EXPECT_EQ(Head(got, 3), (Words{15, 8, 5}));
}

TEST_F(Async, ReduxOfFloats) {
  std::vector<float> a(32);
  for (int i = 0; i < 32; ++i) a[static_cast<size_t>(i)] = static_cast<float>(i - 10) * 0.5f;
  a[3] = NAN;
  a[9] = -0.0f;
  auto all = [&](const std::string& what, float want) {
    auto got = Each<uint32_t>("redux.sync." + what + " %a, %a, -1; mov.b32 %d, %a;", a);
    EXPECT_EQ(got, Words(32, std::bit_cast<uint32_t>(want))) << what;
  };
  all("min.f32", -5.0f);
  all("max.f32", 10.5f);
  all("max.abs.f32", 10.5f);
  all("min.abs.f32", 0.0f);
  all("max.NaN.f32", std::bit_cast<float>(0x7fffffffu));
  a[3] = 0.25f;
  all("min.abs.NaN.f32", 0.0f);
  a = std::vector<float>(32, 0.0f);
  a[7] = -0.0f;
  all("min.f32", -0.0f);
}

}  // namespace
}  // namespace cuplex::softcuda
