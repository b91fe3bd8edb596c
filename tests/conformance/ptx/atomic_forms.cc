// Atomics: what is left in memory and what was there before; in global, shared and generic addresses, in
// every order and scope; and many threads at one address.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tests/conformance/ptx/corpus.h"
#include "tests/conformance/ptx/soft_float.h"

namespace cuplex::corpus {
namespace {

struct Outcome32 {
  uint32_t before, after;
};

/// The address of the thread's own cell, which holds %a, in %at (or %t7 where shared).
std::string Cell(const std::string& space, unsigned bytes) {
  const std::string access = fmt::format("b{}", bytes * 8);
  const std::string shared = fmt::format(
      "{{ .shared .align 8 .b8 cells[1024]; mov.u32 %t7, %tid.x; mul.lo.u32 %t7, %t7, {}; mov.u32 %t6, "
      "cells; add.u32 %t7, %t7, %t6; st.shared.{} [%t7], %a; ",
      bytes, access);
  if (space == ".shared") return shared;
  if (space == ".generic") return shared + "cvt.u64.u32 %at, %t7; cvta.shared.u64 %at, %at; ";
  return fmt::format("{{ mad.wide.u32 %at, %i, {}, %pa; ", bytes);
}
std::string Address(const std::string& space) { return space == ".shared" ? "[%t7]" : "[%at]"; }
std::string Word0(const std::string& space) { return space == ".generic" ? "" : space; }

/// A 32-bit atomic: the value before in the lower word, what is left in the upper one.
template <typename T, typename F>
void On32(Family& f, const std::string& op, const std::string& type, F of, int target = 75) {
  for (const char* space : {".global", ".shared", ".generic"}) {
    const std::string s = space, name = Word0(s) + "." + op + "." + type;
    f.Add(fmt::format("{}atom{} %t0, {}, %b; ld{}.b32 %t1, {}; mov.b64 %d, {{%t0, %t1}}; }}", Cell(s, 4),
                      name, Address(s), Word0(s), Address(s)),
          [of](uint32_t a, uint32_t b) {
            return uint64_t{ToWord(static_cast<T>(of(FromWord<T>(a), FromWord<T>(b)))) & 0xffffffff} << 32 |
                   a;
          })
        .Named("atom" + name)
        .Target(target);
    if (op == "exch") continue;
    f.Add(fmt::format("{}red{} {}, %b; ld{}.b32 %d, {}; }}", Cell(s, 4), name, Address(s), Word0(s),
                      Address(s)),
          [of](uint32_t a, uint32_t b) {
            return static_cast<uint32_t>(ToWord(static_cast<T>(of(FromWord<T>(a), FromWord<T>(b)))));
          })
        .Named("red" + name)
        .Target(target);
  }
}

/// A 64-bit one: what is left plus three times what was.
template <typename T, typename F>
void On64(Family& f, const std::string& op, const std::string& type, F of) {
  for (const char* space : {".global", ".shared", ".generic"}) {
    const std::string s = space, name = Word0(s) + "." + op + "." + type;
    f.Add(fmt::format("{}atom{} %u0, {}, %b; ld{}.b64 %u1, {}; mad.lo.u64 %d, %u0, 3, %u1; }}", Cell(s, 8),
                      name, Address(s), Word0(s), Address(s)),
          [of](uint64_t a, uint64_t b) {
            return a * 3 + ToWord(static_cast<T>(of(FromWord<T>(a), FromWord<T>(b))));
          })
        .Named("atom" + name);
    if (op == "exch") continue;
    f.Add(fmt::format("{}red{} {}, %b; ld{}.b64 %d, {}; }}", Cell(s, 8), name, Address(s), Word0(s),
                      Address(s)),
          [of](uint64_t a, uint64_t b) { return ToWord(static_cast<T>(of(FromWord<T>(a), FromWord<T>(b)))); })
        .Named("red" + name);
  }
}

void Integers(Family& f) {
  On32<uint32_t>(f, "add", "u32", [](uint32_t a, uint32_t b) { return a + b; });
  On32<uint32_t>(f, "add", "s32", [](uint32_t a, uint32_t b) { return a + b; });
  On32<uint32_t>(f, "min", "u32", [](uint32_t a, uint32_t b) { return std::min(a, b); });
  On32<uint32_t>(f, "max", "u32", [](uint32_t a, uint32_t b) { return std::max(a, b); });
  On32<int32_t>(f, "min", "s32", [](int32_t a, int32_t b) { return std::min(a, b); });
  On32<int32_t>(f, "max", "s32", [](int32_t a, int32_t b) { return std::max(a, b); });
  On32<uint32_t>(f, "inc", "u32", [](uint32_t a, uint32_t b) { return a >= b ? 0 : a + 1; });
  On32<uint32_t>(f, "dec", "u32", [](uint32_t a, uint32_t b) { return a == 0 || a > b ? b : a - 1; });
  On32<uint32_t>(f, "and", "b32", [](uint32_t a, uint32_t b) { return a & b; });
  On32<uint32_t>(f, "or", "b32", [](uint32_t a, uint32_t b) { return a | b; });
  On32<uint32_t>(f, "xor", "b32", [](uint32_t a, uint32_t b) { return a ^ b; });
  On32<uint32_t>(f, "exch", "b32", [](uint32_t, uint32_t b) { return b; });
  On64<uint64_t>(f, "add", "u64", [](uint64_t a, uint64_t b) { return a + b; });
  On64<uint64_t>(f, "min", "u64", [](uint64_t a, uint64_t b) { return std::min(a, b); });
  On64<uint64_t>(f, "max", "u64", [](uint64_t a, uint64_t b) { return std::max(a, b); });
  On64<int64_t>(f, "min", "s64", [](int64_t a, int64_t b) { return std::min(a, b); });
  On64<int64_t>(f, "max", "s64", [](int64_t a, int64_t b) { return std::max(a, b); });
  On64<uint64_t>(f, "and", "b64", [](uint64_t a, uint64_t b) { return a & b; });
  On64<uint64_t>(f, "or", "b64", [](uint64_t a, uint64_t b) { return a | b; });
  On64<uint64_t>(f, "xor", "b64", [](uint64_t a, uint64_t b) { return a ^ b; });
  On64<uint64_t>(f, "exch", "b64", [](uint64_t, uint64_t b) { return b; });
  for (const char* space : {".global", ".shared", ".generic"}) {
    const std::string s = space;
    f.Add(fmt::format("{}atom{}.cas.b32 %t0, {}, %b, %c; ld{}.b32 %t1, {}; mov.b64 %d, {{%t0, %t1}}; }}",
                      Cell(s, 4), Word0(s), Address(s), Word0(s), Address(s)),
          [](uint32_t a, uint32_t b, uint32_t c) { return uint64_t{a == b ? c : a} << 32 | a; })
        .Named("atom" + Word0(s) + ".cas.b32")
        .Operand(0, {0, 1, 0xffffffff})
        .Operand(1, {0, 1, 5});
    f.Add(fmt::format("{}atom{}.cas.b64 %u0, {}, %b, %c; ld{}.b64 %u1, {}; mad.lo.u64 %d, %u0, 3, %u1; }}",
                      Cell(s, 8), Word0(s), Address(s), Word0(s), Address(s)),
          [](uint64_t a, uint64_t b, uint64_t c) { return a * 3 + (a == b ? c : a); })
        .Named("atom" + Word0(s) + ".cas.b64")
        .Operand(0, {0, 1, ~Word{0}, Word{1} << 40})
        .Operand(1, {0, 1, Word{1} << 40});
    f.Add(fmt::format("{}atom{}.cas.b16 %h0, {}, %b, %c; ld{}.b16 %h1, {}; mov.b32 %d, {{%h0, %h1}}; }}",
                      Cell(s, 2), Word0(s), Address(s), Word0(s), Address(s)),
          [](uint16_t a, uint16_t b, uint16_t c) { return uint32_t{a == b ? c : a} << 16 | a; })
        .Named("atom" + Word0(s) + ".cas.b16")
        .Operand(0, {0, 1, 0xffff})
        .Operand(1, {0, 1, 5});
  }
  // Every order and scope, which do not change what one thread sees.
  for (const char* order : {"relaxed", "acquire", "release", "acq_rel"})
    for (const char* scope : {"cta", "gpu", "sys"}) {
      f.Add(fmt::format("{}atom.{}.{}.global.add.u32 %t0, [%at], %b; ld.global.u32 %t1, [%at]; mov.b64 %d, "
                        "{{%t0, %t1}}; }}",
                        Cell(".global", 4), order, scope),
            [](uint32_t a, uint32_t b) { return uint64_t{a + b} << 32 | a; })
          .Named(fmt::format("atom.{}.{}.global.add.u32", order, scope))
          .Operand(0, {1, 2, 3})
          .Random(32);
      if (order[0] == 'a') continue;
      f.Add(fmt::format("{}red.{}.{}.global.or.b32 [%at], %b; ld.global.u32 %d, [%at]; }}",
                        Cell(".global", 4), order, scope),
            [](uint32_t a, uint32_t b) { return a | b; })
          .Named(fmt::format("red.{}.{}.global.or.b32", order, scope))
          .Operand(0, {1, 2, 3})
          .Random(32);
    }
}

bool Small(Word bits, Format format) {  // subnormal, or so near that a sum might be
  const Word magnitude = bits & ((Word{1} << (format.Bits() - 1)) - 1);
  return magnitude && magnitude >> format.fraction_bits < 2;
}

void Floats(Family& f) {
  auto plus = [](float a, float b) {
    return FromWord<float>(Pack(Add(Unpack(ToWord(a), kF32), Unpack(ToWord(b), kF32)), kF32));
  };
  for (const char* space : {".global", ".shared"}) {
    const std::string s = space;
    // In global memory subnormals may be flushed.
    f.Add(fmt::format("{}atom{}.add.f32 %t0, {}, %b; ld{}.f32 %d, {}; }}", Cell(s, 4), s, Address(s), s,
                      Address(s)),
          plus)
        .Named("atom" + s + ".add.f32")
        .Unless(
            [s](const Word* row) { return s == ".global" && (Small(row[0], kF32) || Small(row[1], kF32)); });
    f.Add(
         fmt::format("{}red{}.add.f32 {}, %b; ld{}.f32 %d, {}; }}", Cell(s, 4), s, Address(s), s, Address(s)),
         plus)
        .Named("red" + s + ".add.f32")
        .Unless(
            [s](const Word* row) { return s == ".global" && (Small(row[0], kF32) || Small(row[1], kF32)); });
    f.Add(fmt::format("{}atom{}.add.f64 %u0, {}, %b; ld{}.f64 %d, {}; }}", Cell(s, 8), s, Address(s), s,
                      Address(s)),
          [](double a, double b) {
            return FromWord<double>(Pack(Add(Unpack(ToWord(a), kF64), Unpack(ToWord(b), kF64)), kF64));
          })
        .Named("atom" + s + ".add.f64");
    f.Add(fmt::format("{}atom{}.add.noftz.f16x2 %t0, {}, %b; ld{}.b32 %d, {}; }}", Cell(s, 4), s, Address(s),
                      s, Address(s)),
          [](F16x2 a, F16x2 b) {
            auto half = [](F16 x, F16 y) {
              return F16{static_cast<uint16_t>(Pack(Add(Unpack(x.bits, kF16), Unpack(y.bits, kF16)), kF16))};
            };
            return F16x2{half(a.lo, b.lo), half(a.hi, b.hi)};
          })
        .Named("atom" + s + ".add.noftz.f16x2");
    f.Add(fmt::format("{}atom{}.add.noftz.f16 %h0, {}, %b; ld{}.b16 %d, {}; }}", Cell(s, 2), s, Address(s), s,
                      Address(s)),
          [](F16 a, F16 b) {
            return F16{static_cast<uint16_t>(Pack(Add(Unpack(a.bits, kF16), Unpack(b.bits, kF16)), kF16))};
          })
        .Named("atom" + s + ".add.noftz.f16");
    f.Add(fmt::format("{}atom{}.add.noftz.bf16x2 %t0, {}, %b; ld{}.b32 %d, {}; }}", Cell(s, 4), s, Address(s),
                      s, Address(s)),
          [](Bf16x2 a, Bf16x2 b) {
            auto half = [](Bf16 x, Bf16 y) {
              return Bf16{static_cast<uint16_t>(
                  Pack(Add(Unpack(x.bits, corpus::kBf16), Unpack(y.bits, corpus::kBf16)), corpus::kBf16))};
            };
            return Bf16x2{half(a.lo, b.lo), half(a.hi, b.hi)};
          })
        .Named("atom" + s + ".add.noftz.bf16x2")
        .Target(90);
    f.Add(fmt::format("{}atom{}.add.noftz.bf16 %h0, {}, %b; ld{}.b16 %d, {}; }}", Cell(s, 2), s, Address(s),
                      s, Address(s)),
          [](Bf16 a, Bf16 b) {
            return Bf16{static_cast<uint16_t>(
                Pack(Add(Unpack(a.bits, corpus::kBf16), Unpack(b.bits, corpus::kBf16)), corpus::kBf16))};
          })
        .Named("atom" + s + ".add.noftz.bf16")
        .Target(90);
  }
}

/// 512 threads of four blocks, all at one address.
void Crowds(Family& f) {
  struct Op {
    const char* text;
    uint32_t begin, end;
  };
  const uint32_t n = 512;
  for (const Op& op : {Op{"add.u32 $R, 3", 0, 3 * n}, Op{"inc.u32 $R, 100", 0, n % 101},
                       Op{"dec.u32 $R, 99", 0, (100 - n % 100) % 100}, Op{"max.u32 $R, %i", 0, n - 1},
                       Op{"min.s32 $R, %t1", 0, 1 - n}, Op{"xor.b32 $R, %i", 5, 5},
                       Op{"or.b32 $R, %i", 0, 511}, Op{"and.b32 $R, %t2", 0xffffffff, 0xfffffe00}}) {
    for (const char* kind : {"atom", "red"}) {
      std::string text = op.text;
      const size_t at = text.find("$R");
      const std::string name = fmt::format("{}.global.{} by 512 threads", kind, text.substr(0, at - 1));
      Kernel& k = f.AddKernel(name);
      k.block[0] = 128;
      k.grid[0] = 4;
      k.threads = n;
      k.text = Entry() + "neg.s32 %t1, %i; not.b32 %t2, %i;\n" + kind + ".global." + text.substr(0, at) +
               (kind[0] == 'a' ? "%t0, " : "") + "[%pd]" + text.substr(at + 2) + ";\nret;\n}\n";
      k.output = BytesOf(std::vector<uint32_t>{op.begin});
      k.check = Expect(std::vector<uint32_t>{op.end});
    }
  }
  // A lock: each thread in turn adds to a number that is no atomic.
  Kernel& lock = f.AddKernel("a spin lock of atom.cas and atom.exch");
  lock.block[0] = 64;
  lock.grid[0] = 3;
  lock.text = Entry() + R"(
    mov.u32 %t5, 0;
  again:
    setp.ne.u32 %q, %t5, 0; @%q bra out;
    atom.acquire.gpu.global.cas.b32 %t0, [%pd], 0, 1;
    setp.ne.u32 %p, %t0, 0; @%p bra again;
    ld.relaxed.gpu.global.u32 %t1, [%pd+4]; add.u32 %t1, %t1, %i; st.relaxed.gpu.global.u32 [%pd+4], %t1;
    mov.u32 %t5, 1;
    atom.release.gpu.global.exch.b32 %t0, [%pd], 0;
    bra again;
  out:
    ret; })";
  lock.output.resize(8);
  lock.check = Expect(std::vector<uint32_t>{0, 192 * 191 / 2});
  // Each block's last arrival, found by a counter, adds up what all left.
  Kernel& last = f.AddKernel("the last block by a counter and fences");
  last.block[0] = 32;
  last.grid[0] = 8;
  last.text = Entry() + R"(
    mov.u32 %t0, %ctaid.x; mov.u32 %t1, %tid.x; setp.ne.u32 %p, %t1, 0; @%p bra out;
    mad.wide.u32 %at, %t0, 4, %pd; mad.lo.u32 %t2, %t0, %t0, 1; st.global.u32 [%at+8], %t2;
    membar.gl;
    atom.global.inc.u32 %t3, [%pd], 7; setp.ne.u32 %p, %t3, 7; @%p bra out;
    membar.gl;
    mov.u32 %t4, 0; mov.u32 %t5, 0;
  sum:
    mad.wide.u32 %at, %t5, 4, %pd; ld.volatile.global.u32 %t6, [%at+8]; add.u32 %t4, %t4, %t6; add.u32 %t5, %t5, 1;
    setp.lt.u32 %p, %t5, 8; @%p bra sum;
    st.global.u32 [%pd+4], %t4;
  out:
    ret; })";
  last.output.resize(40);
  std::vector<uint32_t> expected = {0, 0};
  for (uint32_t b = 0; b < 8; ++b) expected.push_back(b * b + 1), expected[1] += b * b + 1;
  last.check = Expect(expected);
}

}  // namespace

void FillAtomics(Family& f) {
  Integers(f);
  Floats(f);
  Crowds(f);
}

}  // namespace cuplex::corpus
