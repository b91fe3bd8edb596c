// Products of fragments in vectors of 512 bits, for processors with AVX-512.
//
// Accumulators stay in the order in which lanes have them: a vector holds a register's words of 16 lanes,
// which are 4 rows (one a group of four words) and every other one of 8 columns. So a step of k multiplies,
// for each vector, one element of each of the 4 rows, repeated along its group, with 4 elements of b, the
// same in all groups. Sums run by rising k, each rounded once, as matrix.h says.
#include "softcuda/jit/matrix_warp.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

// Lambdas and templates below must have the features of what calls them.
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,f16c"))), apply_to = function)

namespace cuplex::softcuda {
namespace {

using Floats = float __attribute__((vector_size(64)));
using Words = uint32_t __attribute__((vector_size(64)));
using Signed = int32_t __attribute__((vector_size(64)));
using Doubles = double __attribute__((vector_size(64)));
using Shorts = uint16_t __attribute__((vector_size(64)));
using FourFloats = float __attribute__((vector_size(16)));

#define CUPLEX_INLINE [[gnu::always_inline]] static inline

template <typename V, typename T>
CUPLEX_INLINE V Get512(const T* at) {
  V v;
  __builtin_memcpy(&v, __builtin_assume_aligned(at, 64), sizeof(V));
  return v;
}
template <typename V, typename T>
CUPLEX_INLINE void Put(T* at, V v) {
  __builtin_memcpy(__builtin_assume_aligned(at, 64), &v, sizeof(V));
}

/// Element t of each group of four, in all of its places.
template <unsigned t, typename V>
CUPLEX_INLINE V Repeat(V v) {
  constexpr int i = t;
  return __builtin_shufflevector(v, v, i, i, i, i, i + 4, i + 4, i + 4, i + 4, i + 8, i + 8, i + 8, i + 8,
                                 i + 12, i + 12, i + 12, i + 12);
}
/// Four elements in all groups.
template <typename V, typename T>
CUPLEX_INLINE V Spread(const T* four) {
  return reinterpret_cast<V>(_mm512_broadcast_f32x4(_mm_load_ps(reinterpret_cast<const float*>(four))));
}

/// Two vectors of 4 columns (of b) in groups of four, elements 2p and 2p + 1 of all 8 columns: those of even
/// columns, then those of odd ones.
template <unsigned p, typename V>
CUPLEX_INLINE V Turn(V low, V high) {
  constexpr int i = 2 * p;
  return __builtin_shufflevector(low, high, i, i + 8, i + 16, i + 24, i + 4, i + 12, i + 20, i + 28, i + 1,
                                 i + 9, i + 17, i + 25, i + 5, i + 13, i + 21, i + 29);
}

/// What was written there is read from there: the compiler would rather shuffle what it has in registers, and
/// shuffling is what there is least room for.
CUPLEX_INLINE void InMemory(const void* at) { asm volatile("" : : "r"(at) : "memory"); }

template <unsigned n, typename F>
CUPLEX_INLINE void Each(F&& body) {
  [&]<unsigned... i>(std::integer_sequence<unsigned, i...>) __attribute__((always_inline)) {
    (body(std::integral_constant<unsigned, i>()), ...);
  }(std::make_integer_sequence<unsigned, n>());
}

// ----------------------------------------------------------------------------------------------- elements

// How an element type lies in words, kParts of them in each, and its numbers as floats.

CUPLEX_INLINE Floats FloatsOfHalves(Words low_bits) {
  return reinterpret_cast<Floats>(
      _mm512_cvtph_ps(_mm512_cvtepi32_epi16(reinterpret_cast<__m512i>(low_bits))));
}

/// What the others share: a vector for each part of 16 words of a, and b turned part by part.
template <typename Element>
struct ByParts {
  template <unsigned part>
  CUPLEX_INLINE Floats Row(const uint32_t* words) {
    return Element::template Get<part>(Get512<Words>(words));
  }
  /// Element `step` of each of four rows, in all of its group.
  template <unsigned step>
  CUPLEX_INLINE Floats Factor(const Floats* rows) {
    return Repeat<step / Element::kParts>(rows[step % Element::kParts]);
  }
  /// 8 columns of a tile by k: in line Line(k) 4 even columns, then 4 odd ones.
  static constexpr unsigned Line(unsigned step) {
    return step % Element::kParts * 4 + step / Element::kParts;
  }
  CUPLEX_INLINE void TurnTile(const uint32_t* words, float (*lines)[8]) {
    auto low = Get512<Words>(words), high = Get512<Words>(words + 16);
    Each<Element::kParts>([&](auto part) __attribute__((always_inline)) {
      Floats x = Element::template Get<part>(low), y = Element::template Get<part>(high);
      Put(lines[4 * part], Turn<0>(x, y));
      Put(lines[4 * part + 2], Turn<1>(x, y));
    });
  }
};

struct Half {
  static constexpr MatrixType kType = MatrixType::kF16;
  static constexpr unsigned kParts = 2;
  // Halves are best converted eight words at a time, straight from memory. Of a, vector 0 is the first four
  // elements of each row, vector 1 the others.
  CUPLEX_INLINE Floats Convert(const void* halves) {
    return reinterpret_cast<Floats>(_mm512_cvtph_ps(_mm256_load_si256(static_cast<const __m256i*>(halves))));
  }
  template <unsigned part>
  CUPLEX_INLINE Floats Row(const uint32_t* words) {
    constexpr int i = 4 * part;
    return __builtin_shufflevector(Convert(words), Convert(words + 8), i, i + 1, i + 2, i + 3, i + 8, i + 9,
                                   i + 10, i + 11, i + 16, i + 17, i + 18, i + 19, i + 24, i + 25, i + 26,
                                   i + 27);
  }
  template <unsigned step>
  CUPLEX_INLINE Floats Factor(const Floats* rows) {
    return Repeat<step % 4>(rows[step / 4]);
  }
  static constexpr unsigned Line(unsigned step) { return step; }
  CUPLEX_INLINE void TurnTile(const uint32_t* words, float (*lines)[8]) {
    auto low = Get512<Shorts>(words), high = Get512<Shorts>(words + 16);
    alignas(64) uint16_t turned[8][8];
    Each<2>([&](auto four) __attribute__((always_inline)) {
      [&]<unsigned... i>(std::integer_sequence<unsigned, i...>) __attribute__((always_inline)) {
        Put(turned[4 * four],
            __builtin_shufflevector(low, high, (i % 4 * 16 + i / 4 % 2 * 8 + i / 8 + 4 * four)...));
      }(std::make_integer_sequence<unsigned, 32>());
    });
    InMemory(turned);
    for (unsigned k = 0; k < 8; k += 2) Put(lines[k], Convert(turned[k]));
  }
  template <unsigned part>
  CUPLEX_INLINE Floats Get(Words w) {
    return FloatsOfHalves(w >> 16 * part);
  }
};
struct Brain : ByParts<Brain> {
  static constexpr MatrixType kType = MatrixType::kBf16;
  static constexpr unsigned kParts = 2;
  template <unsigned part>
  CUPLEX_INLINE Floats Get(Words w) {
    return reinterpret_cast<Floats>(part ? w & 0xffff0000 : w << 16);
  }
};
struct Tf32 : ByParts<Tf32> {
  static constexpr MatrixType kType = MatrixType::kTf32;
  static constexpr unsigned kParts = 1;
  template <unsigned>
  CUPLEX_INLINE Floats Get(Words w) {
    return reinterpret_cast<Floats>(w & 0xffffe000);
  }
};
struct E5m2 : ByParts<E5m2> {
  static constexpr MatrixType kType = MatrixType::kE5m2;
  static constexpr unsigned kParts = 4;
  template <unsigned part>
  CUPLEX_INLINE Floats Get(Words w) {
    return FloatsOfHalves((w >> 8 * part & 0xff) << 8);
  }
};
struct E4m3 : ByParts<E4m3> {
  static constexpr MatrixType kType = MatrixType::kE4m3;
  static constexpr unsigned kParts = 4;
  template <unsigned part>
  CUPLEX_INLINE Floats Get(Words w) {
    // The bits of a half whose exponent is less by 8.
    Words byte = w >> 8 * part & 0xff;
    Floats f = FloatsOfHalves((byte & 0x80) << 8 | (byte & 0x7f) << 7) * 0x1p8f;
    Words nan = reinterpret_cast<Words>((byte & 0x7f) == 0x7f) & 0x7fffffff;
    return reinterpret_cast<Floats>(reinterpret_cast<Words>(f) | nan);
  }
};

// ----------------------------------------------------------------------------------------------- products

/// The vectors of an accumulator, by half of m, low or high 16 lanes, eighth of n, even or odd columns.
template <typename V, unsigned halves, unsigned strips>
struct Sums {
  V at[halves][2][strips][2];
};

/// Where, in words, a fragment of c or d has the 16 lanes `q` of register `i` of a pair.
CUPLEX_INLINE unsigned PlaceOf(unsigned halves, unsigned half, unsigned q, unsigned strip, unsigned i) {
  return (2 * (strip * halves + half) + i) * 32 + 16 * q;
}

template <typename Sum>
CUPLEX_INLINE void LoadHalves(Sum& sum, const uint32_t* c, unsigned halves, unsigned strips) {
  for (unsigned strip = 0; strip < strips; ++strip) {
    for (unsigned half = 0; half < halves; ++half) {
      for (unsigned q = 0; q < 2; ++q) {
        auto w = Get512<Words>(c + (strip * halves + half) * 32 + 16 * q);
        sum.at[half][q][strip][0] = Half::Get<0>(w);
        sum.at[half][q][strip][1] = Half::Get<1>(w);
      }
    }
  }
}

CUPLEX_INLINE Words HalvesOf(Floats f) {
  Words h = reinterpret_cast<Words>(_mm512_cvtepu16_epi32(
      _mm512_cvtps_ph(reinterpret_cast<__m512>(f), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)));
  Words nan = reinterpret_cast<Words>(f != f);
  return (h & ~nan) | (nan & 0x7fff);
}

template <typename A, typename B, unsigned m, unsigned n, unsigned k, bool half_c, bool half_d>
void MultiplyFloats(uint64_t, const void* fragment_a, const void* fragment_b, const void* fragment_c,
                    void* fragment_d) {
  constexpr unsigned halves = m / 8, strips = n / 8;
  constexpr unsigned tile_a = 4 * A::kParts, tile_b = 4 * B::kParts;
  static_assert(tile_a == tile_b && k % tile_a == 0);
  constexpr unsigned tiles = k / tile_a, parts = A::kParts;
  const auto* a = static_cast<const uint32_t*>(fragment_a);
  const auto* b = static_cast<const uint32_t*>(fragment_b);
  const auto* c = static_cast<const uint32_t*>(fragment_c);
  auto* d = static_cast<uint32_t*>(fragment_d);

  alignas(64) float turned[tiles][strips][tile_b][8];
  for (unsigned strip = 0; strip < strips; ++strip) {
    for (unsigned tile = 0; tile < tiles; ++tile) {
      B::TurnTile(b + (strip * tiles + tile) * 32, turned[tile][strip]);
    }
  }
  InMemory(turned);
  Sums<Floats, halves, strips> sum;
  if constexpr (half_c) {
    LoadHalves(sum, c, halves, strips);
  } else {
    for (unsigned strip = 0; strip < strips; ++strip) {
      for (unsigned half = 0; half < halves; ++half) {
        for (unsigned q = 0; q < 2; ++q) {
          for (unsigned i = 0; i < 2; ++i) {
            sum.at[half][q][strip][i] = Get512<Floats>(c + PlaceOf(halves, half, q, strip, i));
          }
        }
      }
    }
  }
  // Unrolled by hand: whether the sums stay in registers hangs on it.
  Each<tiles>([&](auto tile) __attribute__((always_inline)) {
    Floats rows[halves][2][parts];
    Each<halves * 2>([&](auto at) __attribute__((always_inline)) {
      const uint32_t* from = a + (tile * halves + at / 2) * 32 + at % 2 * 16;
      Each<parts>([&](auto part) __attribute__((always_inline)) {
        rows[at / 2][at % 2][part] = A::template Row<part>(from);
      });
    });
    Each<tile_a>([&](auto step) __attribute__((always_inline)) {
      Floats columns[strips][2];
      Each<strips * 2>([&](auto at) __attribute__((always_inline)) {
        columns[at / 2][at % 2] = Spread<Floats>(turned[tile][at / 2][B::Line(step)] + at % 2 * 4);
      });
      Each<halves * 2>([&](auto at) __attribute__((always_inline)) {
        Floats factor = A::template Factor<step>(rows[at / 2][at % 2]);
        Each<strips * 2>([&](auto of) __attribute__((always_inline)) {
          Floats& to = sum.at[at / 2][at % 2][of / 2][of % 2];
          to = __builtin_elementwise_fma(factor, columns[of / 2][of % 2], to);
        });
      });
    });
  });
  for (unsigned strip = 0; strip < strips; ++strip) {
    for (unsigned half = 0; half < halves; ++half) {
      for (unsigned q = 0; q < 2; ++q) {
        const Floats* pair = sum.at[half][q][strip];
        if constexpr (half_d) {
          Put(d + (strip * halves + half) * 32 + 16 * q, HalvesOf(pair[0]) | HalvesOf(pair[1]) << 16);
        } else {
          Put(d + PlaceOf(halves, half, q, strip, 0), pair[0]);
          Put(d + PlaceOf(halves, half, q, strip, 1), pair[1]);
        }
      }
    }
  }
}

CUPLEX_INLINE Signed Dot(Signed sum, Words bytes, Words signed_bytes) {
  return reinterpret_cast<Signed>(_mm512_dpbusd_epi32(reinterpret_cast<__m512i>(sum),
                                                      reinterpret_cast<__m512i>(bytes),
                                                      reinterpret_cast<__m512i>(signed_bytes)));
}

/// Bytes. The processor multiplies unsigned ones with signed ones; where both are the same, a's top bits are
/// turned over, which adds 128 to a signed byte and takes it from an unsigned one, and the sum of b's bytes
/// makes up for it.
template <bool signed_a, bool signed_b, unsigned m, unsigned n, unsigned k>
void MultiplyBytes(uint64_t op, const void* fragment_a, const void* fragment_b, const void* fragment_c,
                   void* fragment_d) {
  constexpr unsigned halves = m / 8, strips = n / 8, tiles = k / 16;
  constexpr bool same = signed_a == signed_b;
  const auto* a = static_cast<const uint32_t*>(fragment_a);
  const auto* b = static_cast<const uint32_t*>(fragment_b);
  const auto* c = static_cast<const int32_t*>(fragment_c);
  auto* d = static_cast<int32_t*>(fragment_d);
  constexpr unsigned kind_and_types = 4 + 4 * 4 + 2 + 6 + 6 + 9;  // MatrixOp::Pack
  bool satfinite = op >> (kind_and_types + 4) & 1;

  alignas(64) uint32_t turned[tiles][strips][4][8];
  Signed correction[strips][2] = {};
  for (unsigned strip = 0; strip < strips; ++strip) {
    for (unsigned tile = 0; tile < tiles; ++tile) {
      const uint32_t* from = b + (strip * tiles + tile) * 32;
      auto low = Get512<Words>(from), high = Get512<Words>(from + 16);
      Put(turned[tile][strip][0], Turn<0>(low, high));
      Put(turned[tile][strip][2], Turn<1>(low, high));
    }
    InMemory(turned);
    if constexpr (same) {
      Words ones = Words{} + 0x01010101;
      for (unsigned tile = 0; tile < tiles; ++tile) {
        for (unsigned t = 0; t < 4; ++t) {
          for (unsigned i = 0; i < 2; ++i) {
            auto column = Spread<Words>(turned[tile][strip][t] + 4 * i);
            Signed& to = correction[strip][i];
            to = signed_b ? Dot(to, ones, column) : Dot(to, column, ones);
          }
        }
      }
      for (Signed& x : correction[strip]) x = signed_b ? -(x << 7) : x << 7;
    }
  }
  Sums<Signed, halves, strips> sum;
  for (unsigned strip = 0; strip < strips; ++strip) {
    for (unsigned half = 0; half < halves; ++half) {
      for (unsigned q = 0; q < 2; ++q) {
        for (unsigned i = 0; i < 2; ++i) sum.at[half][q][strip][i] = correction[strip][i];
      }
    }
  }
  Each<tiles>([&](auto tile) __attribute__((always_inline)) {
    Each<4>([&](auto t) __attribute__((always_inline)) {
      Each<halves * 2>([&](auto at) __attribute__((always_inline)) {
        auto w = Get512<Words>(a + (tile * halves + at / 2) * 32 + at % 2 * 16);
        if (same) w ^= 0x80808080;
        Words factor = Repeat<t>(w);
        Each<strips * 2>([&](auto of) __attribute__((always_inline)) {
          auto column = Spread<Words>(turned[tile][of / 2][t] + of % 2 * 4);
          Signed& to = sum.at[at / 2][at % 2][of / 2][of % 2];
          to = signed_b ? Dot(to, factor, column) : Dot(to, column, factor);
        });
      });
    });
  });
  for (unsigned strip = 0; strip < strips; ++strip) {
    for (unsigned half = 0; half < halves; ++half) {
      for (unsigned q = 0; q < 2; ++q) {
        for (unsigned i = 0; i < 2; ++i) {
          unsigned place = PlaceOf(halves, half, q, strip, i);
          Signed before = Get512<Signed>(c + place), made = sum.at[half][q][strip][i];
          // As unsigned numbers: they wrap.
          Signed after =
              satfinite
                  ? __builtin_elementwise_add_sat(before, made)
                  : reinterpret_cast<Signed>(reinterpret_cast<Words>(before) + reinterpret_cast<Words>(made));
          Put(d + place, after);
        }
      }
    }
  }
}

// A register of doubles takes four vectors, of 2 rows each.

template <unsigned t>
CUPLEX_INLINE Doubles RepeatDouble(Doubles v) {
  constexpr int i = t;
  return __builtin_shufflevector(v, v, i, i, i, i, i + 4, i + 4, i + 4, i + 4);
}

template <unsigned m, unsigned k>
void MultiplyDoubles(uint64_t, const void* fragment_a, const void* fragment_b, const void* fragment_c,
                     void* fragment_d) {
  constexpr unsigned halves = m / 8, tiles = k / 4;
  const auto* a = static_cast<const double*>(fragment_a);
  const auto* b = static_cast<const double*>(fragment_b);
  const auto* c = static_cast<const double*>(fragment_c);
  auto* d = static_cast<double*>(fragment_d);
  for (unsigned half = 0; half < halves; ++half) {
    Doubles sum[2][4];
    for (unsigned i = 0; i < 2; ++i) {
      for (unsigned q = 0; q < 4; ++q) sum[i][q] = Get512<Doubles>(c + ((2 * half + i) * 4 + q) * 8);
    }
    for (unsigned tile = 0; tile < tiles; ++tile) {
      // Columns 0, 1 | 2, 3 | ...: of each two vectors the even columns, then the odd ones, by k.
      Doubles x[4];
      for (unsigned q = 0; q < 4; ++q) x[q] = Get512<Doubles>(b + (tile * 4 + q) * 8);
      Doubles k02[2] = {__builtin_shufflevector(x[0], x[1], 0, 8, 2, 10, 4, 12, 6, 14),
                        __builtin_shufflevector(x[2], x[3], 0, 8, 2, 10, 4, 12, 6, 14)};
      Doubles k13[2] = {__builtin_shufflevector(x[0], x[1], 1, 9, 3, 11, 5, 13, 7, 15),
                        __builtin_shufflevector(x[2], x[3], 1, 9, 3, 11, 5, 13, 7, 15)};
      Doubles rows[4];
      for (unsigned q = 0; q < 4; ++q) rows[q] = Get512<Doubles>(a + ((tile * halves + half) * 4 + q) * 8);
      Each<4>([&](auto t) __attribute__((always_inline)) {
        const Doubles* from = t % 2 ? k13 : k02;
        constexpr int e = t / 2 * 2, o = e + 4;
        Doubles even =
            __builtin_shufflevector(from[0], from[1], e, e + 1, e + 8, e + 9, e, e + 1, e + 8, e + 9);
        Doubles odd =
            __builtin_shufflevector(from[0], from[1], o, o + 1, o + 8, o + 9, o, o + 1, o + 8, o + 9);
        for (unsigned q = 0; q < 4; ++q) {
          Doubles factor = RepeatDouble<t>(rows[q]);
          sum[0][q] = __builtin_elementwise_fma(factor, even, sum[0][q]);
          sum[1][q] = __builtin_elementwise_fma(factor, odd, sum[1][q]);
        }
      });
    }
    for (unsigned i = 0; i < 2; ++i) {
      for (unsigned q = 0; q < 4; ++q) Put(d + ((2 * half + i) * 4 + q) * 8, sum[i][q]);
    }
  }
}

}  // namespace

#pragma clang attribute pop

namespace {

bool HasVectors() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("fma") &&
                          __builtin_cpu_supports("f16c");
  return has;
}

constexpr MatrixOp OpOf(MatrixType a, MatrixType b, MatrixType c, MatrixType d, uint8_t m, uint8_t n,
                        uint16_t k) {
  MatrixOp op;
  op.a = a;
  op.b = b;
  op.c = c;
  op.d = d;
  op.m = m;
  op.n = n;
  op.k = k;
  return op;
}

class Table {
 public:
  Table() {
    FloatShapes<Half, true>();
    FloatShapes<Brain, false>();
    Floats<Tf32, Tf32, 16, 16, 8>();
    Floats<Tf32, Tf32, 16, 8, 8>();
    Floats<Tf32, Tf32, 16, 8, 4>();
    SmallFloats<E4m3, E4m3>();
    SmallFloats<E4m3, E5m2>();
    SmallFloats<E5m2, E4m3>();
    SmallFloats<E5m2, E5m2>();
    ByteShapes<false, false>();
    ByteShapes<false, true>();
    ByteShapes<true, false>();
    ByteShapes<true, true>();
    Doubles<8, 4>();
    Doubles<16, 4>();
    Doubles<16, 8>();
    Doubles<16, 16>();
  }
  std::span<const VectorMultiply> rows() const { return rows_; }

 private:
  void Add(const MatrixOp& op, MatrixMultiply function) {
    names_.push_back(std::make_unique<std::string>(fmt::format("cuplex_matrix_multiply_{:x}", op.Pack())));
    rows_.push_back({names_.back()->c_str(), op, function, &HasVectors});
  }
  template <typename A, typename B, unsigned m, unsigned n, unsigned k, bool half_c = false,
            bool half_d = false>
  void Floats() {
    auto type = [](bool half) { return half ? MatrixType::kF16 : MatrixType::kF32; };
    Add(OpOf(A::kType, B::kType, type(half_c), type(half_d), m, n, k),
        &MultiplyFloats<A, B, m, n, k, half_c, half_d>);
  }
  template <typename A, bool halves, unsigned m, unsigned n, unsigned k>
  void Sums() {
    Floats<A, A, m, n, k>();
    if constexpr (halves) {
      Floats<A, A, m, n, k, true, true>();
      Floats<A, A, m, n, k, true, false>();
      Floats<A, A, m, n, k, false, true>();
    }
  }
  template <typename A, bool halves>
  void FloatShapes() {
    Sums<A, halves, 16, 16, 16>();
    Sums<A, halves, 32, 8, 16>();
    Sums<A, halves, 8, 32, 16>();
    Sums<A, halves, 16, 8, 16>();
    Sums<A, halves, 16, 8, 8>();
  }
  template <typename A, typename B>
  void SmallFloats() {
    Floats<A, B, 16, 8, 32>();
    Floats<A, B, 16, 8, 32, true, true>();
  }
  template <bool signed_a, bool signed_b, unsigned m, unsigned n, unsigned k>
  void Bytes() {
    auto type = [](bool is_signed) { return is_signed ? MatrixType::kS8 : MatrixType::kU8; };
    Add(OpOf(type(signed_a), type(signed_b), MatrixType::kS32, MatrixType::kS32, m, n, k),
        &MultiplyBytes<signed_a, signed_b, m, n, k>);
  }
  template <bool signed_a, bool signed_b>
  void ByteShapes() {
    Bytes<signed_a, signed_b, 16, 16, 16>();
    Bytes<signed_a, signed_b, 32, 8, 16>();
    Bytes<signed_a, signed_b, 8, 32, 16>();
    Bytes<signed_a, signed_b, 8, 8, 16>();
    Bytes<signed_a, signed_b, 16, 8, 16>();
    Bytes<signed_a, signed_b, 16, 8, 32>();
  }
  template <unsigned m, unsigned k>
  void Doubles() {
    constexpr MatrixType f64 = MatrixType::kF64;
    Add(OpOf(f64, f64, f64, f64, m, 8, k), &MultiplyDoubles<m, k>);
  }

  std::vector<std::unique_ptr<std::string>> names_;
  std::vector<VectorMultiply> rows_;
};

}  // namespace

std::span<const VectorMultiply> VectorMultiplies() {
  static const Table table;
  return table.rows();
}

}  // namespace cuplex::softcuda

#else

namespace cuplex::softcuda {
std::span<const VectorMultiply> VectorMultiplies() { return {}; }
}  // namespace cuplex::softcuda

#endif
