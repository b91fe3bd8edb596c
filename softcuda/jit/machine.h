// Machine: LLVM's compiler in this process. Takes an LLVM module, gives back addresses of its functions. Any
// thread.
//
// One Machine per Program, so that a program's code goes when it goes.
#pragma once

#include <memory>
#include <string>

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "base/result.h"

namespace llvm::orc {
class LLJIT;
}

namespace cuplex::softcuda {

class Machine {
 public:
  static Result<std::unique_ptr<Machine>> Make(int level);
  ~Machine();

  /// A module for this machine: its layout and triple set.
  std::unique_ptr<llvm::Module> NewModule(llvm::LLVMContext& context, const std::string& name) const;

  /// Optimises, generates code, and returns the address of `symbol`.
  Result<void*> Build(std::unique_ptr<llvm::LLVMContext> context, std::unique_ptr<llvm::Module> module,
                      const std::string& symbol);

 private:
  Machine();
  int level_ = 2;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
};

}  // namespace cuplex::softcuda
