#include "tests/conformance/ptx/form.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace cuplex::corpus {
namespace {

constexpr size_t kMostRows = 1536;  // of edge values; then random ones
const char* const kNames[] = {"a", "b", "c", "e"};

const char* RegisterOf(Type type) {
  switch (BytesOf(type)) {
    case 1:
      return type == Type::kPred ? ".pred" : ".b16";
    case 2:
      return ".b16";
    case 4:
      return ".b32";
    default:
      return ".b64";
  }
}

const char* AccessOf(Type type) {
  switch (type) {
    case Type::kPred:
    case Type::kU8:
      return ".u8";
    case Type::kS8:
      return ".s8";
    default:
      break;
  }
  const unsigned bytes = BytesOf(type);
  return bytes == 2 ? ".b16" : bytes == 4 ? ".b32" : ".b64";
}

struct Float {
  int fraction, exponent;
};
Float LayoutOf(Type type) {
  switch (type) {
    case Type::kF16:
      return {10, 5};
    case Type::kBf16:
      return {7, 8};
    case Type::kF32:
      return {23, 8};
    default:
      return {52, 11};
  }
}
bool IsFloat(Type type) {
  return type == Type::kF16 || type == Type::kBf16 || type == Type::kF32 || type == Type::kF64;
}
bool IsNan(Type type, Word bits) {
  const Float f = LayoutOf(type);
  const Word magnitude = bits & ((Word{1} << (f.fraction + f.exponent)) - 1);
  return magnitude > ((Word{1} << f.exponent) - 1) << f.fraction;
}
bool IsZero(Type type, Word bits) {
  const Float f = LayoutOf(type);
  return !(bits & ((Word{1} << (f.fraction + f.exponent)) - 1));
}
Type HalfOf(Type type) { return type == Type::kF16x2 ? Type::kF16 : Type::kBf16; }

Real RealOf(Type type, Word bits) {
  if (type == Type::kF32) return FromWord<float>(bits);
  if (type == Type::kF64) return FromWord<double>(bits);
  const Float f = LayoutOf(type);
  const int exponent = static_cast<int>(bits >> f.fraction) & ((1 << f.exponent) - 1);
  const int bias = (1 << (f.exponent - 1)) - 1;
  const auto fraction = static_cast<Real>(bits & ((Word{1} << f.fraction) - 1));
  const Real sign = bits >> (f.fraction + f.exponent) & 1 ? -1 : 1;
  if (exponent == (1 << f.exponent) - 1) return fraction != 0 ? NAN : sign * INFINITY;
  if (!exponent) return sign * std::ldexp(fraction, 1 - bias - f.fraction);
  return sign * std::ldexp(fraction + std::ldexp(Real{1}, f.fraction), exponent - bias - f.fraction);
}

Bytes Packed(const std::vector<Word>& column, unsigned size) {
  Bytes bytes(column.size() * size);
  for (size_t i = 0; i < column.size(); ++i) std::memcpy(bytes.data() + i * size, &column[i], size);
  return bytes;
}

std::string Shown(Type type, Word bits) {
  if (IsFloat(type)) return fmt::format("{:#x} ({:.9g})", bits, static_cast<double>(RealOf(type, bits)));
  return fmt::format("{:#x}", bits);
}

}  // namespace

unsigned BytesOf(Type type) {
  switch (type) {
    case Type::kPred:
    case Type::kU8:
    case Type::kS8:
      return 1;
    case Type::kU16:
    case Type::kS16:
    case Type::kF16:
    case Type::kBf16:
      return 2;
    case Type::kU32:
    case Type::kS32:
    case Type::kF32:
    case Type::kF16x2:
    case Type::kBf16x2:
      return 4;
    default:
      return 8;
  }
}

uint64_t Mixed(uint64_t seed) {
  seed += 0x9e3779b97f4a7c15;
  seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9;
  seed = (seed ^ seed >> 27) * 0x94d049bb133111eb;
  return seed ^ seed >> 31;
}

const std::vector<Word>& EdgesOf(Type type) {
  static const std::vector<std::vector<Word>> all = [] {
    std::vector<std::vector<Word>> edges(static_cast<size_t>(Type::kBf16x2) + 1);
    auto at = [&](Type t) -> std::vector<Word>& { return edges[static_cast<size_t>(t)]; };
    at(Type::kPred) = {0, 1};
    auto integers = [](int bits) {
      const Word all_ones = bits == 64 ? ~Word{0} : (Word{1} << bits) - 1, top = Word{1} << (bits - 1);
      std::vector<Word> v = {0,
                             1,
                             2,
                             3,
                             7,
                             top - 1,
                             top,
                             top + 1,
                             all_ones - 1,
                             all_ones,
                             Word(bits - 1),
                             Word(bits),
                             Word(bits + 1),
                             Word{1} << (bits / 2),
                             (Word{1} << (bits / 2)) - 1,
                             0x123456789abcdef0 & all_ones,
                             0xfedcba9876543211 & all_ones,
                             0xaaaaaaaaaaaaaaaa & all_ones,
                             (0x5555555555555555 & all_ones),
                             top + (top >> 1)};
      return v;
    };
    for (Type t : {Type::kU8, Type::kS8}) at(t) = integers(8);
    for (Type t : {Type::kU16, Type::kS16}) at(t) = integers(16);
    for (Type t : {Type::kU32, Type::kS32}) at(t) = integers(32);
    for (Type t : {Type::kU64, Type::kS64}) at(t) = integers(64);
    for (Type t : {Type::kF16, Type::kBf16, Type::kF32, Type::kF64}) {
      const auto [fraction, exponent] = LayoutOf(t);
      const Word one = ((Word{1} << (exponent - 1)) - 1) << fraction, unit = Word{1} << fraction;
      const Word infinity = ((Word{1} << exponent) - 1) << fraction, sign = Word{1} << (fraction + exponent);
      const Word magnitudes[] = {0,
                                 1,
                                 unit / 2,
                                 unit - 1,
                                 unit,
                                 unit + 1,  // zero, subnormals, least normals
                                 one - 1,
                                 one,
                                 one + 1,
                                 one + unit / 2,
                                 one + unit,                 // about 1, 1.5, 2
                                 one + unit * 2 + unit / 2,  // 6
                                 one + unit * Word(fraction) + 1,
                                 one + unit * Word(fraction + 1) - 1,  // the last that have halves
                                 one - unit * Word(fraction + 1),
                                 one - unit,
                                 one - unit - 1 /* about half */,
                                 infinity - 1,
                                 infinity - unit,
                                 infinity,
                                 infinity + unit / 2,
                                 infinity + 1,
                                 (infinity | (unit - 1))};  // NaNs: quiet, signalling, canonical
      for (Word m : magnitudes) at(t).push_back(m), at(t).push_back(m | sign);
    }
    for (Type t : {Type::kF16x2, Type::kBf16x2}) {
      const auto& half = at(HalfOf(t));
      for (size_t i = 0; i < half.size(); ++i)
        at(t).push_back(half[i] | half[(i * 7 + 5) % half.size()] << 16);
    }
    return edges;
  }();
  return all[static_cast<size_t>(type)];
}

Word RandomOf(Type type, uint64_t seed) {
  const uint64_t x = Mixed(seed), choice = Mixed(seed ^ 0x5eed) % 4;
  const unsigned bits = BytesOf(type) * 8;
  const Word mask = bits == 64 ? ~Word{0} : (Word{1} << bits) - 1;
  if (type == Type::kPred) return x & 1;
  if (type == Type::kF16x2 || type == Type::kBf16x2) {
    return RandomOf(HalfOf(type), seed * 2) | RandomOf(HalfOf(type), seed * 2 + 1) << 16;
  }
  if (choice == 0) return x & mask;
  if (IsFloat(type)) {  // of a size such that sums and products have to round
    const auto [fraction, exponent] = LayoutOf(type);
    const Word bias = (Word{1} << (exponent - 1)) - 1;
    const Word e = bias - 4 + Mixed(x) % 9;
    return (x & ((Word{1} << fraction) - 1)) | e << fraction | (x >> 63) << (fraction + exponent);
  }
  if (choice == 1) return x >> (64 - bits) >> (Mixed(x) % bits);  // any length
  const auto& edges = EdgesOf(type);
  if (choice == 2) return (edges[x % edges.size()] + Mixed(x) % 5 - 2) & mask;
  return x & mask;
}

Form& Form::Operand(size_t index, std::vector<Word> values) {
  if (lists_.size() <= index) lists_.resize(index + 1);
  lists_[index] = std::move(values);
  return *this;
}

Form& Form::Every(size_t index) {
  std::vector<Word> values(size_t{1} << (BytesOf(operands[index]) * 8));
  for (size_t i = 0; i < values.size(); ++i) values[i] = i;
  return Operand(index, std::move(values));
}

Columns Form::Rows() const {
  const size_t count = operands.size();
  std::vector<const std::vector<Word>*> lists(count);
  size_t product = 1, longest = 1;
  uint64_t seed = Mixed(std::hash<std::string>()(code));
  for (size_t o = 0; o < count; ++o) {
    const bool given = o < lists_.size() && !lists_[o].empty();
    lists[o] = given ? &lists_[o] : &EdgesOf(operands[o]);
    product = std::min<size_t>(product * lists[o]->size(), size_t{1} << 40);
    longest = std::max(longest, lists[o]->size());
  }
  Columns columns(count);
  auto add = [&](const Word* row) {
    if (open_ && open_(row)) return;
    for (size_t o = 0; o < count; ++o) columns[o].push_back(row[o]);
  };
  Word row[4] = {};
  {
    const size_t rows = std::min(product, std::max(kMostRows, longest));
    for (size_t r = 0; r < rows; ++r) {
      size_t at = r;
      for (size_t o = 0; o < count; ++o) {
        if (product <= kMostRows) {
          row[o] = (*lists[o])[at % lists[o]->size()];
          at /= lists[o]->size();
        } else {  // the longest list in order, so that all of it is seen; the others by chance
          const bool in_order = lists[o]->size() == longest;
          row[o] = (*lists[o])[(in_order && longest >= kMostRows ? r : Mixed(seed++)) % lists[o]->size()];
        }
      }
      add(row);
    }
  }
  for (size_t r = 0; r < random_ && count; ++r) {
    for (size_t o = 0; o < count; ++o) {
      const bool given = o < lists_.size() && !lists_[o].empty();
      row[o] = given ? lists_[o][Mixed(seed++) % lists_[o].size()] : RandomOf(operands[o], seed++);
    }
    add(row);
  }
  if (!count) columns.emplace_back(block_, 0);  // the length alone
  if (together) {
    const size_t whole = columns[0].size() / block_ * block_;
    for (auto& column : columns) column.resize(whole);
  }
  return columns;
}

bool Form::Right(Word got, Word expected) const {
  if (got == expected) return true;
  if (result == Type::kF16x2 || result == Type::kBf16x2) {
    const Type half = HalfOf(result);
    for (int shift : {0, 16}) {
      const Word g = got >> shift & 0xffff, e = expected >> shift & 0xffff;
      if (g != e && !(!exact_nan_ && IsNan(half, g) && IsNan(half, e)) &&
          !(any_zero_ && IsZero(half, g) && IsZero(half, e)))
        return false;
    }
    return true;
  }
  if (!IsFloat(result)) return false;
  if (!exact_nan_ && IsNan(result, got) && IsNan(result, expected)) return true;
  return any_zero_ && IsZero(result, got) && IsZero(result, expected);
}

bool Form::Within(Word got, Real wanted) const {
  if (std::isnan(wanted) || IsNan(result, got)) return std::isnan(wanted) && IsNan(result, got);
  const Real value = RealOf(result, got);
  const auto [fraction, exponent_bits] = LayoutOf(result);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const Real largest = std::ldexp(2 - std::ldexp(Real{1}, -fraction), bias),
             least = std::ldexp(Real{1}, 1 - bias);
  if (std::isinf(wanted)) return value == wanted;
  if (wanted == 0 && !bound.absolute) return value == 0 && std::signbit(value) == std::signbit(wanted);
  int exponent = 0;
  std::frexp(wanted, &exponent);
  const Real ulp = std::ldexp(Real{1}, std::max(exponent - 1, 1 - bias) - fraction);
  const Real room = std::max({bound.ulps * ulp, Real(bound.absolute), bound.relative * std::fabs(wanted)});
  if (std::isinf(value))
    return std::signbit(value) == std::signbit(wanted) && std::fabs(wanted) + room >= largest;
  if (std::fabs(value - wanted) <= room) return true;
  return bound.flushed && std::fabs(wanted) < least + room && value == 0;
}

std::string Entry(const std::string& extra) {
  return ".visible .entry $(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pe, .param .u64 pd, "
         ".param .u32 pn" +
         extra +
         ")\n{\n"
         "  .reg .pred %p, %q, %beyond; .reg .b16 %h<8>; .reg .b32 %i, %n, %t<8>; .reg .b64 %at, %u<8>, %pa, "
         "%pb, %pc, %pe, %pd;\n"
         "  ld.param.u64 %pa, [pa]; ld.param.u64 %pb, [pb]; ld.param.u64 %pc, [pc]; ld.param.u64 %pe, [pe]; "
         "ld.param.u64 %pd, [pd];\n"
         "  mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %i, %i, %n, 0; mov.u32 %n, %tid.x; add.u32 "
         "%i, %i, %n;\n"
         "  ld.param.u32 %n, [pn];\n";
}

Kernel Form::Lower() const {
  Kernel kernel;
  kernel.name = name;
  kernel.declarations = declarations;
  kernel.target = target_;
  kernel.target_suffix = suffix_;
  kernel.version = version_;
  const Columns rows = Rows();
  const size_t count = rows[0].size();
  kernel.block[0] = static_cast<unsigned>(std::min<size_t>(block_, count));
  if (together) kernel.block[0] = block_;
  kernel.threads = static_cast<unsigned>(count);
  kernel.grid[0] = static_cast<unsigned>((count + kernel.block[0] - 1) / kernel.block[0]);

  std::string& text = kernel.text;
  text = Entry();
  text += "  setp.ge.u32 %beyond, %i, %n; @%beyond bra out;\n";
  for (size_t o = 0; o < operands.size(); ++o) {
    const Type type = operands[o];
    text += fmt::format("  .reg {} %{};\n  mad.wide.u32 %at, %i, {}, %p{};", RegisterOf(type), kNames[o],
                        BytesOf(type), kNames[o]);
    if (type == Type::kPred) {
      text += fmt::format(" ld.global.u8 %h0, [%at]; setp.ne.u16 %{}, %h0, 0;\n", kNames[o]);
    } else {
      text += fmt::format(" ld.global{} %{}, [%at];\n", AccessOf(type), kNames[o]);
    }
    kernel.inputs.push_back(Packed(rows[o], BytesOf(type)));
  }
  text += fmt::format("  .reg {} %d;\n  {{ {} }}\n", RegisterOf(result), code);
  text += fmt::format("  mad.wide.u32 %at, %i, {}, %pd;", BytesOf(result));
  text += result == Type::kPred ? " selp.u16 %h0, 1, 0, %d; st.global.u8 [%at], %h0;\n"
                                : fmt::format(" st.global{} [%at], %d;\n", AccessOf(result));
  text += "out:\n  ret;\n}\n";

  kernel.output.resize(count * BytesOf(result));
  kernel.check = [form = *this, rows, count](std::span<const std::byte> output) -> std::string {
    size_t wrong = 0;
    std::string sentence;
    const unsigned size = BytesOf(form.result);
    for (size_t i = 0; i < count; ++i) {
      Word got = 0, row[4] = {}, expected = 0;
      std::memcpy(&got, output.data() + i * size, size);
      for (size_t o = 0; o < form.operands.size(); ++o) row[o] = rows[o][i];
      Real exact = 0;
      bool right;
      if (form.exact) {
        exact = form.exact(row);
        right = form.Within(got, exact);
      } else {
        expected = form.together ? form.together(i, rows) : form.reference(row);
        right = form.Right(got, expected);
      }
      if (right) continue;
      if (++wrong > 3) continue;
      sentence += "\n    ";
      for (size_t o = 0; o < form.operands.size(); ++o)
        sentence += fmt::format("{}={} ", kNames[o], Shown(form.operands[o], row[o]));
      sentence += fmt::format("gave {}, expected {}", Shown(form.result, got),
                              form.exact ? fmt::format("about {:.12g}", static_cast<double>(exact))
                                         : Shown(form.result, expected));
      if (form.together) sentence += fmt::format(" (row {})", i);
    }
    if (!wrong) return {};
    return fmt::format("{} of {} rows wrong:{}", wrong, count, sentence);
  };
  return kernel;
}

Form& Family::Begin(const std::string& code) {
  forms_.push_back(std::make_unique<Form>());
  Form& form = *forms_.back();
  form.code = code;
  form.name = code.substr(0, code.find(' '));
  form.Target(target_).Version(version_);
  return form;
}

Kernel& Family::AddKernel(std::string name) {
  kernels_.push_back(std::make_unique<Kernel>());
  kernels_.back()->name = std::move(name);
  kernels_.back()->target = target_;
  kernels_.back()->version = version_;
  return *kernels_.back();
}

std::vector<Kernel> Family::Kernels() const {
  std::vector<Kernel> all;
  for (const auto& form : forms_) all.push_back(form->Lower());
  for (const auto& kernel : kernels_) all.push_back(*kernel);
  return all;
}

std::string DifferenceOf(std::span<const std::byte> got, std::span<const std::byte> expected,
                         size_t element) {
  if (got.size() != expected.size())
    return fmt::format("the kernel was given {} bytes of output, and {} were expected", got.size(),
                       expected.size());
  std::string sentence;
  size_t wrong = 0;
  for (size_t i = 0; i < got.size(); i += element) {
    if (!std::memcmp(got.data() + i, expected.data() + i, element)) continue;
    if (++wrong > 4) continue;
    Word g = 0, e = 0;
    std::memcpy(&g, got.data() + i, std::min<size_t>(element, 8));
    std::memcpy(&e, expected.data() + i, std::min<size_t>(element, 8));
    sentence += fmt::format("\n    [{}] gave {:#x}, expected {:#x}", i / element, g, e);
  }
  return wrong ? fmt::format("{} of {} elements wrong:{}", wrong, got.size() / element, sentence) : "";
}

}  // namespace cuplex::corpus
