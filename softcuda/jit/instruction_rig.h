// InstructionRig: runs PTX instructions on lists of operands and gives back what they computed. For tests.
#pragma once

#include "softcuda/jit/test_rig.h"

namespace cuplex::softcuda {

class InstructionRig : public TestRig {
 protected:
  /// PTX bits type of a C++ type.
  template <typename T>
  static std::string Bits() {
    return ".b" + std::to_string(sizeof(T) * 8);
  }
  template <typename T>
  static std::string RegisterType() {
    if (std::is_same_v<T, float>) return ".f32";
    if (std::is_same_v<T, double>) return ".f64";
    return Bits<T>();
  }

  /// Runs `code` once for each i with %a = a[i], %b = b[i], %c = c[i], and collects %d. Lists may be left
  /// empty. %p, %q are predicates, %t<4> 32-bit and %u<4> 64-bit registers.
  template <typename D, typename A, typename B = A, typename C = B>
  std::vector<D> Each(const std::string& code, const std::vector<A>& a, const std::vector<B>& b = {},
                      const std::vector<C>& c = {}) {
    std::string text =
        ".visible .entry run(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd)\n{\n";
    text += ".reg .pred %p, %q; .reg .b32 %i, %t<4>; .reg .b64 %at, %u<4>, %base;\n";
    text += ".reg " + RegisterType<A>() + " %a; .reg " + RegisterType<B>() + " %b; .reg " +
            RegisterType<C>() + " %c; .reg " + RegisterType<D>() + " %d;\n";
    text += "mov.u32 %i, %tid.x;\n";
    auto load = [&](const char* reg, const char* param, size_t size, const std::string& bits) {
      text += fmt::format(
          "ld.param.u64 %base, [{}]; mul.wide.u32 %at, %i, {}; add.u64 %at, %at, %base; ld.global{} {}, "
          "[%at];\n",
          param, size, bits, reg);
    };
    load("%a", "pa", sizeof(A), Bits<A>());
    if (!b.empty()) load("%b", "pb", sizeof(B), Bits<B>());
    if (!c.empty()) load("%c", "pc", sizeof(C), Bits<C>());
    text += code + "\n";
    text += fmt::format(
        "ld.param.u64 %base, [pd]; mul.wide.u32 %at, %i, {}; add.u64 %at, %at, %base; st.global{} [%at], %d; "
        "ret;\n}}\n",
        sizeof(D), Bits<D>());
    auto program = Load(text);
    if (!program) return {};
    D* d = Allocate<D>(a.size());
    Run(*program, "run", {{1, 1, 1}, {static_cast<uint32_t>(a.size()), 1, 1}}, Upload(a), Upload(b),
        Upload(c), d);
    return {d, d + a.size()};
  }

  /// All pairs of one list: first and second members.
  template <typename T>
  static std::pair<std::vector<T>, std::vector<T>> Pairs(const std::vector<T>& values) {
    std::vector<T> a, b;
    for (T x : values) {
      for (T y : values) a.push_back(x), b.push_back(y);
    }
    return {a, b};
  }
};

}  // namespace cuplex::softcuda
