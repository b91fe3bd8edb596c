// Matrix instructions. The elements are small integers, so that every order of summing gives the same.
#include <fmt/format.h>

#include "tests/conformance/ptx/corpus.h"
#include "tests/conformance/ptx/soft_float.h"

namespace cuplex::corpus {
namespace {

using Matrix = std::vector<std::vector<int>>;

Matrix Filled(unsigned rows, unsigned columns, uint64_t seed, int low, int high) {
  Matrix m(rows, std::vector<int>(columns));
  for (auto& row : m)
    for (int& v : row) v = low + static_cast<int>(Mixed(seed++) % static_cast<uint64_t>(high - low + 1));
  return m;
}

Matrix Product(const Matrix& a, const Matrix& b, const Matrix& c) {
  Matrix d = c;
  for (size_t i = 0; i < d.size(); ++i)
    for (size_t j = 0; j < d[0].size(); ++j)
      for (size_t k = 0; k < b.size(); ++k) d[i][j] += a[i][k] * b[k][j];
  return d;
}

/// How an element is written in memory.
struct Element {
  const char* name;
  unsigned bits;
  Format format;  // of floats
  bool integer = false;
  uint64_t Of(int value) const {
    if (integer) return static_cast<uint64_t>(static_cast<int64_t>(value)) & ((uint64_t{1} << bits) - 1);
    if (bits == 32 && format.fraction_bits == 10)
      return Pack(FromInteger(value), kF32);  // tf32 in the upper bits
    return Pack(FromInteger(value), format);
  }
};
const Element kHalf{"f16", 16, kF16}, kBrain{"bf16", 16, corpus::kBf16}, kTensor{"tf32", 32, kTf32},
    kSingle{"f32", 32, kF32}, kDouble{"f64", 64, kF64}, kS8{"s8", 8, kF32, true}, kU8{"u8", 8, kF32, true},
    kS32{"s32", 32, kF32, true}, kNarrow43{"e4m3", 8, kE4m3}, kNarrow52{"e5m2", 8, kE5m2};

struct At {
  unsigned row, column;
};

/// Fragments: which element of the matrix is number i of a lane's. `per` elements lie beside each other in a
/// register.
At FragmentA(unsigned lane, unsigned i, unsigned per, unsigned rows) {
  const unsigned group = lane / 4, in = lane % 4;
  const unsigned quarter = i / per;  // registers go down first, then right
  if (rows == 8) return {group, in * per + i % per + quarter * per * 4};
  return {group + quarter % 2 * 8, in * per + i % per + quarter / 2 * per * 4};
}
At FragmentB(unsigned lane, unsigned i, unsigned per) {
  return {lane % 4 * per + i % per + i / per * per * 4, lane / 4};
}
At FragmentC(unsigned lane, unsigned i) { return {lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2}; }

Bytes Fragments(const Matrix& m, const Element& e, unsigned count,
                const std::function<At(unsigned, unsigned)>& at) {
  Bytes bytes(32 * count * e.bits / 8);
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < count; ++i) {
      const At p = at(lane, i);
      const uint64_t bits = e.Of(m[p.row][p.column]);
      std::memcpy(bytes.data() + (lane * count + i) * e.bits / 8, &bits, e.bits / 8);
    }
  return bytes;
}

std::string Registers(const char* prefix, unsigned count) {
  std::string list;
  for (unsigned i = 0; i < count; ++i) list += fmt::format("{}%{}{}", i ? ", " : "", prefix, i);
  return "{" + list + "}";
}

/// Loads a lane's `words` registers from a parameter's array.
std::string Loaded(const char* prefix, const char* pointer, unsigned words, bool wide) {
  std::string text = fmt::format("  .reg .b{} %{}<{}>; mad.wide.u32 %at, %i, {}, %{};", wide ? 64 : 32,
                                 prefix, words, words * (wide ? 8 : 4), pointer);
  for (unsigned i = 0; i < words; ++i)
    text += fmt::format(" ld.global.b{} %{}{}, [%at+{}];", wide ? 64 : 32, prefix, i, i * (wide ? 8 : 4));
  return text + "\n";
}

void Multiply(Family& f, unsigned m, unsigned n, unsigned k, const Element& a, const Element& b,
              const Element& c, int target, const std::string& version, const std::string& extra = "") {
  const Matrix x = Filled(m, k, m * 7 + k, a.name[0] == 'u' ? 0 : -7, a.name[0] == 'u' ? 200 : 7),
               y = Filled(k, n, n * 3 + k, b.name[0] == 'u' ? 0 : -7, 7), z = Filled(m, n, k, -50, 50);
  const bool wide = a.bits == 64;
  const unsigned register_bits = wide ? 64 : 32, per = register_bits / a.bits;
  const unsigned count_a = m * k / 32, count_b = n * k / 32, count_c = m * n / 32;
  const unsigned words_a = count_a / per, words_b = count_b / per, words_c = count_c * c.bits / register_bits;
  Kernel& kernel = f.AddKernel(fmt::format("mma.sync.aligned.m{}n{}k{}.row.col{}.{}.{}.{}.{}", m, n, k, extra,
                                           c.name, a.name, b.name, c.name));
  kernel.target = target;
  kernel.version = version;
  kernel.text = Entry() + Loaded("fa", "pa", words_a, wide) + Loaded("fb", "pb", words_b, wide) +
                Loaded("fc", "pc", words_c, wide) + "  " + kernel.name + " " + Registers("fc", words_c) +
                ", " + Registers("fa", words_a) + ", " + Registers("fb", words_b) + ", " +
                Registers("fc", words_c) +
                fmt::format(";\n  mad.wide.u32 %at, %i, {}, %pd;", words_c * register_bits / 8);
  for (unsigned i = 0; i < words_c; ++i)
    kernel.text += fmt::format(" st.global.b{} [%at+{}], %fc{};", register_bits, i * register_bits / 8, i);
  kernel.text += " ret; }\n";
  auto at_a = [=](unsigned lane, unsigned i) { return FragmentA(lane, i, per, m); };
  auto at_b = [=](unsigned lane, unsigned i) { return FragmentB(lane, i, per); };
  kernel.inputs = {Fragments(x, a, count_a, at_a), Fragments(y, b, count_b, at_b),
                   Fragments(z, c, count_c, FragmentC)};
  const Bytes expected = Fragments(Product(x, y, z), c, count_c, FragmentC);
  kernel.output.resize(expected.size());
  kernel.check = [expected, c](std::span<const std::byte> got) {
    return DifferenceOf(got, expected, c.bits / 8);
  };
}

/// A matrix in memory.
Bytes Stored(const Matrix& m, const Element& e, bool by_rows) {
  Bytes bytes(m.size() * m[0].size() * e.bits / 8);
  for (size_t i = 0; i < m.size(); ++i)
    for (size_t j = 0; j < m[0].size(); ++j) {
      const uint64_t bits = e.Of(m[i][j]);
      std::memcpy(bytes.data() + (by_rows ? i * m[0].size() + j : j * m.size() + i) * e.bits / 8, &bits,
                  e.bits / 8);
    }
  return bytes;
}

struct Counts {
  unsigned a, b, c;
};

void Tiles(Family& f, unsigned m, unsigned n, unsigned k, const Element& a, const Element& c,
           Counts registers, int target, bool rows_a, bool rows_b, bool rows_c) {
  const Matrix x = Filled(m, k, m + k, a.name[0] == 'u' ? 0 : -7, 7),
               y = Filled(k, n, n * 5 + k, a.name[0] == 'u' ? 0 : -7, 7), z = Filled(m, n, k, -50, 50);
  auto layout = [](bool rows) { return rows ? "row" : "col"; };
  const std::string shape = fmt::format("m{}n{}k{}", m, n, k);
  const std::string kind = a.integer ? fmt::format("{}.{}.{}.{}", c.name, a.name, a.name, c.name)
                           : a.bits == 16 && a.format.exponent_bits == 5
                               ? fmt::format("{}.{}", c.name, c.name)
                               : fmt::format("{}.{}.{}.{}", c.name, a.name, a.name, c.name);
  Kernel& kernel = f.AddKernel(fmt::format("wmma {}.{}.{} {}, stored by {}s", layout(rows_a), layout(rows_b),
                                           shape, kind, layout(rows_c)));
  kernel.target = target;
  const bool wide = a.bits == 64;
  const std::string bits = wide ? "f64" : "b32", fb = wide                        ? "f64"
                                                      : c.integer || c.bits == 16 ? "b32"
                                                                                  : "f32";
  const std::string rounding = wide ? ".rn" : "";
  kernel.text =
      Entry() +
      fmt::format("  .reg .{} %fa<{}>, %fb<{}>; .reg .{} %fc<{}>;\n", bits, registers.a, registers.b, fb,
                  registers.c) +
      fmt::format("  wmma.load.a.sync.aligned.{}.{}.global.{} {}, [%pa], {};\n", layout(rows_a), shape,
                  a.name, Registers("fa", registers.a), rows_a ? k : m) +
      fmt::format("  wmma.load.b.sync.aligned.{}.{}.global.{} {}, [%pb], {};\n", layout(rows_b), shape,
                  a.name, Registers("fb", registers.b), rows_b ? n : k) +
      fmt::format("  wmma.load.c.sync.aligned.row.{}.global.{} {}, [%pc], {};\n", shape, c.name,
                  Registers("fc", registers.c), n) +
      fmt::format("  wmma.mma.sync.aligned.{}.{}.{}{}.{} {}, {}, {}, {};\n", layout(rows_a), layout(rows_b),
                  shape, rounding, kind, Registers("fc", registers.c), Registers("fa", registers.a),
                  Registers("fb", registers.b), Registers("fc", registers.c)) +
      fmt::format("  wmma.store.d.sync.aligned.{}.{}.global.{} [%pd], {}, {};\n  ret; }}\n", layout(rows_c),
                  shape, c.name, Registers("fc", registers.c), rows_c ? n : m);
  kernel.inputs = {Stored(x, a, rows_a), Stored(y, a, rows_b), Stored(z, c, true)};
  const Bytes expected = Stored(Product(x, y, z), c, rows_c);
  kernel.output.resize(expected.size());
  kernel.check = [expected, c](std::span<const std::byte> got) {
    return DifferenceOf(got, expected, c.bits / 8);
  };
}

void Rows(Family& f) {
  // ldmatrix: matrix j is rows 8j to 8j+7 of 16 bytes, each at the address that one lane gives.
  std::vector<uint16_t> in;
  for (uint16_t i = 0; i < 4 * 64; ++i) in.push_back(static_cast<uint16_t>(i * 257 + 3));
  for (unsigned count : {1u, 2u, 4u})
    for (bool transposed : {false, true}) {
      Kernel& k = f.AddKernel(
          fmt::format("ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16", count, transposed ? ".trans" : ""));
      k.text = Entry() +
               "  .shared .align 16 .b8 s[512]; mov.u32 %t7, s; shl.b32 %t6, %i, 4; add.u32 %t7, %t7, %t6;\n "
               " mad.wide.u32 %at, %i, 16, %pa; ld.global.v4.u32 {%t0, %t1, %t2, %t3}, [%at]; "
               "st.shared.v4.u32 [%t7], {%t0, %t1, %t2, %t3}; bar.sync 0;\n  " +
               k.name + " " + Registers("t", count) +
               fmt::format(", [%t7]; mad.wide.u32 %at, %i, {}, %pd;", count * 4);
      for (unsigned i = 0; i < count; ++i) k.text += fmt::format(" st.global.u32 [%at+{}], %t{};", i * 4, i);
      k.text += " ret; }\n";
      k.inputs = {BytesOf(in)};
      std::vector<uint16_t> expected;
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned j = 0; j < count; ++j)
          for (unsigned e = 0; e < 2; ++e)
            expected.push_back(transposed ? in[j * 64 + (lane % 4 * 2 + e) * 8 + lane / 4]
                                          : in[j * 64 + lane / 4 * 8 + lane % 4 * 2 + e]);
      k.output.resize(expected.size() * 2);
      k.check = Expect(expected);

      Kernel& st = f.AddKernel(
          fmt::format("stmatrix.sync.aligned.m8n8.x{}{}.shared.b16", count, transposed ? ".trans" : ""));
      st.target = 90;
      st.text = Entry() + fmt::format(
                              "  .shared .align 16 .b8 s[512]; mov.u32 %t7, s; shl.b32 %t6, %i, 4; add.u32 "
                              "%t7, %t7, %t6;\n  mad.wide.u32 %at, %i, {}, %pa;",
                              count * 4);
      for (unsigned i = 0; i < count; ++i) st.text += fmt::format(" ld.global.u32 %t{}, [%at+{}];", i, i * 4);
      st.text += fmt::format(
          "\n  {} [%t7], {}; bar.sync 0; setp.ge.u32 %p, %i, {}; @%p ret; mad.wide.u32 %at, %i, 16, %pd; "
          "ld.shared.v4.u32 {{%t0, %t1, %t2, %t3}}, [%t7]; st.global.v4.u32 [%at], {{%t0, %t1, %t2, %t3}}; "
          "ret; }}\n",
          st.name, Registers("t", count), count * 8);
      st.inputs = {BytesOf(expected)};
      st.output.resize(count * 128);
      st.check = Expect(std::vector<uint16_t>(in.begin(), in.begin() + count * 64));
    }
  Kernel& k = f.AddKernel("movmatrix.sync.aligned.m8n8.trans.b16");
  k.version = "7.8";
  k.text = Entry() +
           "  mad.wide.u32 %at, %i, 4, %pa; ld.global.u32 %t0, [%at]; movmatrix.sync.aligned.m8n8.trans.b16 "
           "%t1, %t0; mad.wide.u32 %at, %i, 4, %pd; st.global.u32 [%at], %t1; ret; }\n";
  k.inputs = {BytesOf(std::vector<uint16_t>(in.begin(), in.begin() + 64))};
  std::vector<uint16_t> expected;
  for (unsigned i = 0; i < 64; ++i) expected.push_back(in[i % 8 * 8 + i / 8]);
  k.output.resize(128);
  k.check = Expect(expected);
}

}  // namespace

void FillMatrix(Family& f) {
  Multiply(f, 16, 8, 8, kHalf, kHalf, kSingle, 75, "8.0");
  Multiply(f, 16, 8, 8, kHalf, kHalf, kHalf, 75, "8.0");
  Multiply(f, 16, 8, 16, kHalf, kHalf, kSingle, 80, "8.0");
  Multiply(f, 16, 8, 16, kHalf, kHalf, kHalf, 80, "8.0");
  Multiply(f, 16, 8, 8, kBrain, kBrain, kSingle, 80, "8.0");
  Multiply(f, 16, 8, 16, kBrain, kBrain, kSingle, 80, "8.0");
  Multiply(f, 16, 8, 4, kTensor, kTensor, kSingle, 80, "8.0");
  Multiply(f, 16, 8, 8, kTensor, kTensor, kSingle, 80, "8.0");
  Multiply(f, 8, 8, 4, kDouble, kDouble, kDouble, 80, "8.0");
  for (const Element& a : {kS8, kU8})
    for (const Element& b : {kS8, kU8}) {
      Multiply(f, 8, 8, 16, a, b, kS32, 75, "8.0");
      Multiply(f, 16, 8, 16, a, b, kS32, 80, "8.0");
      Multiply(f, 16, 8, 32, a, b, kS32, 80, "8.0");
    }
  Multiply(f, 16, 8, 32, kS8, kS8, kS32, 80, "8.0", ".satfinite");
  for (const Element& a : {kNarrow43, kNarrow52})
    for (const Element& b : {kNarrow43, kNarrow52}) Multiply(f, 16, 8, 32, a, b, kSingle, 89, "8.4");
  for (bool a : {true, false})
    for (bool b : {true, false}) {
      Tiles(f, 16, 16, 16, kHalf, kSingle, {8, 8, 8}, 75, a, b, true);
      Tiles(f, 16, 16, 16, kS8, kS32, {2, 2, 8}, 75, a, b, true);
      Tiles(f, 16, 16, 16, kBrain, kSingle, {4, 4, 8}, 80, a, b, true);
      Tiles(f, 16, 16, 8, kTensor, kSingle, {4, 4, 8}, 80, a, b, true);
      Tiles(f, 8, 8, 4, kDouble, kDouble, {1, 1, 2}, 80, a, b, true);
    }
  Tiles(f, 16, 16, 16, kHalf, kHalf, {8, 8, 4}, 75, true, false, false);
  Tiles(f, 32, 8, 16, kHalf, kSingle, {8, 8, 8}, 75, true, true, false);
  Tiles(f, 8, 32, 16, kHalf, kSingle, {8, 8, 8}, 75, false, true, true);
  Tiles(f, 32, 8, 16, kU8, kS32, {4, 1, 8}, 75, true, false, true);
  Tiles(f, 8, 32, 16, kU8, kS32, {1, 4, 8}, 75, true, false, true);
  Rows(f);
}

}  // namespace cuplex::corpus
