#include "softcuda/jit/matrix.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>

#include "softcuda/jit/half.h"
#include "softcuda/jit/reach.h"
#include "softcuda/jit/running.h"

namespace cuplex::softcuda {
namespace {

using Row = uint32_t[32];

constexpr unsigned kMostK = 64;   // of what is multiplied as floats
constexpr unsigned kMostMN = 32;  // of either

// --------------------------------------------------------------------------------------------- elements

constexpr std::array<float, 256> TableOfE4m3() {
  std::array<float, 256> out = {};
  for (unsigned i = 0; i < 256; ++i) {
    unsigned exponent = i >> 3 & 15, fraction = i & 7;
    float f = exponent ? 1.0f + static_cast<float>(fraction) / 8 : static_cast<float>(fraction) / 8;
    for (unsigned e = std::max(exponent, 1u); e < 7; ++e) f /= 2;
    for (unsigned e = exponent; e > 7; --e) f *= 2;
    if ((i & 0x7f) == 0x7f) f = std::bit_cast<float>(0x7fffffffu);
    out[i] = i & 0x80 ? -f : f;
  }
  return out;
}
constexpr std::array<float, 256> kE4m3 = TableOfE4m3();

// How a type lies in words, 128 bits a row of a tile, and what one of its elements is.
struct Half {
  static constexpr unsigned kTile = 8;
  static float Get(const uint32_t* words, unsigned i) {
    return FloatFromHalf(static_cast<uint16_t>(words[i / 2] >> 16 * (i % 2)));
  }
};
struct Brain {
  static constexpr unsigned kTile = 8;
  static float Get(const uint32_t* words, unsigned i) {
    return std::bit_cast<float>(i % 2 ? words[i / 2] & 0xffff0000 : words[i / 2] << 16);
  }
};
struct Tf32 {
  static constexpr unsigned kTile = 4;
  static float Get(const uint32_t* words, unsigned i) { return std::bit_cast<float>(words[i] & 0xffffe000); }
};
template <bool is_signed>
struct Byte {
  static constexpr unsigned kTile = 16;
  static float Get(const uint32_t* words, unsigned i) {
    auto byte = static_cast<uint8_t>(words[i / 4] >> 8 * (i % 4));
    return is_signed ? static_cast<float>(static_cast<int8_t>(byte)) : static_cast<float>(byte);
  }
};
template <bool is_signed>
struct Nibble {
  static constexpr unsigned kTile = 32;
  static float Get(const uint32_t* words, unsigned i) {
    auto v = static_cast<int32_t>(words[i / 8] << (28 - 4 * (i % 8)));
    return is_signed ? static_cast<float>(v >> 28) : static_cast<float>(static_cast<uint32_t>(v) >> 28);
  }
};
struct E4m3 {
  static constexpr unsigned kTile = 16;
  static float Get(const uint32_t* words, unsigned i) { return kE4m3[words[i / 4] >> 8 * (i % 4) & 255]; }
};
struct E5m2 {
  static constexpr unsigned kTile = 16;
  static float Get(const uint32_t* words, unsigned i) {
    return FloatFromHalf(static_cast<uint16_t>((words[i / 4] >> 8 * (i % 4) & 255) << 8));
  }
};

template <typename F>
[[gnu::always_inline]] inline void WithElement(MatrixType type, F&& body) {
  switch (type) {
    case MatrixType::kF16:
      return body(Half());
    case MatrixType::kBf16:
      return body(Brain());
    case MatrixType::kTf32:
      return body(Tf32());
    case MatrixType::kS8:
      return body(Byte<true>());
    case MatrixType::kU8:
      return body(Byte<false>());
    case MatrixType::kS4:
      return body(Nibble<true>());
    case MatrixType::kU4:
      return body(Nibble<false>());
    case MatrixType::kE4m3:
      return body(E4m3());
    case MatrixType::kE5m2:
      return body(E5m2());
    default:
      return;
  }
}

bool IsInteger(MatrixType type) {
  return type == MatrixType::kS8 || type == MatrixType::kU8 || type == MatrixType::kS4 ||
         type == MatrixType::kU4 || type == MatrixType::kB1;
}

/// Elements of k in one row of a tile.
unsigned TileOf(MatrixType type) { return type == MatrixType::kF64 ? 4 : 128 / BitsOf(type); }

// ---------------------------------------------------------------------------------------------- products

using Floats = float __attribute__((vector_size(32)));
using Doubles = double __attribute__((vector_size(64)));

/// The operands of a product as numbers: a by rows, b and c in strips of eight columns.
template <typename T>
struct Dense {
  T a[kMostMN * kMostK];         // [row][k]
  T b[kMostMN / 8][kMostK][8];   // [eighth of n][k][column]
  T c[kMostMN / 8][kMostMN][8];  // [eighth of n][row][column]
};

/// c += a * b, eight rows and eight columns at a time, k by k.
template <typename T, typename V>
[[gnu::always_inline]] inline void MultiplyAdd(Dense<T>& x, unsigned m, unsigned n, unsigned k) {
  for (unsigned strip = 0; strip < n / 8; ++strip) {
    for (unsigned top = 0; top < m; top += 8) {
      V sum[8];
      for (unsigned i = 0; i < 8; ++i) std::memcpy(&sum[i], x.c[strip][top + i], sizeof(V));
      for (unsigned at = 0; at < k; ++at) {
        V row;
        std::memcpy(&row, x.b[strip][at], sizeof(V));
        for (unsigned i = 0; i < 8; ++i) {
          V factor = x.a[(top + i) * k + at] - V{};
          sum[i] = __builtin_elementwise_fma(factor, row, sum[i]);
        }
      }
      for (unsigned i = 0; i < 8; ++i) std::memcpy(x.c[strip][top + i], &sum[i], sizeof(V));
    }
  }
}

template <typename Element>
[[gnu::always_inline]] inline void UnpackA(Dense<float>& x, const MatrixOp& op, const Row* in) {
  constexpr unsigned kTile = Element::kTile;
  for (unsigned tile = 0; tile < op.k / kTile; ++tile) {
    for (unsigned half = 0; half < op.m / 8u; ++half, ++in) {
      for (unsigned g = 0; g < 8; ++g) {
        float* to = x.a + (half * 8 + g) * op.k + tile * kTile;
        for (unsigned i = 0; i < kTile; ++i) to[i] = Element::Get(*in + 4 * g, i);
      }
    }
  }
}

template <typename Element>
[[gnu::always_inline]] inline void UnpackB(Dense<float>& x, const MatrixOp& op, const Row* in) {
  constexpr unsigned kTile = Element::kTile;
  for (unsigned strip = 0; strip < op.n / 8u; ++strip) {
    for (unsigned tile = 0; tile < op.k / kTile; ++tile, ++in) {
      float columns[8][kTile];
      for (unsigned g = 0; g < 8; ++g) {
        for (unsigned i = 0; i < kTile; ++i) columns[g][i] = Element::Get(*in + 4 * g, i);
      }
      for (unsigned i = 0; i < kTile; ++i) {
        for (unsigned g = 0; g < 8; ++g) x.b[strip][tile * kTile + i][g] = columns[g][i];
      }
    }
  }
}

/// Visits the accumulator's rows of words: strip, first row, and the row of words or the first of two.
template <typename F>
[[gnu::always_inline]] inline void EachPair(const MatrixOp& op, F&& visit) {
  unsigned pair = 0;
  for (unsigned strip = 0; strip < op.n / 8u; ++strip) {
    for (unsigned half = 0; half < op.m / 8u; ++half, ++pair) visit(strip, 8 * half, pair);
  }
}

/// An integer accumulator plus the sum of products, which is exact as a float.
uint32_t AddInteger(uint32_t c, float sum, bool satfinite) {
  auto exact = static_cast<int64_t>(static_cast<int32_t>(c)) + static_cast<int32_t>(sum);
  if (satfinite) exact = std::clamp<int64_t>(exact, INT32_MIN, INT32_MAX);
  return static_cast<uint32_t>(exact);
}

[[gnu::always_inline]] inline void MultiplyFloats(const MatrixOp& op, const Row* in, Row* out) {
  Dense<float> x;
  const Row* a = in;
  const Row* b = a + op.RegistersA();
  const Row* c = b + op.RegistersB();
  WithElement(op.a,
              [&](auto element) __attribute__((always_inline)) { UnpackA<decltype(element)>(x, op, a); });
  WithElement(op.b,
              [&](auto element) __attribute__((always_inline)) { UnpackB<decltype(element)>(x, op, b); });
  bool integer = IsInteger(op.a);
  EachPair(op, [&](unsigned strip, unsigned top, unsigned pair) __attribute__((always_inline)) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      float* to = x.c[strip][top + lane / 4] + lane % 4 * 2;
      if (integer) {
        to[0] = to[1] = 0;
      } else if (op.c == MatrixType::kF16) {
        to[0] = FloatFromHalf(static_cast<uint16_t>(c[pair][lane]));
        to[1] = FloatFromHalf(static_cast<uint16_t>(c[pair][lane] >> 16));
      } else {
        to[0] = std::bit_cast<float>(c[2 * pair][lane]);
        to[1] = std::bit_cast<float>(c[2 * pair + 1][lane]);
      }
    }
  });
  MultiplyAdd<float, Floats>(x, op.m, op.n, op.k);
  EachPair(op, [&](unsigned strip, unsigned top, unsigned pair) __attribute__((always_inline)) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      const float* from = x.c[strip][top + lane / 4] + lane % 4 * 2;
      if (integer) {
        out[2 * pair][lane] = AddInteger(c[2 * pair][lane], from[0], op.satfinite);
        out[2 * pair + 1][lane] = AddInteger(c[2 * pair + 1][lane], from[1], op.satfinite);
      } else if (op.d == MatrixType::kF16) {
        out[pair][lane] = HalfFromFloat(from[0]) | static_cast<uint32_t>(HalfFromFloat(from[1])) << 16;
      } else {
        out[2 * pair][lane] = std::bit_cast<uint32_t>(from[0]);
        out[2 * pair + 1][lane] = std::bit_cast<uint32_t>(from[1]);
      }
    }
  });
}

double DoubleAt(const Row* in, unsigned lane) {
  return std::bit_cast<double>(static_cast<uint64_t>(in[1][lane]) << 32 | in[0][lane]);
}

/// As MultiplyAdd, in another rounding than the processor's usual one.
void MultiplyAddDirected(Dense<double>& x, unsigned m, unsigned n, unsigned k, unsigned rounding) {
#pragma STDC FENV_ACCESS ON
  int before = fegetround();
  fesetround(rounding == 1 ? FE_TOWARDZERO : rounding == 2 ? FE_DOWNWARD : FE_UPWARD);
  for (unsigned strip = 0; strip < n / 8; ++strip) {
    for (unsigned row = 0; row < m; ++row) {
      for (unsigned g = 0; g < 8; ++g) {
        double sum = x.c[strip][row][g];
        for (unsigned at = 0; at < k; ++at) sum = std::fma(x.a[row * k + at], x.b[strip][at][g], sum);
        x.c[strip][row][g] = sum;
      }
    }
  }
  fesetround(before);
}

[[gnu::always_inline]] inline void MultiplyDoubles(const MatrixOp& op, const Row* in, Row* out) {
  Dense<double> x;
  const Row* a = in;
  const Row* b = a + 2 * op.RegistersA();
  const Row* c = b + 2 * op.RegistersB();
  for (unsigned tile = 0; tile < op.k / 4u; ++tile) {
    for (unsigned half = 0; half < op.m / 8u; ++half, a += 2) {
      for (unsigned lane = 0; lane < 32; ++lane) {
        x.a[(half * 8 + lane / 4) * op.k + tile * 4 + lane % 4] = DoubleAt(a, lane);
      }
    }
  }
  for (unsigned strip = 0; strip < op.n / 8u; ++strip) {
    for (unsigned tile = 0; tile < op.k / 4u; ++tile, b += 2) {
      for (unsigned lane = 0; lane < 32; ++lane)
        x.b[strip][tile * 4 + lane % 4][lane / 4] = DoubleAt(b, lane);
    }
  }
  EachPair(op, [&](unsigned strip, unsigned top, unsigned pair) __attribute__((always_inline)) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned i = 0; i < 2; ++i) {
        x.c[strip][top + lane / 4][lane % 4 * 2 + i] = DoubleAt(c + 4 * pair + 2 * i, lane);
      }
    }
  });
  if (op.rounding) {
    MultiplyAddDirected(x, op.m, op.n, op.k, op.rounding);
  } else {
    MultiplyAdd<double, Doubles>(x, op.m, op.n, op.k);
  }
  EachPair(op, [&](unsigned strip, unsigned top, unsigned pair) __attribute__((always_inline)) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned i = 0; i < 2; ++i) {
        auto bits = std::bit_cast<uint64_t>(x.c[strip][top + lane / 4][lane % 4 * 2 + i]);
        out[4 * pair + 2 * i][lane] = static_cast<uint32_t>(bits);
        out[4 * pair + 2 * i + 1][lane] = static_cast<uint32_t>(bits >> 32);
      }
    }
  });
}

void MultiplyBits(const MatrixOp& op, const Row* in, Row* out) {
  const Row* a = in;
  const Row* b = a + op.RegistersA();
  const Row* c = b + op.RegistersB();
  unsigned halves = op.m / 8u, tiles = op.k / 128u;
  EachPair(op, [&](unsigned strip, unsigned top, unsigned pair) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned i = 0; i < 2; ++i) {
        unsigned row = lane / 4, column = lane % 4 * 2 + i;
        uint32_t sum = 0;
        for (unsigned word = 0; word < 4 * tiles; ++word) {
          uint32_t left = a[word / 4 * halves + top / 8][4 * row + word % 4];
          uint32_t right = b[strip * tiles + word / 4][4 * column + word % 4];
          sum += static_cast<uint32_t>(std::popcount(op.exclusive ? left ^ right : left & right));
        }
        out[2 * pair + i][lane] = AddInteger(c[2 * pair + i][lane], static_cast<float>(sum), op.satfinite);
      }
    }
  });
}

/// mma.m8n8k4 on halves: four products at once, each of 8 lanes, q..q+3 and q+16..q+19.
void MultiplyVolta(const MatrixOp& op, const Row* in, Row* out) {
  const Row* a = in;
  const Row* b = a + 2;
  const Row* c = b + 2;
  auto half = [](const Row* rows, unsigned i, unsigned lane) {
    return FloatFromHalf(static_cast<uint16_t>(rows[i / 2][lane] >> 16 * (i % 2)));
  };
  // Element i of a lane's accumulator, as PTX has it for halves and for floats.
  auto place = [](MatrixType type, unsigned lane, unsigned i) {
    unsigned low = lane & 3, high = lane >= 16 ? 4 : 0;
    if (type == MatrixType::kF16) return std::pair(low + high, i);
    return std::pair((low & 1) + (i & 2) + high, (i & 4) + (low & 2) + (i & 1));
  };
  for (unsigned quad = 0; quad < 16; quad += 4) {
    float x[8][4] = {}, y[4][8] = {}, sum[8][8] = {};
    for (unsigned l = 0; l < 8; ++l) {
      unsigned lane = quad + l % 4 + (l < 4 ? 0 : 16), high = l < 4 ? 0 : 4;
      for (unsigned i = 0; i < 4; ++i) {
        float f = half(a, i, lane), g = half(b, i, lane);
        op.a_column ? x[i + high][l % 4] = f : x[l % 4 + high][i] = f;
        op.b_column ? y[i][l % 4 + high] = g : y[l % 4][i + high] = g;
      }
      for (unsigned i = 0; i < 8; ++i) {
        auto [row, column] = place(op.c, lane, i);
        sum[row][column] = op.c == MatrixType::kF16 ? half(c, i, lane) : std::bit_cast<float>(c[i][lane]);
      }
    }
    for (unsigned row = 0; row < 8; ++row) {
      for (unsigned column = 0; column < 8; ++column) {
        for (unsigned k = 0; k < 4; ++k)
          sum[row][column] = std::fma(x[row][k], y[k][column], sum[row][column]);
      }
    }
    for (unsigned l = 0; l < 8; ++l) {
      unsigned lane = quad + l % 4 + (l < 4 ? 0 : 16);
      for (unsigned i = 0; i < 8; ++i) {
        auto [row, column] = place(op.d, lane, i);
        if (op.d != MatrixType::kF16) {
          out[i][lane] = std::bit_cast<uint32_t>(sum[row][column]);
        } else if (i % 2 == 0) {
          out[i / 2][lane] = HalfFromFloat(sum[row][column]);
        } else {
          out[i / 2][lane] |= static_cast<uint32_t>(HalfFromFloat(sum[row][column])) << 16;
        }
      }
    }
  }
}

[[gnu::always_inline]] inline void MultiplyAny(const MatrixOp& op, const Row* in, Row* out) {
  if (op.a == MatrixType::kB1) {
    MultiplyBits(op, in, out);
  } else if (op.a == MatrixType::kF64) {
    MultiplyDoubles(op, in, out);
  } else {
    MultiplyFloats(op, in, out);
  }
}

void MultiplyPlain(const MatrixOp& op, const Row* in, Row* out) { MultiplyAny(op, in, out); }

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void MultiplyWide(const MatrixOp& op, const Row* in, Row* out) {
  MultiplyAny(op, in, out);
}
bool HasWide() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has;
}
#endif

void Multiply(const MatrixOp& op, const Row* in, Row* out) {
#if defined(__x86_64__)
  if (HasWide()) return MultiplyWide(op, in, out);
#endif
  MultiplyPlain(op, in, out);
}

// ------------------------------------------------------------------------------------------------ memory

uint64_t AddressIn(const Row* in, unsigned lane) {
  return static_cast<uint64_t>(in[1][lane]) << 32 | in[0][lane];
}

/// A matrix in memory: element (row, column) is at `at + line * line_bytes + place in the line`.
struct Area {
  std::byte* at = nullptr;
  uint64_t line_bytes = 0;
};

Area AreaOf(const MatrixOp& op, Running& running, const Row* in) {
  uint64_t rows = op.part == MatrixPart::kB ? op.k : op.m, columns = op.part == MatrixPart::kA ? op.k : op.n;
  uint64_t lines = op.column ? columns : rows, length = op.column ? rows : columns;
  uint64_t stride = in[2][0] ? in[2][0] : length, bits = BitsOf(op.a);
  Area area;
  area.line_bytes = stride * bits / 8;
  area.at = Reach(running, op.shared, AddressIn(in, 0), (lines - 1) * area.line_bytes + length * bits / 8,
                  bits < 8 ? 4 : bits / 8);
  return area;
}

/// Loads a factor's fragment: rows of 16 bytes where memory runs along k, elements where it does not.
void LoadFactor(const MatrixOp& op, const Area& area, Row* out) {
  bool first = op.part == MatrixPart::kA;
  unsigned size = op.a == MatrixType::kF64 ? 8 : 4, bits = BitsOf(op.a), tile_elements = TileOf(op.a);
  unsigned outer = (first ? op.m : op.n) / 8u, tiles = op.k / tile_elements, words = size / 4;
  bool along_k = op.column != first;
  for (unsigned r = 0; r < op.registers; ++r, out += words) {
    unsigned index = r % (outer * tiles);
    unsigned eighth = first ? index % outer : index / tiles, tile = first ? index / outer : index % tiles;
    for (unsigned lane = 0; lane < 32; ++lane) {
      unsigned line = 8 * eighth + lane / 4, unit = 4 * tile + lane % 4;
      if (along_k) {
        uint32_t raw[2];
        std::memcpy(raw, area.at + line * area.line_bytes + uint64_t{unit} * size, size);
        for (unsigned w = 0; w < words; ++w) out[w][lane] = raw[w];
        continue;
      }
      uint64_t value = 0;
      unsigned each = size * 8 / bits;
      for (unsigned i = 0; i < each; ++i) {
        uint64_t element = 0;
        std::memcpy(&element, area.at + (uint64_t{unit} * each + i) * area.line_bytes + line * bits / 8,
                    bits / 8);
        value |= element << i * bits;
      }
      for (unsigned w = 0; w < words; ++w) out[w][lane] = static_cast<uint32_t>(value >> 32 * w);
    }
  }
}

/// Visits the elements of an accumulator: where in memory, and which word and bit of a lane.
template <typename F>
void EachOfAccumulator(const MatrixOp& op, const Area& area, F&& visit) {
  unsigned size = BitsOf(op.a) / 8;
  EachPair(op, [&](unsigned strip, unsigned top, unsigned pair) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned i = 0; i < 2; ++i) {
        unsigned row = top + lane / 4, column = 8 * strip + lane % 4 * 2 + i;
        std::byte* at =
            area.at + (op.column ? column : row) * area.line_bytes + (op.column ? row : column) * size;
        unsigned bit = (2 * pair + i) * 8 * size;
        visit(at, size, lane, bit / 32, bit % 32);
      }
    }
  });
}

void LoadFragment(const MatrixOp& op, Running& running, const Row* in, Row* out) {
  Area area = AreaOf(op, running, in);
  if (op.part != MatrixPart::kC) return LoadFactor(op, area, out);
  EachOfAccumulator(op, area, [&](std::byte* at, unsigned size, unsigned lane, unsigned word, unsigned bit) {
    uint64_t v = 0;
    std::memcpy(&v, at, size);
    if (bit) {
      out[word][lane] |= static_cast<uint32_t>(v) << bit;
    } else {
      out[word][lane] = static_cast<uint32_t>(v);
      if (size == 8) out[word + 1][lane] = static_cast<uint32_t>(v >> 32);
    }
  });
}

void StoreFragment(const MatrixOp& op, Running& running, const Row* in) {
  Area area = AreaOf(op, running, in);
  const Row* from = in + 3;
  EachOfAccumulator(op, area, [&](std::byte* at, unsigned size, unsigned lane, unsigned word, unsigned bit) {
    uint64_t v = from[word][lane] >> bit;
    if (size == 8) v |= static_cast<uint64_t>(from[word + 1][lane]) << 32;
    std::memcpy(at, &v, size);
  });
}

/// Swaps rows and columns of an 8x8 tile of 16-bit elements, a row in four lanes.
void TransposeTile(const uint32_t* from, uint32_t* to) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    unsigned row = lane / 4, column = lane % 4 * 2;
    auto element = [&](unsigned r, unsigned c) { return from[4 * r + c / 2] >> 16 * (c % 2) & 0xffff; };
    to[lane] = element(column, row) | element(column + 1, row) << 16;
  }
}

void LoadTiles(const MatrixOp& op, Running& running, const Row* in, Row* out) {
  for (unsigned tile = 0; tile < op.count; ++tile) {
    uint32_t raw[32];
    for (unsigned g = 0; g < 8; ++g) {
      std::memcpy(raw + 4 * g, Reach(running, op.shared, AddressIn(in, 8 * tile + g), 16, 16), 16);
    }
    op.transposed ? TransposeTile(raw, out[tile]) : void(std::memcpy(out[tile], raw, sizeof(raw)));
  }
}

void StoreTiles(const MatrixOp& op, Running& running, const Row* in) {
  for (unsigned tile = 0; tile < op.count; ++tile) {
    uint32_t turned[32];
    const uint32_t* from = in[2 + tile];
    if (op.transposed) {
      TransposeTile(from, turned);
      from = turned;
    }
    for (unsigned g = 0; g < 8; ++g) {
      std::memcpy(Reach(running, op.shared, AddressIn(in, 8 * tile + g), 16, 16), from + 4 * g, 16);
    }
  }
}

}  // namespace

unsigned BitsOf(MatrixType type) {
  switch (type) {
    case MatrixType::kF64:
      return 64;
    case MatrixType::kTf32:
    case MatrixType::kF32:
    case MatrixType::kS32:
      return 32;
    case MatrixType::kF16:
    case MatrixType::kBf16:
      return 16;
    case MatrixType::kS4:
    case MatrixType::kU4:
      return 4;
    case MatrixType::kB1:
      return 1;
    default:
      return 8;
  }
}

// From the lowest bit: kind 4, a 4, b 4, c 4, d 4, part 2, m 6, n 6, k 9, eight flags, rounding 2, count 3,
// registers 4.
uint64_t MatrixOp::Pack() const {
  uint64_t bits = 0;
  unsigned at = 0;
  auto put = [&](uint64_t value, unsigned width) {
    bits |= value << at;
    at += width;
  };
  put(static_cast<uint64_t>(kind), 4);
  for (MatrixType type : {a, b, c, d}) put(static_cast<uint64_t>(type), 4);
  put(static_cast<uint64_t>(part), 2);
  put(m, 6);
  put(n, 6);
  put(k, 9);
  for (bool flag : {a_column, b_column, column, shared, satfinite, transposed, exclusive}) put(flag, 1);
  put(rounding, 2);
  put(count, 3);
  put(registers, 4);
  return bits;
}

MatrixOp MatrixOp::Unpack(uint64_t bits) {
  MatrixOp op;
  auto take = [&](unsigned width) {
    uint64_t value = bits & ((uint64_t{1} << width) - 1);
    bits >>= width;
    return value;
  };
  op.kind = static_cast<MatrixKind>(take(4));
  for (MatrixType* type : {&op.a, &op.b, &op.c, &op.d}) *type = static_cast<MatrixType>(take(4));
  op.part = static_cast<MatrixPart>(take(2));
  op.m = static_cast<uint8_t>(take(6));
  op.n = static_cast<uint8_t>(take(6));
  op.k = static_cast<uint16_t>(take(9));
  for (bool* flag :
       {&op.a_column, &op.b_column, &op.column, &op.shared, &op.satfinite, &op.transposed, &op.exclusive}) {
    *flag = take(1) != 0;
  }
  op.rounding = static_cast<uint8_t>(take(2));
  op.count = static_cast<uint8_t>(take(3));
  op.registers = static_cast<uint8_t>(take(4));
  return op;
}

unsigned MatrixOp::RegistersA() const {
  return kind == MatrixKind::kVoltaMultiply ? 2 : m / 8u * (k / TileOf(a));
}
unsigned MatrixOp::RegistersB() const {
  return kind == MatrixKind::kVoltaMultiply ? 2 : n / 8u * (k / TileOf(b));
}
unsigned MatrixOp::RegistersC(MatrixType type) const {
  if (kind == MatrixKind::kVoltaMultiply) return type == MatrixType::kF16 ? 4 : 8;
  return m / 8u * (n / 8u) * (type == MatrixType::kF16 ? 1 : 2);
}

unsigned MatrixOp::WordsIn() const {
  switch (kind) {
    case MatrixKind::kMultiply:
    case MatrixKind::kVoltaMultiply:
      return (RegistersA() + RegistersB() + RegistersC(c)) * (a == MatrixType::kF64 ? 2 : 1);
    case MatrixKind::kLoad:
      return 3;
    case MatrixKind::kStore:
      return 3 + registers * (a == MatrixType::kF64 ? 2u : 1u);
    case MatrixKind::kLoadTiles:
      return 2;
    case MatrixKind::kStoreTiles:
      return 2u + count;
    default:
      return 1;
  }
}

unsigned MatrixOp::WordsOut() const {
  switch (kind) {
    case MatrixKind::kMultiply:
    case MatrixKind::kVoltaMultiply:
      return RegistersC(d) * (d == MatrixType::kF64 ? 2 : 1);
    case MatrixKind::kLoad:
      return registers * (a == MatrixType::kF64 ? 2u : 1u);
    case MatrixKind::kLoadTiles:
      return count;
    case MatrixKind::kTranspose:
      return 1;
    default:
      return 0;
  }
}

void RunMatrix(const MatrixOp& op, Running& running, const Row* in, Row* out) {
  switch (op.kind) {
    case MatrixKind::kMultiply:
      return Multiply(op, in, out);
    case MatrixKind::kVoltaMultiply:
      return MultiplyVolta(op, in, out);
    case MatrixKind::kLoad:
      return LoadFragment(op, running, in, out);
    case MatrixKind::kStore:
      return StoreFragment(op, running, in);
    case MatrixKind::kLoadTiles:
      return LoadTiles(op, running, in, out);
    case MatrixKind::kStoreTiles:
      return StoreTiles(op, running, in);
    case MatrixKind::kTranspose:
      return TransposeTile(in[0], out[0]);
  }
}

}  // namespace cuplex::softcuda
