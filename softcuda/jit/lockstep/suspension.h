// Suspensions: makes the function of a warp one that returns at barriers and goes on there when it is called
// again. One thread.
#pragma once

#include <cstdint>

#include <llvm/IR/Function.h>

namespace cuplex::softcuda::lockstep {

/// Replaces every call of `warp.suspend` in a function (BlockContext*, Warp*) -> i32. What lives across one
/// is kept behind the Warp; returns how many bytes a record takes in all, a multiple of 64. The entry block
/// must hold nothing but allocas and loads of fields that stay as they are.
uint32_t SplitSuspensions(llvm::Function& function);

}  // namespace cuplex::softcuda::lockstep
