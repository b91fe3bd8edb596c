// Products of fragments in lockstep against those of the path that is right for every kernel, bit for bit
// (but for what kind of NaN a NaN is), over numbers of all kinds: subnormal ones, infinities, NaNs.
#include <random>

#include "softcuda/jit/test_rig.h"

namespace cuplex::softcuda {
namespace {

struct Form {
  std::string text;                 // opcode, modifiers and types
  std::string a;                    // the factors' type, of which random bits are made
  std::string c, d;                 // the accumulators'
  unsigned of_a, of_b, of_c, of_d;  // registers
};

std::vector<Form> Forms() {
  std::vector<Form> out;
  struct Shape {
    std::string text;
    unsigned of_a, of_b, pairs;
  };
  for (const Shape& s : std::vector<Shape>{{"wmma.mma.sync.aligned.row.col.m16n16k16", 8, 8, 4},
                                           {"wmma.mma.sync.aligned.row.col.m32n8k16", 8, 8, 4},
                                           {"wmma.mma.sync.aligned.row.col.m8n32k16", 8, 8, 4},
                                           {"mma.sync.aligned.m16n8k16.row.col", 4, 2, 2},
                                           {"mma.sync.aligned.m16n8k8.row.col", 2, 1, 2}}) {
    bool wmma = s.text.starts_with("wmma");
    for (std::string d : {"f32", "f16"}) {
      for (std::string c : {"f32", "f16"}) {
        std::string types = wmma ? "." + d + "." + c : "." + d + ".f16.f16." + c;
        out.push_back({s.text + types, "f16", c, d, s.of_a, s.of_b, s.pairs * (c == "f32" ? 2 : 1),
                       s.pairs * (d == "f32" ? 2 : 1)});
      }
    }
    unsigned halves = wmma ? (s.text.ends_with("n16k16") ? 4 : s.text.ends_with("m32n8k16") ? 8 : 2) : s.of_a;
    unsigned eighths = wmma ? (s.text.ends_with("n16k16")     ? 4
                               : s.text.ends_with("m32n8k16") ? 2
                                                              : 8)
                            : s.of_b;
    out.push_back(
        {s.text + ".f32.bf16.bf16.f32", "bf16", "f32", "f32", halves, eighths, s.pairs * 2, s.pairs * 2});
  }
  out.push_back(
      {"wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32", "tf32", "f32", "f32", 4, 4, 8, 8});
  out.push_back({"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "tf32", "f32", "f32", 4, 2, 4, 4});
  out.push_back({"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", "tf32", "f32", "f32", 2, 1, 4, 4});
  for (std::string a : {"e4m3", "e5m2"}) {
    for (std::string b : {"e4m3", "e5m2"}) {
      std::string types = "." + a + "." + b;
      out.push_back(
          {"mma.sync.aligned.m16n8k32.row.col.f32" + types + ".f32", "bits", "f32", "f32", 4, 2, 4, 4});
      out.push_back(
          {"mma.sync.aligned.m16n8k32.row.col.f16" + types + ".f16", "bits", "f16", "f16", 4, 2, 2, 2});
    }
  }
  for (std::string a : {"s8", "u8"}) {
    for (std::string b : {"s8", "u8"}) {
      for (std::string clamp : {"", ".satfinite"}) {
        std::string types = clamp + ".s32." + a + "." + b + ".s32";
        out.push_back({"mma.sync.aligned.m8n8k16.row.col" + types, "bits", "s32", "s32", 1, 1, 2, 2});
        out.push_back({"mma.sync.aligned.m16n8k16.row.col" + types, "bits", "s32", "s32", 2, 1, 4, 4});
        out.push_back({"mma.sync.aligned.m16n8k32.row.col" + types, "bits", "s32", "s32", 4, 2, 4, 4});
        if (a != b) continue;
        types = ".s32." + a + "." + b + ".s32" + clamp;
        out.push_back({"wmma.mma.sync.aligned.row.col.m16n16k16" + types, "bits", "s32", "s32", 2, 2, 8, 8});
        out.push_back({"wmma.mma.sync.aligned.row.col.m32n8k16" + types, "bits", "s32", "s32", 4, 1, 8, 8});
        out.push_back({"wmma.mma.sync.aligned.row.col.m8n32k16" + types, "bits", "s32", "s32", 1, 4, 8, 8});
      }
    }
  }
  out.push_back({"wmma.mma.sync.aligned.row.col.m8n8k4.rn.f64.f64.f64.f64", "f64", "f64", "f64", 1, 1, 2, 2});
  out.push_back({"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "f64", "f64", "f64", 1, 1, 2, 2});
  out.push_back({"mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64", "f64", "f64", "f64", 2, 1, 4, 4});
  out.push_back({"mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64", "f64", "f64", "f64", 4, 2, 4, 4});
  out.push_back({"mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", "f64", "f64", "f64", 8, 4, 4, 4});
  return out;
}

class MatrixPaths : public TestRig {
 protected:
  std::mt19937_64 random_{11};

  /// A number in a format of that many bits: mostly near 1, in some rounds subnormal or special ones as well.
  uint64_t Number(unsigned exponent, unsigned fraction, unsigned round) {
    uint64_t sign = random_() & 1, bits = random_() & ((uint64_t{1} << fraction) - 1);
    uint64_t most = (uint64_t{1} << exponent) - 1, e = most / 2 - 4 + random_() % 8;
    unsigned kind = random_() % 64;
    if (round == 1 && kind < 40) e = random_() % 3;              // subnormal, or nearly
    if (round == 1 && kind >= 56) e = most - 1 - random_() % 3;  // and their counterparts
    if (round == 2 && kind == 0) e = most;                       // NaN
    if (round == 2 && kind == 1) e = most, bits = 0;             // infinity
    if (round == 2 && kind == 2) e = bits = 0;
    return ((sign << exponent | e) << fraction) | bits;
  }

  uint64_t Register(const std::string& type, unsigned round) {
    if (type == "f64") return Number(11, 52, round);
    if (type == "f32" || type == "tf32") return Number(8, 23, round);
    if (type == "f16") return Number(5, 10, round) | Number(5, 10, round) << 16;
    if (type == "bf16") return Number(8, 7, round) | Number(8, 7, round) << 16;
    if (type == "s32" && round) return random_() % 2 ? 0x7fffff00u : 0x800000ffu;
    return random_() & 0xffffffff;
  }

  static bool SameNumbers(const std::string& type, uint64_t a, uint64_t b) {
    if (a == b) return true;
    auto nan = [&](uint64_t v) {
      return type == "f64"   ? (v & INT64_MAX) > 0x7ff0000000000000
             : type == "f32" ? (v & 0x7fffffff) > 0x7f800000
                             : false;  // halves have one NaN
    };
    return nan(a) && nan(b);
  }

  static std::string List(const std::string& name, unsigned n) {
    std::string out = "{";
    for (unsigned i = 0; i < n; ++i) out += (i ? ", %" : "%") + name + std::to_string(i);
    return out + "}";
  }

  /// Products one after another, their sums used once, twice, across a barrier and around a loop.
  static std::string Text(const Form& f) {
    bool wide = f.a == "f64";
    auto type = [](const std::string& t) { return t == "f64" ? ".f64" : t == "f32" ? ".f32" : ".b32"; };
    std::string factor = wide ? ".f64" : ".b32";
    unsigned size = wide ? 8 : 4, n = f.of_a + f.of_b + f.of_c;
    std::string text = fmt::format(R"(
.visible .entry run(.param .u64 in, .param .u64 out)
{{
  .reg .pred %p; .reg .b32 %i, %n, %r<2>; .reg .b64 %at<4>;
  .reg {} %a<8>, %b<8>; .reg {} %c<8>; .reg {} %d<8>, %e<8>, %f<8>;
  mov.u32 %i, %tid.x; ld.param.u64 %at0, [in]; ld.param.u64 %at1, [out];
  mul.wide.u32 %at2, %i, {}; add.u64 %at0, %at0, %at2;
  mul.wide.u32 %at2, %i, {}; add.u64 %at1, %at1, %at2;
)",
                                   factor, type(f.c), type(f.d), n * size, 2 * f.of_d * size);
    unsigned at = 0;
    auto load = [&](const char* name, unsigned count, const std::string& t) {
      for (unsigned k = 0; k < count; ++k, at += size)
        text += fmt::format("  ld.global{} %{}{}, [%at0+{}];\n", t, name, k, at);
    };
    load("a", f.of_a, factor);
    load("b", f.of_b, factor);
    load("c", f.of_c, type(f.c));
    auto multiply = [&](const char* d, const char* c, unsigned of_c) {
      text += fmt::format("  {} {}, {}, {}, {};\n", f.text, List(d, f.of_d), List("a", f.of_a),
                          List("b", f.of_b), List(c, of_c));
    };
    bool chain = f.c == f.d;
    multiply("d", "c", f.of_c);
    text += "  bar.sync 0;\n";
    if (chain) multiply("d", "d", f.of_d);
    multiply("e", "c", f.of_c);
    if (chain) {
      multiply("f", "e", f.of_d);
      text += "  mov.u32 %n, 3;\nagain:\n";
      multiply("e", "e", f.of_d);
      text += "  sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra again;\n";
      multiply("d", "d", f.of_d);
      multiply("e", "e", f.of_d);
    }
    at = 0;
    for (const char* name : {"d", "e"}) {
      for (unsigned k = 0; k < f.of_d; ++k, at += size)
        text += fmt::format("  st.global{} [%at1+{}], %{}{};\n", type(f.d), at, name, k);
    }
    return text + "  ret;\n}\n";
  }
};

TEST_F(MatrixPaths, GiveTheSame) {
  for (const Form& f : Forms()) {
    SCOPED_TRACE(f.text);
    uintptr_t free = next_;
    std::string text = Text(f);
    auto fast = Load(text), right = Load(text, {.path = Path::kSteps});
    ASSERT_TRUE(fast && right);
    bool wide = f.a == "f64";
    for (unsigned threads : {32u, 72u}) {  // the last warp has 8 lanes
      for (unsigned round : {0u, 1u, 2u}) {
        std::vector<uint64_t> in;
        for (unsigned i = 0; i < threads; ++i) {
          for (unsigned k = 0; k < f.of_a + f.of_b; ++k) in.push_back(Register(f.a, round));
          for (unsigned k = 0; k < f.of_c; ++k) in.push_back(Register(f.c, round));
        }
        size_t words = size_t{2} * f.of_d * threads;
        auto run = [&](Program& program) {
          std::vector<uint64_t> out;
          if (wide) {
            auto* to = Allocate<uint64_t>(words);
            Run(program, "run", {{1, 1, 1}, {threads, 1, 1}}, Upload(in), to);
            out.assign(to, to + words);
          } else {
            auto* to = Allocate<uint32_t>(words);
            Run(program, "run", {{1, 1, 1}, {threads, 1, 1}},
                Upload(std::vector<uint32_t>(in.begin(), in.end())), to);
            out.assign(to, to + words);
          }
          return out;
        };
        auto got = run(*fast), want = run(*right);
        for (size_t i = 0; i < words; ++i) {
          ASSERT_TRUE(SameNumbers(f.d, got[i], want[i])) << fmt::format(
              "{:x} instead of {:x}, {} threads, round {}, register {}", got[i], want[i], threads, round, i);
        }
        next_ = free;
      }
    }
  }
}

}  // namespace
}  // namespace cuplex::softcuda
