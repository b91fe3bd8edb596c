// Texture fetches in plain C++, straight from the formulas of "Texture Fetching" in the CUDA C++ Programming
// Guide: one texel of a picture held as a function, one axis at a time, sums in long double. What the driver
// under test does is held against it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>

namespace cuplex::conformance {

/// A texture as its texels, four channels each, already as the read mode gives them.
struct Picture {
  std::array<int, 3> extent = {1, 1, 1};
  std::function<std::array<double, 4>(int x, int y, int z)> texel;
};

enum class Address { kWrap, kClamp, kMirror, kBorder };

struct Rules {
  int axes = 2;
  std::array<Address, 3> address = {Address::kClamp, Address::kClamp, Address::kClamp};
  bool normalized = false;
  bool linear = false;
  std::array<double, 4> border = {};
};

/// The coordinate after the address mode, in texels, before it is taken apart; false: the border.
inline bool Placed(long i, int n, Address mode, bool normalized, int* out) {
  if (!normalized && (mode == Address::kWrap || mode == Address::kMirror)) mode = Address::kClamp;
  if (mode == Address::kBorder) {
    *out = static_cast<int>(i);
    return i >= 0 && i < n;
  }
  if (mode == Address::kClamp) {
    *out = static_cast<int>(i < 0 ? 0 : i >= n ? n - 1 : i);
    return true;
  }
  // frac(x) where floor(x) is even; for mirroring 1 - frac(x) where it is odd.
  long turn = i / n;
  if (i < 0 && i % n) --turn;
  const long inside = i - turn * n;
  *out = static_cast<int>(mode == Address::kMirror && turn % 2 ? n - 1 - inside : inside);
  return true;
}

/// tex(x, y, z)
inline std::array<double, 4> Fetched(const Picture& picture, const Rules& rules, std::array<double, 3> at) {
  long first[3] = {0, 0, 0};
  long double weight[3] = {0, 0, 0};
  for (int a = 0; a < rules.axes; ++a) {
    long double x = at[a];
    if (rules.normalized) x *= picture.extent[a];
    if (!rules.linear) {
      first[a] = static_cast<long>(std::floor(x));
      continue;
    }
    // i = floor(xB), alpha = frac(xB), xB = x - 0.5; alpha in 9 bits, 8 of them behind the point.
    const long double xb = x - 0.5L;
    first[a] = static_cast<long>(std::floor(xb));
    weight[a] = std::floor((xb - std::floor(xb)) * 256 + 0.5L) / 256;
  }
  std::array<long double, 4> sum = {};
  for (int corner = 0; corner < (rules.linear ? 1 << rules.axes : 1); ++corner) {
    long double share = 1;
    bool inside = true;
    int index[3] = {0, 0, 0};
    for (int a = 0; a < rules.axes; ++a) {
      const int step = corner >> a & 1;
      share *= rules.linear ? (step ? weight[a] : 1 - weight[a]) : 1;
      inside &= Placed(first[a] + step, picture.extent[a], rules.address[a], rules.normalized, &index[a]);
    }
    if (share == 0) continue;
    const auto texel = inside ? picture.texel(index[0], index[1], index[2]) : rules.border;
    for (int c = 0; c < 4; ++c) sum[c] += share * static_cast<long double>(texel[c]);
  }
  std::array<double, 4> out;
  for (int c = 0; c < 4; ++c) out[c] = static_cast<double>(sum[c]);
  return out;
}

}  // namespace cuplex::conformance
