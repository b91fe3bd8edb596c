// Constant: the constant expressions of PTX, as C has them: integers of 64 bits with + - * / % << >> & | ^ ~
// ! comparisons, && || ?: and casts (.s64) (.u64); floats with a sign alone. One thread at a time.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "ptx/cursor.h"

namespace cuplex::ptx {

struct Constant {
  enum class Kind : uint8_t { kInteger, kFloat32, kFloat64 };
  Kind kind = Kind::kInteger;
  bool is_unsigned = false;  // .u64 rather than .s64: decides / % >> and comparisons
  uint64_t bits = 0;
};

/// Whether a constant expression can begin here.
bool AtConstant(const Cursor& cursor);

Result<Constant> ParseConstant(Cursor& cursor);

/// Like ParseConstant, but takes nothing that binds looser than * / %: a term of `[%rd1 + 4*2 - 8]`.
Result<Constant> ParseConstantTerm(Cursor& cursor);

/// `{sign term}`: what may follow a base in an address; the sum, two's complement.
Result<uint64_t> ParseOffset(Cursor& cursor);

/// An integer constant that is not negative and at most `most`.
Result<uint64_t> ParseCount(Cursor& cursor, uint64_t most, const char* what);

}  // namespace cuplex::ptx
