#include "softcuda/jit/matrix_warp.h"

#include <cstring>
#include <vector>

#include "softcuda/jit/reach.h"
#include "softcuda/jit/running.h"

namespace cuplex::softcuda {
namespace {

using Row = uint32_t[32];

bool IsWide(const MatrixOp& op) { return op.a == MatrixType::kF64; }

/// A fragment's registers as rows of words, as matrix.h has them, and back.
void Split(const MatrixOp& op, const void* fragment, unsigned words, Row* rows) {
  if (!IsWide(op)) {
    std::memcpy(rows, fragment, words * sizeof(Row));
    return;
  }
  const auto* from = static_cast<const uint64_t*>(fragment);
  for (unsigned r = 0; r < words / 2; ++r, from += 32) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      rows[2 * r][lane] = static_cast<uint32_t>(from[lane]);
      rows[2 * r + 1][lane] = static_cast<uint32_t>(from[lane] >> 32);
    }
  }
}
void Join(const MatrixOp& op, const Row* rows, unsigned words, void* fragment) {
  if (!IsWide(op)) {
    std::memcpy(fragment, rows, words * sizeof(Row));
    return;
  }
  auto* to = static_cast<uint64_t*>(fragment);
  for (unsigned r = 0; r < words / 2; ++r, to += 32) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      to[lane] = static_cast<uint64_t>(rows[2 * r + 1][lane]) << 32 | rows[2 * r][lane];
    }
  }
}

void Multiply(uint64_t bits, const void* a, const void* b, const void* c, void* d) {
  MatrixOp op = MatrixOp::Unpack(bits);
  alignas(64) Row in[kMatrixWords];
  alignas(64) Row out[kMatrixWords];
  unsigned words = IsWide(op) ? 2 : 1;
  unsigned of_a = op.RegistersA() * words, of_b = op.RegistersB() * words;
  Split(op, a, of_a, in);
  Split(op, b, of_b, in + of_a);
  Split(op, c, op.RegistersC(op.c) * words, in + of_a + of_b);
  RunMatrix(op, *CurrentRunning(), in, out);
  Join(op, out, op.WordsOut(), d);
}

void PutAddress(Row* in, unsigned lane, uint64_t address) {
  in[0][lane] = static_cast<uint32_t>(address);
  in[1][lane] = static_cast<uint32_t>(address >> 32);
}

void Load(uint64_t bits, uint64_t address, uint32_t stride, void* fragment) {
  MatrixOp op = MatrixOp::Unpack(bits);
  alignas(64) Row in[3];
  alignas(64) Row out[kMatrixWords];
  PutAddress(in, 0, address);
  in[2][0] = stride;
  RunMatrix(op, *CurrentRunning(), in, out);
  Join(op, out, op.WordsOut(), fragment);
}

void Store(uint64_t bits, uint64_t address, uint32_t stride, const void* fragment) {
  MatrixOp op = MatrixOp::Unpack(bits);
  alignas(64) Row in[kMatrixWords];
  PutAddress(in, 0, address);
  in[2][0] = stride;
  Split(op, fragment, op.WordsIn() - 3, in + 3);
  RunMatrix(op, *CurrentRunning(), in, nullptr);
}

void LoadTiles(uint64_t bits, const uint64_t* addresses, void* fragment) {
  MatrixOp op = MatrixOp::Unpack(bits);
  alignas(64) Row in[2];
  for (unsigned lane = 0; lane < 8u * op.count; ++lane) PutAddress(in, lane, addresses[lane]);
  RunMatrix(op, *CurrentRunning(), in, static_cast<Row*>(fragment));
}

void StoreTiles(uint64_t bits, const uint64_t* addresses, const void* fragment) {
  MatrixOp op = MatrixOp::Unpack(bits);
  alignas(64) Row in[2 + 4];
  for (unsigned lane = 0; lane < 8u * op.count; ++lane) PutAddress(in, lane, addresses[lane]);
  std::memcpy(in + 2, fragment, op.count * sizeof(Row));
  RunMatrix(op, *CurrentRunning(), in, nullptr);
}

void Transpose(uint64_t bits, const void* from, void* to) {
  RunMatrix(MatrixOp::Unpack(bits), *CurrentRunning(), static_cast<const Row*>(from), static_cast<Row*>(to));
}

// Of RowsOf, from the lowest bit: eighths of the rows 8, tiles of k 8, log2 of the alignment 4, whether a
// tile comes after all eighths, whether the address is one in .shared, whether registers are of 64 bits.
constexpr unsigned kTilesAt = 8, kAlignmentAt = 16, kTilesLastAt = 20, kSharedAt = 21, kWideAt = 22;

template <unsigned bytes>
void CopyRows(uint32_t rows, const std::byte* at, uint64_t line_bytes, std::byte* out) {
  unsigned eighths = rows & 255, tiles = rows >> kTilesAt & 255;
  bool tiles_last = rows >> kTilesLastAt & 1;
  for (unsigned eighth = 0; eighth < eighths; ++eighth) {
    for (unsigned tile = 0; tile < tiles; ++tile) {
      const std::byte* from = at + 8 * eighth * line_bytes + bytes * tile;
      std::byte* to = out + (tiles_last ? tile * eighths + eighth : eighth * tiles + tile) * 8 * bytes;
      for (unsigned g = 0; g < 8; ++g) std::memcpy(to + bytes * g, from + g * line_bytes, bytes);
    }
  }
}

/// A factor's fragment whose rows run along k in memory, `line_bytes` apart: a row and tile is what four
/// lanes have, 16 bytes or 32.
void LoadRows(uint32_t rows, uint64_t address, uint64_t line_bytes, void* fragment) {
  unsigned eighths = rows & 255, tiles = rows >> kTilesAt & 255;
  bool wide = rows >> kWideAt & 1;
  uint64_t bytes = (8 * eighths - 1) * line_bytes + (wide ? 32 : 16) * tiles;
  const std::byte* at = Reach(*CurrentRunning(), rows >> kSharedAt & 1, address, bytes,
                              uint64_t{1} << (rows >> kAlignmentAt & 15));
  auto* out = static_cast<std::byte*>(fragment);
  wide ? CopyRows<32>(rows, at, line_bytes, out) : CopyRows<16>(rows, at, line_bytes, out);
}

template <typename F>
void* Of(F* f) {
  return reinterpret_cast<void*>(f);
}

constexpr const char* kMultiply = "cuplex_matrix_multiply";

}  // namespace

const char* SymbolOfMultiply(const MatrixOp& op) {
  MatrixOp form = op;
  form.satfinite = false;
  for (const VectorMultiply& v : VectorMultiplies()) {
    if (v.op == form && v.runs()) return v.symbol;
  }
  return kMultiply;
}

bool LoadsRows(const MatrixOp& op) {
  return op.kind == MatrixKind::kLoad && op.part != MatrixPart::kC &&
         op.column != (op.part == MatrixPart::kA);
}

uint32_t RowsOf(const MatrixOp& op) {
  unsigned bits = BitsOf(op.a), bytes = bits < 8 ? 4 : bits / 8;
  unsigned eighths = (op.part == MatrixPart::kA ? op.m : op.n) / 8u,
           tiles = op.k * bits / (IsWide(op) ? 256 : 128);
  return eighths | tiles << kTilesAt | static_cast<unsigned>(__builtin_ctz(bytes)) << kAlignmentAt |
         static_cast<unsigned>(op.part == MatrixPart::kA) << kTilesLastAt |
         static_cast<unsigned>(op.shared) << kSharedAt | static_cast<unsigned>(IsWide(op)) << kWideAt;
}

std::span<const RuntimeSymbol> MatrixSymbols() {
  static const std::vector<RuntimeSymbol> symbols = [] {
    std::vector<RuntimeSymbol> all = {
        {kMultiply, Of(&Multiply)},
        {"cuplex_matrix_load", Of(&Load)},
        {"cuplex_matrix_store", Of(&Store)},
        {"cuplex_matrix_load_rows", Of(&LoadRows)},
        {"cuplex_matrix_load_tiles", Of(&LoadTiles)},
        {"cuplex_matrix_store_tiles", Of(&StoreTiles)},
        {"cuplex_matrix_transpose", Of(&Transpose)},
    };
    for (const VectorMultiply& v : VectorMultiplies())
      all.push_back({v.symbol, reinterpret_cast<void*>(v.function)});
    return all;
  }();
  return symbols;
}

}  // namespace cuplex::softcuda
