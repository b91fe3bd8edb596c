// Matrix instructions as the emitter sees them: which operands give and take which words of a lane. The
// stepped code (matrices.cc) and code that holds whole warps both make their calls of RunMatrix from this.
#pragma once

#include <vector>

#include "base/result.h"
#include "ptx/module.h"
#include "softcuda/jit/matrix.h"

namespace llvm {
class Value;
}

namespace cuplex::softcuda {

class Emitter;

struct MatrixPlan {
  MatrixOp op;
  const ptx::Operand* address = nullptr;     // the first two words that it takes
  const ptx::Operand* stride = nullptr;      // of kLoad and kStore: the next; null where it is not written
  bool wide = false;                         // registers are of 64 bits: two words each
  std::vector<const ptx::Operand*> in, out;  // registers, in order
};

/// Refuses what PTX does not have, and what softcuda does not.
Result<MatrixPlan> PlanMatrix(Emitter& e, const ptx::Instruction& in);

/// This lane's words, op.WordsIn() of them, read; and op.WordsOut() of them written.
Result<std::vector<llvm::Value*>> ReadMatrixWords(Emitter& e, const ptx::Instruction& in,
                                                  const MatrixPlan& plan);
Status WriteMatrixWords(Emitter& e, const ptx::Instruction& in, const MatrixPlan& plan,
                        const std::vector<llvm::Value*>& words);

}  // namespace cuplex::softcuda
