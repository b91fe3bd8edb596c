// Matrix instructions of a warp (wmma, mma, ldmatrix, stmatrix, movmatrix): what one of them is, and running
// it for the 32 lanes at once. Called by running kernels, on a thread that is Running; nothing here owns
// anything.
//
// Registers come and go as rows of 32 words, one word a lane; a 64-bit register is two rows, the low half
// first. Fragments of mma are laid out as PTX documents them. Those of wmma, which PTX leaves open, are the
// same tiles: with g = lane / 4, t = lane % 4, and 128 / (bits of an element) columns to a tile,
//
//     a    register [tile of k * (m/8) + half of m]: row 8 * half + g, elements of k from tile start + 4
//     bytes * t b    register [eighth of n * tiles of k + tile]: column 8 * eighth + g, elements of k
//     likewise c, d register pair [eighth of n * (m/8) + half of m]: row 8 * half + g, columns 8 * eighth +
//     2t, + 1
//
// and registers that PTX gives a fragment beyond these hold the same elements again.
//
// Arithmetic: products of f16, bf16, tf32 and 8-bit floats are exact where they stay in the range of f32, and
// are added to the accumulator in f32, one after another by rising k, each sum rounded to nearest even; an
// f16 result is rounded once, at the end. f64 is a chain of fused multiply-adds by rising k. Integers are
// exact, and wrap or clamp at the end.
#pragma once

#include <cstdint>

namespace cuplex::softcuda {

struct Running;

enum class MatrixKind : uint8_t {
  kMultiply,
  kVoltaMultiply,
  kLoad,
  kStore,
  kLoadTiles,
  kStoreTiles,
  kTranspose
};

enum class MatrixType : uint8_t {
  kF16,
  kBf16,
  kTf32,
  kF32,
  kF64,
  kS8,
  kU8,
  kS4,
  kU4,
  kB1,
  kE4m3,
  kE5m2,
  kS32
};

unsigned BitsOf(MatrixType type);

enum class MatrixPart : uint8_t { kA, kB, kC };

/// One matrix instruction, but for its operands. Travels as 64 bits.
struct MatrixOp {
  MatrixKind kind = MatrixKind::kMultiply;
  MatrixType a = MatrixType::kF16, b = MatrixType::kF16;  // a: also what is loaded or stored
  MatrixType c = MatrixType::kF32, d = MatrixType::kF32;
  MatrixPart part = MatrixPart::kA;  // of kLoad and kStore
  uint8_t m = 0, n = 0;
  uint16_t k = 0;
  bool a_column = false, b_column = true;  // kVoltaMultiply: how the factors lie in registers
  bool column = false;                     // kLoad, kStore: memory is column-major
  bool shared = false;                     // addresses are offsets in .shared
  bool satfinite = false;
  bool transposed = false;  // kLoadTiles, kStoreTiles
  bool exclusive = false;   // 1-bit factors meet by xor, else by and
  uint8_t rounding = 0;     // of f64: 0 to nearest even, 1 to zero, 2 down, 3 up
  uint8_t count = 1;        // kLoadTiles, kStoreTiles: of 8x8 tiles
  uint8_t registers = 0;    // kLoad, kStore: that the fragment has

  uint64_t Pack() const;
  static MatrixOp Unpack(uint64_t bits);
  bool operator==(const MatrixOp&) const = default;

  // Registers that the operands need, of 32 bits, or 64 where the type is f64.
  unsigned RegistersA() const;
  unsigned RegistersB() const;
  unsigned RegistersC(MatrixType type) const;

  /// Rows of words that it takes and gives, in the order of the operands: of kMultiply a, b, c and d; of
  /// kLoad and kStore the address (two rows), the stride in elements (0: as dense as the shape), then the
  /// fragment; of the tiles the address, then the tiles.
  unsigned WordsIn() const;
  unsigned WordsOut() const;
};

/// The most of either.
inline constexpr unsigned kMatrixWords = 32;

/// Runs it for a whole warp. An address out of bounds leaves by RaiseFault.
void RunMatrix(const MatrixOp& op, Running& running, const uint32_t (*in)[32], uint32_t (*out)[32]);

}  // namespace cuplex::softcuda
