// Matrix instructions in lockstep: the functions that the code of a warp calls for them (matrix.h says what
// they compute), and which of them is the one for an instruction.
//
// A fragment lies in memory register by register, each in 32 lanes of 32 bits, or of 64 where the op is one
// of f64; it is aligned to 64 bytes. What a function returns may lie where the accumulator lay that it was
// given.
#pragma once

#include <cstdint>
#include <span>

#include "softcuda/jit/lane.h"
#include "softcuda/jit/matrix.h"
#include "softcuda/jit/runtime.h"

namespace cuplex::softcuda {

/// d = a * b + c, of kMultiply and kVoltaMultiply.
using MatrixMultiply = void (*)(uint64_t op, const void* a, const void* b, const void* c, void* d);

/// The function for the op, by name. Its speed differs, and nothing else.
const char* SymbolOfMultiply(const MatrixOp& op);

/// Whether the fragment is rows of 16 bytes in memory: it may be loaded with "cuplex_matrix_load_rows".
bool LoadsRows(const MatrixOp& op);
/// What that function wants to know, in 32 bits.
uint32_t RowsOf(const MatrixOp& op);

/// Functions by the names that widening uses (lockstep/widen_matrix.cc).
std::span<const RuntimeSymbol> MatrixSymbols();

/// A function that multiplies with wide vectors, for ops of this form.
struct VectorMultiply {
  const char* symbol;
  MatrixOp op;  // but for satfinite
  MatrixMultiply function;
  bool (*runs)();  // whether this processor has what it needs
};
/// matrix_vector.cc
std::span<const VectorMultiply> VectorMultiplies();

}  // namespace cuplex::softcuda
