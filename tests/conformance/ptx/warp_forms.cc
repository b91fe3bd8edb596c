// What threads of a warp and of a block do together: shuffles, votes, matches, reductions, barriers; and the
// special registers that say where a thread stands.
#include <algorithm>

#include <fmt/format.h>

#include "tests/conformance/ptx/corpus.h"

namespace cuplex::corpus {
namespace {

constexpr unsigned kBlock = 64;

/// Visits the rows of the warp that row i belongs to.
template <typename F>
void InWarp(size_t i, F&& visit) {
  for (size_t lane = 0; lane < 32; ++lane) visit(lane, i / 32 * 32 + lane);
}

enum class Shuffle { kUp, kDown, kButterfly, kIndex };

struct Shuffled {
  bool valid;
  unsigned lane;
};
/// By the clause on shfl: b and c as the reading lane has them.
Shuffled SourceOf(Shuffle mode, unsigned lane, uint32_t b, uint32_t c) {
  const int by = b & 31, clamp = c & 31, mask = c >> 8 & 31, me = static_cast<int>(lane);
  const int highest = (me & mask) | (clamp & ~mask & 31), lowest = me & mask;
  int from = 0;
  bool valid = false;
  switch (mode) {
    case Shuffle::kUp:
      from = me - by;
      valid = from >= highest;
      break;
    case Shuffle::kDown:
      from = me + by;
      valid = from <= highest;
      break;
    case Shuffle::kButterfly:
      from = me ^ by;
      valid = from <= highest;
      break;
    case Shuffle::kIndex:
      from = lowest | (by & ~mask & 31);
      valid = from <= highest;
      break;
  }
  return {valid, static_cast<unsigned>(valid ? from : me)};
}

void Shuffles(Family& f) {
  struct Mode {
    const char* name;
    Shuffle mode;
  };
  for (const Mode& m : {Mode{"up", Shuffle::kUp}, Mode{"down", Shuffle::kDown},
                        Mode{"bfly", Shuffle::kButterfly}, Mode{"idx", Shuffle::kIndex}}) {
    const Shuffle mode = m.mode;
    // Every lane with a distance and a clamp of its own; the predicate in the top bit.
    f.Together<uint64_t, uint32_t, uint32_t, uint32_t>(
         fmt::format("shfl.sync.{}.b32 %t0|%p, %a, %b, %c, 0xffffffff; selp.u32 %t1, 1, 0, %p; mov.b64 %d, "
                     "{{%t0, %t1}};",
                     m.name),
         [mode](size_t i, const Columns& x) {
           const Shuffled from =
               SourceOf(mode, i % 32, static_cast<uint32_t>(x[1][i]), static_cast<uint32_t>(x[2][i]));
           return uint64_t{from.valid} << 32 | x[0][i / 32 * 32 + from.lane];
         })
        .Block(kBlock)
        .Named(fmt::format("shfl.sync.{}.b32 by registers", m.name));
    // Constants, as compilers write them: whole warps, and segments of 16, 8, 4, 2.
    for (uint32_t segment : {32u, 16u, 8u, 4u, 2u}) {
      for (uint32_t by : {0u, 1u, 2u, 5u, 16u, 31u}) {
        const uint32_t c = (32 - segment) << 8 | (mode == Shuffle::kUp ? 0 : 31);
        f.Together<uint64_t, uint32_t>(
             fmt::format(
                 "shfl.sync.{}.b32 %t0|%p, %a, {}, {}, -1; selp.u32 %t1, 1, 0, %p; mov.b64 %d, {{%t0, %t1}};",
                 m.name, by, c),
             [=](size_t i, const Columns& x) {
               const Shuffled from = SourceOf(mode, i % 32, by, c);
               return uint64_t{from.valid} << 32 | x[0][i / 32 * 32 + from.lane];
             })
            .Block(kBlock)
            .Random(64)
            .Named(fmt::format("shfl.sync.{}.b32 by {} in segments of {}", m.name, by, segment));
      }
    }
    f.Together<uint32_t, uint32_t>(
         fmt::format("shfl.sync.{}.b32 %d, %a, 3, 15, -1;", m.name),
         [=](size_t i, const Columns& x) {
           return static_cast<uint32_t>(x[0][i / 32 * 32 + SourceOf(mode, i % 32, 3, 15).lane]);
         })
        .Block(kBlock)
        .Named(fmt::format("shfl.sync.{}.b32 without a predicate", m.name));
  }
}

void Votes(Family& f) {
  auto ballot = [](size_t i, const Columns& x) {
    uint32_t all = 0;
    InWarp(i, [&](size_t lane, size_t row) { all |= static_cast<uint32_t>(x[0][row]) << lane; });
    return all;
  };
  for (const char* text : {"vote.sync.ballot.b32 %d, %a, -1;", "vote.sync.ballot.b32 %d, !%a, 0xffffffff;"}) {
    const bool negated = text[25] == '!';
    f.Together<uint32_t, bool>(
         text, [=](size_t i, const Columns& x) { return negated ? ~ballot(i, x) : ballot(i, x); })
        .Block(kBlock)
        .Named(negated ? "vote.sync.ballot.b32 of a negated predicate" : "vote.sync.ballot.b32");
  }
  // Few lanes differ in most warps, so that all, any and uni come out both ways.
  auto mostly = [&](Form& form) { form.Block(kBlock).Random(4096); };
  f.Together<bool, uint32_t>("and.b32 %t0, %a, 7; setp.ne.u32 %p, %t0, 0; vote.sync.all.pred %d, %p, -1;",
                             [](size_t i, const Columns& x) {
                               bool all = true;
                               InWarp(i, [&](size_t, size_t row) { all &= (x[0][row] & 7) != 0; });
                               return all;
                             })
      .Named("vote.sync.all.pred")
      .Block(kBlock)
      .Operand(0, {1, 2, 3, 4, 5, 6, 7, 9, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 8})
      .Random(4096);
  f.Together<bool, uint32_t>("and.b32 %t0, %a, 63; setp.eq.u32 %p, %t0, 0; vote.sync.any.pred %d, %p, -1;",
                             [](size_t i, const Columns& x) {
                               bool any = false;
                               InWarp(i, [&](size_t, size_t row) { any |= (x[0][row] & 63) == 0; });
                               return any;
                             })
      .Named("vote.sync.any.pred")
      .Block(kBlock)
      .Operand(0, {1, 2, 3, 4, 5, 6, 7, 9, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 64})
      .Random(4096);
  mostly(f.Together<bool, uint32_t>(
              "shr.u32 %t0, %i, 5; and.b32 %t0, %t0, 3; setp.eq.u32 %p, %t0, 0; and.b32 %t1, %a, 1; "
              "setp.eq.u32 %q, %t1, 1; or.pred %p, %p, %q; "
              "setp.eq.u32 %q, %t0, 1; @%q setp.ne.u32 %p, %t0, %t0; vote.sync.uni.pred %d, %p, -1;",
              [](size_t i, const Columns& x) {
                bool any = false, all = true;
                InWarp(i, [&](size_t, size_t row) {
                  const size_t kind = i / 32 % 4;
                  const bool p = kind != 1 && (kind == 0 || (x[0][row] & 1));
                  any |= p, all &= p;
                });
                return all || !any;
              })
             .Named("vote.sync.uni.pred"));
  f.Together<uint32_t, bool>(
       "mov.u32 %d, 7; and.b32 %t0, %i, 1; setp.ne.u32 %p, %t0, 0; @%p vote.sync.ballot.b32 %d, %a, "
       "0xaaaaaaaa;",
       [=](size_t i, const Columns& x) { return i % 2 ? ballot(i, x) & 0xaaaaaaaa : 7u; })
      .Block(kBlock)
      .Named("vote.sync.ballot.b32 of half a warp");
  f.Together<uint32_t, bool>(
       "activemask.b32 %t0; @%a bra yes; vote.sync.ballot.b32 %t1, %a, %t0; bra end; yes: "
       "vote.sync.ballot.b32 %t1, %a, %t0; end: mov.u32 %d, %t1;",
       ballot)
      .Block(kBlock)
      .Named("vote.sync.ballot.b32 from both sides of a branch");
  f.Together<uint32_t>("activemask.b32 %d;", [](size_t, const Columns&) {
     return 0xffffffffu;
   }).Block(kBlock);
}

template <typename T>
void Matches(Family& f, const std::string& type) {
  const std::vector<Word> few = {0, 1,          2,
                                 3, 0x80000000, sizeof(T) == 8 ? 0x100000001u + 0xffffffffull * 4 : 4};
  f.Together<uint32_t, T>(
       "match.any.sync." + type + " %d, %a, -1;",
       [](size_t i, const Columns& x) {
         uint32_t same = 0;
         InWarp(i, [&](size_t lane, size_t row) { same |= uint32_t{x[0][row] == x[0][i]} << lane; });
         return same;
       })
      .Block(kBlock)
      .Operand(0, few)
      .Random(1024);
  f.Together<uint32_t, T>(
       fmt::format("shr.u32 %t0, %i, 5; and.b32 %t0, %t0, 1; setp.eq.u32 %q, %t0, 0; @%q mov.{0} %a, 5; "
                   "match.all.sync.{0} %t0|%p, %a, -1; selp.u32 %t1, 1, 0, %p; xor.b32 %d, %t0, %t1;",
                   type),
       [](size_t i, const Columns& x) {
         bool all = true;
         if (i / 32 % 2) InWarp(i, [&](size_t, size_t row) { all &= x[0][row] == x[0][i]; });
         return all ? 0xfffffffeu : 0u;
       })
      .Block(kBlock)
      .Operand(0, few)
      .Random(1024)
      .Named("match.all.sync." + type);
}

template <typename T>
void Reductions(Family& f, const std::string& type) {
  struct Op {
    const char* name;
    T (*of)(T, T);
  };
  std::vector<Op> ops = {
      {"add", [](T a, T b) { return static_cast<T>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b)); }},
      {"min", [](T a, T b) { return std::min(a, b); }},
      {"max", [](T a, T b) { return std::max(a, b); }}};
  for (const Op& op : ops) {
    auto of = op.of;
    f.Together<T, T>(fmt::format("redux.sync.{}.{} %d, %a, -1;", op.name, type),
                     [of](size_t i, const Columns& x) {
                       T total = FromWord<T>(x[0][i / 32 * 32]);
                       InWarp(i, [&](size_t lane, size_t row) {
                         if (lane) total = of(total, FromWord<T>(x[0][row]));
                       });
                       return total;
                     })
        .Block(kBlock)
        .Random(1024);
  }
}

void BitReductions(Family& f) {
  struct Op {
    const char* name;
    uint32_t (*of)(uint32_t, uint32_t);
  };
  for (const Op& op : {Op{"and", [](uint32_t a, uint32_t b) { return a & b; }},
                       Op{"or", [](uint32_t a, uint32_t b) { return a | b; }},
                       Op{"xor", [](uint32_t a, uint32_t b) { return a ^ b; }}}) {
    auto of = op.of;
    f.Together<uint32_t, uint32_t>(fmt::format("redux.sync.{}.b32 %d, %a, -1;", op.name),
                                   [of](size_t i, const Columns& x) {
                                     auto total = static_cast<uint32_t>(x[0][i / 32 * 32]);
                                     InWarp(i, [&](size_t lane, size_t row) {
                                       if (lane) total = of(total, static_cast<uint32_t>(x[0][row]));
                                     });
                                     return total;
                                   })
        .Block(kBlock)
        .Random(1024);
  }
  f.Together<uint32_t, uint32_t>(
       "and.b32 %t0, %i, 3; setp.eq.u32 %p, %t0, 1; mov.u32 %d, 0; @%p redux.sync.add.u32 %d, %a, "
       "0x22222222;",
       [](size_t i, const Columns& x) {
         uint32_t total = 0;
         InWarp(i, [&](size_t lane, size_t row) {
           if (lane % 4 == 1) total += static_cast<uint32_t>(x[0][row]);
         });
         return i % 4 == 1 ? total : 0;
       })
      .Block(kBlock)
      .Named("redux.sync.add.u32 of a quarter of a warp");
}

void Places(Family& f) {
  auto is = [&](const char* code, std::function<uint32_t(size_t)> of) -> Form& {
    return f.Together<uint32_t>(code, [of](size_t i, const Columns&) { return of(i); })
        .Block(kBlock)
        .Named(std::string(code).substr(code[0] == 'm' ? 12 : 0, std::string::npos));
  };
  auto named = [&](const std::string& special, std::function<uint32_t(size_t)> of) {
    is(("mov.u32 %d, %" + special + ";").c_str(), std::move(of)).Named("%" + special);
  };
  named("tid.x", [](size_t i) { return uint32_t(i % kBlock); });
  named("tid.y", [](size_t) { return 0u; });
  named("ntid.x", [](size_t) { return kBlock; });
  named("ntid.z", [](size_t) { return 1u; });
  named("ctaid.x", [](size_t i) { return uint32_t(i / kBlock); });
  named("nctaid.y", [](size_t) { return 1u; });
  named("laneid", [](size_t i) { return uint32_t(i % 32); });
  named("lanemask_eq", [](size_t i) { return 1u << i % 32; });
  named("lanemask_lt", [](size_t i) { return (1u << i % 32) - 1; });
  named("lanemask_le", [](size_t i) { return (2u << i % 32) - 1; });
  named("lanemask_gt", [](size_t i) { return ~((2u << i % 32) - 1); });
  named("lanemask_ge", [](size_t i) { return ~((1u << i % 32) - 1); });
  is("mov.u32 %t0, %smid; mov.u32 %t1, %nsmid; setp.lt.u32 %p, %t0, %t1; selp.u32 %d, 1, 0, %p;", [](size_t) {
    return 1u;
  }).Named("%smid is below %nsmid");
  is("mov.u32 %t0, %warpid; mov.u32 %t1, %nwarpid; setp.lt.u32 %p, %t0, %t1; selp.u32 %d, 1, 0, %p;",
     [](size_t) { return 1u; })
      .Named("%warpid is below %nwarpid");
  is("mov.u64 %u0, %clock64; mov.u64 %u1, %clock64; setp.ge.u64 %p, %u1, %u0; selp.u32 %d, 1, 0, %p;",
     [](size_t) { return 1u; })
      .Named("%clock64 goes on");
  is("mov.u32 %t0, %clock; mov.u32 %t1, %clock; sub.u32 %t0, %t1, %t0; setp.lt.u32 %p, %t0, 0x80000000; "
     "selp.u32 %d, 1, 0, %p;",
     [](size_t) { return 1u; })
      .Named("%clock goes on");
  is("mov.u64 %u0, %globaltimer; mov.u64 %u1, %globaltimer; setp.ge.u64 %p, %u1, %u0; selp.u32 %d, 1, 0, %p;",
     [](size_t) { return 1u; })
      .Named("%globaltimer goes on");
  is("mov.u32 %d, %dynamic_smem_size;", [](size_t) { return 0u; }).Named("%dynamic_smem_size");
  is("mov.u32 %t0, WARP_SZ; mov.u32 %d, %t0;", [](size_t) { return 32u; }).Named("WARP_SZ");
  f.Target(90, "8.0");
  is("elect.sync %t0|%p, -1; vote.sync.ballot.b32 %t1, %p, -1; mov.u32 %t2, 1; shl.b32 %t2, %t2, %t0; "
     "setp.eq.u32 %p, %t1, %t2; selp.u32 %d, 1, 0, %p;",
     [](size_t) { return 1u; })
      .Named("elect.sync chooses one");
  is("mov.u32 %d, %cluster_ctarank;", [](size_t) { return 0u; }).Named("%cluster_ctarank");
  is("mov.u32 %d, %cluster_nctarank;", [](size_t) { return 1u; }).Named("%cluster_nctarank");
  is("mov.pred %p, %is_explicit_cluster; selp.u32 %d, 1, 0, %p;", [](size_t) {
    return 0u;
  }).Named("%is_explicit_cluster");
}

void Barriers(Family& f) {
  const std::string shared =
      "{ .shared .align 4 .b8 s[256]; .reg .b32 %w, %v; mov.u32 %v, %tid.x; shl.b32 %w, %v, 2; mov.u32 %t7, "
      "s; add.u32 %w, %w, %t7; ";
  auto rotated = [](size_t i, const Columns& x) {
    return static_cast<uint32_t>(x[0][i / kBlock * kBlock + (i + 1) % kBlock]);
  };
  for (const char* barrier : {"bar.sync 0;", "bar.cta.sync 0;", "barrier.sync 0;", "barrier.sync.aligned 3;",
                              "barrier.cta.sync 15, 64;", "bar.sync 5, 64;"})
    f.Together<uint32_t, uint32_t>(shared + "st.shared.u32 [%w], %a; " + barrier +
                                       " add.u32 %v, %v, 1; and.b32 %v, %v, 63; shl.b32 %w, %v, 2; add.u32 "
                                       "%w, %w, %t7; ld.shared.u32 %d, [%w]; }",
                                   rotated)
        .Block(kBlock)
        .Named(std::string(barrier, std::strlen(barrier) - 1));
  // The second warp produces and does not wait; the first consumes.
  f.Together<uint32_t, uint32_t>(
       shared +
           "setp.ge.u32 %p, %v, 32; st.shared.u32 [%w], %a; @%p bar.arrive 1, 64; @!%p bar.sync 1, 64; @!%p "
           "ld.shared.u32 %d, [%w+128]; @%p mov.u32 %d, 9; }",
       [](size_t i, const Columns& x) { return i % kBlock < 32 ? static_cast<uint32_t>(x[0][i + 32]) : 9u; })
      .Block(kBlock)
      .Named("bar.arrive");
  auto holds = [](size_t i, const Columns& x, auto visit) {
    for (size_t row = i / kBlock * kBlock; row < i / kBlock * kBlock + kBlock; ++row) visit(x[0][row] != 0);
  };
  f.Together<uint32_t, bool>("bar.red.popc.u32 %d, 0, %a;", [=](size_t i, const Columns& x) {
     uint32_t n = 0;
     holds(i, x, [&](bool p) { n += p; });
     return n;
   }).Block(kBlock);
  std::vector<Word> some(3 * kBlock, 1);  // of three blocks one has a thread that says no
  some[kBlock + 7] = 0;
  f.Together<bool, bool>("bar.red.and.pred %d, 0, %a;",
                         [=](size_t i, const Columns& x) {
                           bool all = true;
                           holds(i, x, [&](bool p) { all &= p; });
                           return all;
                         })
      .Block(kBlock)
      .Operand(0, some)
      .Random(0);
  f.Together<bool, bool>("barrier.red.or.pred %d, 1, 64, !%a;", [=](size_t i, const Columns& x) {
     bool any = false;
     holds(i, x, [&](bool p) { any |= !p; });
     return any;
   }).Block(kBlock);
  f.Together<uint32_t, uint32_t>(
       shared + "st.shared.u32 [%w], %a; bar.warp.sync -1; xor.b32 %w, %w, 4; ld.shared.u32 %d, [%w]; }",
       [](size_t i, const Columns& x) { return static_cast<uint32_t>(x[0][i ^ 1]); })
      .Block(kBlock)
      .Named("bar.warp.sync");
}

}  // namespace

void FillWarp(Family& f) {
  Shuffles(f);
  Votes(f);
  Matches<uint32_t>(f, "b32");
  Matches<uint64_t>(f, "b64");
  Barriers(f);
  f.Target(80, "8.0");
  Reductions<uint32_t>(f, "u32");
  Reductions<int32_t>(f, "s32");
  BitReductions(f);
  f.Target(75, "8.0");
  Places(f);
}

}  // namespace cuplex::corpus
