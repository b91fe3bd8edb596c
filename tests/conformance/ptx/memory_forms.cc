// Memory: loads and stores of every type, vector and cache operator in every space; parameters, constants,
// initialised variables and their addresses; moves that pack and unpack; addresses between spaces.
#include <fmt/format.h>

#include "tests/conformance/ptx/corpus.h"

namespace cuplex::corpus {
namespace {

struct Width {
  const char* type;
  unsigned bytes;
  bool is_signed;
};
constexpr Width kWidths[] = {{"u8", 1, false},  {"s8", 1, true},   {"b8", 1, false},  {"u16", 2, false},
                             {"s16", 2, true},  {"b16", 2, false}, {"u32", 4, false}, {"s32", 4, true},
                             {"b32", 4, false}, {"f32", 4, false}, {"u64", 8, false}, {"s64", 8, true},
                             {"b64", 8, false}, {"f64", 8, false}};

uint64_t Extended(uint64_t bits, const Width& w) {
  if (w.bytes == 8) return bits;
  const uint64_t mask = (uint64_t{1} << (w.bytes * 8)) - 1;
  bits &= mask;
  return w.is_signed && bits >> (w.bytes * 8 - 1) ? bits | ~mask : bits;
}

/// A place for eight bytes of the thread's own in a space, holding %a; its address in %at (64 bits) or %t7
/// (32).
struct Space {
  const char* name;   // as the instruction has it
  std::string begin;  // declares and fills it
  std::string address;
};
std::vector<Space> Spaces() {
  const std::string shared =
      "{ .shared .align 16 .b8 cells[2048]; mov.u32 %t7, %tid.x; shl.b32 %t7, %t7, 4; mov.u32 %t6, cells; "
      "add.u32 %t7, %t7, %t6; st.shared.b64 [%t7], %a; ";
  const std::string local = "{ .local .align 16 .b8 cell[16]; mov.u64 %u7, cell; st.local.b64 [%u7], %a; ";
  return {{".global", "{ mad.wide.u32 %at, %i, 8, %pa; ", "%at"},
          {"", "{ mad.wide.u32 %at, %i, 8, %pa; ", "%at"},
          {".shared", shared, "%t7"},
          {".shared::cta", shared, "%t7"},
          {"", shared + "cvt.u64.u32 %at, %t7; cvta.shared.u64 %at, %at; ", "%at"},
          {".local", local, "%u7"},
          {"", local + "cvta.local.u64 %at, %u7; ", "%at"}};
}

void LoadsAndStores(Family& f) {
  int variant = 0;
  for (const Space& space : Spaces()) {
    const bool generic = !*space.name;
    const std::string in = generic ? fmt::format(" by a generic address, {}", ++variant) : "";
    for (const Width& w : kWidths) {
      // Loads extend into wider registers, by sign; floats and plain bits have no wider ones.
      const bool extends = w.type[0] != 'f' && w.type[0] != 'b';
      const std::string load = fmt::format("ld{}.{}", space.name, w.type);
      if (extends || w.bytes == 8 || w.type[0] == 'b') {
        f.Add(fmt::format("{}{} %d, [{}]; }}", space.begin, load, space.address), [w](uint64_t a) {
           return Extended(a, w);
         }).Named(load + in);
      } else {
        f.Add(fmt::format("{}{} %t0, [{}]; mov.b64 %d, {{%t0, 0}}; }}", space.begin, load, space.address),
              [](uint64_t a) { return a & 0xffffffff; })
            .Named(load + in);
      }
      const std::string store = fmt::format("st{}.{}", space.name, w.type);
      const std::string value = w.bytes == 8 ? "%b" : w.bytes == 4 ? "%t0" : "%h0";
      const std::string narrow = w.bytes == 8   ? ""
                                 : w.bytes == 4 ? "cvt.u32.u64 %t0, %b; "
                                                : "cvt.u16.u64 %h0, %b; ";
      f.Add(fmt::format("{}{}{} [{}], {}; ld{}.b64 %d, [{}]; }}", space.begin, narrow, store, space.address,
                        value, space.name, space.address),
            [w](uint64_t a, uint64_t b) {
              if (w.bytes == 8) return b;
              const uint64_t mask = (uint64_t{1} << (w.bytes * 8)) - 1;
              return (a & ~mask) | (b & mask);
            })
          .Named(store + in)
          .Random(64);
    }
  }
}

/// What changes where a value is kept on the way, not the value.
void Operators(Family& f) {
  for (const char* op : {".ca",
                         ".cg",
                         ".cs",
                         ".lu",
                         ".cv",
                         ".nc",
                         ".volatile",
                         ".weak",
                         ".relaxed.cta",
                         ".relaxed.gpu",
                         ".relaxed.sys",
                         ".acquire.cta",
                         ".acquire.gpu",
                         ".acquire.sys",
                         ".L1::no_allocate",
                         ".L1::evict_last",
                         ".L1::evict_first",
                         ".L2::128B",
                         ".L2::256B",
                         ".nc.L1::no_allocate.L2::256B",
                         ".mmio.relaxed.sys"}) {
    const std::string o = op;
    const bool first = o[1] != 'n' && o.find("::") == std::string::npos && o.size() > 3;  // before the space
    f.Add(fmt::format("mad.wide.u32 %at, %i, 4, %pa; ld{}.u32 %d, [%at];",
                      first ? o + ".global" : ".global" + o),
          [](uint32_t a) { return a; })
        .Named("ld.global.u32 with " + o)
        .Random(32)
        .Target(o[1] == 'm'                         ? 80
                : o.find("::") != std::string::npos ? 80
                                                    : 75)
        .Version("8.2");
  }
  for (const char* op :
       {".wb", ".cg", ".cs", ".wt", ".volatile", ".weak", ".relaxed.cta", ".relaxed.gpu", ".relaxed.sys",
        ".release.cta", ".release.gpu", ".release.sys", ".L1::no_allocate", ".mmio.relaxed.sys"}) {
    const std::string o = op;
    const bool first = o.find("::") == std::string::npos && o.size() > 3;
    f.Add(fmt::format("mad.wide.u32 %at, %i, 4, %pa; st{}.u32 [%at], %b; ld.global.u32 %d, [%at];",
                      first ? o + ".global" : ".global" + o),
          [](uint32_t, uint32_t b) { return b; })
        .Named("st.global.u32 with " + o)
        .Random(32)
        .Target(o[1] == 'm' || o[1] == 'L' ? 80 : 75)
        .Version("8.2");
  }
  f.Add("mad.wide.u32 %at, %i, 4, %pa; ldu.global.u32 %d, [%at];", [](uint32_t a) {
     return a;
   }).Named("ldu.global.u32");
  for (const char* text :
       {"prefetch.global.L1 [%at];", "prefetch.global.L2 [%at];", "prefetch.L1 [%at];", "prefetchu.L1 [%at];",
        "prefetch.global.L2::evict_last [%at];", "membar.cta;", "membar.gl;", "membar.sys;", "fence.sc.gpu;",
        "fence.acq_rel.cta;", "fence.acq_rel.sys;"})
    f.Add(fmt::format("mad.wide.u32 %at, %i, 4, %pa; {} mov.u32 %d, %a;", text), [](uint32_t a) { return a; })
        .Named(std::string(text, std::strlen(text) - 1))
        .Random(8)
        .Target(std::strstr(text, "evict") ? 80 : 75);
  f.Add("mad.wide.u32 %at, %i, 4, %pa; applypriority.global.L2::evict_normal [%at], 128; mov.u32 %d, %a;",
        [](uint32_t a) { return a; })
      .Named("applypriority")
      .Random(0)
      .Operand(0, std::vector<Word>(32, 7))
      .Target(80);
  f.Add("nanosleep.u32 20; mov.u32 %d, %a;", [](uint32_t a) { return a; })
      .Named("nanosleep.u32")
      .Random(0)
      .Operand(0, {1, 2});
}

void Vectors(Family& f) {
  struct Shape {
    const char* space;
    const char* begin;
    const char* address;
  };
  for (const Shape& s : {Shape{".global", "{ mad.wide.u32 %at, %i, 8, %pa; and.b64 %at, %at, -16; ", "%at"},
                         Shape{"", "{ mad.wide.u32 %at, %i, 8, %pa; and.b64 %at, %at, -16; ", "%at"}}) {
    const std::string n = *s.space ? "" : " by a generic address";
    // The pair of rows that the thread belongs to: words 0..3 of two columns' neighbours.
    auto pair = [](size_t i, const Columns& x, unsigned word) {
      return static_cast<uint32_t>(x[0][i / 2 * 2 + word / 2] >> (word % 2 * 32));
    };
    f.Together<uint64_t, uint64_t>(
         fmt::format("{}ld{}.v4.u32 {{%t0, %t1, %t2, %t3}}, [{}]; sub.u32 %t0, %t0, %t1; shf.l.wrap.b32 %t2, "
                     "%t2, %t3, 5; mov.b64 %d, {{%t0, %t2}}; }}",
                     s.begin, s.space, s.address),
         [=](size_t i, const Columns& x) {
           return uint64_t{pair(i, x, 3) << 5 | pair(i, x, 2) >> 27} << 32 | (pair(i, x, 0) - pair(i, x, 1));
         })
        .Named(fmt::format("ld{}.v4.u32{}", s.space, n))
        .Block(64);
    f.Together<uint64_t, uint64_t>(
         fmt::format("{}ld{}.v2.u64 {{%u0, %u1}}, [{}]; mul.lo.u64 %u0, %u0, 3; sub.u64 %d, %u0, %u1; }}",
                     s.begin, s.space, s.address),
         [](size_t i, const Columns& x) { return x[0][i / 2 * 2] * 3 - x[0][i / 2 * 2 + 1]; })
        .Named(fmt::format("ld{}.v2.u64{}", s.space, n))
        .Block(64);
    f.Together<uint64_t, uint64_t>(
         fmt::format("{}ld{}.v2.b32 {{%t0, %t1}}, [{}+8]; mov.b64 %d, {{%t1, %t0}}; }}", s.begin, s.space,
                     s.address),
         [](size_t i, const Columns& x) {
           const uint64_t v = x[0][i / 2 * 2 + 1];
           return v << 32 | v >> 32;
         })
        .Named(fmt::format("ld{}.v2.b32{}", s.space, n))
        .Block(64);
    f.Together<uint64_t, uint64_t>(
         fmt::format("{}ld{}.v4.u8 {{%h0, %h1, %h2, %h3}}, [{}+4]; mov.b64 %d, {{%h3, %h2, %h1, %h0}}; }}",
                     s.begin, s.space, s.address),
         [](size_t i, const Columns& x) {
           const uint64_t v = x[0][i / 2 * 2] >> 32;
           return (v >> 24 & 255) | (v >> 16 & 255) << 16 | (v >> 8 & 255) << 32 | (v & 255) << 48;
         })
        .Named(fmt::format("ld{}.v4.u8{}", s.space, n))
        .Block(64);
    f.Together<uint64_t, uint64_t>(
         fmt::format("{}ld{}.v2.s16 {{%t0, %t1}}, [{}+2]; mov.b64 %d, {{%t0, %t1}}; }}", s.begin, s.space,
                     "%at"),
         [](size_t i, const Columns& x) {
           const uint64_t v = x[0][i / 2 * 2];
           return uint64_t{static_cast<uint32_t>(static_cast<int16_t>(v >> 48))} << 32 |
                  static_cast<uint32_t>(static_cast<int16_t>(v >> 32));
         })
        .Named(fmt::format("ld{}.v2.s16{}", s.space, n))
        .Block(64)
        .code = fmt::format("{}ld{}.v2.s16 {{%t0, %t1}}, [{}+4]; mov.b64 %d, {{%t0, %t1}}; }}", s.begin,
                            s.space, s.address);
  }
  f.Add(
       "{ .shared .align 16 .b8 c[2048]; mov.u32 %t7, %tid.x; shl.b32 %t7, %t7, 4; mov.u32 %t6, c; add.u32 "
       "%t7, %t7, %t6; st.shared.v4.b32 [%t7], {%a, %b, %c, %e}; ld.shared.v2.u64 {%u0, %u1}, [%t7]; xor.b64 "
       "%d, %u0, %u1; }",
       [](uint32_t a, uint32_t b, uint32_t c, uint32_t e) { return uint64_t{b ^ e} << 32 | (a ^ c); })
      .Named("st.shared.v4.b32");
  f.Add(
       "{ .local .align 16 .b8 c[16]; st.local.v2.b64 [c], {%a, %b}; ld.local.v4.u32 {%t0, %t1, %t2, %t3}, "
       "[c]; xor.b32 %t0, %t0, %t3; xor.b32 %t1, %t1, %t2; mov.b64 %d, {%t0, %t1}; }",
       [](uint64_t a, uint64_t b) {
         return uint64_t{static_cast<uint32_t>(a >> 32) ^ static_cast<uint32_t>(b)} << 32 |
                (static_cast<uint32_t>(a) ^ static_cast<uint32_t>(b >> 32));
       })
      .Named("st.local.v2.b64");
  f.Add(
       "{ .shared .align 16 .b8 c[2048]; mov.u32 %t7, %tid.x; shl.b32 %t7, %t7, 4; mov.u32 %t6, c; add.u32 "
       "%t7, %t7, %t6; mov.u16 %h0, 513; st.shared.v4.u8 [%t7], {%a, %h0, %b, %a}; ld.shared.u32 %d, [%t7]; "
       "}",
       [](uint16_t a, uint16_t b) { return uint32_t{a} << 24 | (b & 0xffu) << 16 | 0x100u | (a & 0xffu); })
      .Named("st.shared.v4.u8");
  // Unused parts of a vector.
  f.Add(
       "{ .shared .align 16 .b8 c[2048]; mov.u32 %t7, %tid.x; shl.b32 %t7, %t7, 4; mov.u32 %t6, c; add.u32 "
       "%t7, %t7, %t6; st.shared.v4.b32 [%t7], {%a, %b, %c, %e}; ld.shared.v4.u32 {_, %t1, _, %d}, [%t7]; "
       "xor.b32 %d, %d, %t1; }",
       [](uint32_t, uint32_t b, uint32_t, uint32_t e) { return b ^ e; })
      .Named("ld.shared.v4.u32 into sinks")
      .Version("8.3");
}

void Moves(Family& f) {
  f.Add("mov.b32 %d, {%a, %b};", [](uint16_t a, uint16_t b) {
     return uint32_t{b} << 16 | a;
   }).Named("mov.b32 of two halves");
  f.Add("mov.b32 {%h0, %h1}, %a; mov.b32 %d, {%h1, %h0};", [](uint32_t a) {
     return a << 16 | a >> 16;
   }).Named("mov.b32 into two halves");
  f.Add("mov.b64 %d, {%a, %b};", [](uint32_t a, uint32_t b) {
     return uint64_t{b} << 32 | a;
   }).Named("mov.b64 of two words");
  f.Add("mov.b64 {%t0, %t1}, %a; mov.b64 %d, {%t1, %t0};", [](uint64_t a) {
     return a << 32 | a >> 32;
   }).Named("mov.b64 into two words");
  f.Add("mov.b64 %d, {%a, %b, %c, %e};", [](uint16_t a, uint16_t b, uint16_t c, uint16_t e) {
     return uint64_t{e} << 48 | uint64_t{c} << 32 | uint32_t{b} << 16 | a;
   }).Named("mov.b64 of four halves");
  f.Add("mov.b64 {%h0, %h1, %h2, %h3}, %a; mov.b64 %d, {%h3, %h2, %h1, %h0};", [](uint64_t a) {
     return a << 48 | (a >> 16 & 0xffff) << 32 | (a >> 32 & 0xffff) << 16 | a >> 48;
   }).Named("mov.b64 into four halves");
  f.Add("mov.b64 {_, %t1}, %a; mov.u32 %d, %t1;", [](uint64_t a) { return static_cast<uint32_t>(a >> 32); })
      .Named("mov.b64 into a sink")
      .Version("8.3");
  f.Add("mov.pred %d, %a;", [](bool a) { return a; });
  f.Add("mov.u16 %d, %a;", [](uint16_t a) { return a; });
  f.Add("mov.f32 %d, %a;", [](float a) { return a; }).ExactNan();
  f.Add("mov.f64 %d, %a;", [](double a) { return a; }).ExactNan();
  f.Add("mov.f32 %t0, 0f3FC00000; mov.u32 %d, %t0;", [](uint32_t) {
     return 0x3fc00000u;
   }).Named("mov.f32 of a constant");
  f.Add("mov.f64 %u0, 0dBFF8000000000001; mov.u64 %d, %u0;", [](uint32_t) {
     return 0xbff8000000000001u;
   }).Named("mov.f64 of a constant");
  f.Add("mov.f64 %u0, 0.1; mov.u64 %d, %u0;", [](uint32_t) {
     return 0x3fb999999999999au;
   }).Named("mov.f64 of a decimal constant");
  f.Add("mov.u32 %d, (1 << 4 | 0x30) + 'a' * 0 - (7 % 4) * -2 + (5 > 3 ? 100 : 200) + !0 + ~-1;",
        [](uint32_t) { return (1u << 4 | 0x30) + 3 * 2 + 100 + 1 + 0; })
      .Named("constant expressions")
      .code = "mov.u32 %d, (1 << 4 | 0x30) - (7 % 4) * -2 + (5 > 3 ? 100 : 200) + !0 + ~-1;";
  f.Add("mov.u32 %d, %a+5;", [](uint32_t a) { return a + 5; }).Named("mov.u32 of a sum");
  f.Add("add.u32 %d, %a+5, %b+-3;", [](uint32_t a, uint32_t b) {
     return a + b + 2;
   }).Named("add.u32 of sums");
  f.Add("mul.wide.u32 %d, %a+1, %b;", [](uint32_t a, uint32_t b) {
     return uint64_t{a + 1} * b;
   }).Named("mul.wide.u32 of a sum, which wraps");
  f.Add("max.u16 %d, %a+70000, %b;", [](uint16_t a, uint16_t b) {
     return std::max(static_cast<uint16_t>(a + 70000), b);
   }).Named("max.u16 of a sum, which wraps");
  f.Add("sub.u64 %d, %b, %a+(3 * 4);", [](uint64_t a, uint64_t b) {
     return b - a - 12;
   }).Named("sub.u64 of a sum with a constant expression");
  f.Add(
       "{ .shared .align 8 .b64 kept[256]; mov.u64 %u0, kept; mad.wide.u32 %u0, %i, 8, %u0; "
       "st.shared.u64 [%u0], %a+1; ld.shared.u64 %d, [%u0]; }",
       [](uint64_t a) { return a + 1; })
      .Named("st.shared.u64 of a sum");
  f.Target(90, "8.3");
  f.Add(
       "{ .reg .b128 %q; mov.b128 %q, {%a, %b}; mov.b128 {%u0, %u1}, %q; mul.lo.u64 %u1, %u1, 3; sub.u64 %d, "
       "%u0, %u1; }",
       [](uint64_t a, uint64_t b) { return a - 3 * b; })
      .Named("mov.b128");
  f.Target(75, "8.0");
}

void Generic(Family& f) {
  const std::string shared =
      "{ .shared .align 8 .b8 c[1024]; mov.u32 %t7, %tid.x; shl.b32 %t7, %t7, 3; mov.u32 %t6, c; add.u32 "
      "%t7, %t7, %t6; st.shared.u32 [%t7], %a; ";
  f.Add(shared +
            "cvt.u64.u32 %u0, %t7; cvta.shared.u64 %u1, %u0; cvta.to.shared.u64 %u2, %u1; cvt.u32.u64 %t0, "
            "%u2; ld.shared.u32 %t1, [%t0]; ld.u32 %t2, [%u1]; xor.b32 %t1, %t1, %t2; add.u32 %d, %t1, %a; }",
        [](uint32_t a) { return a; })
      .Named("cvta.shared.u64 and back");
  f.Add(
       "{ .local .align 8 .b8 c[8]; st.local.u32 [c], %a; mov.u64 %u0, c; cvta.local.u64 %u1, %u0; ld.u32 "
       "%t0, [%u1]; cvta.to.local.u64 %u2, %u1; ld.local.u32 %t1, [%u2]; sub.u32 %t1, %t1, %t0; add.u32 %d, "
       "%t0, %t1; }",
       [](uint32_t a) { return a; })
      .Named("cvta.local.u64 and back");
  f.Add(
       "mad.wide.u32 %at, %i, 4, %pa; cvta.global.u64 %u0, %at; ld.u32 %t0, [%u0]; cvta.to.global.u64 %u1, "
       "%u0; ld.global.u32 %t1, [%u1]; sub.u32 %t1, %t1, %t0; add.u32 %d, %t0, %t1;",
       [](uint32_t a) { return a; })
      .Named("cvta.global.u64 and back");
  const std::string ask =
      "mov.u32 %d, 0; isspacep.global %p, %u1; @%p or.b32 %d, %d, 1; isspacep.shared %p, %u1; @%p or.b32 %d, "
      "%d, 2; isspacep.local %p, %u1; @%p or.b32 %d, %d, 4; isspacep.const %p, %u1; @%p or.b32 %d, %d, 8; }";
  f.Add(shared + "cvt.u64.u32 %u0, %t7; cvta.shared.u64 %u1, %u0; " + ask, [](uint32_t) { return 2u; })
      .Named("isspacep of a shared address")
      .Random(0);
  f.Add("{ .local .align 8 .b8 c[8]; mov.u64 %u0, c; cvta.local.u64 %u1, %u0; " + ask,
        [](uint32_t) { return 4u; })
      .Named("isspacep of a local address")
      .Random(0);
  f.Add("{ mad.wide.u32 %u1, %i, 4, %pa; " + ask, [](uint32_t) { return 1u; })
      .Named("isspacep of a global address")
      .Random(0);
}

/// File-scope variables: what they hold at first, and each other's addresses.
void Variables(Family& f) {
  Kernel& k = f.AddKernel(".global with initialisers and addresses");
  k.block[0] = 1;
  k.declarations = R"(
.global .align 4 .u32 $_one = 0x12345678;
.global .align 8 .u64 $_many[4] = {1, 2, 0xffffffffffffffff};
.global .align 1 .b8 $_text[12] = {104, 101, 108, 108, 111, 0};
.global .align 4 .f32 $_floats[3] = {1.5, -2.0, 0f7F800000};
.global .align 8 .f64 $_double = 0.1;
.global .align 8 .u64 $_address = $_many;
.global .align 8 .u64 $_inside[2] = {$_many+16, generic($_one)};
.global .align 2 .u16 $_grid[2][3] = {{1, 2, 3}, {4, 5}};
.global .align 4 .s8 $_negative[4] = {-1, -128, 127};
)";
  k.text = Entry() + R"(
    ld.global.u32 %t0, [$_one]; st.global.u32 [%pd], %t0;
    ld.global.u64 %u0, [$_many+16]; cvt.u32.u64 %t0, %u0; st.global.u32 [%pd+4], %t0;
    ld.global.u64 %u0, [$_many+24]; cvt.u32.u64 %t0, %u0; st.global.u32 [%pd+8], %t0;
    ld.global.u8 %t0, [$_text+4]; st.global.u32 [%pd+12], %t0;
    ld.global.u32 %t0, [$_floats+8]; st.global.u32 [%pd+16], %t0;
    ld.global.u32 %t0, [$_double+4]; st.global.u32 [%pd+20], %t0;
    ld.global.u64 %u0, [$_address]; ld.global.u64 %u1, [%u0+8]; cvt.u32.u64 %t0, %u1; st.global.u32 [%pd+24], %t0;
    ld.global.u64 %u0, [$_inside]; ld.u64 %u1, [%u0]; cvt.u32.u64 %t0, %u1; st.global.u32 [%pd+28], %t0;
    ld.global.u64 %u0, [$_inside+8]; ld.u32 %t0, [%u0]; st.global.u32 [%pd+32], %t0;
    mov.u64 %u0, $_grid; ld.global.u16 %t0, [%u0+8]; ld.global.u16 %t1, [%u0+10]; shl.b32 %t1, %t1, 16; or.b32 %t0, %t0, %t1; st.global.u32 [%pd+36], %t0;
    ld.global.s8 %t0, [$_negative+1]; st.global.u32 [%pd+40], %t0;
    mov.u64 %u1, $_one; cvta.global.u64 %u1, %u1; ld.global.u64 %u0, [$_inside+8]; setp.eq.u64 %p, %u0, %u1; selp.u32 %t0, 1, 0, %p; st.global.u32 [%pd+44], %t0;
    ret; })";
  k.output.resize(48);
  k.check = Expect(std::vector<uint32_t>{0x12345678, 0xffffffff, 0, 'o', 0x7f800000, 0x3fb99999, 2,
                                         0xffffffff, 0x12345678, 5, 0xffffff80, 1});

  Kernel& c = f.AddKernel(".const");
  c.block[0] = 4;
  c.declarations =
      ".const .align 4 .u32 $_table[5] = {10, 20, 30, 40, 50};\n.const .align 8 .b8 $_zero[16];\n";
  c.text = Entry() + R"(
    mul.wide.u32 %u0, %i, 4; mov.u64 %u1, $_table; add.u64 %u1, %u1, %u0; ld.const.u32 %t0, [%u1+4]; ld.const.u64 %u2, [$_zero+8]; cvt.u32.u64 %t1, %u2; add.u32 %t0, %t0, %t1;
    cvta.const.u64 %u1, %u1; ld.u32 %t1, [%u1]; mad.lo.u32 %t0, %t0, 1000, %t1; add.u64 %u0, %u0, %pd; st.global.u32 [%u0], %t0; ret; })";
  c.output.resize(16);
  c.check = Expect(std::vector<uint32_t>{20010, 30020, 40030, 50040});

  Kernel& s = f.AddKernel(".extern .shared");
  s.block[0] = 64;
  s.dynamic_shared = 64 * 8;
  s.declarations = ".extern .shared .align 16 .b8 $_dynamic[];\n";
  s.text = Entry() + R"(
    .shared .align 4 .b8 fixed[256];
    mov.u32 %t0, $_dynamic; mov.u32 %t1, fixed; shl.b32 %t2, %i, 3; add.u32 %t0, %t0, %t2; shl.b32 %t2, %i, 2; add.u32 %t1, %t1, %t2;
    mul.wide.u32 %u0, %i, 1000001; st.shared.u64 [%t0], %u0; st.shared.u32 [%t1], %i; bar.sync 0;
    xor.b32 %t3, %i, 63; mov.u32 %t0, $_dynamic; shl.b32 %t2, %t3, 3; add.u32 %t0, %t0, %t2; ld.shared.u64 %u1, [%t0];
    mov.u32 %t1, fixed; shl.b32 %t2, %t3, 2; add.u32 %t1, %t1, %t2; ld.shared.u32 %t4, [%t1]; cvt.u64.u32 %u2, %t4; add.u64 %u1, %u1, %u2;
    mov.u32 %t5, %dynamic_smem_size; cvt.u64.u32 %u2, %t5; mad.lo.u64 %u1, %u2, 1000000000, %u1;
    mad.wide.u32 %at, %i, 8, %pd; st.global.u64 [%at], %u1; ret; })";
  s.output.resize(64 * 8);
  std::vector<uint64_t> shared;
  for (uint64_t i = 0; i < 64; ++i) shared.push_back((i ^ 63) * 1000001 + (i ^ 63) + 512000000000);
  s.check = Expect(shared);
}

void Parameters(Family& f) {
  // Every size at its offset by the ABI.
  Kernel& k = f.AddKernel("ld.param of every type");
  k.block[0] = 1;
  k.text = Entry(
               ", .param .u8 q0, .param .s16 q1, .param .f32 q2, .param .u8 q3, .param .f64 q4, .param "
               ".align 16 .b8 q5[20], .param .u16 q6") +
           R"(
    ld.param.u8 %t0, [q0]; st.global.u32 [%pd], %t0;
    ld.param.s16 %t0, [q1]; st.global.u32 [%pd+4], %t0;
    ld.param.f32 %t0, [q2]; st.global.u32 [%pd+8], %t0;
    ld.param.s8 %t0, [q3]; st.global.u32 [%pd+12], %t0;
    ld.param.u32 %t0, [q4+4]; st.global.u32 [%pd+16], %t0;
    ld.param.v4.u32 {%t0, %t1, %t2, %t3}, [q5]; sub.u32 %t0, %t0, %t3; st.global.u32 [%pd+20], %t0;
    ld.param.v2.u16 {%h0, %h1}, [q5+16]; cvt.u32.u16 %t0, %h1; st.global.u32 [%pd+24], %t0;
    ld.param.u16 %t0, [q6]; st.global.u32 [%pd+28], %t0;
    mov.b64 %u0, q5; ld.param.u8 %t0, [%u0+5]; st.global.u32 [%pd+32], %t0;
    ret; })";
  k.extra_offset = 44;
  k.extra.resize(86 - 44);
  auto put = [&](size_t at, auto value) { std::memcpy(k.extra.data() + at - 44, &value, sizeof(value)); };
  put(44, uint8_t{200});
  put(46, int16_t{-300});
  put(48, 1.5f);
  put(52, int8_t{-7});
  put(56, -0.1);
  for (uint32_t i = 0; i < 5; ++i) put(64 + i * 4, 0x01020304u * (i + 1));
  put(84, uint16_t{60000});
  k.output.resize(36);
  k.check = Expect(std::vector<uint32_t>{200, static_cast<uint32_t>(-300), 0x3fc00000,
                                         static_cast<uint32_t>(-7), 0xbfb99999, 0x01020304u - 0x01020304u * 4,
                                         (0x01020304u * 5) >> 16, 60000, 6});

  Kernel& big = f.AddKernel("4 KB of parameters");
  big.block[0] = 64;
  big.text = Entry(", .param .align 4 .b8 q[4048]") + R"(
    mov.b64 %u0, q; mul.lo.u32 %t0, %i, 4; cvt.u64.u32 %u1, %t0; add.u64 %u1, %u1, %u0; mov.u32 %t1, 0; mov.u32 %t2, 0;
  next:
    ld.param.u32 %t3, [%u1]; mad.lo.u32 %t1, %t1, 31, %t3; add.u64 %u1, %u1, 60; add.u32 %t2, %t2, 1; setp.lt.u32 %p, %t2, 60; @%p bra next;
    ld.param.u32 %t4, [q+4044]; add.u32 %t1, %t1, %t4; mad.wide.u32 %at, %i, 4, %pd; st.global.u32 [%at], %t1; ret; })";
  big.extra_offset = 44;
  std::vector<uint32_t> words;
  for (uint32_t i = 0; i < 1012; ++i) words.push_back(static_cast<uint32_t>(Mixed(i)));
  big.extra = BytesOf(words);
  std::vector<uint32_t> sums;
  for (uint32_t i = 0; i < 64; ++i) {
    uint32_t sum = 0;
    for (uint32_t n = 0; n < 60; ++n) sum = sum * 31 + words[i + n * 15];
    sums.push_back(sum + words[1011]);
  }
  big.output.resize(256);
  big.check = Expect(sums);
}

/// Stack space asked for at run time.
void Stack(Family& f) {
  f.Target(75, "7.3");
  f.Add(
       "{ .reg .b64 %s, %m; stacksave.u64 %s; and.b32 %t0, %a, 31; add.u32 %t0, %t0, 8; cvt.u64.u32 %u0, "
       "%t0; alloca.u64 %m, %u0, 8; st.local.u32 [%m], %a; add.u64 %u1, %m, %u0; st.local.u8 [%u1+-1], 1; "
       "ld.local.u32 %d, [%m]; stackrestore.u64 %s; }",
       [](uint32_t a) { return a; })
      .Named("alloca.u64, stacksave, stackrestore");
  f.Target(75, "8.0");
}

}  // namespace

void FillMemory(Family& f) {
  LoadsAndStores(f);
  Operators(f);
  Vectors(f);
  Generic(f);
  Variables(f);
  Parameters(f);
  Stack(f);
}

void FillMoves(Family& f) { Moves(f); }

}  // namespace cuplex::corpus
