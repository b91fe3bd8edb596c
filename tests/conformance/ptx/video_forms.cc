// Video instructions: on whole words with selected parts, and on two halves or four bytes at once.
#include <algorithm>

#include <fmt/format.h>

#include "tests/conformance/ptx/corpus.h"

namespace cuplex::corpus {
namespace {

/// Part b0..b3, h0, h1 of a word, or all of it.
int64_t Selected(uint32_t word, const std::string& part, bool is_signed) {
  int shift = 0, bits = 32;
  if (!part.empty()) bits = part[0] == 'b' ? 8 : 16, shift = (part[1] - '0') * bits;
  const uint64_t mask = (uint64_t{1} << bits) - 1, value = word >> shift & mask;
  return is_signed && value >> (bits - 1) ? static_cast<int64_t>(value | ~mask) : static_cast<int64_t>(value);
}

int64_t Clamped(int64_t value, int bits, bool is_signed) {
  const int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0,
                high = (int64_t{1} << (bits - is_signed)) - 1;
  return std::clamp(value, low, high);
}

struct Operation {
  const char* name;
  int64_t (*of)(int64_t, int64_t);
};
const Operation kOperations[] = {{"vadd", [](int64_t a, int64_t b) { return a + b; }},
                                 {"vsub", [](int64_t a, int64_t b) { return a - b; }},
                                 {"vabsdiff", [](int64_t a, int64_t b) { return a < b ? b - a : a - b; }},
                                 {"vmin", [](int64_t a, int64_t b) { return std::min(a, b); }},
                                 {"vmax", [](int64_t a, int64_t b) { return std::max(a, b); }}};

uint32_t Merged(const std::string& part, int64_t value, uint32_t c) {
  const int bits = part[0] == 'b' ? 8 : 16, shift = (part[1] - '0') * bits;
  const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << bits) - 1) << shift;
  return (c & ~mask) | (static_cast<uint32_t>(value) << shift & mask);
}

void Scalar(Family& f) {
  struct Shape {
    bool d, a, b;
    const char* part_a;
    const char* part_b;
  };
  const Shape shapes[] = {{true, true, true, "", ""},
                          {false, false, false, "", ""},
                          {true, false, true, "h1", "b0"},
                          {false, true, false, "b3", "h0"},
                          {true, true, true, "b1", "b2"}};
  auto type = [](bool is_signed) { return is_signed ? "s32" : "u32"; };
  auto dotted = [](const std::string& part) { return part.empty() ? "" : "." + part; };
  for (const Operation& op : kOperations) {
    auto of = op.of;
    for (const Shape& s : shapes) {
      for (bool sat : {false, true}) {
        const std::string types =
            fmt::format("{}.{}.{}.{}{}", op.name, type(s.d), type(s.a), type(s.b), sat ? ".sat" : "");
        const std::string sources = fmt::format("%a{}, %b{}", dotted(s.part_a), dotted(s.part_b));
        const std::string with =
            fmt::format(" of {}, {}", *s.part_a ? s.part_a : "a", *s.part_b ? s.part_b : "b");
        auto value = [=](uint32_t a, uint32_t b, int bits) {
          const int64_t v = of(Selected(a, s.part_a, s.a), Selected(b, s.part_b, s.b));
          return sat ? Clamped(v, bits, s.d) : v;
        };
        f.Add(types + " %d, " + sources + ";", [=](uint32_t a, uint32_t b) {
           return static_cast<uint32_t>(value(a, b, 32));
         }).Named(types + with);
        if (s.part_a[0] != 'h' && *s.part_a) continue;
        f.Add(types + ".add %d, " + sources + ", %c;", [=](uint32_t a, uint32_t b, uint32_t c) {
           return static_cast<uint32_t>(value(a, b, 32)) + c;
         }).Named(types + ".add" + with);
        for (const char* part : {"h1", "b2"})
          f.Add(types + " %d." + part + ", " + sources + ", %c;", [=](uint32_t a, uint32_t b, uint32_t c) {
             return Merged(part, value(a, b, part[0] == 'b' ? 8 : 16), c);
           }).Named(types + with + " into " + part);
      }
    }
    for (bool max : {false, true})
      f.Add(fmt::format("{}.s32.s32.s32.sat.{} %d, %a, %b, %c;", op.name, max ? "max" : "min"),
            [=](uint32_t a, uint32_t b, uint32_t c) {
              const auto v = static_cast<int32_t>(
                             Clamped(of(static_cast<int32_t>(a), static_cast<int32_t>(b)), 32, true)),
                         w = static_cast<int32_t>(c);
              return static_cast<uint32_t>(max ? std::max(v, w) : std::min(v, w));
            });
  }
  for (bool wrap : {false, true}) {
    const std::string mode = wrap ? ".wrap" : ".clamp";
    auto amount = [wrap](uint32_t b) { return wrap ? b & 31 : std::min(b, 32u); };
    f.Add("vshl.u32.u32.u32" + mode + " %d, %a, %b;",
          [=](uint32_t a, uint32_t b) { return static_cast<uint32_t>(uint64_t{a} << amount(b)); });
    f.Add("vshr.u32.u32.u32" + mode + " %d, %a, %b;",
          [=](uint32_t a, uint32_t b) { return static_cast<uint32_t>(uint64_t{a} >> amount(b)); });
    f.Add("vshr.s32.s32.u32" + mode + " %d, %a, %b;",
          [=](int32_t a, uint32_t b) { return static_cast<int32_t>(int64_t{a} >> amount(b)); });
  }
  struct Comparison {
    const char* name;
    bool (*of)(int64_t, int64_t);
  };
  for (const Comparison& c : {Comparison{"eq", [](int64_t a, int64_t b) { return a == b; }},
                              Comparison{"ne", [](int64_t a, int64_t b) { return a != b; }},
                              Comparison{"lt", [](int64_t a, int64_t b) { return a < b; }},
                              Comparison{"le", [](int64_t a, int64_t b) { return a <= b; }},
                              Comparison{"gt", [](int64_t a, int64_t b) { return a > b; }},
                              Comparison{"ge", [](int64_t a, int64_t b) { return a >= b; }}}) {
    auto of = c.of;
    f.Add(fmt::format("vset.s32.u32.{} %d, %a.h0, %b.b1;", c.name), [of](uint32_t a, uint32_t b) {
      return uint32_t{of(Selected(a, "h0", true), Selected(b, "b1", false))};
    });
    for (const char* width : {"2", "4"}) {
      const int bits = width[0] == '2' ? 16 : 8;
      f.Add(fmt::format("vset{}.u32.u32.{} %d, %a, %b, %c;", width, c.name),
            [of, bits](uint32_t a, uint32_t b, uint32_t) {
              uint32_t out = 0;
              for (int shift = 0; shift < 32; shift += bits) {
                const uint32_t mask = (1u << bits) - 1;
                out |= uint32_t{of(a >> shift & mask, b >> shift & mask)} << shift;
              }
              return out;
            });
    }
  }
  f.Add("vmad.s32.s32.s32 %d, %a.h0, %b.h1, %c;", [](uint32_t a, uint32_t b, uint32_t c) {
    return static_cast<uint32_t>(Selected(a, "h0", true) * Selected(b, "h1", true)) + c;
  });
  f.Add("vmad.u32.u32.u32 %d, %a.b0, %b.b3, %c;", [](uint32_t a, uint32_t b, uint32_t c) {
    return static_cast<uint32_t>(Selected(a, "b0", false) * Selected(b, "b3", false)) + c;
  });
  f.Add("vmad.u32.u32.u32.shr7 %d, %a.h0, %b.h1, %c;", [](uint32_t a, uint32_t b, uint32_t c) {
    return static_cast<uint32_t>((uint64_t{a & 0xffff} * (b >> 16) + c) >> 7);
  });
  f.Add("vmad.s32.s32.s32.sat.shr15 %d, %a, %b, %c;", [](int32_t a, int32_t b, int32_t c) {
    return static_cast<int32_t>(
        Clamped(static_cast<int64_t>((static_cast<__int128>(a) * b + c) >> 15), 32, true));
  });
}

template <typename F>
uint32_t EachPart(uint32_t a, uint32_t b, int bits, bool sign_a, bool sign_b, F of) {
  uint32_t out = 0;
  const uint32_t mask = (1u << bits) - 1;
  for (int i = 0; i < 32 / bits; ++i) {
    const std::string part = (bits == 8 ? "b" : "h") + std::to_string(i);
    out |= (static_cast<uint32_t>(of(Selected(a, part, sign_a), Selected(b, part, sign_b))) & mask)
           << (i * bits);
  }
  return out;
}

void Packed(Family& f) {
  std::vector<Operation> operations(std::begin(kOperations), std::end(kOperations));
  operations.push_back({"vavrg", [](int64_t a, int64_t b) { return (a + b + (a + b >= 0)) >> 1; }});
  for (const Operation& op : operations) {
    auto of = op.of;
    for (int bits : {16, 8}) {
      const std::string name = op.name + std::to_string(32 / bits);
      for (bool is_signed : {false, true}) {
        const std::string t = is_signed ? ".s32.s32.s32" : ".u32.u32.u32";
        f.Add(name + t + " %d, %a, %b, %c;", [=](uint32_t a, uint32_t b, uint32_t) {
          return EachPart(a, b, bits, is_signed, is_signed, of);
        });
        f.Add(name + t + ".sat %d, %a, %b, %c;", [=](uint32_t a, uint32_t b, uint32_t) {
          return EachPart(a, b, bits, is_signed, is_signed,
                          [=](int64_t x, int64_t y) { return Clamped(of(x, y), bits, is_signed); });
        });
      }
      f.Add(name + ".s32.u32.s32.sat %d, %a, %b, %c;", [=](uint32_t a, uint32_t b, uint32_t) {
        return EachPart(a, b, bits, false, true,
                        [=](int64_t x, int64_t y) { return Clamped(of(x, y), bits, true); });
      });
      const std::string parts = bits == 8 ? "%d.b20, " : "%d.h1, ";
      f.Add(name + ".u32.u32.u32 " + parts + "%a, %b, %c;", [=](uint32_t a, uint32_t b, uint32_t c) {
         const uint32_t mask = bits == 8 ? 0x00ff00ffu : 0xffff0000u;
         return (EachPart(a, b, bits, false, false, of) & mask) | (c & ~mask);
       }).Named(name + ".u32.u32.u32 into some parts");
      if (std::string(op.name) == "vabsdiff") {
        f.Add(name + ".u32.u32.u32.add %d, %a, %b, %c;", [=](uint32_t a, uint32_t b, uint32_t c) {
          EachPart(a, b, bits, false, false,
                   [&](int64_t x, int64_t y) { return c += static_cast<uint32_t>(of(x, y)); });
          return c;
        });
      }
    }
  }
  // Parts 0 to 3 are those of a, 4 to 7 those of b, for both operands.
  f.Add("vadd4.u32.u32.u32 %d, %a.b3210, %b.b0167, %c;", [](uint32_t a, uint32_t b, uint32_t) {
     const uint64_t parts = uint64_t{b} << 32 | a;
     constexpr int kSecond[] = {7, 6, 1, 0};  // lowest part first
     uint32_t out = 0;
     for (int i = 0; i < 4; ++i) {
       const uint64_t sum = (parts >> (8 * i)) + (parts >> (8 * kSecond[i]));
       out |= static_cast<uint32_t>(sum & 255) << (8 * i);
     }
     return out;
   }).Named("vadd4.u32.u32.u32 with selectors");
}

}  // namespace

void FillVideo(Family& f) {
  Scalar(f);
  Packed(f);
}

}  // namespace cuplex::corpus
