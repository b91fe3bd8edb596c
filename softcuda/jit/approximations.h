// Approximations: ex2, lg2, sin, cos and tanh of one float, as code that computes them in place: polynomials
// without branches, so that they widen to vectors and stay the same in every way of running a kernel. Each is
// better than the error that PTX allows (the clauses of `ex2` to `tanh` in its instruction set). Used by the
// emitters.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace cuplex::softcuda {

llvm::Value* ExpTwo(llvm::IRBuilder<>& ir, llvm::Value* x);  // relative error below 2^-22
llvm::Value* LogTwo(llvm::IRBuilder<>& ir, llvm::Value* x);  // below 2^-22, absolute where x is near 1
llvm::Value* Sine(llvm::IRBuilder<>& ir, llvm::Value* x);    // absolute, below 2^-22 for |x| up to 2^20
llvm::Value* Cosine(llvm::IRBuilder<>& ir, llvm::Value* x);  // the same
llvm::Value* HyperbolicTangent(llvm::IRBuilder<>& ir, llvm::Value* x);  // relative, below 2^-20

}  // namespace cuplex::softcuda
