#include "softcuda/jit/machine.h"

#include <mutex>
#include <utility>

#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/DeadStoreElimination.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include "softcuda/jit/runtime.h"

namespace cuplex::softcuda {
namespace {

Error FromLlvm(llvm::Error error, const char* what) {
  return Fail(Blame::kOurs, "softcuda: {}: {}", what, llvm::toString(std::move(error)));
}

/// What code is generated for: this processor.
Result<llvm::orc::JITTargetMachineBuilder> Host() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  auto host = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!host) return FromLlvm(host.takeError(), "cannot tell what processor this is");
  host->setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  return *std::move(host);
}

/// What pays for one function full of registers kept in memory and of checked accesses. It makes code as good
/// as the compiler's default passes do, in half of their time.
llvm::FunctionPassManager KernelPasses() {
  llvm::FunctionPassManager f;
  f.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  f.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  f.addPass(llvm::SimplifyCFGPass());
  f.addPass(llvm::InstCombinePass());
  f.addPass(llvm::SimplifyCFGPass());
  llvm::LoopPassManager loops;
  loops.addPass(llvm::LoopRotatePass());
  loops.addPass(llvm::LICMPass(llvm::LICMOptions()));
  f.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops), /*UseMemorySSA=*/true));
  f.addPass(llvm::SimplifyCFGPass());
  f.addPass(llvm::InstCombinePass());
  f.addPass(llvm::GVNPass());
  f.addPass(llvm::DSEPass());
  f.addPass(llvm::ADCEPass());
  f.addPass(llvm::InstCombinePass());
  f.addPass(llvm::SimplifyCFGPass(llvm::SimplifyCFGOptions().hoistCommonInsts(true).sinkCommonInsts(true)));
  return f;
}

void Optimise(llvm::Module& module, llvm::TargetMachine& target, int level) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager groups;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&target);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(groups);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, groups, modules);
  size_t bodies = 0;
  for (const llvm::Function& f : module) bodies += !f.isDeclaration();
  llvm::ModulePassManager passes;
  if (level <= 0) {
    passes = builder.buildO0DefaultPipeline(llvm::OptimizationLevel::O0);
  } else if (level >= 3) {
    passes = builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3);
  } else if (bodies > 1) {  // functions to inline
    passes = builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2);
  } else {
    passes.addPass(llvm::createModuleToFunctionPassAdaptor(KernelPasses()));
  }
  passes.run(module, modules);
}

}  // namespace

Machine::Machine() = default;
Machine::~Machine() = default;

Result<std::unique_ptr<Machine>> Machine::Make(int level) {
  TRY(auto host, Host());
  auto jit = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(host)).create();
  if (!jit) return FromLlvm(jit.takeError(), "cannot start the compiler");
  auto machine = std::unique_ptr<Machine>(new Machine);
  machine->level_ = level;
  machine->jit_ = std::move(*jit);
  // Code sees the runtime's functions and nothing else of the process.
  llvm::orc::SymbolMap symbols;
  for (const RuntimeSymbol& s : RuntimeSymbols()) {
    symbols[machine->jit_->mangleAndIntern(s.name)] = {llvm::orc::ExecutorAddr::fromPtr(s.address),
                                                       llvm::JITSymbolFlags::Exported};
  }
  if (auto error = machine->jit_->getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(symbols)))) {
    return FromLlvm(std::move(error), "cannot define the runtime's functions");
  }
  return machine;
}

std::unique_ptr<llvm::Module> Machine::NewModule(llvm::LLVMContext& context, const std::string& name) const {
  auto module = std::make_unique<llvm::Module>(name, context);
  module->setDataLayout(jit_->getDataLayout());
  module->setTargetTriple(jit_->getTargetTriple().str());
  return module;
}

Result<void*> Machine::Build(std::unique_ptr<llvm::LLVMContext> context, std::unique_ptr<llvm::Module> module,
                             const std::string& symbol) {
  TRY(auto host, Host());
  auto target = host.createTargetMachine();
  if (!target) return FromLlvm(target.takeError(), "cannot generate code for this processor");
  for (llvm::Function& f : *module) {
    if (f.isDeclaration()) continue;
    f.addFnAttr("target-cpu", (*target)->getTargetCPU());
    f.addFnAttr("target-features", (*target)->getTargetFeatureString());
  }
  Optimise(*module, **target, level_);
  if (auto error = jit_->addIRModule(llvm::orc::ThreadSafeModule(std::move(module), std::move(context)))) {
    return FromLlvm(std::move(error), "cannot add a kernel's code");
  }
  auto address = jit_->lookup(symbol);
  if (!address) return FromLlvm(address.takeError(), "cannot generate a kernel's code");
  return address->toPtr<void*>();
}

}  // namespace cuplex::softcuda
