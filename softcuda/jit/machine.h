// Machine: LLVM's compiler in this process, and the cache of what it made before. Takes what makes an LLVM
// module, gives back the address of its function. Any thread.
//
// One Machine per Program, so that a program's code goes when it goes. What links it is the process's and
// stays.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "base/result.h"
#include "softcuda/jit/code_cache.h"

namespace llvm {
class TargetMachine;
}
namespace llvm::orc {
class JITDylib;
class LLJIT;
}  // namespace llvm::orc

namespace cuplex::softcuda {

class Machine {
 public:
  /// `level`: of optimisation, 0..3. `cache` may be null; otherwise it must outlive the machine. Nothing of
  /// LLVM is started before something is built.
  Machine(int level, CodeCache* cache);
  ~Machine();

  /// Emits a function named `symbol` into the module, and gives numbers that its caller wants with the code.
  using Emit = std::function<Result<std::vector<uint32_t>>(llvm::Module& module, const std::string& symbol)>;

  struct Built {
    void* address = nullptr;
    std::vector<uint32_t> facts;  // what Emit gave when the code was made, perhaps in another process
  };

  /// The code of `key`, which must say everything that `emit` depends on besides what the machine itself is.
  /// `emit` is called at most once, and not where the code was built before, here or in the cache. The module
  /// may refer to the functions of runtime.h and to what was defined; its code must hold no other address of
  /// this process.
  Result<Built> Build(const Digest& key, const Emit& emit);

  /// Gives `symbol` an address, in everything built afterwards. Once for each.
  Status Define(const std::string& symbol, uintptr_t address);

 private:
  Status Start();
  Result<std::vector<std::byte>> Generate(llvm::Module& module);

  const int level_;
  CodeCache* const cache_;
  std::mutex lock_;
  llvm::orc::LLJIT* jit_ = nullptr;      // the process's; under lock_ until it is there
  llvm::orc::JITDylib* code_ = nullptr;  // this machine's in it; likewise
  std::map<std::string, Built> built_;   // under lock_; by symbol
};

/// What code is generated for: this processor.
Result<std::unique_ptr<llvm::TargetMachine>> MakeTarget();

/// What this process generates code for and with: processor, LLVM and softcuda itself. Empty where that
/// cannot be told for certain, so that nothing may be kept.
const std::string& MachineIdentity();

}  // namespace cuplex::softcuda
