// Bits: logic, shifts, fields, counts, permutations, masks. References go bit by bit where the document does.
#include <algorithm>

#include <fmt/format.h>

#include "tests/conformance/ptx/corpus.h"

namespace cuplex::corpus {
namespace {

const std::vector<Word> kAmounts = {0,  1,  2,  7,  8,   15,  16,  17,  31,         32,
                                    33, 63, 64, 65, 127, 255, 256, 257, 0x80000000, 0xffffffff};

template <typename T>
void Logic(Family& f, const std::string& type) {
  f.Add("and" + type + " %d, %a, %b;", [](T a, T b) { return T(a & b); });
  f.Add("or" + type + " %d, %a, %b;", [](T a, T b) { return T(a | b); });
  f.Add("xor" + type + " %d, %a, %b;", [](T a, T b) { return T(a ^ b); });
  if constexpr (std::is_same_v<T, bool>) {
    f.Add("not" + type + " %d, %a;", [](T a) { return !a; });
  } else {
    f.Add("not" + type + " %d, %a;", [](T a) { return T(~a); });
    f.Add("cnot" + type + " %d, %a;", [](T a) { return T(a == 0); });
  }
}

template <typename T>
void Shifts(Family& f, int bits) {
  constexpr int kWidth = sizeof(T) * 8;
  using S = std::make_signed_t<T>;
  const std::string n = std::to_string(bits);
  f.Add("shl.b" + n + " %d, %a, %b;", [](T a, uint32_t b) {
     return b >= kWidth ? T{0} : T(a << b);
   }).Operand(1, kAmounts);
  auto right = [](T a, uint32_t b) { return b >= kWidth ? T{0} : T(a >> b); };
  f.Add("shr.b" + n + " %d, %a, %b;", right).Operand(1, kAmounts);
  f.Add("shr.u" + n + " %d, %a, %b;", right).Operand(1, kAmounts);
  f.Add("shr.s" + n + " %d, %a, %b;", [](S a, uint32_t b) {
     return S(a >> std::min<uint32_t>(b, kWidth - 1));
   }).Operand(1, kAmounts);
  f.Add("shl.b" + n + " %d, %a, 5;", [](T a) { return T(a << 5); }).Named("shl.b" + n + " by a constant");
  f.Add("shr.s" + n + " %d, %a, 70;", [](S a) {
     return S(a >> (kWidth - 1));
   }).Named("shr.s" + n + " by a large constant");
}

template <typename T>
T Extract(T a, uint32_t b, uint32_t c) {
  constexpr int kWidth = sizeof(T) * 8;
  const int position = b & 0xff, length = c & 0xff;
  using U = std::make_unsigned_t<T>;
  const U bits = static_cast<U>(a);
  const bool fill =
      std::is_signed_v<T> && length && (bits >> std::min(position + length - 1, kWidth - 1) & 1);
  U out = 0;
  for (int i = 0; i < kWidth; ++i) {
    const bool bit = i < length && position + i < kWidth ? bits >> (position + i) & 1 : fill;
    out |= U{bit} << i;
  }
  return static_cast<T>(out);
}

template <typename T>
T Insert(T a, T b, uint32_t c, uint32_t d) {
  constexpr int kWidth = sizeof(T) * 8;
  const int position = c & 0xff, length = d & 0xff;
  for (int i = 0; i < length && position + i < kWidth; ++i) {
    b &= ~(T{1} << (position + i));
    b |= (a >> i & 1) << (position + i);
  }
  return b;
}

template <typename T>
uint32_t Highest(T a, bool shift_amount) {
  constexpr int kWidth = sizeof(T) * 8;
  auto bits = static_cast<std::make_unsigned_t<T>>(a);
  if (std::is_signed_v<T> && a < 0) bits = ~bits;
  for (int i = kWidth - 1; i >= 0; --i)
    if (bits >> i & 1) return static_cast<uint32_t>(shift_amount ? kWidth - 1 - i : i);
  return 0xffffffff;
}

template <typename T>
void Fields(Family& f, const std::string& type) {
  f.Add("bfe" + type + " %d, %a, %b, %c;", [](T a, uint32_t b, uint32_t c) { return Extract<T>(a, b, c); })
      .Operand(1, kAmounts)
      .Operand(2, kAmounts);
  f.Add("bfe" + type + " %d, %a, 4, 9;", [](T a) {
     return Extract<T>(a, 4, 9);
   }).Named("bfe" + type + " by constants");
  f.Add("bfind" + type + " %d, %a;", [](T a) { return Highest<T>(a, false); });
  f.Add("bfind.shiftamt" + type + " %d, %a;", [](T a) { return Highest<T>(a, true); });
}

template <typename T>
void Counts(Family& f, const std::string& type) {
  constexpr int kWidth = sizeof(T) * 8;
  f.Add("popc" + type + " %d, %a;", [](T a) {
    uint32_t n = 0;
    for (int i = 0; i < kWidth; ++i) n += a >> i & 1;
    return n;
  });
  f.Add("clz" + type + " %d, %a;", [](T a) {
    uint32_t n = 0;
    while (n < kWidth && !(a >> (kWidth - 1 - n) & 1)) ++n;
    return n;
  });
  f.Add("brev" + type + " %d, %a;", [](T a) {
    T out = 0;
    for (int i = 0; i < kWidth; ++i) out |= (a >> i & 1) << (kWidth - 1 - i);
    return out;
  });
  f.Add("bfi" + type + " %d, %a, %b, %c, %e;",
        [](T a, T b, uint32_t c, uint32_t e) { return Insert<T>(a, b, c, e); })
      .Operand(2, kAmounts)
      .Operand(3, kAmounts);
  f.Add("bfi" + type + " %d, %a, %b, 7, 11;", [](T a, T b) {
     return Insert<T>(a, b, 7, 11);
   }).Named("bfi" + type + " by constants");
}

uint32_t Permuted(uint32_t a, uint32_t b, const int (&select)[4], int with_sign) {
  const uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t out = 0;
  for (int i = 0; i < 4; ++i) {
    uint32_t byte = bytes >> ((select[i] & 7) * 8) & 0xff;
    if (with_sign && select[i] & 8) byte = byte & 0x80 ? 0xff : 0;
    out |= byte << (i * 8);
  }
  return out;
}

void Permutations(Family& f) {
  auto plain = [](uint32_t a, uint32_t b, uint32_t c) {
    const int select[4] = {int(c & 15), int(c >> 4 & 15), int(c >> 8 & 15), int(c >> 12 & 15)};
    return Permuted(a, b, select, 1);
  };
  f.Add("prmt.b32 %d, %a, %b, %c;", plain);
  for (uint32_t selector : {0x3210u, 0x7654u, 0x0123u, 0x5410u, 0x7632u, 0xba98u, 0xfedcu, 0x4440u, 0x8000u})
    f.Add(fmt::format("prmt.b32 %d, %a, %b, {};", selector), [=](uint32_t a, uint32_t b) {
       return plain(a, b, selector);
     }).Named(fmt::format("prmt.b32 by {:#x}", selector));
  struct Mode {
    const char* name;
    int select[4][4];
  };  // lowest byte first
  static const Mode kModes[] = {{"f4e", {{0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4, 5}, {3, 4, 5, 6}}},
                                {"b4e", {{0, 7, 6, 5}, {1, 0, 7, 6}, {2, 1, 0, 7}, {3, 2, 1, 0}}},
                                {"rc8", {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}},
                                {"ecl", {{0, 1, 2, 3}, {1, 1, 2, 3}, {2, 2, 2, 3}, {3, 3, 3, 3}}},
                                {"ecr", {{0, 0, 0, 0}, {0, 1, 1, 1}, {0, 1, 2, 2}, {0, 1, 2, 3}}},
                                {"rc16", {{0, 1, 0, 1}, {2, 3, 2, 3}, {0, 1, 0, 1}, {2, 3, 2, 3}}}};
  for (const Mode& mode : kModes)
    f.Add(fmt::format("prmt.b32.{} %d, %a, %b, %c;", mode.name),
          [&mode](uint32_t a, uint32_t b, uint32_t c) { return Permuted(a, b, mode.select[c & 3], 0); });
}

uint32_t Table(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t out = 0;
  for (int i = 0; i < 32; ++i) {
    const uint32_t row = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
    out |= (table >> row & 1) << i;
  }
  return out;
}

void Tables(Family& f) {
  f.Add("lop3.b32 %d, %a, %b, %c, 0xe8;",
        [](uint32_t a, uint32_t b, uint32_t c) { return Table(a, b, c, 0xe8); });
  // All 256 tables, each on eight threads.
  std::vector<uint32_t> a, b, c, expected;
  for (uint32_t i = 0; i < 8; ++i) {
    a.push_back(i ? static_cast<uint32_t>(Mixed(i)) : 0xf0f0f0f0);
    b.push_back(i ? static_cast<uint32_t>(Mixed(i + 100)) : 0xcccccccc);
    c.push_back(i ? static_cast<uint32_t>(Mixed(i + 200)) : 0xaaaaaaaa);
    for (uint32_t table = 0; table < 256; ++table) expected.push_back(Table(a[i], b[i], c[i], table));
  }
  Kernel& k = f.AddKernel("lop3.b32 by all 256 tables");
  k.block[0] = 8;
  k.text = Entry() +
           "mad.wide.u32 %u0, %i, 4, %pa; ld.global.u32 %t0, [%u0]; mad.wide.u32 %u0, %i, 4, %pb; "
           "ld.global.u32 %t1, [%u0];\n"
           "mad.wide.u32 %u0, %i, 4, %pc; ld.global.u32 %t2, [%u0]; mad.wide.u32 %u0, %i, 1024, %pd;\n";
  for (int table = 0; table < 256; ++table)
    k.text +=
        fmt::format("lop3.b32 %t3, %t0, %t1, %t2, {}; st.global.u32 [%u0+{}], %t3;\n", table, table * 4);
  k.text += "ret; }\n";
  k.inputs = {BytesOf(a), BytesOf(b), BytesOf(c)};
  k.output.resize(expected.size() * 4);
  k.check = Expect(expected);
  for (bool disjunction : {true, false}) {
    f.Add(fmt::format("lop3.{}.b32 %t0|%p, %a, %b, %c, 0x80, %e; selp.u32 %d, 1, 0, %p; xor.b32 %d, %d, %t0;",
                      disjunction ? "or" : "and"),
          [=](uint32_t a, uint32_t b, uint32_t c, bool q) {
            const uint32_t bits = a & b & c;
            return bits ^ uint32_t { disjunction ? bits != 0 || q : bits != 0 && q };
          })
        .Version("8.2");
  }
}

}  // namespace

void FillBits(Family& f) {
  Logic<bool>(f, ".pred");
  Logic<uint16_t>(f, ".b16");
  Logic<uint32_t>(f, ".b32");
  Logic<uint64_t>(f, ".b64");
  Shifts<uint16_t>(f, 16);
  Shifts<uint32_t>(f, 32);
  Shifts<uint64_t>(f, 64);
  Fields<uint32_t>(f, ".u32");
  Fields<int32_t>(f, ".s32");
  Fields<uint64_t>(f, ".u64");
  Fields<int64_t>(f, ".s64");
  Counts<uint32_t>(f, ".b32");
  Counts<uint64_t>(f, ".b64");
  for (bool wrap : {true, false}) {
    const std::string mode = wrap ? ".wrap" : ".clamp";
    f.Add("shf.l" + mode + ".b32 %d, %a, %b, %c;", [=](uint32_t a, uint32_t b, uint32_t c) {
       const uint32_t n = wrap ? c & 31 : std::min(c, 32u);
       return static_cast<uint32_t>((uint64_t{b} << 32 | a) >> (32 - n));
     }).Operand(2, kAmounts);
    f.Add("shf.r" + mode + ".b32 %d, %a, %b, %c;", [=](uint32_t a, uint32_t b, uint32_t c) {
       const uint32_t n = wrap ? c & 31 : std::min(c, 32u);
       return static_cast<uint32_t>((uint64_t{b} << 32 | a) >> n);
     }).Operand(2, kAmounts);
    f.Add("bmsk" + mode + ".b32 %d, %a, %b;",
          [=](uint32_t a, uint32_t b) {
            uint32_t out = 0;
            if (!wrap && a >= 32) return out;
            const uint32_t first = a & 31, length = !wrap && b >= 32 ? 32 : b & 31;
            for (uint32_t i = first; i < 32 && i - first < length; ++i) out |= 1u << i;
            return out;
          })
        .Operand(0, kAmounts)
        .Operand(1, kAmounts);
    for (bool is_signed : {false, true}) {
      f.Add("szext" + mode + (is_signed ? ".s32" : ".u32") + " %d, %a, %b;", [=](uint32_t a, uint32_t b) {
         if (!wrap && b >= 32) return a;
         const uint32_t length = b & 31;
         uint32_t out = 0;
         const bool fill = is_signed && length && (a >> (length - 1) & 1);
         for (uint32_t i = 0; i < 32; ++i) out |= uint32_t{i < length ? bool(a >> i & 1) : fill} << i;
         return out;
       }).Operand(1, kAmounts);
    }
  }
  std::vector<Word> offsets, bases;
  for (int i = -33; i <= 33; ++i) offsets.push_back(static_cast<uint32_t>(i));
  for (Word i = 0; i < 32; ++i) bases.push_back(i);
  f.Add("fns.b32 %d, %a, %b, %c;",
        [](uint32_t mask, uint32_t base, int32_t offset) -> uint32_t {
          if (!offset) return mask >> base & 1 ? base : 0xffffffff;
          int position = static_cast<int>(base), left = std::abs(offset) - 1;
          for (; position >= 0 && position < 32; position += offset > 0 ? 1 : -1)
            if ((mask >> position & 1) && left-- == 0) return static_cast<uint32_t>(position);
          return 0xffffffff;
        })
      .Operand(1, bases)
      .Operand(2, offsets);
  Permutations(f);
  Tables(f);
}

}  // namespace cuplex::corpus
