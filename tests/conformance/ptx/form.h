// The conformance corpus: instruction forms of PTX as small kernels, with operands and with what PTX's
// document says comes out of them. Nothing here runs a kernel, and nothing here knows softcuda.
//
// A Form is one line: PTX that computes %d from %a, %b, %c, %e, and a C++ function that computes the same. A
// Kernel is the PTX text made of it, or one written by hand, with input bytes and a check of the output
// bytes.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cuplex::corpus {

using Word = uint64_t;     // the bits of one operand
using Real = long double;  // wide enough to be exact against f32, and within a hair of it against f64
using Bytes = std::vector<std::byte>;

/// What a kernel is given as kernel arguments %pa %pb %pc %pe (inputs), %pd (output) and %pn (threads).
struct Kernel {
  std::string name;           // the form it shows
  std::string declarations;   // in module scope, before the entry; $ stands for the kernel's own name
  std::string text;           // the entry; $ as above
  int target = 75;            // the sm_ it needs
  std::string target_suffix;  // "a" where it needs that
  std::string version = "8.0";
  std::array<unsigned, 3> grid = {1, 1, 1}, block = {32, 1, 1};
  unsigned dynamic_shared = 0;
  unsigned threads = 0;  // %pn
  std::vector<Bytes> inputs;
  Bytes output;  // as it is before the launch
  /// Empty where the output is right, else a sentence.
  std::function<std::string(std::span<const std::byte> output)> check;
  /// Bytes for parameters of the kernel's own, put after the six usual ones at `extra_offset`.
  Bytes extra;
  size_t extra_offset = 48;
};

enum class Type : uint8_t {
  kPred,
  kU8,
  kS8,
  kU16,
  kS16,
  kU32,
  kS32,
  kU64,
  kS64,
  kF32,
  kF64,
  kF16,
  kBf16,
  kF16x2,
  kBf16x2
};
unsigned BytesOf(Type type);

// Types of reference functions that C++ does not have.
struct F16 {
  uint16_t bits;
};
struct Bf16 {
  uint16_t bits;
};
struct F16x2 {
  F16 lo, hi;
};
struct Bf16x2 {
  Bf16 lo, hi;
};

template <typename T>
struct TypeOf;
template <>
struct TypeOf<bool> {
  static constexpr Type value = Type::kPred;
};
template <>
struct TypeOf<uint8_t> {
  static constexpr Type value = Type::kU8;
};
template <>
struct TypeOf<int8_t> {
  static constexpr Type value = Type::kS8;
};
template <>
struct TypeOf<uint16_t> {
  static constexpr Type value = Type::kU16;
};
template <>
struct TypeOf<int16_t> {
  static constexpr Type value = Type::kS16;
};
template <>
struct TypeOf<uint32_t> {
  static constexpr Type value = Type::kU32;
};
template <>
struct TypeOf<int32_t> {
  static constexpr Type value = Type::kS32;
};
template <>
struct TypeOf<uint64_t> {
  static constexpr Type value = Type::kU64;
};
template <>
struct TypeOf<int64_t> {
  static constexpr Type value = Type::kS64;
};
template <>
struct TypeOf<float> {
  static constexpr Type value = Type::kF32;
};
template <>
struct TypeOf<double> {
  static constexpr Type value = Type::kF64;
};
template <>
struct TypeOf<F16> {
  static constexpr Type value = Type::kF16;
};
template <>
struct TypeOf<Bf16> {
  static constexpr Type value = Type::kBf16;
};
template <>
struct TypeOf<F16x2> {
  static constexpr Type value = Type::kF16x2;
};
template <>
struct TypeOf<Bf16x2> {
  static constexpr Type value = Type::kBf16x2;
};

template <typename T>
T FromWord(Word word) {
  T value;
  std::memcpy(&value, &word, sizeof(T));
  return value;
}
template <typename T>
Word ToWord(T value) {
  Word word = 0;
  std::memcpy(&word, &value, sizeof(T));
  return word;
}

/// How far a result may lie from the exact one: any one of these is enough.
struct Bound {
  double ulps = 0;  // of the exact value in the result's format
  double absolute = 0;
  double relative = 0;
  bool flushed = false;  // a result below the smallest normal number may also be a zero
};

/// All threads' operands: columns of equal length.
using Columns = std::vector<std::vector<Word>>;

class Form {
 public:
  std::string name, code;
  std::string declarations;
  Type result = Type::kU32;
  std::vector<Type> operands;
  std::function<Word(const Word* row)> reference;               // a thread by itself,
  std::function<Word(size_t thread, const Columns&)> together;  // or with the others,
  std::function<Real(const Word* row)> exact;                   // or within `bound` of this
  Bound bound;

  // The rest of the line. Each answers the form.
  Form& Named(std::string text) { return name = std::move(text), *this; }
  Form& Target(int sm, std::string suffix = "") { return target_ = sm, suffix_ = std::move(suffix), *this; }
  Form& Version(std::string version) { return version_ = std::move(version), *this; }
  /// Values to take for an operand instead of those of its type.
  Form& Operand(size_t index, std::vector<Word> values);
  /// How many rows of random values there are besides.
  Form& Random(size_t count) { return random_ = count, *this; }
  /// Operand `index` runs over every value of its 8 or 16 bits; the others over theirs.
  Form& Every(size_t index = 0);
  /// The sign of a zero result is open.
  Form& AnyZero(bool open = true) { return any_zero_ = open, *this; }
  /// NaNs are compared by their bits too.
  Form& ExactNan() { return exact_nan_ = true, *this; }
  /// Rows for which PTX leaves the result open are left out.
  Form& Unless(std::function<bool(const Word* row)> open) { return open_ = std::move(open), *this; }
  Form& Block(unsigned threads) { return block_ = threads, *this; }
  Form& Declare(std::string text) { return declarations = std::move(text), *this; }

  Kernel Lower() const;
  Columns Rows() const;
  unsigned threads_per_block() const { return block_; }

 private:
  bool Right(Word got, Word expected) const;
  bool Within(Word got, Real exact) const;

  int target_ = 75;
  std::string suffix_, version_ = "8.0";
  std::vector<std::vector<Word>> lists_;
  bool any_zero_ = false, exact_nan_ = false;
  size_t random_ = 200;
  unsigned block_ = 128;
  std::function<bool(const Word*)> open_;
};

template <typename F>
struct Signature : Signature<decltype(&F::operator())> {};
template <typename C, typename R, typename... A>
struct Signature<R (C::*)(A...) const> {
  using Result = R;
  static std::vector<Type> Types() { return {TypeOf<A>::value...}; }
  template <typename F>
  static R Call(const F& f, const Word* row) {
    return Apply(f, row, std::index_sequence_for<A...>());
  }
  template <typename F, size_t... I>
  static R Apply(const F& f, [[maybe_unused]] const Word* row, std::index_sequence<I...>) {
    return f(FromWord<A>(row[I])...);
  }
};

/// Forms and kernels of one subject.
class Family {
 public:
  explicit Family(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }

  /// `reference` takes the operands and gives the result, in C++ types that say the types of the registers.
  template <typename F>
  Form& Add(const std::string& code, F reference) {
    using S = Signature<F>;
    Form& form = Begin(code);
    form.result = TypeOf<typename S::Result>::value;
    form.operands = S::Types();
    form.reference = [reference](const Word* row) { return ToWord(S::Call(reference, row)); };
    return form;
  }

  /// `exact` takes the operands and gives the exact value, which the result of type D must come close to.
  template <typename D, typename F>
  Form& Approximate(const std::string& code, Bound bound, F exact) {
    using S = Signature<F>;
    Form& form = Begin(code);
    form.result = TypeOf<D>::value;
    form.operands = S::Types();
    form.exact = [exact](const Word* row) -> Real { return S::Call(exact, row); };
    form.bound = bound;
    return form;
  }

  /// For instructions that let threads see each other: `together` is given the thread's number and everyone's
  /// operands (A...), and the block's threads are consecutive rows.
  template <typename D, typename... A>
  Form& Together(const std::string& code, std::function<D(size_t, const Columns&)> together) {
    Form& form = Begin(code);
    form.result = TypeOf<D>::value;
    form.operands = {TypeOf<A>::value...};
    form.together = [together](size_t i, const Columns& c) { return ToWord(together(i, c)); };
    return form;
  }

  /// A kernel written by hand. Its text begins with what Entry() gives.
  Kernel& AddKernel(std::string name);

  /// What applies to all forms added from here on.
  void Target(int sm, std::string version) { target_ = sm, version_ = std::move(version); }

  /// Everything as kernels, in order.
  std::vector<Kernel> Kernels() const;

 private:
  Form& Begin(const std::string& code);

  std::string name_;
  int target_ = 75;
  std::string version_ = "8.0";
  std::vector<std::unique_ptr<Form>> forms_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

/// The head of every entry, up to and with the pointers in %pa %pb %pc %pe %pd, the thread's number in the
/// grid in %i, scratch registers %p %q, %h<8>, %t<8>, %u<8>, %at. `extra` are further parameters, beginning
/// with a comma.
std::string Entry(const std::string& extra = "");

/// What hand-written kernels compare with.
std::string DifferenceOf(std::span<const std::byte> got, std::span<const std::byte> expected, size_t element);
template <typename T>
std::function<std::string(std::span<const std::byte>)> Expect(std::vector<T> expected) {
  return [expected = std::move(expected)](std::span<const std::byte> got) {
    return DifferenceOf(got, std::as_bytes(std::span(expected)), sizeof(T));
  };
}
template <typename T>
Bytes BytesOf(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// Deterministic noise.
uint64_t Mixed(uint64_t seed);

/// Values worth trying, by type: the ends of its range, where things change sign, round or overflow.
const std::vector<Word>& EdgesOf(Type type);
/// A random value: uniform bits, or of moderate size, or near an edge.
Word RandomOf(Type type, uint64_t seed);

}  // namespace cuplex::corpus
