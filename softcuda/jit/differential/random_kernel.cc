#include "softcuda/jit/differential/random_kernel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>

#include <fmt/format.h>

namespace cuplex::softcuda::differential {
namespace {

using State = Thread::State;

uint32_t Bits(float v) { return std::isnan(v) ? 0x7fffffff : std::bit_cast<uint32_t>(v); }
uint64_t Bits(double v) { return std::isnan(v) ? 0x7fffffffffffffff : std::bit_cast<uint64_t>(v); }

bool Runs(const Block& b, const Active& active, size_t i) {
  return active[i] && b.threads[i].state == State::kRunning;
}

/// An action that looks at one thread at a time.
Action Each(std::function<void(Thread&)> change) {
  return [change = std::move(change)](Block& b, const Active& active) {
    for (size_t i = 0; i < b.threads.size(); ++i)
      if (Runs(b, active, i)) change(b.threads[i]);
  };
}

void Run(const std::vector<Action>& program, Block& b, const Active& active) {
  for (const Action& action : program) action(b, active);
}

struct Op2 {
  const char* text;
  uint32_t (*of)(uint32_t, uint32_t);
};
// clang-format off
const Op2 kIntegerOps[] = {
    {"add.u32", [](uint32_t a, uint32_t b) { return a + b; }},
    {"sub.u32", [](uint32_t a, uint32_t b) { return a - b; }},
    {"mul.lo.u32", [](uint32_t a, uint32_t b) { return a * b; }},
    {"mul.hi.u32", [](uint32_t a, uint32_t b) { return static_cast<uint32_t>(uint64_t{a} * b >> 32); }},
    {"mul.hi.s32", [](uint32_t a, uint32_t b) { return static_cast<uint32_t>(int64_t{static_cast<int32_t>(a)} * static_cast<int32_t>(b) >> 32); }},
    {"and.b32", [](uint32_t a, uint32_t b) { return a & b; }},
    {"or.b32", [](uint32_t a, uint32_t b) { return a | b; }},
    {"xor.b32", [](uint32_t a, uint32_t b) { return a ^ b; }},
    {"shl.b32", [](uint32_t a, uint32_t b) { return b > 31 ? 0 : a << b; }},
    {"shr.u32", [](uint32_t a, uint32_t b) { return b > 31 ? 0 : a >> b; }},
    {"shr.s32", [](uint32_t a, uint32_t b) { return static_cast<uint32_t>(static_cast<int32_t>(a) >> std::min(b, 31u)); }},
    {"min.u32", [](uint32_t a, uint32_t b) { return std::min(a, b); }},
    {"max.u32", [](uint32_t a, uint32_t b) { return std::max(a, b); }},
    {"min.s32", [](uint32_t a, uint32_t b) { return static_cast<int32_t>(a) < static_cast<int32_t>(b) ? a : b; }},
    {"max.s32", [](uint32_t a, uint32_t b) { return static_cast<int32_t>(a) > static_cast<int32_t>(b) ? a : b; }},
    {"mul24.lo.u32", [](uint32_t a, uint32_t b) { return (a & 0xffffff) * (b & 0xffffff); }},
};
struct Op1 { const char* text; uint32_t (*of)(uint32_t); };
const Op1 kUnaryOps[] = {
    {"not.b32", [](uint32_t a) { return ~a; }},
    {"neg.s32", [](uint32_t a) { return 0 - a; }},
    {"abs.s32", [](uint32_t a) { return static_cast<int32_t>(a) < 0 ? 0 - a : a; }},
    {"popc.b32", [](uint32_t a) { return static_cast<uint32_t>(std::popcount(a)); }},
    {"clz.b32", [](uint32_t a) { return static_cast<uint32_t>(std::countl_zero(a)); }},
    {"brev.b32", [](uint32_t a) { uint32_t out = 0; for (int i = 0; i < 32; ++i) out |= (a >> i & 1) << (31 - i); return out; }},
    {"bfind.u32", [](uint32_t a) { return a ? 31 - static_cast<uint32_t>(std::countl_zero(a)) : 0xffffffff; }},
    {"cvt.s32.s8", [](uint32_t a) { return static_cast<uint32_t>(static_cast<int8_t>(a)); }},
    {"cvt.u32.u16", [](uint32_t a) { return a & 0xffff; }},
};
struct Op3 { const char* text; uint32_t (*of)(uint32_t, uint32_t, uint32_t); };
const Op3 kTernaryOps[] = {
    {"mad.lo.u32", [](uint32_t a, uint32_t b, uint32_t c) { return a * b + c; }},
    {"mad.hi.u32", [](uint32_t a, uint32_t b, uint32_t c) { return static_cast<uint32_t>(uint64_t{a} * b >> 32) + c; }},
    {"sad.u32", [](uint32_t a, uint32_t b, uint32_t c) { return c + (a < b ? b - a : a - b); }},
    {"shf.l.wrap.b32", [](uint32_t a, uint32_t b, uint32_t c) { return static_cast<uint32_t>((uint64_t{b} << 32 | a) >> (32 - (c & 31))); }},
    {"shf.r.wrap.b32", [](uint32_t a, uint32_t b, uint32_t c) { return static_cast<uint32_t>((uint64_t{b} << 32 | a) >> (c & 31)); }},
    {"prmt.b32", [](uint32_t a, uint32_t b, uint32_t c) {
       const uint64_t bytes = uint64_t{b} << 32 | a;
       uint32_t out = 0;
       for (int i = 0; i < 4; ++i) {
         const uint32_t select = c >> (4 * i) & 15;
         uint32_t byte = bytes >> ((select & 7) * 8) & 0xff;
         if (select & 8) byte = byte & 0x80 ? 0xff : 0;
         out |= byte << (8 * i);
       }
       return out;
     }},
};
struct OpLong { const char* text; uint64_t (*of)(uint64_t, uint64_t); };
const OpLong kLongOps[] = {
    {"add.u64", [](uint64_t a, uint64_t b) { return a + b; }},
    {"sub.s64", [](uint64_t a, uint64_t b) { return a - b; }},
    {"mul.lo.u64", [](uint64_t a, uint64_t b) { return a * b; }},
    {"mul.hi.u64", [](uint64_t a, uint64_t b) { return static_cast<uint64_t>((unsigned __int128){a} * b >> 64); }},
    {"xor.b64", [](uint64_t a, uint64_t b) { return a ^ b; }},
    {"and.b64", [](uint64_t a, uint64_t b) { return a & b; }},
    {"max.s64", [](uint64_t a, uint64_t b) { return static_cast<int64_t>(a) > static_cast<int64_t>(b) ? a : b; }},
};
float Extreme(float a, float b, bool max) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) == max ? b : a;  // zeros have an order
  return (a < b) == max ? b : a;
}
struct OpFloat { const char* text; float (*of)(float, float); };
const OpFloat kFloatOps[] = {
    {"add.rn.f32", [](float a, float b) { return a + b; }},
    {"sub.rn.f32", [](float a, float b) { return a - b; }},
    {"mul.rn.f32", [](float a, float b) { return a * b; }},
    {"div.rn.f32", [](float a, float b) { return a / b; }},
    {"min.f32", [](float a, float b) { return Extreme(a, b, false); }},
    {"max.f32", [](float a, float b) { return Extreme(a, b, true); }},
};
struct OpDouble { const char* text; double (*of)(double, double); };
const OpDouble kDoubleOps[] = {
    {"add.rn.f64", [](double a, double b) { return a + b; }},
    {"sub.rn.f64", [](double a, double b) { return a - b; }},
    {"mul.rn.f64", [](double a, double b) { return a * b; }},
    {"div.rn.f64", [](double a, double b) { return a / b; }},
};
struct Test { const char* text; bool (*of)(uint32_t, uint32_t); };
const Test kTests[] = {
    {"setp.eq.s32", [](uint32_t a, uint32_t b) { return a == b; }},
    {"setp.ne.u32", [](uint32_t a, uint32_t b) { return a != b; }},
    {"setp.lt.s32", [](uint32_t a, uint32_t b) { return static_cast<int32_t>(a) < static_cast<int32_t>(b); }},
    {"setp.ge.s32", [](uint32_t a, uint32_t b) { return static_cast<int32_t>(a) >= static_cast<int32_t>(b); }},
    {"setp.lt.u32", [](uint32_t a, uint32_t b) { return a < b; }},
    {"setp.gt.u32", [](uint32_t a, uint32_t b) { return a > b; }},
};
struct Atom { const char* text; uint32_t (*of)(uint32_t, uint32_t); };
const Atom kAtoms[] = {
    {"add.u32", [](uint32_t a, uint32_t b) { return a + b; }}, {"and.b32", [](uint32_t a, uint32_t b) { return a & b; }},
    {"or.b32", [](uint32_t a, uint32_t b) { return a | b; }},  {"xor.b32", [](uint32_t a, uint32_t b) { return a ^ b; }},
    {"min.u32", [](uint32_t a, uint32_t b) { return std::min(a, b); }},
    {"max.s32", [](uint32_t a, uint32_t b) { return static_cast<int32_t>(a) > static_cast<int32_t>(b) ? a : b; }},
};
// clang-format on

/// Lanes of thread i's warp that run.
template <typename F>
void EachWarp(Block& b, const Active& active, F&& visit) {
  for (size_t first = 0; first < b.threads.size(); first += 32) {
    std::vector<size_t> lanes;
    for (size_t i = first; i < std::min(first + 32, b.threads.size()); ++i)
      if (Runs(b, active, i)) lanes.push_back(i);
    if (!lanes.empty()) visit(lanes);
  }
}

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed), seed_(seed) {}

  RandomKernel Make() {
    RandomKernel k;
    static constexpr std::array<uint32_t, 3> kBlocks[] = {
        {32, 1, 1}, {64, 1, 1},  {128, 1, 1}, {96, 1, 1}, {256, 1, 1}, {33, 1, 1}, {1, 1, 1},
        {7, 1, 1},  {100, 1, 1}, {8, 8, 1},   {16, 4, 2}, {32, 4, 1},  {5, 3, 3},  {64, 2, 1}};
    k.block = kBlocks[Pick(std::size(kBlocks))];
    k.grid[0] = 1 + Pick(3);
    threads_ = k.threads();
    full_warps_ = threads_ % 32 == 0;
    k.exact = exact_ = seed_ % 5 != 0;
    Head();
    std::vector<Action> program;
    Place all;
    all.uniform = true;
    all.mask = "%full";
    Statements(program, 8 + Pick(12), 0, all);
    Tail();
    k.text = std::move(head_) + text_;
    k.program = std::move(program);
    return k;
  }

 private:
  /// Where a statement stands.
  struct Place {
    bool uniform = false;      // every thread of the block that is left comes here together
    std::string mask;          // register with the lanes of the warp that do
    bool in_loop = false;      // break and continue have a meaning
    std::string leave, again;  // their labels
    std::string leave_both;    // and of the loop around this one, where that can be left too
  };

  unsigned Pick(size_t n) { return static_cast<unsigned>(random_() % n); }
  bool Chance(unsigned percent) { return random_() % 100 < percent; }
  std::string R(unsigned i) { return fmt::format("%r{}", i); }
  std::string Label() { return fmt::format("L{}", labels_++); }
  std::string Fresh(const char* type, const char* prefix) {
    std::string name = fmt::format("%{}{}", prefix, fresh_++);
    text_ += fmt::format("  .reg .{} {};\n", type, name);
    return name;
  }
  void Line(const std::string& line) { text_ += "  " + line + "\n"; }
  uint32_t Constant() {
    static constexpr uint32_t kSome[] = {
        0, 1, 2, 3, 5, 7, 16, 31, 32, 100, 255, 0x7fffffff, 0x80000000, 0xffffffff, 0x3f800000, 0xdeadbeef};
    return Chance(70) ? kSome[Pick(std::size(kSome))] : static_cast<uint32_t>(random_());
  }

  void Head() {
    head_ = fmt::format(
        ".version 8.0\n.target sm_90\n.address_size 64\n\n"
        ".func (.reg .b32 %o) mix(.reg .b32 %a, .reg .b32 %b)\n{{\n  .reg .b32 %t<4>; .reg .pred %p;\n"
        "  mov.u32 %o, %a; and.b32 %t0, %b, 3;\nM0:\n  setp.eq.u32 %p, %t0, 0;\n  @%p bra M1;\n"
        "  mad.lo.u32 %o, %o, 1664525, %b; shr.u32 %t1, %o, 7; xor.b32 %o, %o, %t1; sub.u32 %t0, %t0, 1;\n  "
        "bra M0;\nM1:\n  ret;\n}}\n\n"
        ".visible .entry run(.param .u64 inputs, .param .u64 outputs, .param .u64 counters)\n{{\n"
        "  .reg .b32 %r<{}>; .reg .b64 %l<{}>; .reg .f32 %f<{}>; .reg .f64 %d<{}>; .reg .pred %p<{}>;\n"
        "  .reg .b32 %i, %g, %n, %lane, %full, %x<8>; .reg .b64 %in, %out, %count, %at, %y<2>; .reg .pred "
        "%q, %s; .reg .f32 %z; .reg .f64 %w;\n"
        "  .shared .align 4 .b8 slots[4096]; .shared .align 4 .b8 totals[{}]; .local .align 4 .b8 "
        "frame[{}];\n",
        kIntegers, kLongs, kFloats, kDoubles, kPredicates, kCounters * 4, kLocals * 4);
    Line("ld.param.u64 %in, [inputs]; ld.param.u64 %out, [outputs]; ld.param.u64 %count, [counters];");
    Line(
        "mov.u32 %x0, %tid.x; mov.u32 %x1, %ntid.x; mov.u32 %x2, %tid.y; mov.u32 %x3, %ntid.y; mov.u32 %x4, "
        "%tid.z; mov.u32 %x5, %ntid.z;");
    Line(
        "mad.lo.u32 %i, %x4, %x3, %x2; mad.lo.u32 %i, %i, %x1, %x0; mul.lo.u32 %n, %x1, %x3; mul.lo.u32 %n, "
        "%n, %x5;");
    Line("mov.u32 %x0, %ctaid.x; mad.lo.u32 %g, %x0, %n, %i; and.b32 %lane, %i, 31;");
    // The lanes that the warp has at all.
    Line(
        "shr.u32 %x1, %i, 5; shl.b32 %x1, %x1, 5; sub.u32 %x1, %n, %x1; min.u32 %x1, %x1, 32; mov.u32 %x2, "
        "0; bmsk.clamp.b32 %full, %x2, %x1;");
    Line(
        "shl.b32 %x1, %i, 2; mov.u32 %x2, slots; add.u32 %x2, %x2, %x1; mov.u32 %x3, 0; st.shared.u32 [%x2], "
        "%x3;");
    Line("setp.ne.u32 %q, %i, 0;");
    for (unsigned i = 0; i < kCounters; ++i) Line(fmt::format("@!%q st.shared.u32 [totals+{}], %x3;", i * 4));
    for (unsigned i = 0; i < kLocals; ++i) Line(fmt::format("st.local.u32 [frame+{}], %x3;", i * 4));
    for (unsigned i = 0; i < kIntegers; ++i) {
      Line(
          fmt::format("add.u32 %x1, %g, {}; and.b32 %x1, %x1, {}; mad.wide.u32 %at, %x1, 4, %in; "
                      "ld.global.u32 %r{}, [%at];",
                      i * 37, kInputs - 1, i));
    }
    Line("mov.u32 %r0, %i;");
    for (unsigned i = 0; i < kLongs; ++i)
      Line(fmt::format("mul.wide.u32 %l{}, %r{}, {};", i, i + 1, 0x9e3779b9u + i));
    for (unsigned i = 0; i < kFloats; ++i)
      Line(fmt::format("and.b32 %x1, %r{}, 0xffff; cvt.rn.f32.u32 %f{}, %x1;", i, i));
    for (unsigned i = 0; i < kDoubles; ++i) Line(fmt::format("cvt.rn.f64.s32 %d{}, %r{};", i, i + 2));
    for (unsigned i = 0; i < kPredicates; ++i)
      Line(fmt::format("and.b32 %x1, %r{}, {}; setp.ne.u32 %p{}, %x1, 0;", i + 1, 1u << i, i));
    Line("bar.sync 0;");
  }

  void Tail() {
    text_ += "done:\n";
    Line(fmt::format("mul.lo.u32 %x1, %g, {}; cvt.u64.u32 %at, %x1; add.u64 %at, %at, %out;", kOutputs * 4));
    unsigned at = 0;
    for (unsigned i = 0; i < kIntegers; ++i) Line(fmt::format("st.global.u32 [%at+{}], %r{};", 4 * at++, i));
    for (unsigned i = 0; i < kLongs; ++i)
      Line(
          fmt::format("shr.u64 %y0, %l{0}, 32; xor.b64 %y0, %y0, %l{0}; cvt.u32.u64 %x1, %y0; st.global.u32 "
                      "[%at+{1}], %x1;",
                      i, 4 * at++));
    for (unsigned i = 0; i < kFloats; ++i)
      Line(
          fmt::format("mov.b32 %x1, %f{0}; setp.nan.f32 %q, %f{0}, %f{0}; selp.b32 %x1, 0x7fffffff, %x1, %q; "
                      "st.global.u32 [%at+{1}], %x1;",
                      i, 4 * at++));
    for (unsigned i = 0; i < kDoubles; ++i)
      Line(fmt::format(
          "mov.b64 %y0, %d{0}; setp.nan.f64 %q, %d{0}, %d{0}; selp.b64 %y0, 0x7fffffffffffffff, %y0, %q; "
          "shr.u64 %y1, %y0, 32; xor.b64 %y0, %y0, %y1; cvt.u32.u64 %x1, %y0; st.global.u32 [%at+{1}], %x1;",
          i, 4 * at++));
    Line(
        "selp.u32 %x1, 1, 0, %p0; selp.u32 %x2, 2, 0, %p1; or.b32 %x1, %x1, %x2; selp.u32 %x2, 4, 0, %p2; "
        "or.b32 %x1, %x1, %x2;");
    Line("selp.u32 %x2, 8, 0, %p3; or.b32 %x1, %x1, %x2;");
    Line(fmt::format("st.global.u32 [%at+{}], %x1;", 4 * at++));
    Line(fmt::format("ld.local.u32 %x1, [frame+8]; st.global.u32 [%at+{}], %x1;", 4 * at++));
    Line("ret;");
    text_ += "}\n";
  }

  void Statements(std::vector<Action>& program, unsigned count, unsigned depth, Place place) {
    for (unsigned i = 0; i < count; ++i) Statement(program, depth, place);
  }

  void Statement(std::vector<Action>& program, unsigned depth, Place& place) {
    const unsigned kind = Pick(100);
    if (kind < 42) return Arithmetic(program);
    if (kind < 52) return Memory(program);
    if (kind < 64) return depth < 4 ? Branch(program, depth, place) : Arithmetic(program);
    if (kind < 72) return depth < 3 ? Loop(program, depth, place) : Arithmetic(program);
    if (kind < 75) return depth < 3 ? Switch(program, depth, place) : Arithmetic(program);
    if (kind < 82) return Collective(program, place);
    if (kind < 87) return Atomic(program);
    if (kind < 90) return Call(program);
    if (kind < 95 && place.in_loop) return Leave(program, place);
    if (kind < 94 && !depth && !place.in_loop && place.uniform) return Exit(program, place);
    if (place.uniform) return Exchange(program);
    return Arithmetic(program);
  }

  void Predicate(std::vector<Action>& program, unsigned p) {
    const unsigned a = Pick(kIntegers), b = Pick(kIntegers);
    if (Chance(25)) {
      const unsigned x = Pick(kFloats), y = Pick(kFloats);
      Line(fmt::format("setp.lt.f32 %p{}, %f{}, %f{};", p, x, y));
      program.push_back(Each([=](Thread& t) { t.p[p] = t.f[x] < t.f[y]; }));
      return;
    }
    const Test& test = kTests[Pick(std::size(kTests))];
    auto of = test.of;
    if (Chance(40)) {
      const uint32_t c = Constant();
      Line(fmt::format("and.b32 %x0, %r{}, 7; {} %p{}, %x0, {};", a, test.text, p, c & 7));
      program.push_back(Each([=](Thread& t) { t.p[p] = of(t.r[a] & 7, c & 7); }));
    } else {
      Line(fmt::format("{} %p{}, %r{}, %r{};", test.text, p, a, b));
      program.push_back(Each([=](Thread& t) { t.p[p] = of(t.r[a], t.r[b]); }));
    }
  }

  void Arithmetic(std::vector<Action>& program) {
    const unsigned d = Pick(kIntegers), a = Pick(kIntegers), b = Pick(kIntegers), c = Pick(kIntegers);
    switch (Pick(13)) {
      case 0:
      case 1:
      case 2: {
        const Op2& op = kIntegerOps[Pick(std::size(kIntegerOps))];
        auto of = op.of;
        if (Chance(30)) {
          const uint32_t k = Constant();
          Line(fmt::format("{} %r{}, %r{}, {};", op.text, d, a, k));
          program.push_back(Each([=](Thread& t) { t.r[d] = of(t.r[a], k); }));
        } else if (Chance(25)) {
          const unsigned p = Pick(kPredicates);
          const bool negated = Chance(50);
          Line(fmt::format("@{}%p{} {} %r{}, %r{}, %r{};", negated ? "!" : "", p, op.text, d, a, b));
          program.push_back(Each([=](Thread& t) {
            if (t.p[p] != negated) t.r[d] = of(t.r[a], t.r[b]);
          }));
        } else {
          Line(fmt::format("{} %r{}, %r{}, %r{};", op.text, d, a, b));
          program.push_back(Each([=](Thread& t) { t.r[d] = of(t.r[a], t.r[b]); }));
        }
        return;
      }
      case 3: {
        const Op1& op = kUnaryOps[Pick(std::size(kUnaryOps))];
        auto of = op.of;
        Line(fmt::format("{} %r{}, %r{};", op.text, d, a));
        program.push_back(Each([=](Thread& t) { t.r[d] = of(t.r[a]); }));
        return;
      }
      case 4: {
        const Op3& op = kTernaryOps[Pick(std::size(kTernaryOps))];
        auto of = op.of;
        Line(fmt::format("{} %r{}, %r{}, %r{}, %r{};", op.text, d, a, b, c));
        program.push_back(Each([=](Thread& t) { t.r[d] = of(t.r[a], t.r[b], t.r[c]); }));
        return;
      }
      case 5: {
        Line(fmt::format("or.b32 %x0, %r{}, 1; {}.u32 %r{}, %r{}, %x0;", b, d & 1 ? "div" : "rem", d, a));
        program.push_back(
            Each([=](Thread& t) { t.r[d] = d & 1 ? t.r[a] / (t.r[b] | 1) : t.r[a] % (t.r[b] | 1); }));
        return;
      }
      case 6: {
        const unsigned p = Pick(kPredicates);
        if (Chance(50)) return Predicate(program, p);
        Line(fmt::format("selp.b32 %r{}, %r{}, %r{}, %p{};", d, a, b, p));
        program.push_back(Each([=](Thread& t) { t.r[d] = t.p[p] ? t.r[a] : t.r[b]; }));
        return;
      }
      case 7: {
        const unsigned p = Pick(kPredicates), q = Pick(kPredicates), s = Pick(kPredicates);
        Line(fmt::format("xor.pred %p{}, %p{}, %p{};", p, q, s));
        program.push_back(Each([=](Thread& t) { t.p[p] = t.p[q] != t.p[s]; }));
        return;
      }
      case 8: {
        const unsigned x = Pick(kLongs), y = Pick(kLongs), z = Pick(kLongs);
        const OpLong& op = kLongOps[Pick(std::size(kLongOps))];
        auto of = op.of;
        Line(fmt::format("{} %l{}, %l{}, %l{}; cvt.u32.u64 %r{}, %l{};", op.text, x, y, z, d, x));
        program.push_back(Each([=](Thread& t) {
          t.l[x] = of(t.l[y], t.l[z]);
          t.r[d] = static_cast<uint32_t>(t.l[x]);
        }));
        return;
      }
      case 9: {
        const unsigned x = Pick(kLongs);
        Line(fmt::format("mad.wide.s32 %l{0}, %r{1}, %r{2}, %l{0};", x, a, b));
        program.push_back(Each([=](Thread& t) {
          t.l[x] +=
              static_cast<uint64_t>(int64_t{static_cast<int32_t>(t.r[a])} * static_cast<int32_t>(t.r[b]));
        }));
        return;
      }
      case 10:
        return Floats(program);
      case 11: {
        const unsigned x = Pick(kDoubles), y = Pick(kDoubles), z = Pick(kDoubles), f = Pick(kFloats);
        const OpDouble& op = kDoubleOps[Pick(std::size(kDoubleOps))];
        auto of = op.of;
        Line(fmt::format("{} %d{}, %d{}, %d{};", op.text, x, y, z));
        program.push_back(Each([=](Thread& t) { t.d[x] = of(t.d[y], t.d[z]); }));
        if (Chance(40)) {
          Line(fmt::format("cvt.rn.f32.f64 %f{}, %d{};", f, x));
          program.push_back(Each([=](Thread& t) { t.f[f] = static_cast<float>(t.d[x]); }));
        }
        return;
      }
      default: {
        const unsigned f = Pick(kFloats);
        Line(fmt::format(
            "mov.b32 %x0, %f{0}; setp.nan.f32 %q, %f{0}, %f{0}; selp.b32 %r{1}, 0x7fffffff, %x0, %q;", f, d));
        program.push_back(Each([=](Thread& t) { t.r[d] = Bits(t.f[f]); }));
        return;
      }
    }
  }

  void Floats(std::vector<Action>& program) {
    const unsigned x = Pick(kFloats), y = Pick(kFloats), z = Pick(kFloats), w = Pick(kFloats),
                   r = Pick(kIntegers);
    switch (Pick(exact_ ? 6 : 7)) {
      case 0:
      case 1: {
        const OpFloat& op = kFloatOps[Pick(std::size(kFloatOps))];
        auto of = op.of;
        Line(fmt::format("{} %f{}, %f{}, %f{};", op.text, x, y, z));
        program.push_back(Each([=](Thread& t) { t.f[x] = of(t.f[y], t.f[z]); }));
        return;
      }
      case 2:
        Line(fmt::format("fma.rn.f32 %f{}, %f{}, %f{}, %f{};", x, y, z, w));
        program.push_back(Each([=](Thread& t) { t.f[x] = std::fma(t.f[y], t.f[z], t.f[w]); }));
        return;
      case 3:
        Line(fmt::format("cvt.rn.f32.s32 %f{}, %r{};", x, r));
        program.push_back(
            Each([=](Thread& t) { t.f[x] = static_cast<float>(static_cast<int32_t>(t.r[r])); }));
        return;
      case 4:
        Line(fmt::format("abs.f32 %z, %f{}; sqrt.rn.f32 %f{}, %z;", y, x));
        program.push_back(Each([=](Thread& t) { t.f[x] = std::sqrt(std::fabs(t.f[y])); }));
        return;
      case 5:
        Line(fmt::format("cvt.rzi.s32.f32 %r{}, %f{};", r, x));
        program.push_back(Each([=](Thread& t) {
          const float v = t.f[x];
          t.r[r] = std::isnan(v)  ? 0
                   : v >= 0x1p31f ? 0x7fffffff
                   : v < -0x1p31f ? 0x80000000
                                  : static_cast<uint32_t>(static_cast<int32_t>(v));
        }));
        return;
      default: {
        static constexpr const char* kOps[] = {"sin.approx.f32", "cos.approx.f32",   "ex2.approx.f32",
                                               "lg2.approx.f32", "rsqrt.approx.f32", "rcp.approx.ftz.f32",
                                               "tanh.approx.f32"};
        Line(fmt::format("{} %f{}, %f{};", kOps[Pick(std::size(kOps))], x, y));
        return;
      }
    }
  }

  void Memory(std::vector<Action>& program) {
    const unsigned d = Pick(kIntegers), a = Pick(kIntegers);
    switch (Pick(5)) {
      case 0:
      case 1:
        Line(fmt::format("and.b32 %x0, %r{}, {}; mad.wide.u32 %at, %x0, 4, %in; ld.global.u32 %r{}, [%at];",
                         a, kInputs - 1, d));
        program.push_back([=](Block& b, const Active& active) {
          for (size_t i = 0; i < b.threads.size(); ++i)
            if (Runs(b, active, i)) b.threads[i].r[d] = (*b.inputs)[b.threads[i].r[a] % kInputs];
        });
        return;
      case 2:
        Line(
            fmt::format("and.b32 %x0, %r{}, {}; shl.b32 %x0, %x0, 2; mov.u32 %x1, frame; add.u32 %x0, %x0, "
                        "%x1; st.local.u32 [%x0], %r{};",
                        a, kLocals - 1, d));
        program.push_back(Each([=](Thread& t) { t.local[t.r[a] % kLocals] = t.r[d]; }));
        return;
      case 3:
        Line(
            fmt::format("and.b32 %x0, %r{}, {}; shl.b32 %x0, %x0, 2; mov.u32 %x1, frame; add.u32 %x0, %x0, "
                        "%x1; ld.local.u32 %r{}, [%x0];",
                        a, kLocals - 1, d));
        program.push_back(Each([=](Thread& t) { t.r[d] = t.local[t.r[a] % kLocals]; }));
        return;
      default:  // bytes and pairs of the inputs
        Line(fmt::format(
            "and.b32 %x0, %r{}, {}; cvt.u64.u32 %at, %x0; add.u64 %at, %at, %in; ld.global.s8 %r{}, [%at];",
            a, kInputs * 4 - 1, d));
        program.push_back([=](Block& b, const Active& active) {
          for (size_t i = 0; i < b.threads.size(); ++i) {
            if (!Runs(b, active, i)) continue;
            const uint32_t at = b.threads[i].r[a] % (kInputs * 4);
            b.threads[i].r[d] =
                static_cast<uint32_t>(static_cast<int8_t>((*b.inputs)[at / 4] >> (at % 4 * 8)));
          }
        });
        return;
    }
  }

  /// The mask of lanes for which a predicate holds, of those in `mask`; and of the others.
  std::pair<std::string, std::string> Split(const std::string& predicate, const std::string& mask) {
    const std::string yes = Fresh("b32", "m"), no = Fresh("b32", "m");
    Line(fmt::format("vote.sync.ballot.b32 {}, {}, {};", yes, predicate, mask));
    Line(fmt::format("not.b32 {0}, {1}; and.b32 {0}, {0}, {2};", no, yes, mask));
    return {yes, no};
  }

  void Branch(std::vector<Action>& program, unsigned depth, Place& place) {
    const unsigned p = Pick(kPredicates);
    auto then = std::make_shared<std::vector<Action>>(), otherwise = std::make_shared<std::vector<Action>>();
    const std::string skip = Label(), end = Label();
    if (place.uniform && Chance(30)) {  // all threads of the block together
      const uint32_t bit = 1u << Pick(2);
      Line(fmt::format("mov.u32 %x0, %ctaid.x; and.b32 %x0, %x0, {}; setp.eq.u32 %q, %x0, 0;", bit));
      Line(fmt::format("@%q bra {};", skip));
      Place inside = place;
      Statements(*then, 1 + Pick(4), depth + 1, inside);
      Line(fmt::format("bra {};", end));
      text_ += skip + ":\n";
      Statements(*otherwise, Pick(3), depth + 1, inside);
      text_ += end + ":\n";
      program.push_back(
          [=](Block& b, const Active& active) { Run(b.number & bit ? *then : *otherwise, b, active); });
      return;
    }
    const std::string condition = Fresh("pred", "c");
    Line(fmt::format("mov.pred {}, %p{};", condition, p));
    const bool votes = Chance(60) && !place.mask.empty();  // without, nothing inside can meet
    std::pair<std::string, std::string> masks;
    if (votes) masks = Split(condition, place.mask);
    Place yes = place, no = place;
    yes.uniform = no.uniform = false;
    yes.mask = votes ? masks.first : "";
    no.mask = votes ? masks.second : "";
    Line(fmt::format("@!{} bra {};", condition, skip));
    Statements(*then, 1 + Pick(5), depth + 1, yes);
    const bool has_else = Chance(60);
    if (has_else) Line(fmt::format("bra {};", end));
    text_ += skip + ":\n";
    if (has_else) {
      Statements(*otherwise, 1 + Pick(4), depth + 1, no);
      text_ += end + ":\n";
    }
    program.push_back([=](Block& b, const Active& active) {
      Active is(active.size()), isnt(active.size());
      for (size_t i = 0; i < active.size(); ++i) {
        if (!Runs(b, active, i)) continue;
        (b.threads[i].p[p] ? is : isnt)[i] = 1;
      }
      Run(*then, b, is);
      Run(*otherwise, b, isnt);
    });
    // Who broke out inside is not here any more.
    if (place.in_loop) place.mask.clear();
  }

  void Loop(std::vector<Action>& program, unsigned depth, Place& place) {
    const std::string top = Label(), again = Label(), end = Label(), counter = Fresh("b32", "k");
    const bool even = Chance(40);  // the same number of turns for every thread
    const unsigned a = Pick(kIntegers), turns = 1 + Pick(5), limit = Chance(50) ? 7 : 3;
    if (even) {
      Line(fmt::format("mov.u32 {}, {};", counter, turns));
    } else {
      Line(fmt::format("and.b32 {}, %r{}, {};", counter, a, limit));
    }
    auto body = std::make_shared<std::vector<Action>>();
    Place inside = place;
    const bool collective = !even && Chance(50) && !place.mask.empty();
    inside.in_loop = true;
    inside.leave = end;
    inside.leave_both = place.in_loop ? place.leave : "";
    inside.again = again;
    inside.uniform = place.uniform && even && !Chance(50);
    if (inside.uniform) inside.in_loop = false;  // nobody leaves early
    if (!even || inside.in_loop) inside.mask.clear();
    const std::string mask = collective ? Fresh("b32", "m") : "";
    if (collective) Line(fmt::format("mov.b32 {}, {};", mask, place.mask));
    text_ += top + ":\n";
    Line(fmt::format("setp.eq.u32 %q, {}, 0;", counter));
    if (collective) {  // those who go on, of those who were here
      const std::string on = Fresh("pred", "c"), met = Fresh("b32", "m");
      Line(fmt::format("not.pred {}, %q; vote.sync.ballot.b32 {}, {}, {};", on, met, on, mask));
      Line(fmt::format("mov.b32 {}, {};", mask, met));
      Line(fmt::format("@!{} bra {};", on, end));
      inside.in_loop = false;
      inside.mask = mask;
    } else {
      Line(fmt::format("@%q bra {};", end));
    }
    Statements(*body, 1 + Pick(5), depth + 1, inside);
    text_ += again + ":\n";
    Line(fmt::format("sub.u32 {0}, {0}, 1;", counter));
    Line(fmt::format("bra {};", top));
    text_ += end + ":\n";
    program.push_back([=](Block& b, const Active& active) {
      std::vector<uint32_t> left(active.size());
      Active here(active.size());
      for (size_t i = 0; i < active.size(); ++i) {
        here[i] = Runs(b, active, i);
        left[i] = even ? turns : b.threads[i].r[a] & limit;
      }
      Active live = here;
      for (;;) {
        bool any = false;
        for (size_t i = 0; i < active.size(); ++i) {
          live[i] = live[i] && left[i] && Runs(b, active, i);
          any |= live[i] != 0;
        }
        if (!any) break;
        Run(*body, b, live);
        for (size_t i = 0; i < active.size(); ++i) {
          if (!live[i]) continue;
          if (b.threads[i].state == State::kContinued) b.threads[i].state = State::kRunning;
          --left[i];
        }
      }
      for (size_t i = 0; i < active.size(); ++i)
        if (here[i] && b.threads[i].state == State::kBroken && --b.threads[i].loops == 0)
          b.threads[i].state = State::kRunning;
    });
  }

  void Leave(std::vector<Action>& program, Place& place) {
    const unsigned p = Pick(kPredicates);
    const bool breaks = Chance(50), both = breaks && !place.leave_both.empty() && Chance(50);
    Line(fmt::format("@%p{} bra {};", p, both ? place.leave_both : breaks ? place.leave : place.again));
    place.mask.clear();
    program.push_back(Each([=](Thread& t) {
      if (!t.p[p]) return;
      t.state = breaks ? State::kBroken : State::kContinued;
      t.loops = both ? 2 : 1;
    }));
  }

  void Exit(std::vector<Action>& program, Place& place) {
    const unsigned p = Pick(kPredicates);
    const std::string gone = Fresh("b32", "m"), left = Fresh("b32", "m");
    Line(fmt::format("and.pred %s, %p{}, %p{};", p, (p + 1) % kPredicates));
    if (!place.mask.empty()) {
      Line(fmt::format("vote.sync.ballot.b32 {}, %s, {};", gone, place.mask));
      Line(fmt::format("not.b32 {0}, {1}; and.b32 {0}, {0}, {2};", left, gone, place.mask));
      place.mask = left;
    }
    Line("@%s bra done;");
    full_warps_ = false;
    left_early_ = true;
    program.push_back(Each([=](Thread& t) {
      if (t.p[p] && t.p[(p + 1) % kPredicates]) t.state = State::kExited;
    }));
  }

  void Switch(std::vector<Action>& program, unsigned depth, Place& place) {
    const unsigned a = Pick(kIntegers), ways = 2 + Pick(3);
    const std::string table = fmt::format("T{}", labels_++), end = Label();
    std::vector<std::string> labels;
    std::string list;
    for (unsigned i = 0; i < ways; ++i) {
      labels.push_back(Label());
      list += (i ? ", " : "") + labels.back();
    }
    text_ += fmt::format("{}: .branchtargets {};\n", table, list);
    Line(fmt::format("rem.u32 %x0, %r{}, {}; brx.idx %x0, {};", a, ways, table));
    auto bodies = std::make_shared<std::vector<std::vector<Action>>>(ways);
    Place inside = place;
    inside.uniform = false;
    inside.mask.clear();
    for (unsigned i = 0; i < ways; ++i) {
      text_ += labels[i] + ":\n";
      Statements((*bodies)[i], 1 + Pick(3), depth + 1, inside);
      Line(fmt::format("bra {};", end));
    }
    text_ += end + ":\n";
    program.push_back([=](Block& b, const Active& active) {
      std::vector<Active> way(ways, Active(active.size()));
      for (size_t i = 0; i < active.size(); ++i)
        if (Runs(b, active, i)) way[b.threads[i].r[a] % ways][i] = 1;
      for (unsigned w = 0; w < ways; ++w) Run((*bodies)[w], b, way[w]);
    });
    if (place.in_loop) place.mask.clear();
  }

  void Call(std::vector<Action>& program) {
    const unsigned d = Pick(kIntegers), a = Pick(kIntegers), b = Pick(kIntegers);
    Line(fmt::format("call.uni (%r{}), mix, (%r{}, %r{});", d, a, b));
    program.push_back(Each([=](Thread& t) {
      uint32_t o = t.r[a];
      const uint32_t y = t.r[b];
      for (uint32_t n = y & 3; n; --n) {
        o = o * 1664525 + y;
        o ^= o >> 7;
      }
      t.r[d] = o;
    }));
  }

  void Collective(std::vector<Action>& program, Place& place) {
    if (place.mask.empty()) return Arithmetic(program);
    const unsigned d = Pick(kIntegers), a = Pick(kIntegers), p = Pick(kPredicates), q = Pick(kPredicates);
    const std::string& mask = place.mask;
    switch (Pick(place.uniform && full_warps_ ? 9 : 6)) {
      case 0:
        Line(fmt::format("vote.sync.ballot.b32 %r{}, %p{}, {};", d, p, mask));
        program.push_back([=](Block& b, const Active& active) {
          EachWarp(b, active, [&](const std::vector<size_t>& lanes) {
            uint32_t ballot = 0;
            for (size_t i : lanes) ballot |= uint32_t{b.threads[i].p[p]} << (i % 32);
            for (size_t i : lanes) b.threads[i].r[d] = ballot;
          });
        });
        return;
      case 1: {
        const unsigned kind = Pick(3);
        static constexpr const char* kKinds[] = {"any", "all", "uni"};
        Line(fmt::format("vote.sync.{}.pred %p{}, %p{}, {};", kKinds[kind], q, p, mask));
        program.push_back([=](Block& b, const Active& active) {
          EachWarp(b, active, [&](const std::vector<size_t>& lanes) {
            bool any = false, all = true;
            for (size_t i : lanes) any |= b.threads[i].p[p], all &= b.threads[i].p[p];
            const bool out = kind == 0 ? any : kind == 1 ? all : all || !any;
            for (size_t i : lanes) b.threads[i].p[q] = out;
          });
        });
        return;
      }
      case 2: {
        const Atom& op = kAtoms[Pick(std::size(kAtoms))];
        auto of = op.of;
        Line(fmt::format("redux.sync.{} %r{}, %r{}, {};", op.text, d, a, mask));
        program.push_back([=](Block& b, const Active& active) {
          EachWarp(b, active, [&](const std::vector<size_t>& lanes) {
            uint32_t total = b.threads[lanes[0]].r[a];
            for (size_t n = 1; n < lanes.size(); ++n) total = of(total, b.threads[lanes[n]].r[a]);
            for (size_t i : lanes) b.threads[i].r[d] = total;
          });
        });
        return;
      }
      case 3:
        Line(fmt::format("and.b32 %x0, %r{}, 3; match.any.sync.b32 %r{}, %x0, {};", a, d, mask));
        program.push_back([=](Block& b, const Active& active) {
          EachWarp(b, active, [&](const std::vector<size_t>& lanes) {
            std::vector<uint32_t> key;
            for (size_t i : lanes) key.push_back(b.threads[i].r[a] & 3);
            for (size_t n = 0; n < lanes.size(); ++n) {
              uint32_t same = 0;
              for (size_t m = 0; m < lanes.size(); ++m) same |= uint32_t{key[m] == key[n]} << (lanes[m] % 32);
              b.threads[lanes[n]].r[d] = same;
            }
          });
        });
        return;
      case 4:  // everyone reads the last lane that is here
        Line(fmt::format("bfind.u32 %x0, {0}; shfl.sync.idx.b32 %r{1}, %r{2}, %x0, 31, {0};", mask, d, a));
        program.push_back([=](Block& b, const Active& active) {
          EachWarp(b, active, [&](const std::vector<size_t>& lanes) {
            const uint32_t value = b.threads[lanes.back()].r[a];
            for (size_t i : lanes) b.threads[i].r[d] = value;
          });
        });
        return;
      case 5:
        Line(fmt::format("bar.warp.sync {};", mask));
        return;
      default: {
        const unsigned kind = Pick(4), by = Pick(40), segment = 1u << Pick(6);
        static constexpr const char* kKinds[] = {"up", "down", "bfly", "idx"};
        const uint32_t clamp = kind == 0 ? 0 : 31, c = (32 - segment) << 8 | clamp;
        const bool varies = kind == 3 && Chance(50);
        if (varies) {
          Line(fmt::format("shfl.sync.idx.b32 %r{0}|%p{1}, %r{2}, %r{2}, {3}, {4};", d, q, a, c, mask));
        } else {
          Line(fmt::format("shfl.sync.{}.b32 %r{}|%p{}, %r{}, {}, {}, {};", kKinds[kind], d, q, a, by, c,
                           mask));
        }
        program.push_back([=](Block& b, const Active& active) {
          EachWarp(b, active, [&](const std::vector<size_t>& lanes) {
            std::array<uint32_t, 32> from = {};
            for (size_t i : lanes) from[i % 32] = b.threads[i].r[a];
            for (size_t i : lanes) {
              const int lane = static_cast<int>(i % 32), size = static_cast<int>(segment);
              const int low = lane / size * size, high = low + size - 1;
              const int step = static_cast<int>((varies ? from[i % 32] : by) & 31);
              int source = 0;
              bool valid = false;
              switch (kind) {
                case 0:
                  source = lane - step;
                  valid = source >= low;
                  break;
                case 1:
                  source = lane + step;
                  valid = source <= high;
                  break;
                case 2:
                  source = lane ^ step;
                  valid = source <= high;
                  break;
                default:
                  source = low | (step & (size - 1));
                  valid = true;
                  break;
              }
              b.threads[i].p[q] = valid;
              b.threads[i].r[d] = from[static_cast<size_t>(valid ? source : lane)];
            }
          });
        });
        return;
      }
    }
  }

  void Atomic(std::vector<Action>& program) {
    const unsigned a = Pick(kIntegers), op = Pick(std::size(kAtoms));
    const bool global = Chance(40);
    auto of = kAtoms[op].of;
    // A counter knows one operation: different ones do not commute.
    const unsigned counter = op;
    if (global) {
      Line(fmt::format("red.global.{} [%count+{}], %r{};", kAtoms[op].text, counter * 4, a));
    } else if (Chance(50)) {
      Line(fmt::format("red.shared.{} [totals+{}], %r{};", kAtoms[op].text, counter * 4, a));
    } else {  // with an answer that nobody may look at
      Line(fmt::format("atom.shared.{} %x0, [totals+{}], %r{};", kAtoms[op].text, counter * 4, a));
    }
    program.push_back([=](Block& b, const Active& active) {
      for (size_t i = 0; i < b.threads.size(); ++i) {
        if (!Runs(b, active, i)) continue;
        uint32_t& at = global ? (*b.global_counters)[counter] : b.counters[counter];
        at = of(at, b.threads[i].r[a]);
      }
    });
  }

  /// Through shared memory, with barriers. All threads of the block are here.
  void Exchange(std::vector<Action>& program) {
    const unsigned d = Pick(kIntegers), a = Pick(kIntegers), by = 1 + Pick(threads_);
    const unsigned kind = Pick(left_early_ ? 3 : 5);
    if (kind < 2) {
      Line(fmt::format(
          "shl.b32 %x0, %i, 2; mov.u32 %x1, slots; add.u32 %x0, %x0, %x1; st.shared.u32 [%x0], %r{};", a));
      Line("bar.sync 0;");
      Line(
          fmt::format("add.u32 %x0, %i, {}; rem.u32 %x0, %x0, %n; shl.b32 %x0, %x0, 2; add.u32 %x0, %x0, "
                      "%x1; ld.shared.u32 %r{}, [%x0];",
                      by, d));
      Line("barrier.sync 0;");
      program.push_back([=](Block& b, const Active& active) {
        for (size_t i = 0; i < b.threads.size(); ++i)
          if (Runs(b, active, i)) b.slots[i] = b.threads[i].r[a];
        for (size_t i = 0; i < b.threads.size(); ++i)
          if (Runs(b, active, i)) b.threads[i].r[d] = b.slots[(i + by) % b.threads.size()];
      });
    } else if (kind == 2) {
      const unsigned counter = Pick(kCounters);
      Line(fmt::format("bar.sync 0; ld.shared.u32 %r{}, [totals+{}]; bar.sync 0;", d, counter * 4));
      program.push_back([=](Block& b, const Active& active) {
        for (size_t i = 0; i < b.threads.size(); ++i)
          if (Runs(b, active, i)) b.threads[i].r[d] = b.counters[counter];
      });
    } else if (kind == 3) {
      const unsigned p = Pick(kPredicates), how = Pick(3), q = Pick(kPredicates);
      static constexpr const char* kHow[] = {"popc", "and", "or"};
      if (how == 0) {
        Line(fmt::format("bar.red.popc.u32 %r{}, 0, %p{};", d, p));
      } else {
        Line(fmt::format("bar.red.{}.pred %p{}, 0, %p{};", kHow[how], q, p));
      }
      program.push_back([=](Block& b, const Active& active) {
        uint32_t count = 0, all = 0;
        for (size_t i = 0; i < b.threads.size(); ++i)
          if (Runs(b, active, i)) count += b.threads[i].p[p], ++all;
        for (size_t i = 0; i < b.threads.size(); ++i) {
          if (!Runs(b, active, i)) continue;
          if (how == 0) {
            b.threads[i].r[d] = count;
          } else {
            b.threads[i].p[q] = how == 1 ? count == all : count != 0;
          }
        }
      });
    } else if (threads_ % 64 == 0) {  // even warps at one barrier, odd ones at another
      Line(fmt::format("shr.u32 %x0, %i, 5; and.b32 %x0, %x0, 1; add.u32 %x0, %x0, 1; bar.sync %x0, {};",
                       threads_ / 2));
    } else {
      Line("barrier.sync 0;");
    }
  }

  std::mt19937_64 random_;
  uint64_t seed_;
  uint32_t threads_ = 32;
  bool full_warps_ = true, exact_ = true, left_early_ = false;
  unsigned labels_ = 0, fresh_ = 0;
  std::string head_, text_;
};

}  // namespace

std::vector<uint32_t> RandomKernel::Evaluate(const std::vector<uint32_t>& inputs) const {
  std::vector<uint32_t> counters(kCounters), outputs;
  for (uint32_t number = 0; number < grid[0]; ++number) {
    Block b;
    b.threads.resize(threads());
    b.slots.resize(threads());
    b.global_counters = &counters;
    b.inputs = &inputs;
    b.number = number;
    for (uint32_t i = 0; i < threads(); ++i) {
      Thread& t = b.threads[i];
      for (unsigned n = 0; n < kIntegers; ++n) t.r[n] = inputs[(number * threads() + i + n * 37) % kInputs];
      t.r[0] = i;
      for (unsigned n = 0; n < kLongs; ++n) t.l[n] = uint64_t{t.r[n + 1]} * (0x9e3779b9u + n);
      for (unsigned n = 0; n < kFloats; ++n) t.f[n] = static_cast<float>(t.r[n] & 0xffff);
      for (unsigned n = 0; n < kDoubles; ++n) t.d[n] = static_cast<int32_t>(t.r[n + 2]);
      for (unsigned n = 0; n < kPredicates; ++n) t.p[n] = t.r[n + 1] >> n & 1;
    }
    Run(program, b, Active(threads(), 1));
    for (const Thread& t : b.threads) {
      for (uint32_t v : t.r) outputs.push_back(v);
      for (uint64_t v : t.l) outputs.push_back(static_cast<uint32_t>(v ^ v >> 32));
      for (float v : t.f) outputs.push_back(Bits(v));
      for (double v : t.d) outputs.push_back(static_cast<uint32_t>(Bits(v) ^ Bits(v) >> 32));
      outputs.push_back(uint32_t{t.p[0]} | uint32_t{t.p[1]} << 1 | uint32_t{t.p[2]} << 2 |
                        uint32_t{t.p[3]} << 3);
      outputs.push_back(t.local[2]);
    }
  }
  outputs.insert(outputs.end(), counters.begin(), counters.end());
  return outputs;
}

RandomKernel MakeRandomKernel(uint64_t seed) { return Generator(seed).Make(); }

}  // namespace cuplex::softcuda::differential
