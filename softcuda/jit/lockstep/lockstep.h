// Lockstep: the code of a whole warp from the code of one thread: its lanes run side by side in vector
// registers, in step. See docs/ptx.md for what can run so and what cannot.
//
//   thread --(scalar passes)--> flow.h, shape.h --> widen.h --> suspension.h --> warp
//
// One thread at a time per LLVM context.
#pragma once

#include <cstdint>
#include <string>

#include <llvm/IR/Function.h>
#include <llvm/Target/TargetMachine.h>

#include "base/result.h"
#include "softcuda/jit/lockstep/shape.h"
#include "softcuda/window.h"

namespace cuplex::softcuda::lockstep {

/// Replaces `thread` (EmitKernel with Build::lockstep) by a WarpCode of its name, for blocks of the given
/// shape. Returns the bytes of a warp's record. An error blamed on support: this kernel must run in another
/// way.
Result<uint32_t> Widen(llvm::Function& thread, const WarpShape& warp, const AddressWindow& window,
                       llvm::TargetMachine& target);

}  // namespace cuplex::softcuda::lockstep
