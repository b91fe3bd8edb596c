// Control flow: branches, loops, tables, calls of every kind, recursion, exits; and copies that run beside
// the thread.
#include <fmt/format.h>

#include "tests/conformance/ptx/corpus.h"

namespace cuplex::corpus {
namespace {

uint32_t Collatz(uint32_t n) {
  uint32_t steps = 0;
  for (n = n % 1000 + 1; n != 1; ++steps) n = n % 2 ? 3 * n + 1 : n / 2;
  return steps;
}

void Branches(Family& f) {
  f.Add(
       "{ rem.u32 %t0, %a, 1000; add.u32 %t0, %t0, 1; mov.u32 %d, 0; next: setp.eq.u32 %p, %t0, 1; @%p bra "
       "done; and.b32 %t1, %t0, 1; setp.eq.u32 %q, %t1, 0; @%q bra even; mad.lo.u32 %t0, %t0, 3, 1; bra "
       "both; "
       "even: shr.u32 %t0, %t0, 1; both: add.u32 %d, %d, 1; bra next; done: }",
       [](uint32_t a) { return Collatz(a); })
      .Named("bra: loops of different lengths");
  f.Add(
       "{ mov.u32 %d, 1; setp.lt.u32 %p, %a, %b; @!%p bra no; mov.u32 %d, 2; @%p bra.uni end; no: "
       "setp.eq.u32 %q, %a, %b; @%q mov.u32 %d, 3; end: }",
       [](uint32_t a, uint32_t b) { return a < b    ? 2u
                                           : a == b ? 3u
                                                    : 1u; })
      .Named("bra under a negated predicate");
  f.Add(
       "{ mov.u32 %d, 0; mov.u32 %t0, 0; outer: mov.u32 %t1, 0; inner: add.u32 %t1, %t1, 1; and.b32 %t2, %a, "
       "7; setp.gt.u32 %p, %t1, %t2; @%p bra leave; add.u32 %d, %d, %t1; setp.gt.u32 %q, %d, 1000; @%q bra "
       "far; bra inner; "
       "leave: add.u32 %t0, %t0, 1; and.b32 %t3, %b, 15; setp.le.u32 %p, %t0, %t3; @%p bra outer; far: }",
       [](uint32_t a, uint32_t b) {
         uint32_t d = 0;
         for (uint32_t x = 0; x <= (b & 15); ++x)
           for (uint32_t y = 1; y <= (a & 7); ++y)
             if ((d += y) > 1000) return d;
         return d;
       })
      .Named("bra out of two loops");
  f.Add(
       "{ rem.u32 %t0, %a, 5; t: .branchtargets L0, L1, L2, L1, L3; brx.idx %t0, t; L0: mov.u32 %d, 10; bra "
       "end; L1: mov.u32 %d, 11; bra end; L2: mov.u32 %d, 12; L3: mov.u32 %d, 13; end: }",
       [](uint32_t a) {
         constexpr uint32_t kGives[] = {10, 11, 13, 11, 13};
         return kGives[a % 5];
       })
      .Named("brx.idx");
  f.Add(
       "{ mov.u32 %t0, 2; t: .branchtargets L0, L1, L2; brx.idx.uni %t0, t; L0: mov.u32 %d, 10; bra end; L1: "
       "mov.u32 %d, 11; bra end; L2: mov.u32 %d, %a; end: }",
       [](uint32_t a) { return a; })
      .Named("brx.idx.uni");
  // A jump into the middle of a loop: control flow that no structured language has.
  f.Add(
       "{ and.b32 %t0, %a, 3; mov.u32 %t1, 0; mov.u32 %d, 0; setp.eq.u32 %p, %t0, 2; @%p bra middle; head: "
       "add.u32 %d, %d, 100; middle: add.u32 %d, %d, 1; add.u32 %t1, %t1, 1; setp.lt.u32 %q, %t1, 4; @%q bra "
       "head; }",
       [](uint32_t a) { return (a & 3) == 2 ? 304u : 404u; })
      .Named("bra into a loop");
}

void Calls(Family& f) {
  const std::string functions = R"(
.func (.reg .b32 r) $_square(.reg .b32 x) { mul.lo.u32 r, x, x; ret; }
.func (.param .b32 r) $_sum(.param .align 8 .b8 s[24]) {
  .reg .b32 %a<4>; .reg .b64 %w; .reg .b16 %h;
  ld.param.u32 %a0, [s]; ld.param.u64 %w, [s+8]; ld.param.u8 %h, [s+17]; cvt.u32.u64 %a1, %w; cvt.u32.u16 %a2, %h; add.u32 %a0, %a0, %a1; add.u32 %a0, %a0, %a2; st.param.b32 [r], %a0; ret; }
.func (.param .align 8 .b8 r[16]) $_pair(.param .b32 x) {
  .reg .b32 %a; .reg .b64 %w; ld.param.u32 %a, [x]; mul.wide.u32 %w, %a, %a; st.param.b64 [r], %w; not.b64 %w, %w; st.param.b64 [r+8], %w; ret; }
.func (.param .b32 r) $_factorial(.param .b32 n) {
  .reg .b32 %a<3>; .reg .pred %p;
  ld.param.u32 %a0, [n]; setp.le.u32 %p, %a0, 1; @%p bra one; sub.u32 %a1, %a0, 1;
  { .param .b32 i; .param .b32 o; st.param.b32 [i], %a1; call.uni (o), $_factorial, (i); ld.param.b32 %a2, [o]; }
  mul.lo.u32 %a0, %a0, %a2; st.param.b32 [r], %a0; ret;
one: mov.u32 %a0, 1; st.param.b32 [r], %a0; ret; }
.func (.reg .b32 r) $_is_odd(.reg .b32 n);
.func (.reg .b32 r) $_is_even(.reg .b32 n) { .reg .pred %p; .reg .b32 %m; setp.eq.u32 %p, n, 0; mov.u32 r, 1; @%p ret; sub.u32 %m, n, 1; call (r), $_is_odd, (%m); ret; }
.func (.reg .b32 r) $_is_odd(.reg .b32 n) { .reg .pred %p; .reg .b32 %m; setp.eq.u32 %p, n, 0; mov.u32 r, 0; @%p ret; sub.u32 %m, n, 1; call (r), $_is_even, (%m); ret; }
.func (.param .b32 r) $_plus(.param .b32 a, .param .b32 b) { .reg .b32 %x<2>; ld.param.u32 %x0, [a]; ld.param.u32 %x1, [b]; add.u32 %x0, %x0, %x1; st.param.b32 [r], %x0; ret; }
.func (.param .b32 r) $_minus(.param .b32 a, .param .b32 b) { .reg .b32 %x<2>; ld.param.u32 %x0, [a]; ld.param.u32 %x1, [b]; sub.u32 %x0, %x0, %x1; st.param.b32 [r], %x0; ret; }
.func (.param .b32 r) $_times(.param .b32 a, .param .b32 b) { .reg .b32 %x<2>; ld.param.u32 %x0, [a]; ld.param.u32 %x1, [b]; mul.lo.u32 %x0, %x0, %x1; st.param.b32 [r], %x0; ret; }
.global .align 8 .u64 $_operations[3] = {$_plus, $_minus, $_times};
.func $_nothing() { ret; }
.func $_store(.param .b64 at, .param .b32 v) { .reg .b64 %w; .reg .b32 %a; ld.param.u64 %w, [at]; ld.param.u32 %a, [v]; st.u32 [%w], %a; ret; }
)";
  auto with = [&](const char* name, const std::string& code, auto of) -> Form& {
    return f.Add(code, of).Named(name).Declare(functions);
  };
  with("call by registers", "call.uni (%d), $_square, (%a);", [](uint32_t a) { return a * a; });
  with("call without arguments", "call $_nothing; mov.u32 %d, %a;", [](uint32_t a) { return a; });
  with("call under a predicate", "mov.u32 %d, 7; setp.gt.u32 %p, %a, 100; @%p call (%d), $_square, (%a);",
       [](uint32_t a) { return a > 100 ? a * a : 7; });
  with("call with a struct",
       "{ .param .align 8 .b8 s[24]; .param .b32 o; st.param.b32 [s], %a; cvt.u64.u32 %u0, %b; st.param.b64 "
       "[s+8], %u0; mov.u16 %h0, 9; st.param.b8 [s+17], %h0; call.uni (o), $_sum, (s); ld.param.b32 %d, [o]; "
       "}",
       [](uint32_t a, uint32_t b) { return a + b + 9; });
  with("call for a struct",
       "{ .param .b32 x; .param .align 8 .b8 o[16]; st.param.b32 [x], %a; call.uni (o), $_pair, (x); "
       "ld.param.b64 %u0, [o]; ld.param.b64 %u1, [o+8]; mul.lo.u64 %u1, %u1, 3; sub.u64 %d, %u0, %u1; }",
       [](uint32_t a) { return uint64_t{a} * a - 3 * ~(uint64_t{a} * a); });
  with("recursion",
       "{ .param .b32 x; .param .b32 o; and.b32 %t0, %a, 15; st.param.b32 [x], %t0; call.uni (o), "
       "$_factorial, (x); ld.param.b32 %d, [o]; }",
       [](uint32_t a) {
         uint32_t product = 1;
         for (uint32_t n = 2; n <= (a & 15); ++n) product *= n;
         return product;
       });
  with("recursion of two functions", "and.b32 %t0, %a, 63; call (%d), $_is_even, (%t0);",
       [](uint32_t a) { return a % 2 ? 0u : 1u; });
  with("an indirect call",
       "{ .param .b32 x; .param .b32 y; .param .b32 o; rem.u32 %t0, %a, 3; mul.wide.u32 %u0, %t0, 8; mov.u64 "
       "%u1, $_operations; add.u64 %u0, %u0, %u1; ld.global.u64 %u2, [%u0]; st.param.b32 [x], %a; "
       "st.param.b32 [y], %b; "
       "proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _); call (o), %u2, (x, y), "
       "proto; ld.param.b32 %d, [o]; }",
       [](uint32_t a, uint32_t b) { return a % 3 == 0   ? a + b
                                           : a % 3 == 1 ? a - b
                                                        : a * b; });
  with("an indirect call by .calltargets",
       "{ .param .b32 x; .param .b32 y; .param .b32 o; mov.u64 %u2, $_minus; st.param.b32 [x], %a; "
       "st.param.b32 [y], %b; targets: .calltargets $_plus, $_minus; call (o), %u2, (x, y), targets; "
       "ld.param.b32 %d, [o]; }",
       [](uint32_t a, uint32_t b) { return a - b; });
  with("a call with a pointer to local memory",
       "{ .local .align 4 .b8 c[4]; .param .b64 at; .param .b32 v; mov.u64 %u0, c; cvta.local.u64 %u0, %u0; "
       "st.param.b64 [at], %u0; st.param.b32 [v], %a; call.uni $_store, (at, v); ld.local.u32 %d, [c]; }",
       [](uint32_t a) { return a; });
}

void Exits(Family& f) {
  Kernel& k = f.AddKernel("exit and ret of some threads before a barrier");
  k.block[0] = 96;
  k.text = Entry() + R"(
    .shared .align 4 .b8 sum[4];
    mov.u32 %t0, 0; setp.eq.u32 %p, %i, 0; @%p st.shared.u32 [sum], %t0; bar.sync 0;
    mad.wide.u32 %at, %i, 4, %pd; rem.u32 %t1, %i, 3; setp.eq.u32 %p, %t1, 1; @%p exit; setp.eq.u32 %p, %i, 95; @%p ret;
    red.shared.add.u32 [sum], %i; bar.sync 0; ld.shared.u32 %t2, [sum]; st.global.u32 [%at], %t2; ret; })";
  std::vector<uint32_t> expected(96);
  uint32_t sum = 0;
  for (uint32_t i = 0; i < 95; ++i) sum += i % 3 == 1 ? 0 : i;
  for (uint32_t i = 0; i < 95; ++i) expected[i] = i % 3 == 1 ? 0 : sum;
  k.output.resize(96 * 4);
  k.check = Expect(expected);

  Kernel& deep = f.AddKernel("exit inside a function");
  deep.block[0] = 32;
  deep.declarations = ".func $_leave(.reg .b32 x) { .reg .pred %p; setp.gt.u32 %p, x, 20; @%p exit; ret; }\n";
  deep.text = Entry() + "mad.wide.u32 %at, %i, 4, %pd; call $_leave, (%i); st.global.u32 [%at], %i; ret; }\n";
  std::vector<uint32_t> left;
  for (uint32_t i = 0; i < 32; ++i) left.push_back(i > 20 ? 0 : i);
  deep.output.resize(128);
  deep.check = Expect(left);
}

/// cp.async and mbarrier: rows of 16 bytes through shared memory.
void Copies(Family& f) {
  std::vector<uint32_t> in, reversed;
  for (uint32_t i = 0; i < 256; ++i) in.push_back(static_cast<uint32_t>(Mixed(i)));
  for (uint32_t row = 0; row < 64; ++row)
    for (uint32_t n = 0; n < 4; ++n) reversed.push_back(in[(63 - row) * 4 + n]);
  const std::string place =
      "    .shared .align 16 .b8 s[1024]; .shared .align 8 .b8 bars[16];\n    mov.u32 %t0, s; shl.b32 %t1, "
      "%i, 4; add.u32 %t0, %t0, %t1; mad.wide.u32 %u0, %i, 16, %pa;\n";
  const std::string out =
      "    mov.u32 %t0, s; xor.b32 %t1, %i, 63; shl.b32 %t1, %t1, 4; add.u32 %t0, %t0, %t1; ld.shared.v4.u32 "
      "{%t2, %t3, %t4, %t5}, [%t0]; mad.wide.u32 %at, %i, 16, %pd; st.global.v4.u32 [%at], {%t2, %t3, %t4, "
      "%t5}; ret; }\n";
  auto copy = [&](const char* name, int target, const std::string& middle, std::vector<uint32_t> expected) {
    Kernel& k = f.AddKernel(name);
    k.block[0] = 64;
    k.target = target;
    k.text = Entry() + place + middle + out;
    k.inputs = {BytesOf(in)};
    k.output.resize(1024);
    k.check = Expect(std::move(expected));
  };
  copy("cp.async.cg and wait_all", 80,
       "cp.async.cg.shared.global [%t0], [%u0], 16; cp.async.wait_all; bar.sync 0;\n", reversed);
  copy("cp.async.ca in groups", 80,
       "cp.async.ca.shared.global [%t0], [%u0], 8; cp.async.commit_group; cp.async.ca.shared.global [%t0+8], "
       "[%u0+8], 4; cp.async.ca.shared.global [%t0+12], [%u0+12], 4; cp.async.commit_group; "
       "cp.async.wait_group 1; cp.async.wait_group 0; bar.sync 0;\n",
       reversed);
  std::vector<uint32_t> short_rows = reversed;
  for (size_t i = 0; i < 256; ++i)
    if (i % 4 >= 2) short_rows[i] = 0;
  copy("cp.async.cg of fewer bytes, the rest zero", 80,
       "cp.async.cg.shared.global [%t0], [%u0], 16, 8; cp.async.wait_all; bar.sync 0;\n", short_rows);
  copy("mbarrier as a barrier of the block", 80,
       "setp.eq.u32 %p, %i, 0; @%p mbarrier.init.shared.b64 [bars], 64; bar.sync 0; ld.global.v4.u32 {%t2, "
       "%t3, %t4, %t5}, [%u0]; st.shared.v4.u32 [%t0], {%t2, %t3, %t4, %t5};\n"
       "mbarrier.arrive.shared.b64 %u1, [bars];\nwaits: mbarrier.test_wait.shared.b64 %q, [bars], %u1; @!%q "
       "bra waits;\n",
       reversed);
  copy("cp.async that arrives at an mbarrier", 80,
       "setp.eq.u32 %p, %i, 0; @%p mbarrier.init.shared.b64 [bars], 64; bar.sync 0; "
       "cp.async.ca.shared.global [%t0], [%u0], 16; cp.async.mbarrier.arrive.noinc.shared.b64 [bars];\n"
       "mov.u32 %t6, 0;\nwaits: mbarrier.test_wait.parity.shared.b64 %q, [bars], %t6; @!%q bra waits;\n",
       reversed);
  copy("mbarrier by parity, two phases", 90,
       "setp.eq.u32 %p, %i, 0; @%p mbarrier.init.shared::cta.b64 [bars], 64; bar.sync 0; mov.u32 %t6, 0;\n"
       "mbarrier.arrive.release.cta.shared::cta.b64 %u1, [bars];\nfirst: "
       "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %q, [bars], %t6; @!%q bra first;\n"
       "ld.global.v4.u32 {%t2, %t3, %t4, %t5}, [%u0]; st.shared.v4.u32 [%t0], {%t2, %t3, %t4, %t5};\n"
       "mbarrier.arrive.shared.b64 _, [bars]; mov.u32 %t6, 1;\nsecond: mbarrier.try_wait.parity.shared.b64 "
       "%q, [bars], %t6; @!%q bra second;\n",
       reversed);
  copy("cp.async.bulk with a transaction count", 90,
       "setp.eq.u32 %p, %i, 0; @%p mbarrier.init.shared::cta.b64 [bars], 1; bar.sync 0; mov.u32 %t0, s; "
       "mov.u32 %t7, bars;\n"
       "@%p mbarrier.arrive.expect_tx.shared::cta.b64 %u1, [%t7], 1024; @%p "
       "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%t0], [%pa], 1024, [%t7];\n"
       "mov.u32 %t6, 0;\nwaits: mbarrier.try_wait.parity.shared::cta.b64 %q, [bars], %t6; @!%q bra waits;\n",
       reversed);

  Kernel& back = f.AddKernel("cp.async.bulk out of shared memory");
  back.block[0] = 64;
  back.target = 90;
  back.text =
      Entry() + place +
      "    ld.global.v4.u32 {%t2, %t3, %t4, %t5}, [%u0]; st.shared.v4.u32 [%t0], {%t2, %t3, %t4, %t5}; "
      "fence.proxy.async.shared::cta; bar.sync 0;\n"
      "    setp.ne.u32 %p, %i, 0; @%p ret; mov.u32 %t0, s; cp.async.bulk.global.shared::cta.bulk_group "
      "[%pd], [%t0], 1024; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret; }\n";
  back.inputs = {BytesOf(in)};
  back.output.resize(1024);
  back.check = Expect(in);

  // Counts of an mbarrier's phase as mbarrier.pending_count has them.
  Kernel& count = f.AddKernel("mbarrier.pending_count and arrivals by count");
  count.block[0] = 1;
  count.target = 80;
  count.text = Entry() + R"(
    .shared .align 8 .b8 bar[8];
    mbarrier.init.shared.b64 [bar], 10; mbarrier.arrive.noComplete.shared.b64 %u0, [bar], 3; mbarrier.pending_count.b64 %t0, %u0; st.global.u32 [%pd], %t0;
    mbarrier.arrive_drop.shared.b64 %u1, [bar]; mbarrier.pending_count.b64 %t0, %u1; st.global.u32 [%pd+4], %t0;
    mbarrier.arrive.noComplete.shared.b64 %u2, [bar], 5; mbarrier.pending_count.b64 %t0, %u2; st.global.u32 [%pd+8], %t0;
    mbarrier.test_wait.shared.b64 %p, [bar], %u2; selp.u32 %t0, 1, 0, %p; st.global.u32 [%pd+12], %t0;
    mbarrier.arrive.shared.b64 %u3, [bar]; mbarrier.test_wait.shared.b64 %p, [bar], %u3; selp.u32 %t0, 1, 0, %p; st.global.u32 [%pd+16], %t0;
    mbarrier.arrive.noComplete.shared.b64 %u4, [bar], 1; mbarrier.pending_count.b64 %t0, %u4; st.global.u32 [%pd+20], %t0;
    mbarrier.inval.shared.b64 [bar]; ret; })";
  count.output.resize(24);
  // A state is the phase's before the arrival: 10, then 7, then 6; complete by the last; then 9, one having
  // dropped.
  count.check = Expect(std::vector<uint32_t>{10, 7, 6, 0, 1, 9});
}

void Grid(Family& f) {
  Kernel& k = f.AddKernel("three dimensions of blocks and threads");
  k.grid = {2, 3, 2};
  k.block = {4, 2, 3};
  k.text = Entry() + R"(
    mov.u32 %t0, %ctaid.z; mov.u32 %t1, %nctaid.y; mov.u32 %t2, %ctaid.y; mad.lo.u32 %t0, %t0, %t1, %t2; mov.u32 %t1, %nctaid.x; mov.u32 %t2, %ctaid.x; mad.lo.u32 %t0, %t0, %t1, %t2;
    mov.u32 %t1, %ntid.z; mov.u32 %t2, %tid.z; mad.lo.u32 %t0, %t0, %t1, %t2; mov.u32 %t1, %ntid.y; mov.u32 %t2, %tid.y; mad.lo.u32 %t0, %t0, %t1, %t2;
    mov.u32 %t1, %ntid.x; mov.u32 %t2, %tid.x; mad.lo.u32 %t0, %t0, %t1, %t2; mad.wide.u32 %at, %t0, 4, %pd; mad.lo.u32 %t3, %t0, %t0, 3; st.global.u32 [%at], %t3; ret; })";
  std::vector<uint32_t> expected;
  for (uint32_t i = 0; i < 12 * 24; ++i) expected.push_back(i * i + 3);
  k.output.resize(expected.size() * 4);
  k.check = Expect(expected);
}

}  // namespace

void FillFlow(Family& f) {
  Branches(f);
  Calls(f);
  Exits(f);
  Grid(f);
}

void FillCopies(Family& f) { Copies(f); }

}  // namespace cuplex::corpus
