// Matrix instructions against plain triple loops. Numbers are small enough for sums to be exact, so that the
// order of additions does not matter; where it does, a test says so. Fragment layouts are the formulas of the
// PTX document's chapter on each shape.
#include <cmath>
#include <functional>
#include <random>

#include "softcuda/jit/test_rig.h"

namespace cuplex::softcuda {
namespace {

/// How a type's values are written as bits, for the values that the tests use.
struct Coding {
  std::string name;
  unsigned bits;
  std::function<uint64_t(double)> encode;
  std::vector<double> values;
};

uint64_t FloatBits(double v) {
  auto f = static_cast<float>(v);
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return bits;
}
uint64_t DoubleBits(double v) {
  uint64_t bits;
  std::memcpy(&bits, &v, 8);
  return bits;
}
/// A float of few digits in a format with `exponent` bits of that bias and `fraction` bits: cut out of the
/// f64.
uint64_t SmallFloat(double v, unsigned exponent, unsigned fraction) {
  if (v == 0) return 0;
  uint64_t d = DoubleBits(v);
  int64_t e = static_cast<int64_t>(d >> 52 & 0x7ff) - 1023 + (1 << (exponent - 1)) - 1;
  return d >> 63 << (exponent + fraction) | static_cast<uint64_t>(e) << fraction |
         (d & 0xfffffffffffff) >> (52 - fraction);
}
uint64_t Whole(double v) { return static_cast<uint64_t>(static_cast<int64_t>(v)); }

const std::vector<double> kFew = {0, 0.5, -0.5, 1, -1, 1.5, -1.5, 2, -2, 3, -3};
const Coding kF16 = {"f16", 16, [](double v) { return SmallFloat(v, 5, 10); }, kFew};
const Coding kBf16 = {"bf16", 16, [](double v) { return SmallFloat(v, 8, 7); }, kFew};
const Coding kTf32 = {"tf32", 32, FloatBits, {0, 1, -1.5, 0.25, 1 + 1.0 / 1024, -3}};
const Coding kF32 = {"f32", 32, FloatBits, {0, 1, -7, 0.25, 100, -3}};
const Coding kF64 = {"f64", 64, DoubleBits, {0, 1, -1.5, 0.25, 1e6, -3}};
const Coding kE4m3 = {"e4m3", 8, [](double v) { return SmallFloat(v, 4, 3); }, kFew};
const Coding kE5m2 = {"e5m2", 8, [](double v) { return SmallFloat(v, 5, 2); }, kFew};
const Coding kS8 = {"s8", 8, Whole, {-128, 127, 0, 1, -1, 77, -90}};
const Coding kU8 = {"u8", 8, Whole, {255, 128, 0, 1, 200, 3}};
const Coding kS4 = {"s4", 4, Whole, {-8, 7, 0, 1, -1, 3}};
const Coding kU4 = {"u4", 4, Whole, {15, 8, 0, 1, 3}};
const Coding kB1 = {"b1", 1, Whole, {0, 1}};
const Coding kS32 = {"s32", 32, Whole, {0, 1, -1, 1000000, -77}};

struct Matrix {
  unsigned rows = 0, columns = 0;
  std::vector<double> v;
  double& at(unsigned r, unsigned c) { return v[r * columns + c]; }
  double at(unsigned r, unsigned c) const { return v[r * columns + c]; }
};

/// Bits at any offset in a string of words.
void PutBits(std::vector<uint32_t>& words, size_t at, unsigned bits, uint64_t value) {
  for (unsigned i = 0; i < bits; ++i) {
    if (value >> i & 1) words[(at + i) / 32] |= 1u << (at + i) % 32;
  }
}
uint64_t Mask(unsigned bits) { return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

class Matrices : public TestRig, public ::testing::WithParamInterface<Path> {
 protected:
  std::shared_ptr<Program> Load(const std::string& body) { return TestRig::Load(body, {.path = GetParam()}); }

  std::mt19937 random_{5};

  Matrix Fill(unsigned rows, unsigned columns, const Coding& of) {
    Matrix m{rows, columns, std::vector<double>(size_t{rows} * columns)};
    for (double& v : m.v) v = of.values[random_() % of.values.size()];
    return m;
  }

  static Matrix Product(const Matrix& a, const Matrix& b, const Matrix& c, int bit_operation = 0) {
    Matrix d = c;
    for (unsigned i = 0; i < a.rows; ++i) {
      for (unsigned j = 0; j < b.columns; ++j) {
        for (unsigned k = 0; k < a.columns; ++k) {
          double x = a.at(i, k), y = b.at(k, j);
          d.at(i, j) += bit_operation == 1 ? static_cast<double>(x != y) : x * y;
        }
      }
    }
    return d;
  }

  /// Rows (or columns) one after another, `stride` elements apart.
  std::vector<uint32_t> Memory(const Matrix& m, const Coding& of, bool by_column, unsigned stride) {
    unsigned lines = by_column ? m.columns : m.rows;
    std::vector<uint32_t> words((size_t{lines} * stride * of.bits + 31) / 32);
    for (unsigned r = 0; r < m.rows; ++r) {
      for (unsigned c = 0; c < m.columns; ++c) {
        size_t at = by_column ? size_t{c} * stride + r : size_t{r} * stride + c;
        PutBits(words, at * of.bits, of.bits, of.encode(m.at(r, c)) & Mask(of.bits));
      }
    }
    return words;
  }

  static std::string List(const std::string& name, unsigned n) {
    std::string out = "{";
    for (unsigned i = 0; i < n; ++i) out += (i ? ", %" : "%") + name + std::to_string(i);
    return out + "}";
  }

  /// wmma.load, mma, store of one matrix by one warp, and a plain product.
  void Wmma(const std::string& shape, const Coding& ab, const Coding& of_b, const Coding& of_c,
            const Coding& of_d, unsigned m, unsigned n, unsigned k, unsigned a_regs, unsigned b_regs,
            unsigned c_regs, unsigned d_regs, bool a_col, bool b_col, bool cd_col,
            const std::string& operation, const std::string& types, const std::string& tail,
            int bit_operation = 0) {
    Matrix a = Fill(m, k, ab), b = Fill(k, n, of_b), c = Fill(m, n, of_c);
    unsigned lda = (a_col ? m : k) + (ab.bits < 8 ? 128 : 8),
             ldb = (b_col ? k : n) + (ab.bits < 8 ? 128 : 16), ldc = (cd_col ? m : n) + 4;
    auto type = [](const Coding& t) { return t.bits == 64 ? ".f64" : t.name == "f32" ? ".f32" : ".b32"; };
    auto layout = [](bool column) { return column ? "col" : "row"; };
    std::string text =
        ".visible .entry run(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd)\n{\n";
    text += fmt::format(".reg .b64 %p<4>; .reg {} %a<8>; .reg {} %b<8>; .reg {} %c<8>; .reg {} %d<8>;\n",
                        type(ab), type(of_b), type(of_c), type(of_d));
    text +=
        "ld.param.u64 %p0, [pa]; ld.param.u64 %p1, [pb]; ld.param.u64 %p2, [pc]; ld.param.u64 %p3, [pd];\n";
    text += fmt::format("wmma.load.a.sync.aligned.{}.{}.global.{} {}, [%p0], {};\n", layout(a_col), shape,
                        ab.name, List("a", a_regs), lda);
    text += fmt::format("wmma.load.b.sync.aligned.{}.{}.global.{} {}, [%p1], {};\n", layout(b_col), shape,
                        of_b.name, List("b", b_regs), ldb);
    text += fmt::format("wmma.load.c.sync.aligned.{}.{}.global.{} {}, [%p2], {};\n", layout(cd_col), shape,
                        of_c.name, List("c", c_regs), ldc);
    text += fmt::format("wmma.mma{}.sync.aligned.{}.{}.{}{}{} {}, {}, {}, {};\n", operation, layout(a_col),
                        layout(b_col), shape, types, tail, List("d", d_regs), List("a", a_regs),
                        List("b", b_regs), List("c", c_regs));
    text += fmt::format("wmma.store.d.sync.aligned.{}.{}.global.{} [%p3], {}, {};\nret;\n}}\n",
                        layout(cd_col), shape, of_d.name, List("d", d_regs), ldc);
    auto program = Load(text);
    ASSERT_TRUE(program) << text;
    Matrix want = Product(a, b, c, bit_operation);
    auto expected = Memory(want, of_d, cd_col, ldc);
    auto* d = Allocate<uint32_t>(expected.size());
    std::fill(d, d + expected.size(), 0);
    Run(*program, "run", {{1, 1, 1}, {32, 1, 1}}, Upload(Memory(a, ab, a_col, lda)),
        Upload(Memory(b, of_b, b_col, ldb)), Upload(Memory(c, of_c, cd_col, ldc)), d);
    EXPECT_EQ(std::vector<uint32_t>(d, d + expected.size()), expected)
        << shape << types << (a_col ? " a col" : "") << (b_col ? " b col" : "") << (cd_col ? " d col" : "");
  }

  using Place = std::function<std::pair<unsigned, unsigned>(unsigned lane, unsigned i)>;

  /// mma.sync with fragments laid out by the formulas given: element i of a lane -> row, column.
  void Mma(const std::string& instruction, const Coding& of_a, const Coding& of_b, const Coding& of_c,
           const Coding& of_d, unsigned m, unsigned n, unsigned k, const Place& in_a, const Place& in_b,
           const Place& in_c, const Place& in_d, int bit_operation = 0) {
    Matrix a = Fill(m, k, of_a), b = Fill(k, n, of_b), c = Fill(m, n, of_c);
    Matrix want = Product(a, b, c, bit_operation);
    auto pack = [&](const Matrix& from, const Coding& of, const Place& place) {
      unsigned each = from.rows * from.columns / 32, words = each * of.bits / 32;
      std::vector<uint32_t> out(32 * words);
      for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned i = 0; i < each; ++i) {
          auto [r, col] = place(lane, i);
          PutBits(out, size_t{lane} * words * 32 + size_t{i} * of.bits, of.bits,
                  of.encode(from.at(r, col)) & Mask(of.bits));
        }
      }
      return out;
    };
    ExpectRegisters(instruction, of_a.bits == 64 ? ".f64" : ".b32", pack(a, of_a, in_a), pack(b, of_b, in_b),
                    pack(c, of_c, in_c), pack(want, of_d, in_d), of_c.name == "f32" ? ".f32" : "",
                    of_d.name == "f32" ? ".f32" : "");
  }

  /// Runs d, a, b, c with each lane's registers from the lists, lane by lane.
  void ExpectRegisters(const std::string& instruction, const std::string& type,
                       const std::vector<uint32_t>& a, const std::vector<uint32_t>& b,
                       const std::vector<uint32_t>& c, const std::vector<uint32_t>& want,
                       const std::string& type_c = "", const std::string& type_d = "") {
    unsigned size = type == ".f64" ? 8 : 4;
    auto count = [&](const std::vector<uint32_t>& words) {
      return static_cast<unsigned>(words.size() * 4 / 32 / size);
    };
    std::string of_c = type_c.empty() ? type : type_c, of_d = type_d.empty() ? type : type_d;
    std::string text =
        ".visible .entry run(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd)\n{\n";
    text += fmt::format(
        ".reg .b32 %i; .reg .b64 %at, %base; .reg {} %a<16>; .reg {} %b<16>; .reg {} %c<16>; .reg {} "
        "%d<16>;\n"
        "mov.u32 %i, %tid.x;\n",
        type, type, of_c, of_d);
    auto each = [&](char which, unsigned n, const std::string& t, bool stores) {
      text += fmt::format("ld.param.u64 %base, [p{}]; mul.wide.u32 %at, %i, {}; add.u64 %at, %at, %base;\n",
                          which, n * size);
      for (unsigned i = 0; i < n; ++i) {
        text += stores ? fmt::format("st.global{} [%at+{}], %{}{};\n", t, i * size, which, i)
                       : fmt::format("ld.global{} %{}{}, [%at+{}];\n", t, which, i, i * size);
      }
    };
    each('a', count(a), type, false);
    each('b', count(b), type, false);
    each('c', count(c), of_c, false);
    text += fmt::format("{} {}, {}, {}, {};\n", instruction, List("d", count(want)), List("a", count(a)),
                        List("b", count(b)), List("c", count(c)));
    each('d', count(want), of_d, true);
    text += "ret;\n}\n";
    auto program = Load(text);
    ASSERT_TRUE(program) << text;
    auto* d = Allocate<uint32_t>(want.size());
    Run(*program, "run", {{1, 1, 1}, {32, 1, 1}}, Upload(a), Upload(b), Upload(c), d);
    EXPECT_EQ(std::vector<uint32_t>(d, d + want.size()), want) << instruction;
  }
};

TEST_P(Matrices, WmmaOfHalvesInEveryShapeAndLayout) {
  struct Shape {
    const char* name;
    unsigned m, n;
  };
  for (Shape s : {Shape{"m16n16k16", 16, 16}, Shape{"m32n8k16", 32, 8}, Shape{"m8n32k16", 8, 32}}) {
    for (unsigned layouts = 0; layouts < 8; ++layouts) {
      bool a = layouts & 1, b = layouts & 2, d = layouts & 4;
      Wmma(s.name, kF16, kF16, kF32, kF32, s.m, s.n, 16, 8, 8, 8, 8, a, b, d, "", ".f32.f32", "");
    }
    Wmma(s.name, kF16, kF16, {"f16", 16, kF16.encode, kFew}, kF16, s.m, s.n, 16, 8, 8, 4, 4, false, true,
         false, "", ".f16.f16", "");
    Wmma(s.name, kF16, kF16, kF32, kF16, s.m, s.n, 16, 8, 8, 8, 4, true, false, true, "", ".f16.f32", "");
    Wmma(s.name, kF16, kF16, kF16, kF32, s.m, s.n, 16, 8, 8, 4, 8, false, true, true, "", ".f32.f16", "");
  }
}

TEST_P(Matrices, WmmaOfOtherTypes) {
  struct Shape {
    const char* name;
    unsigned m, n, a16, b16, a8, b8;
  };
  for (Shape s : {Shape{"m16n16k16", 16, 16, 4, 4, 2, 2}, Shape{"m32n8k16", 32, 8, 8, 2, 4, 1},
                  Shape{"m8n32k16", 8, 32, 2, 8, 1, 4}}) {
    for (bool a : {false, true}) {
      for (bool b : {false, true}) {
        Wmma(s.name, kBf16, kBf16, kF32, kF32, s.m, s.n, 16, s.a16, s.b16, 8, 8, a, b, false, "",
             ".f32.bf16.bf16.f32", "");
        Wmma(s.name, kS8, kS8, kS32, kS32, s.m, s.n, 16, s.a8, s.b8, 8, 8, a, b, a, "", ".s32.s8.s8.s32", "");
        Wmma(s.name, kU8, kU8, kS32, kS32, s.m, s.n, 16, s.a8, s.b8, 8, 8, a, b, b, "", ".s32.u8.u8.s32",
             ".satfinite");
      }
    }
  }
  for (bool a : {false, true}) {
    for (bool b : {false, true}) {
      Wmma("m16n16k8", kTf32, kTf32, kF32, kF32, 16, 16, 8, 4, 4, 8, 8, a, b, a, "", ".f32.tf32.tf32.f32",
           "");
      Wmma("m8n8k4", kF64, kF64, kF64, kF64, 8, 8, 4, 1, 1, 2, 2, a, b, b, "", ".f64.f64.f64.f64", ".rn");
    }
  }
  Wmma("m8n8k32", kS4, kS4, kS32, kS32, 8, 8, 32, 1, 1, 2, 2, false, true, false, "", ".s32.s4.s4.s32", "");
  Wmma("m8n8k32", kU4, kU4, kS32, kS32, 8, 8, 32, 1, 1, 2, 2, false, true, true, "", ".s32.u4.u4.s32", "");
  Wmma("m8n8k128", kB1, kB1, kS32, kS32, 8, 8, 128, 1, 1, 2, 2, false, true, false, ".xor.popc",
       ".s32.b1.b1.s32", "", 1);
  Wmma("m8n8k128", kB1, kB1, kS32, kS32, 8, 8, 128, 1, 1, 2, 2, false, true, false, ".and.popc",
       ".s32.b1.b1.s32", "");
}

using P = std::pair<unsigned, unsigned>;
P Accumulator(unsigned lane, unsigned i) { return {lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)}; }

TEST_P(Matrices, MmaOfSixteenBits) {
  auto a16 = [](unsigned l, unsigned i) {
    bool upper = i < 2 || (i >= 4 && i < 6);
    return P{l / 4 + (upper ? 0 : 8), l % 4 * 2 + (i & 1) + (i < 4 ? 0 : 8)};
  };
  auto b16 = [](unsigned l, unsigned i) { return P{l % 4 * 2 + (i & 1) + (i < 2 ? 0 : 8), l / 4}; };
  auto a8 = [](unsigned l, unsigned i) { return P{l / 4 + (i < 2 ? 0 : 8), l % 4 * 2 + (i & 1)}; };
  auto b8 = [](unsigned l, unsigned i) { return P{l % 4 * 2 + i, l / 4}; };
  Mma("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", kF16, kF16, kF32, kF32, 16, 8, 16, a16, b16,
      Accumulator, Accumulator);
  Mma("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", kF16, kF16, kF16, kF16, 16, 8, 16, a16, b16,
      Accumulator, Accumulator);
  Mma("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", kBf16, kBf16, kF32, kF32, 16, 8, 16, a16, b16,
      Accumulator, Accumulator);
  Mma("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", kF16, kF16, kF32, kF32, 16, 8, 8, a8, b8,
      Accumulator, Accumulator);
  Mma("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", kF16, kF16, kF16, kF16, 16, 8, 8, a8, b8,
      Accumulator, Accumulator);
  Mma("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", kBf16, kBf16, kF32, kF32, 16, 8, 8, a8, b8,
      Accumulator, Accumulator);
}

TEST_P(Matrices, MmaOfThirtyTwoAndSixtyFourBits) {
  auto a4 = [](unsigned l, unsigned i) { return P{l / 4 + (i ? 8 : 0), l % 4}; };
  auto b4 = [](unsigned l, unsigned) { return P{l % 4, l / 4}; };
  auto a8 = [](unsigned l, unsigned i) { return P{l / 4 + (i & 1 ? 8 : 0), l % 4 + (i < 2 ? 0 : 4)}; };
  auto b8 = [](unsigned l, unsigned i) { return P{l % 4 + 4 * i, l / 4}; };
  Mma("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", kTf32, kTf32, kF32, kF32, 16, 8, 4, a4, b4,
      Accumulator, Accumulator);
  Mma("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", kTf32, kTf32, kF32, kF32, 16, 8, 8, a8, b8,
      Accumulator, Accumulator);
  auto a = [](unsigned l, unsigned) { return P{l / 4, l % 4}; };
  Mma("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", kF64, kF64, kF64, kF64, 8, 8, 4, a, b4, Accumulator,
      Accumulator);
  Mma("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64", kF64, kF64, kF64, kF64, 16, 8, 4, a4, b4,
      Accumulator, Accumulator);
  Mma("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64", kF64, kF64, kF64, kF64, 16, 8, 8, a8, b8,
      Accumulator, Accumulator);
  auto a16 = [](unsigned l, unsigned i) {
    return P{l / 4 + (i % 2 ? 8 : 0), i % 2 ? i * 2 - 2 + l % 4 : i * 2 + l % 4};
  };
  Mma("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", kF64, kF64, kF64, kF64, 16, 8, 16, a16, b8,
      Accumulator, Accumulator);
}

TEST_P(Matrices, MmaOfBytesNibblesAndBits) {
  auto square = [](unsigned width) {  // m8: one word a lane
    return [width](unsigned l, unsigned i) { return P{l / 4, width * (l % 4) + i}; };
  };
  auto two = [](unsigned width) {  // one tile of k
    return [width](unsigned l, unsigned i) {
      return P{l / 4 + (i < width ? 0 : 8), width * (l % 4) + i % width};
    };
  };
  auto four = [](unsigned width) {  // two
    return [width](unsigned l, unsigned i) {
      bool upper = i < width || (i >= 2 * width && i < 3 * width);
      return P{l / 4 + (upper ? 0 : 8), width * (l % 4) + i % width + (i < 2 * width ? 0 : 4 * width)};
    };
  };
  auto b = [](unsigned width) {
    return [width](unsigned l, unsigned i) {
      return P{width * (l % 4) + i % width + (i < width ? 0 : 4 * width), l / 4};
    };
  };
  for (auto [x, y] : {std::pair(kS8, kS8), std::pair(kU8, kU8), std::pair(kS8, kU8), std::pair(kU8, kS8)}) {
    std::string types = ".s32." + x.name + "." + y.name + ".s32";
    Mma("mma.sync.aligned.m8n8k16.row.col" + types, x, y, kS32, kS32, 8, 8, 16, square(4), b(4), Accumulator,
        Accumulator);
    Mma("mma.sync.aligned.m16n8k16.row.col.satfinite" + types, x, y, kS32, kS32, 16, 8, 16, two(4), b(4),
        Accumulator, Accumulator);
    Mma("mma.sync.aligned.m16n8k32.row.col" + types, x, y, kS32, kS32, 16, 8, 32, four(4), b(4), Accumulator,
        Accumulator);
  }
  for (auto [x, y] : {std::pair(kS4, kS4), std::pair(kU4, kS4)}) {
    std::string types = ".s32." + x.name + "." + y.name + ".s32";
    Mma("mma.sync.aligned.m8n8k32.row.col" + types, x, y, kS32, kS32, 8, 8, 32, square(8), b(8), Accumulator,
        Accumulator);
    Mma("mma.sync.aligned.m16n8k32.row.col" + types, x, y, kS32, kS32, 16, 8, 32, two(8), b(8), Accumulator,
        Accumulator);
    Mma("mma.sync.aligned.m16n8k64.row.col" + types, x, y, kS32, kS32, 16, 8, 64, four(8), b(8), Accumulator,
        Accumulator);
  }
  for (int exclusive : {0, 1}) {
    std::string tail = exclusive ? ".xor.popc" : ".and.popc";
    std::string types = ".row.col.s32.b1.b1.s32" + tail;
    Mma("mma.sync.aligned.m8n8k128" + types, kB1, kB1, kS32, kS32, 8, 8, 128, square(32), b(32), Accumulator,
        Accumulator, exclusive);
    Mma("mma.sync.aligned.m16n8k128" + types, kB1, kB1, kS32, kS32, 16, 8, 128, two(32), b(32), Accumulator,
        Accumulator, exclusive);
    Mma("mma.sync.aligned.m16n8k256" + types, kB1, kB1, kS32, kS32, 16, 8, 256, four(32), b(32), Accumulator,
        Accumulator, exclusive);
  }
  for (auto [x, y] : {std::pair(kE4m3, kE4m3), std::pair(kE5m2, kE5m2), std::pair(kE4m3, kE5m2)}) {
    std::string factors = x.name + "." + y.name;
    Mma("mma.sync.aligned.m16n8k32.row.col.f32." + factors + ".f32", x, y, kF32, kF32, 16, 8, 32, four(4),
        b(4), Accumulator, Accumulator);
    Mma("mma.sync.aligned.m16n8k32.row.col.f16." + factors + ".f16", x, y, kF16, kF16, 16, 8, 32, four(4),
        b(4), Accumulator, Accumulator);
    Mma("mma.sync.aligned.m16n8k16.row.col.f32." + factors + ".f32", x, y, kF32, kF32, 16, 8, 16, two(4),
        b(4), Accumulator, Accumulator);
  }
}

// mma.m8n8k4 on halves: four products, each by lanes q .. q+3 and q+16 .. q+19.
TEST_P(Matrices, MmaOfQuadPairs) {
  for (unsigned layouts = 0; layouts < 16; ++layouts) {
    bool a_col = layouts & 1, b_col = layouts & 2, c_half = layouts & 4, d_half = layouts & 8;
    if (c_half && !d_half) continue;  // PTX has no such combination for this shape
    const Coding& of_c = c_half ? kF16 : kF32;
    const Coding& of_d = d_half ? kF16 : kF32;
    std::vector<uint32_t> a(64), b(64), c(32 * (c_half ? 4 : 8)), d(32 * (d_half ? 4 : 8));
    auto accumulator = [](bool half, unsigned lane, unsigned i) {
      unsigned more = lane < 16 ? 0 : 4;
      if (half) return P{lane % 4 + more, i};
      return P{(lane & 1) + (i & 2) + more, (i & 4) + (lane & 2) + (i & 1)};
    };
    for (unsigned quad = 0; quad < 4; ++quad) {
      Matrix x = Fill(8, 4, kF16), y = Fill(4, 8, kF16), z = Fill(8, 8, of_c), want = Product(x, y, z);
      for (unsigned lane = 0; lane < 32; ++lane) {
        if (lane % 16 / 4 != quad) continue;
        unsigned more = lane < 16 ? 0 : 4;
        for (unsigned i = 0; i < 4; ++i) {
          double in_a = a_col ? x.at(i + more, lane % 4) : x.at(lane % 4 + more, i);
          double in_b = b_col ? y.at(i, lane % 4 + more) : y.at(lane % 4, i + more);
          PutBits(a, lane * 64 + i * 16, 16, kF16.encode(in_a));
          PutBits(b, lane * 64 + i * 16, 16, kF16.encode(in_b));
        }
        for (unsigned i = 0; i < 8; ++i) {
          auto [cr, cc] = accumulator(c_half, lane, i);
          auto [dr, dc] = accumulator(d_half, lane, i);
          PutBits(c, (lane * 8 + i) * of_c.bits, of_c.bits, of_c.encode(z.at(cr, cc)));
          PutBits(d, (lane * 8 + i) * of_d.bits, of_d.bits, of_d.encode(want.at(dr, dc)));
        }
      }
    }
    ExpectRegisters(fmt::format("mma.sync.aligned.m8n8k4.{}.{}.{}.f16.f16.{}", a_col ? "col" : "row",
                                b_col ? "col" : "row", of_d.name, of_c.name),
                    ".b32", a, b, c, d, c_half ? "" : ".f32", d_half ? "" : ".f32");
  }
}

// ------------------------------------------------------------------------------------- rounding, limits

TEST_P(Matrices, HalfResultIsRoundedOnce) {
  // 2048 + 1 + 1: halves beyond 2048 are even, so rounding after each step would stay at 2048.
  std::vector<uint32_t> a(32 * 2), b(32), c(32 * 2), want(32 * 2);
  for (unsigned lane = 0; lane < 32; ++lane) {
    a[2 * lane] = a[2 * lane + 1] = lane % 4 == 0 ? 0x3c003c00 : 0;  // k = 0 and 1: 1.0
    b[lane] = lane % 4 == 0 ? 0x3c003c00 : 0;
    c[2 * lane] = c[2 * lane + 1] = 0x68006800;        // 2048
    want[2 * lane] = want[2 * lane + 1] = 0x68016801;  // 2050
  }
  ExpectRegisters("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", ".b32", a, b, c, want);
}

TEST_P(Matrices, SumsRunByRisingK) {
  // 2^24 + 1 is 2^24 in f32, and then -2^24 leaves nothing; the other way round 1 is left.
  std::vector<uint32_t> a(32 * 4), b(32 * 2), c(32 * 4), want(32 * 4);
  auto one = static_cast<uint32_t>(FloatBits(1)), big = static_cast<uint32_t>(FloatBits(16777216)),
       minus = static_cast<uint32_t>(FloatBits(-16777216));
  for (unsigned lane = 0; lane < 32; ++lane) {
    unsigned t = lane % 4;
    b[2 * lane] = b[2 * lane + 1] = one;
    // Row g: k = 0 holds 1, k = 5 holds -2^24; row g + 8: k = 1 holds -2^24, k = 6 holds 1.
    a[4 * lane] = t == 0 ? one : 0;
    a[4 * lane + 2] = t == 1 ? minus : 0;
    a[4 * lane + 1] = t == 1 ? minus : 0;
    a[4 * lane + 3] = t == 2 ? one : 0;
    for (unsigned i = 0; i < 4; ++i) c[4 * lane + i] = big;
    want[4 * lane] = want[4 * lane + 1] = 0;
    want[4 * lane + 2] = want[4 * lane + 3] = one;
  }
  ExpectRegisters("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", ".b32", a, b, c, want);
}

TEST_P(Matrices, IntegersWrapOrClamp) {
  std::vector<uint32_t> a(32, 0x01010101), b(32, 0x01010101), c(64, 0x7fffffff);
  ExpectRegisters("mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.s8.s32", ".b32", a, b, c,
                  std::vector<uint32_t>(64, 0x7fffffff));
  ExpectRegisters("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32", ".b32", a, b, c,
                  std::vector<uint32_t>(64, 0x8000000f));
  std::vector<uint32_t> minus(32, 0xffffffff), low(64, 0x80000000);
  ExpectRegisters("mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.u8.s32", ".b32", minus, b, low, low);
}

TEST_P(Matrices, DoublesRoundAsAsked) {
  // 1 + 2^-60, from one product.
  std::vector<uint32_t> a(64), b(64), c(128);
  for (unsigned lane = 0; lane < 32; ++lane) {
    uint64_t tiny = DoubleBits(lane % 4 == 2 ? 0x1p-60 : 0), one = DoubleBits(1);
    std::memcpy(&a[2 * lane], &tiny, 8);
    std::memcpy(&b[2 * lane], &one, 8);
    for (unsigned i = 0; i < 2; ++i) std::memcpy(&c[4 * lane + 2 * i], &one, 8);
  }
  auto all = [](double v) {
    std::vector<uint32_t> out(128);
    for (unsigned i = 0; i < 64; ++i) std::memcpy(&out[2 * i], &v, 8);
    return out;
  };
  for (auto [mode, v] : {std::pair(".rn", 1.0), std::pair(".rz", 1.0), std::pair(".rm", 1.0),
                         std::pair(".rp", std::nextafter(1.0, 2.0))}) {
    ExpectRegisters(fmt::format("mma.sync.aligned.m8n8k4.row.col{}.f64.f64.f64.f64", mode), ".f64", a, b, c,
                    all(v));
  }
}

TEST_P(Matrices, SpecialValuesOfFactors) {
  // k = 0 alone: infinity times zero, infinity times one, subnormal halves.
  auto run = [&](uint32_t x, uint32_t y, float want) {
    std::vector<uint32_t> a(64), b(32), c(128), d(128, static_cast<uint32_t>(FloatBits(want)));
    for (unsigned lane = 0; lane < 32; lane += 4) a[2 * lane] = a[2 * lane + 1] = x, b[lane] = y;
    ExpectRegisters("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", ".b32", a, b, c, d);
  };
  run(0x7c00, 0x3c00, INFINITY);
  run(0xfc00, 0x3c00, -INFINITY);
  run(0x0001, 0x3c00, 0x1p-24f);
  run(0x03ff, 0x4000, 1023 * 0x1p-23f);
  run(0x7bff, 0x7bff, 65504.0f * 65504.0f);
}

// ------------------------------------------------------------------------------------------------- tiles

class Tiles : public Matrices {
 protected:
  /// A block of one warp: `code` with %tid.x in %i, input copied to `smem` (1 KiB), four registers %r0..%r3
  /// stored per lane.
  std::vector<uint32_t> RunTiles(const std::string& code, const std::vector<uint16_t>& memory) {
    auto program = Load(R"(
.visible .entry run(.param .u64 in, .param .u64 out)
{
  .reg .b32 %i, %at, %a, %r<8>, %t<4>; .reg .b64 %p<4>;
  .shared .align 16 .b8 smem[1024];
  mov.u32 %i, %tid.x; mul.lo.u32 %t0, %i, 32; mov.u32 %t1, smem; add.u32 %t1, %t1, %t0;
  ld.param.u64 %p0, [in]; cvt.u64.u32 %p1, %t0; add.u64 %p0, %p0, %p1;
  ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%p0]; st.shared.v4.u32 [%t1], {%r0, %r1, %r2, %r3};
  ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%p0+16]; st.shared.v4.u32 [%t1+16], {%r0, %r1, %r2, %r3};
  bar.sync 0;
  mov.u32 %r0, 0; mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0;
  mov.u32 %at, smem;
)" + code + R"(
  ld.param.u64 %p0, [out]; mul.wide.u32 %p1, %i, 16; add.u64 %p0, %p0, %p1;
  st.global.v4.u32 [%p0], {%r0, %r1, %r2, %r3};
  ret;
})");
    if (!program) return {};
    auto* out = Allocate<uint32_t>(128);
    Run(*program, "run", {{1, 1, 1}, {32, 1, 1}}, Upload(memory), out);
    return {out, out + 128};
  }

  std::vector<uint16_t> Words() {
    std::vector<uint16_t> v(512);
    for (uint16_t& x : v) x = static_cast<uint16_t>(random_());
    return v;
  }
};

TEST_P(Tiles, LdmatrixGivesEachLaneTwoOfARow) {
  auto memory = Words();
  // Row r of tile j lies at 16 * perm: lane l names row (5 * l) % 32.
  std::string address =
      "mul.lo.u32 %t2, %i, 5; and.b32 %t2, %t2, 31; shl.b32 %t2, %t2, 4; add.u32 %at, %at, %t2;\n";
  for (bool transposed : {false, true}) {
    for (unsigned count : {1u, 2u, 4u}) {
      std::string list = count == 1 ? "{%r0}" : count == 2 ? "{%r0, %r1}" : "{%r0, %r1, %r2, %r3}";
      auto got = RunTiles(address + fmt::format("ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {}, [%at];",
                                                count, transposed ? ".trans" : "", list),
                          memory);
      ASSERT_EQ(got.size(), 128u);
      auto element = [&](unsigned tile, unsigned row, unsigned column) {
        return static_cast<uint32_t>(memory[(8 * tile + row) * 5 % 32 * 8 + column]);
      };
      for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned j = 0; j < 4; ++j) {
          unsigned row = lane / 4, column = lane % 4 * 2;
          uint32_t want = j >= count   ? 0
                          : transposed ? element(j, column, row) | element(j, column + 1, row) << 16
                                       : element(j, row, column) | element(j, row, column + 1) << 16;
          EXPECT_EQ(got[4 * lane + j], want) << "x" << count << " lane " << lane << " tile " << j;
        }
      }
    }
  }
}

TEST_P(Tiles, StmatrixIsTheInverse) {
  auto memory = Words();
  for (const char* trans : {"", ".trans"}) {
    // To the upper 512 bytes, and back as plain words: lane l reads 16 bytes there.
    auto got = RunTiles(fmt::format(R"(
      shl.b32 %t2, %i, 4; add.u32 %at, %at, %t2;
      ldmatrix.sync.aligned.m8n8.x4{}.shared.b16 {{%r0, %r1, %r2, %r3}}, [%at];
      stmatrix.sync.aligned.m8n8.x4{}.shared.b16 [%at+512], {{%r0, %r1, %r2, %r3}};
      bar.warp.sync -1;
      ld.shared.v4.u32 {{%r0, %r1, %r2, %r3}}, [%at+512];)",
                                    trans, trans),
                        memory);
    ASSERT_EQ(got.size(), 128u);
    std::vector<uint32_t> want(128);
    std::memcpy(want.data(), memory.data(), 512);
    EXPECT_EQ(got, want);
  }
}

TEST_P(Tiles, MovmatrixTransposes) {
  auto memory = Words();
  auto got = RunTiles(R"(
    shl.b32 %t2, %i, 2; add.u32 %at, %at, %t2; ld.shared.u32 %r1, [%at];
    movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1; mov.u32 %r1, 0;)",
                      memory);
  ASSERT_EQ(got.size(), 128u);
  for (unsigned lane = 0; lane < 32; ++lane) {
    unsigned row = lane / 4, column = lane % 4 * 2;
    EXPECT_EQ(got[4 * lane], memory[column * 8 + row] | static_cast<uint32_t>(memory[(column + 1) * 8 + row])
                                                            << 16);
  }
}

TEST_P(Tiles, AddressesAreChecked) {
  auto fault = [&](const std::string& code) {
    auto program = Load(
        ".visible .entry run()\n{\n.reg .b32 %r<8>; .reg .f32 %f<8>; .shared .align 16 .b8 smem[1024];\n" +
        code + "\nret;\n}\n");
    return program ? RunToFault(*program, "run", {{1, 1, 1}, {32, 1, 1}}).kind : Fault::Kind::kTrap;
  };
  EXPECT_EQ(fault("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [smem+8];"),
            Fault::Kind::kMisalignedAddress);
  EXPECT_EQ(fault("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [smem+1024];"),
            Fault::Kind::kIllegalAddress);
  std::string list = "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}";
  EXPECT_EQ(fault("wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [smem+16], " + list + ", 16;"),
            Fault::Kind::kIllegalAddress);
  EXPECT_EQ(fault("wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 " + list + ", [smem], 17;"),
            Fault::Kind::kIllegalAddress);
  EXPECT_EQ(fault("wmma.load.c.sync.aligned.row.m16n16k16.global.f32 " + list + ", [16];"),
            Fault::Kind::kIllegalAddress);
}

TEST_P(Matrices, WhatPtxDoesNotHaveIsRefused) {
  for (const char* text : {
           "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, "
           "{%r4, %r5}, {%f0, %f1, %f2, %f3};",
           "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r4, %r5}, "
           "{%f0, %f1, %f2, %f3};",
           "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0}, [64];",
           "wmma.load.c.sync.aligned.row.m16n16k16.shared.u8 {%r0, %r1}, [0];",
       }) {
    auto program = TryCompile(std::string(".visible .entry run()\n{\n.reg .b32 %r<8>; .reg .f32 %f<8>;\n") +
                              text + "\nret;\n}\n");
    EXPECT_FALSE(program.ok()) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, Matrices, ::testing::Values(Path::kAuto, Path::kSteps));
INSTANTIATE_TEST_SUITE_P(Paths, Tiles, ::testing::Values(Path::kAuto, Path::kSteps));

}  // namespace
}  // namespace cuplex::softcuda
