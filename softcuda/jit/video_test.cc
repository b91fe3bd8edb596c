// Video instructions against plain arithmetic on 64-bit integers.
#include <algorithm>
#include <random>

#include "softcuda/jit/instruction_rig.h"

namespace cuplex::softcuda {
namespace {

using Words = std::vector<uint32_t>;

class Video : public InstructionRig {
 protected:
  void SetUp() override {
    InstructionRig::SetUp();
    std::mt19937 random(3);
    const Words edges = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x00ff7f80, 0x80017fff, 0x12345678};
    for (uint32_t x : edges) {
      for (uint32_t y : edges)
        a_.push_back(x), b_.push_back(y), c_.push_back(static_cast<uint32_t>(random()));
    }
    for (int i = 0; i < 64; ++i) {
      a_.push_back(static_cast<uint32_t>(random()));
      b_.push_back(static_cast<uint32_t>(random()));
      c_.push_back(static_cast<uint32_t>(random()));
    }
  }

  struct Selector {
    const char* text;
    unsigned first, bits;
  };
  static constexpr Selector kSelectors[] = {{"", 0, 32},    {".b0", 0, 8},  {".b1", 8, 8},  {".b2", 16, 8},
                                            {".b3", 24, 8}, {".h0", 0, 16}, {".h1", 16, 16}};

  static int64_t Part(uint32_t word, unsigned first, unsigned bits, bool is_signed) {
    uint64_t v = word >> first & ((uint64_t{1} << bits) - 1);
    if (is_signed && v >> (bits - 1)) return static_cast<int64_t>(v) - (int64_t{1} << bits);
    return static_cast<int64_t>(v);
  }
  static int64_t Clamp(int64_t v, unsigned bits, bool is_signed) {
    int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
    int64_t high = is_signed ? (int64_t{1} << (bits - 1)) - 1 : (int64_t{1} << bits) - 1;
    return std::clamp(v, low, high);
  }
  /// Runs two instructions that write `$0` and `$1`, in one kernel.
  std::pair<Words, Words> Two(std::string first, std::string second) {
    first.replace(first.find("$0"), 2, "%t0");
    second.replace(second.find("$1"), 2, "%t1");
    auto both = Each<uint64_t>(first + " " + second + " mov.b64 %d, {%t0, %t1};", a_, b_, c_);
    Words low, high;
    for (uint64_t v : both)
      low.push_back(static_cast<uint32_t>(v)), high.push_back(static_cast<uint32_t>(v >> 32));
    return {low, high};
  }
  static const char* Name(bool is_signed) { return is_signed ? ".s32" : ".u32"; }

  Words a_, b_, c_;
};

int64_t Scalar(const std::string& op, int64_t x, int64_t y) {
  if (op == "vadd") return x + y;
  if (op == "vsub") return x - y;
  if (op == "vabsdiff") return x > y ? x - y : y - x;
  return op == "vmin" ? std::min(x, y) : std::max(x, y);
}

TEST_F(Video, ScalarsOfEveryPartAndType) {
  unsigned turn = 0;
  for (const char* op : {"vadd", "vsub", "vabsdiff", "vmin", "vmax"}) {
    for (unsigned types = 0; types < 8; ++types) {
      bool d_signed = types & 1, a_signed = types & 2, b_signed = types & 4;
      std::string head = std::string(op) + Name(d_signed) + Name(a_signed) + Name(b_signed);
      bool sat = turn % 2;
      const Selector& sa = kSelectors[turn % 7];
      const Selector& sb = kSelectors[turn / 7 % 7];
      const Selector& sd = kSelectors[1 + turn % 6];
      ++turn;
      head += sat ? ".sat" : "";
      std::string sources = fmt::format("%a{}, %b{}", sa.text, sb.text);
      auto [plain, added] =
          Two(fmt::format("{} $0, {};", head, sources), fmt::format("{}.add $1, {}, %c;", head, sources));
      auto [least, merged] = Two(fmt::format("{}.min $0, {}, %c;", head, sources),
                                 fmt::format("{} $1{}, {}, %c;", head, sd.text, sources));
      for (size_t i = 0; i < a_.size(); ++i) {
        int64_t value =
            Scalar(op, Part(a_[i], sa.first, sa.bits, a_signed), Part(b_[i], sb.first, sb.bits, b_signed));
        auto whole = static_cast<uint32_t>(sat ? Clamp(value, 32, d_signed) : value);
        ASSERT_EQ(plain[i], whole) << head << " " << sources << " " << i;
        ASSERT_EQ(added[i], whole + c_[i]) << head;
        uint32_t smaller =
            d_signed
                ? static_cast<uint32_t>(std::min(static_cast<int32_t>(whole), static_cast<int32_t>(c_[i])))
                : std::min(whole, c_[i]);
        ASSERT_EQ(least[i], smaller) << head;
        auto part = static_cast<uint32_t>(sat ? Clamp(value, sd.bits, d_signed) : value);
        uint32_t mask = ((1u << sd.bits) - 1) << sd.first;
        ASSERT_EQ(merged[i], ((part << sd.first) & mask) | (c_[i] & ~mask)) << head << sd.text;
      }
    }
  }
}

TEST_F(Video, ShiftsWrapOrClamp) {
  for (bool a_signed : {false, true}) {
    for (bool wraps : {false, true}) {
      for (bool sat : {false, true}) {
        std::string mode = std::string(sat ? ".sat" : "") + (wraps ? ".wrap" : ".clamp");
        auto left =
            Each<uint32_t>(fmt::format("vshl.s32{}.u32{} %d, %a.h0, %b.b0;", Name(a_signed), mode), a_, b_);
        auto right =
            Each<uint32_t>(fmt::format("vshr.u32{}.u32{} %d, %a, %b.b1;", Name(a_signed), mode), a_, b_);
        for (size_t i = 0; i < a_.size(); ++i) {
          auto by = [&](unsigned first) {
            uint32_t n = b_[i] >> first & 255;
            return wraps ? n & 31 : std::min(n, 32u);
          };
          int64_t l = Part(a_[i], 0, 16, a_signed) * (int64_t{1} << by(0));
          int64_t r = Part(a_[i], 0, 32, a_signed) >> by(8);
          EXPECT_EQ(left[i], static_cast<uint32_t>(sat ? Clamp(l, 32, true) : l)) << mode << i;
          EXPECT_EQ(right[i], static_cast<uint32_t>(sat ? Clamp(r, 32, false) : r)) << mode << i;
        }
      }
    }
  }
}

TEST_F(Video, MultiplyAndAddScales) {
  for (unsigned types = 0; types < 4; ++types) {
    bool a_signed = types & 1, b_signed = types & 2, is_signed = types != 0;
    for (bool one : {false, true}) {
      for (bool sat : {false, true}) {
        for (unsigned scale : {0u, 7u, 15u}) {
          std::string text = fmt::format("vmad.{}{}{}{}{}{} %d, %a, %b.h1, %c;", is_signed ? "s32" : "u32",
                                         Name(a_signed), Name(b_signed), one ? ".po" : "", sat ? ".sat" : "",
                                         scale == 7    ? ".shr7"
                                         : scale == 15 ? ".shr15"
                                                       : "");
          auto got = Each<uint32_t>(text, a_, b_, c_);
          for (size_t i = 0; i < a_.size(); ++i) {
            int64_t v = Part(a_[i], 0, 32, a_signed) * Part(b_[i], 16, 16, b_signed) +
                        Part(c_[i], 0, 32, is_signed) + one;
            v >>= scale;
            ASSERT_EQ(got[i], static_cast<uint32_t>(sat ? Clamp(v, 32, is_signed) : v)) << text << " " << i;
          }
        }
      }
    }
  }
}

bool Holds(const std::string& cmp, int64_t x, int64_t y) {
  return cmp == "eq"   ? x == y
         : cmp == "ne" ? x != y
         : cmp == "lt" ? x < y
         : cmp == "le" ? x <= y
         : cmp == "gt" ? x > y
                       : x >= y;
}

TEST_F(Video, Comparisons) {
  unsigned turn = 0;
  for (const char* cmp : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    for (bool a_signed : {false, true}) {
      bool b_signed = turn++ % 3 != 0;
      std::string types = std::string(Name(a_signed)) + Name(b_signed) + "." + cmp;
      auto [one, sum] = Two("vset" + types + " $0, %a.h1, %b.b3;", "vset" + types + ".add $1, %a, %b, %c;");
      auto [byte, two] = Two("vset" + types + " $0.b2, %a, %b, %c;", "vset2" + types + " $1, %a, %b, %c;");
      auto four = Each<uint32_t>("vset4" + types + ".add %d, %a, %b, %c;", a_, b_, c_);
      for (size_t i = 0; i < a_.size(); ++i) {
        auto holds = [&](unsigned first_a, unsigned bits_a, unsigned first_b, unsigned bits_b) {
          return static_cast<uint32_t>(
              Holds(cmp, Part(a_[i], first_a, bits_a, a_signed), Part(b_[i], first_b, bits_b, b_signed)));
        };
        EXPECT_EQ(one[i], holds(16, 16, 24, 8));
        EXPECT_EQ(sum[i], c_[i] + holds(0, 32, 0, 32));
        EXPECT_EQ(byte[i], (c_[i] & 0xff00ffff) | holds(0, 32, 0, 32) << 16);
        EXPECT_EQ(two[i], holds(0, 16, 0, 16) | holds(16, 16, 16, 16) << 16) << types;
        uint32_t bytes = c_[i];
        for (unsigned k = 0; k < 32; k += 8) bytes += holds(k, 8, k, 8);
        EXPECT_EQ(four[i], bytes) << types;
      }
    }
  }
}

TEST_F(Video, SelectorsAndMasksOfParts) {
  // Digits from the right: part 0 first. 0-1 (0-3) are a's halves (bytes), the rest b's.
  auto halves = Each<uint32_t>("vadd2.u32.u32.s32.sat %d.h1, %a.h30, %b.h12, %c;", a_, b_, c_);
  auto bytes = Each<uint32_t>("vsub4.s32.s32.u32.sat %d.b310, %a.b0716, %b.b5555, %c;", a_, b_, c_);
  auto crossed = Each<uint32_t>("vadd4.u32.u32.u32 %d, %a.b7654, %b.b0123, %c;", a_, b_, c_);
  auto sums = Each<uint32_t>("vabsdiff4.u32.u32.u32.add %d.b20, %a.b3210, %b.b7654, %c;", a_, b_, c_);
  for (size_t i = 0; i < a_.size(); ++i) {
    auto half = [&](unsigned n, bool s) { return Part(n < 2 ? a_[i] : b_[i], n % 2 * 16, 16, s); };
    auto byte = [&](unsigned n, bool s) { return Part(n < 4 ? a_[i] : b_[i], n % 4 * 8, 8, s); };
    auto upper = static_cast<uint32_t>(Clamp(half(3, false) + half(1, true), 16, false));
    EXPECT_EQ(halves[i], upper << 16 | (c_[i] & 0xffff));
    uint32_t want = c_[i] & 0x00ff0000;
    const unsigned from_a[] = {6, 1, 7, 0};
    for (unsigned k : {0u, 1u, 3u}) {
      want |= (static_cast<uint32_t>(Clamp(byte(from_a[k], true) - byte(5, false), 8, true)) & 255) << 8 * k;
    }
    EXPECT_EQ(bytes[i], want);
    uint32_t sum = c_[i];
    for (unsigned k : {0u, 2u}) sum += static_cast<uint32_t>(std::abs(byte(k, false) - byte(4 + k, false)));
    EXPECT_EQ(sums[i], sum);
    uint32_t turned = 0;
    for (unsigned k = 0; k < 4; ++k) {
      turned |= (static_cast<uint32_t>(byte(4 + k, false) + byte(3 - k, false)) & 255) << 8 * k;
    }
    EXPECT_EQ(crossed[i], turned);
  }
}

}  // namespace
}  // namespace cuplex::softcuda
